//! Every page there is, in every state a person meets it in, looked at closely in both languages.

use serde_json::json;

use super::inspect::{Care, IN_ENGLISH, IN_RUSSIAN, Inspector, Words};
use super::storefront::Storefront;
use super::{driver, redirected, start_login};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

/// A walk through the pages of a world.
struct Tour {
    world: World,
    inspector: Inspector,
    is_russian: bool,
}

impl Tour {
    fn new(words: Words) -> Self {
        let setup = Setup::new().quiet().logged_out().not_served();
        Self {
            world: setup.start(),
            is_russian: words.lang == "ru",
            inspector: Inspector::new(words),
        }
    }

    /// Opens a page and inspects it; its title in English and Russian.
    #[track_caller]
    fn see(&self, name: &str, address: &str, title: [&str; 2]) {
        self.inspector.person.open(&self.at(address));
        self.see_here(name, title);
        let complaints = self.inspector.person.complaints();
        assert!(complaints.is_empty(), "{name}: {complaints:?}");
    }

    /// Inspects the page that is open, or about to be.
    #[track_caller]
    fn see_here(&self, name: &str, [en, ru]: [&str; 2]) {
        let title = if self.is_russian { ru } else { en };
        // A click is done before the page it leads to is there.
        let person = &self.inspector.person;
        wait_until(PATIENCE, &format!("the page `{title}`"), || {
            person.title().starts_with(title)
        });
        let care = if VARIANTS.contains(&name) {
            Care::Glance
        } else {
            Care::Whole
        };
        self.inspector.inspect(name, title, care);
    }

    /// Inspects the page that is open and says that something cannot be done; the browser notes its HTTP status.
    #[track_caller]
    fn see_refusal(&self, name: &str, status: u16, title: [&str; 2]) {
        self.see_here(name, title);
        let complaints = self.inspector.person.complaints();
        let wanted = format!("the server responded with a status of {status}");
        assert!(
            matches!(complaints.as_slice(), [one] if one.contains(&wanted)),
            "{name}: {complaints:?}"
        );
    }

    fn at(&self, address: &str) -> String {
        if address.starts_with('/') {
            self.world.page(address)
        } else {
            address.to_owned()
        }
    }

    /// Opens what is folded away. Not by a click: the focus would be there already when its order is looked at.
    #[track_caller]
    fn unfold(&self) {
        let open = "document.querySelectorAll('details').forEach(one => { one.open = true })";
        self.inspector.person.script(open, &[]);
    }

    #[track_caller]
    fn becomes(&self, order: &str, change: &serde_json::Value) {
        let path = format!("/invoices/{order}/status");
        self.world.control("POST", &path, change);
    }
}

/// States of pages that say little else than another state of the same page, which is looked at as a whole.
const VARIANTS: [&str; 14] = [
    "home-empty",
    "activate-unknown",
    "activate-refused",
    "cabinet-empty",
    "cabinet-waiting",
    "faults-none",
    "faults-one",
    "pay-occupied",
    "pay-too-late",
    "pay-refunded",
    "pay-less",
    "pay-canceled",
    "pay-expired",
    "pay-missing",
];

const HOME: [&str; 2] = [
    "The imitation payment service",
    "Имитация платёжного сервиса",
];
const LOGIN: [&str; 2] = ["Confirm a login", "Подтвердить вход"];
const CABINET: [&str; 2] = ["Cabinet", "Кабинет"];
const FAULTS: [&str; 2] = ["Faults", "Сбои"];
const PAYMENT: [&str; 2] = ["Payment: Лавка у моста", "Оплата: Лавка у моста"];

fn before_a_login(tour: &Tour) {
    tour.see("home-empty", "/", HOME);
    tour.see("activate", "/activate", LOGIN);
    tour.see("activate-unknown", "/activate?code=ABCD-0000", LOGIN);
    tour.see("cabinet-empty", "/cabinet", CABINET);
    tour.see("faults-none", "/cabinet/faults", FAULTS);
}

fn logins(tour: &Tour) {
    let world = &tour.world;
    let (mut login, address, code) = start_login(world);
    tour.see("activate-code", &address, LOGIN);
    tour.see("cabinet-waiting", "/cabinet", CABINET);
    let shop = json!({ "userCode": code, "shop": "Лавка у моста" });
    world.control("POST", "/login/confirm", &shop);
    assert_eq!(login.wait(PATIENCE), 0, "{}", login.stderr());
    let confirmed = ["Login confirmed", "Вход подтверждён"];
    tour.see("activate-confirmed", &address, confirmed);
    let (mut login, address, code) = start_login(world);
    world.control("POST", "/login/refuse", &json!({ "userCode": code }));
    assert_eq!(login.wait(PATIENCE), 12, "{}", login.stderr());
    tour.see(
        "activate-refused",
        &address,
        ["Login refused", "Вход отклонён"],
    );
    // One that was revoked beside the one in use.
    world.control(
        "POST",
        "/tokens/issue",
        &json!({ "clientName": "an old server of the shop" }),
    );
    let state = world.control("GET", "/state", &serde_json::Value::Null);
    let id = state.pointer("/tokens/1/id").expect("the second token");
    world.control("POST", "/tokens/revoke", &json!({ "token": id }));
}

