//! The page that lets things go wrong: what is set there by a person happens, to all invoices or to one.

use super::person::Person;
use super::{ENGLISH, driver, ends, visitor};
use crate::harness::{Setup, World, skip};

/// The form for notifications.
const NOTIFICATIONS: &str = "form:has(#what-notifications)";

/// Goes from the cabinet to the page of an order, and on to its payment page.
#[track_caller]
fn pays(person: &Person, world: &World, order: &str) {
    shows(person, world, order);
    person.click("main a.button");
    person.click("button[value=paid]");
    person.sees("[role=status]", "The payment has arrived.");
}

#[track_caller]
fn shows(person: &Person, world: &World, order: &str) {
    person.open(&world.page("/cabinet"));
    let link = "const all = [...document.querySelectorAll('td a')]; \
        return all.find(link => link.innerText === arguments[0]).getAttribute('href')";
    let path = person.script(link, &[order.into()]);
    person.click(&format!("a[href='{}']", path.as_str().expect("a path")));
    person.sees("h1", order);
}

#[track_caller]
fn sets(person: &Person, what: &str, times: &str) {
    person.click(&format!("{NOTIFICATIONS} option[value={what}]"));
    person.click(&format!("{NOTIFICATIONS} option[value='{times}']"));
    person.click(&format!("{NOTIFICATIONS} button"));
}

#[test]
fn what_is_set_on_the_page_goes_wrong() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let world = Setup::new().quiet().start();
    let person = visitor(ENGLISH);
    for order in ["A-1", "A-2", "A-3"] {
        world.create(order);
    }

    // Of all, once: the next one is lost, and the merchant sends it again.
    person.open(&world.page("/cabinet/faults"));
    person.sees("main", "Nothing: the service works as it should.");
    sets(&person, "lose", "1");
    person.sees(".set", "never sent, once more");
    pays(&person, &world, "A-1");
    shows(&person, &world, "A-1");
    person.sees("tbody", "lost on purpose");
    assert_eq!(world.invoice("A-1", "status"), "new");
    person.click("button[value=notify]");
    ends(&world, "A-1", 0);

    // Of one alone, until it is taken off.
    shows(&person, &world, "A-2");
    person.click("a[href*='/cabinet/faults?invoice=']");
    person.sees("h1", "Faults");
    sets(&person, "lose", "true");
    person.sees(".set", "never sent, always");
    pays(&person, &world, "A-2");
    pays(&person, &world, "A-3");
    ends(&world, "A-3", 0);
    shows(&person, &world, "A-2");
    person.sees("tbody", "lost on purpose");
    assert_eq!(world.invoice("A-2", "status"), "new");
    person.open(&world.page("/cabinet/faults"));
    person.click("button[value=reset]");
    person.sees("main", "Nothing: the service works as it should.");
    person.leaves();
}
