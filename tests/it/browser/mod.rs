//! The sandbox's pages as people meet them, in a Chromium without a window: the login, the payment and the faults from end
//! to end, without scripts; each page in both languages, on a phone and a desktop, light and dark, by keyboard and for a
//! screen reader. What is at stake: what a merchant is shown is what he judges the rest by.
//!
//! Begin with [`person::Person`]. The pictures of all pages are in the directory that `pages` prints.

mod admin;
mod driver;
mod faults;
mod inspect;
mod keyboard;
mod login;
mod pages;
mod pay;
mod person;
mod storefront;

use serde_json::Value;

use self::driver::Scripts;
use self::person::Person;
use self::storefront::Storefront;
use crate::harness::{PATIENCE, Process, Ran, World, wait_for};

/// English, as a browser asks for it.
const ENGLISH: &str = "en-US,en";
/// Russian.
const RUSSIAN: &str = "ru-RU,ru";

/// Somebody whose browser runs no scripts.
#[track_caller]
fn visitor(languages: &str) -> Person {
    Person::reading(languages, Scripts::Off)
}

/// `tilld login`, and the address and the code it tells.
#[track_caller]
fn start_login(world: &World) -> (Process, String, String) {
    let login = world.start_tilld(&["login", "--json"]);
    let told = wait_for(PATIENCE, "the code to compare", || {
        let line: Value = serde_json::from_str(login.stdout().lines().next()?).ok()?;
        let text = |field| Some(line.get(field)?.as_str()?.to_owned());
        Some((text("verification_url")?, text("user_code")?))
    });
    (login, told.0, told.1)
}

/// Opens a Redirect invoice of 599.80 RUB that leads back to this site; gives its payment page.
#[track_caller]
fn redirected(world: &World, order: &str, site: &Storefront) -> String {
    let flags = site.flags();
    let flags = flags.each_ref().map(String::as_str);
    let ran = world.open(order, "599.80", &flags).ends_with(0);
    ran.text("payment_url")
}

/// Waits for the end of an invoice as the shop does, and looks that it has this code.
#[track_caller]
fn ends(world: &World, order: &str, code: i32) -> Ran {
    world.wait(order, "20s").ends_with(code)
}
