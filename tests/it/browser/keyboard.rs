//! A login and a payment by keyboard alone.

use super::person::{DOWN, ENTER, SPACE};
use super::storefront::Storefront;
use super::{RUSSIAN, driver, ends, redirected, start_login, visitor};
use crate::harness::{PATIENCE, Setup, skip};

#[test]
fn a_login_and_a_payment_need_no_mouse() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let mut world = Setup::new().quiet().logged_out().not_served().start();
    let site = Storefront::open("");
    let person = visitor(RUSSIAN);

    let (mut login, _, code) = start_login(&world);
    person.open(&world.page("/"));
    person.tab_to("nav a[href='/activate']");
    person.press(&[ENTER]);
    person.sees("h1", "Подтвердить вход");
    person.tab_to("#code");
    let keys: Vec<String> = code.chars().map(String::from).collect();
    let mut keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    keys.push(ENTER);
    person.press(&keys);
    person.sees(".code", &code);
    person.tab_to("input[type=radio]");
    person.press(&[DOWN]);
    person.tab_to("button[value=confirm]");
    person.press(&[ENTER]);
    person.sees("h1", "Вход подтверждён");
    assert_eq!(login.wait(PATIENCE), 0, "{}", login.stderr());
    let who = world.tilld(&["whoami", "--json"]).ends_with(0);
    assert_eq!(who.text("shop_name"), "Лавка у моста");

    world.start_serve();
    person.open(&redirected(&world, "A-1", &site));
    person.tab_to("button[value=SBP]");
    person.press(&[SPACE]);
    person.sees(".requisites", "+7 000");
    person.tab_to("button[value=paid]");
    person.press(&[ENTER]);
    person.sees("[role=status]", "Платёж получен.");
    person.tab_to("main a.button");
    person.press(&[ENTER]);
    person.arrives(&site.page("success"));
    ends(&world, "A-1", 0);
    person.leaves();
}
