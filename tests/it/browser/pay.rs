//! A Redirect invoice over its payment page, to each of the shop's addresses and to the ledger; the time that runs out, and
//! the money that comes after it.

use serde_json::Value;

use super::person::Person;
use super::storefront::Storefront;
use super::{ENGLISH, RUSSIAN, driver, ends, redirected, visitor};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

/// Follows the page's way back to the shop.
#[track_caller]
fn goes_back(person: &Person, site: &Storefront, page: &str) {
    person.click("main a.button");
    person.arrives(&site.page(page));
    assert_eq!(person.read("h1"), format!("/{page}"));
}

#[test]
fn each_end_leads_to_its_address_and_into_the_ledger() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let setup = Setup::new().quiet().noting_hook("fulfil", &["paid"]);
    let world = setup.start();
    let site = Storefront::open("");
    let person = visitor(RUSSIAN);

    person.open(&redirected(&world, "A-1", &site));
    assert_eq!(person.read(".amount"), "599.80 RUB");
    person.sees("h2", "Как вы хотите оплатить?");
    person.click("button[value=SBP]");
    person.sees("h2", "Переведите сумму по номеру телефона");
    assert!(person.read(".requisites").contains("+7 000"));
    person.click("button[value=paid]");
    person.sees("[role=status]", "Платёж получен.");
    goes_back(&person, &site, "success");
    ends(&world, "A-1", 0);

    person.open(&redirected(&world, "A-2", &site));
    person.click("button[value=cancel]");
    person.sees("[role=status]", "Оплата отменена.");
    goes_back(&person, &site, "cancel");
    ends(&world, "A-2", 5);

    // What ends without money may be paid all the same.
    let page = redirected(&world, "A-3", &site);
    person.open(&page);
    person.click("button[value=TO_CARD]");
    person.sees("h2", "на эту карту");
    person.click("button[value=expire]");
    person.sees("[role=status]", "Время на оплату вышло.");
    goes_back(&person, &site, "error");
    ends(&world, "A-3", 5);
    person.open(&page);
    person.click("button[value=paid]");
    person.sees("[role=status]", "Платёж получен.");
    wait_until(PATIENCE, "the late money to be recorded", || {
        world.invoice("A-3", "outcome") == "paid"
    });
    world.settle();
    let ran = world.hook_log("fulfil");
    let orders: Vec<&str> = ran
        .iter()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(orders, ["A-1", "A-3"], "{ran:?}");
    assert_eq!(site.visited(), ["/success", "/cancel", "/error"]);
    person.leaves();
}

#[test]
fn the_time_runs_out_by_itself_and_the_customer_pays_late() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let setup = Setup::new().quiet().noting_hook("fulfil", &["paid"]);
    // The half hour of a payment in a second.
    let world = setup.sandbox(&["--speed=1800", "--window=1800"]).start();
    let person = visitor(ENGLISH);
    person.open(&world.page("/"));
    person.sees("dl", "times pass 1800 times faster");
    // H2H: its customer was told at once where to pay, so he can pay late.
    world.open("A-1", "599.80", &[]).ends_with(0);
    let state = world.control("GET", "/state", &Value::Null);
    let page = state.pointer("/invoices/0/page").and_then(Value::as_str);
    let page = page.expect("its page");
    wait_until(PATIENCE, "the time to be over", || {
        person.open(page);
        person.read("[role=status]") == "The time to pay is over."
    });
    assert!(person.read(".play button").contains("Pay late"));
    person.click("button[value=paid]");
    person.sees("[role=status]", "The payment has arrived.");
    wait_until(PATIENCE, "the late money to be recorded", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    person.leaves();
}