fn payments(tour: &Tour, site: &Storefront) {
    let (world, person) = (&tour.world, &tour.inspector.person);
    let page = redirected(world, "A-1", site);
    tour.see("pay-choose", &page, PAYMENT);
    world.control("POST", "/pool", &json!({ "free": 0 }));
    person.open(&page);
    person.click("button[value=SBP]");
    let occupied = [
        "All requisites are occupied. Go back and choose again later.",
        "Все реквизиты заняты. Вернитесь и выберите снова позже.",
    ];
    tour.see_refusal("pay-occupied", 409, occupied);
    world.control("POST", "/pool", &json!({ "free": 20 }));
    person.click("main a.button");
    person.click("button[value=SBP]");
    person.sees(".requisites", "+7 000");
    tour.see_here("pay-phone", PAYMENT);
    tour.becomes("A-1", &json!({ "status": "paid" }));
    person.click("button[value=cancel]");
    let over = [
        "That cannot happen to this invoice any more.",
        "С этой заявкой такого уже не может случиться.",
    ];
    tour.see_refusal("pay-too-late", 409, over);
    tour.see("pay-paid", &page, PAYMENT);
    tour.becomes("A-1", &json!({ "status": "refunded" }));
    tour.see("pay-refunded", &page, PAYMENT);
    world
        .open("A-2", "599.80", &["--method", "TO_CARD"])
        .ends_with(0);
    let direct = world.control("GET", "/state", &serde_json::Value::Null);
    let direct = direct
        .pointer("/invoices/1/page")
        .and_then(|page| page.as_str().map(str::to_owned));
    let direct = direct.expect("its page");
    tour.see("pay-card", &direct, PAYMENT);
    tour.becomes("A-2", &json!({ "status": "paid", "amount": "598.80" }));
    tour.see("pay-less", &direct, PAYMENT);
    let page = redirected(world, "A-3-which-has-a-longer-number-in-the-shop", site);
    tour.becomes(
        "A-3-which-has-a-longer-number-in-the-shop",
        &json!({ "status": "canceled" }),
    );
    tour.see("pay-canceled", &page, PAYMENT);
    let page = redirected(world, "A-4", site);
    tour.becomes("A-4", &json!({ "status": "expired" }));
    tour.see("pay-expired", &page, PAYMENT);
}

fn after_all(tour: &Tour) {
    let (world, person) = (&tour.world, &tour.inspector.person);
    wait_until(PATIENCE, "all that was sent to be taken", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome = 'open'") == "0"
    });
    world.faults(&json!({ "repeat": true, "delay_ms": 100, "rates": { "late": 5, "api": 1 } }));
    world.faults(&json!({ "lose": 2, "presentation": "bearer", "invoice": "A-1" }));
    world.faults(
        &json!({ "api_status": { "endpoint": "create", "status": 500, "times": 3, "body": "{}" } }),
    );
    tour.see("faults-one", "/cabinet/faults?invoice=A-1", FAULTS);
    person.open(&world.page("/cabinet/faults"));
    tour.unfold();
    tour.see_here("faults-set", FAULTS);
    tour.see("home", "/", HOME);
    tour.see("cabinet", "/cabinet", CABINET);
    person.click("td a[href^='/cabinet/invoices/']");
    person.sees("h1", "A-4");
    tour.unfold();
    tour.see_here("invoice", ["Order A-4", "Заказ A-4"]);
    let nowhere = ["There is no such page.", "Такой страницы нет."];
    for (name, path) in [("missing", "/nowhere"), ("pay-missing", "/pay/nobody")] {
        person.open(&world.page(path));
        tour.see_refusal(name, 404, nowhere);
    }
}

fn tour(words: Words) {
    let mut tour = Tour::new(words);
    before_a_login(&tour);
    logins(&tour);
    tour.world.start_serve();
    let site = Storefront::open("");
    payments(&tour, &site);
    after_all(&tour);
}

#[test]
fn every_page_in_english() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    tour(IN_ENGLISH);
}

#[test]
fn every_page_in_russian() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    tour(IN_RUSSIAN);
}
