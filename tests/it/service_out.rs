//! A service that is not there, or something that answers in its place. What is at stake: payments that nobody finds, while every
//! command says that all is well, and a merchant who looks for the fault in an amount.

use std::thread;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

const PAGE: &str =
    "<html><head><title>Attention Required!</title></head><body>blocked</body></html>";

/// The sentence of the alert with this reason, if it stands.
pub(crate) fn alert(world: &World, reason: &str) -> Option<String> {
    let status = world.tilld(&["status", "--json"]).json();
    let needs = status.get("needs").and_then(Value::as_array);
    let need = needs
        .expect("a list")
        .iter()
        .find(|need| need["reason"] == reason)?;
    Some(need["told"].as_str().expect("a text").to_owned())
}

/// Every endpoint answers so, until told otherwise.
fn answer_all(world: &World, status: u16, body: &str) {
    for endpoint in ["create", "fetch", "login", "token"] {
        let answer = json!({ "endpoint": endpoint, "status": status, "body": body, "times": true });
        world.faults(&json!({ "api_status": answer }));
    }
}

fn setup() -> Setup {
    Setup::new()
        .set("poller.schedule", "[{ until_s = 86400, every_s = 1 }]")
        .set("attention.outage_after_s", 1)
}

#[test]
fn a_page_in_the_place_of_the_answer_is_an_outage_and_is_named() {
    // Each waits for seconds, and none for another.
    thread::scope(|scope| {
        for status in [200, 403, 503] {
            scope.spawn(move || a_page_is_an_outage(status));
        }
    });
}

fn a_page_is_an_outage(status: u16) {
    let world = setup().start();
    let issued = world.create("A-1");
    answer_all(&world, status, PAGE);
    wait_until(PATIENCE, "the alert", || alert(&world, "outage").is_some());
    let told = alert(&world, "outage").expect("it stands");
    assert!(told.contains("Attention Required!"), "{told}");
    assert!(told.contains(&status.to_string()), "{told}");
    world.tilld(&["status"]).ends_with(16);
    // No other invoice is blamed, and no amount.
    assert_eq!(alert(&world, "not_found"), None);
    let refused = world.try_create("A-2");
    assert!(
        refused.stderr.contains("Attention Required!"),
        "{refused:?}"
    );
    assert!(!refused.stderr.contains("amount"), "{refused:?}");
    let code = if status == 403 { 8 } else { 9 };
    assert_eq!(refused.code, code, "{refused:?}");
    let login = world.tilld(&["login"]);
    assert!(login.stderr.contains("Attention Required!"), "{login:?}");

    world.faults(&json!({ "reset": true }));
    wait_until(PATIENCE, "the end of the alert", || {
        alert(&world, "outage").is_none()
    });
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
}

/// Nothing is open, so no invoice is due to be polled.
#[test]
fn an_outage_ends_although_nothing_is_due() {
    let world = setup().start();
    let issued = world.create("A-1");
    answer_all(&world, 502, "");
    wait_until(PATIENCE, "the alert", || alert(&world, "outage").is_some());
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    assert_eq!(world.invoice("A-1", "outcome"), "paid");
    world.faults(&json!({ "reset": true }));
    wait_until(PATIENCE, "the end of the alert", || {
        alert(&world, "outage").is_none()
    });
}

/// A redirect for every request.
#[test]
fn a_service_that_points_elsewhere_is_an_outage() {
    let world = setup().start();
    world.create("A-1");
    answer_all(&world, 302, "");
    wait_until(PATIENCE, "the alert", || alert(&world, "outage").is_some());
    let told = alert(&world, "outage").expect("it stands");
    assert!(told.contains("302"), "{told}");
}

/// The service rejects the token twice, five seconds apart, and then takes it again.
#[test]
fn a_create_that_succeeds_ends_the_stop_of_polls() {
    let world = setup().start();
    world.create("A-1");
    let refused = json!({ "endpoint": "fetch", "status": 401, "body": "", "times": true });
    world.faults(&json!({ "api_status": refused }));
    wait_until(PATIENCE, "the alert", || alert(&world, "login").is_some());
    world.faults(&json!({ "reset": true }));
    let polls = world.requests("fetch");
    let opened = world.wish("A-2");
    assert_eq!(opened.status, 201, "{opened:?}");
    wait_until(PATIENCE, "polls", || world.requests("fetch") > polls);
    wait_until(PATIENCE, "the end of the alert", || {
        alert(&world, "login").is_none()
    });
}

/// Nothing is open, so only the create says that the login is no good.
#[test]
fn a_create_that_is_rejected_for_its_login_is_an_alert() {
    let world = setup().start();
    world.control("POST", "/tokens/revoke", &json!({}));
    let refused = world.wish("A-1");
    assert_eq!(
        refused.json().pointer("/code"),
        Some(&json!(4)),
        "{refused:?}"
    );
    wait_until(PATIENCE, "the alert", || alert(&world, "login").is_some());
}

/// The service answers about others, and never about these.
#[test]
fn an_invoice_that_alone_is_not_answered_past_its_horizon_is_an_alert() {
    // Its end is counted from its opening where there is no `expireAt`.
    let world = setup().set("poller.horizon_s", 10).start();
    let urls =
        ["success", "cancel", "error"].map(|end| format!("--{end}-url=https://shop.example/"));
    let flags = ["--redirect"].into_iter();
    let flags: Vec<&str> = flags.chain(urls.iter().map(String::as_str)).collect();
    for (order, status, body) in [("A-1", 502, ""), ("A-2", 200, "{}")] {
        world.open(order, "1500", &flags).ends_with(0);
        let answer = json!({ "endpoint": "fetch", "status": status, "body": body, "times": true });
        let id = world.invoice(order, "invoice_id");
        world.faults(&json!({ "invoice": id, "api_status": answer }));
    }
    // One that is answered about.
    world.create("A-3");
    let told = |order: &str| alert(&world, "unanswered").is_some_and(|told| told.contains(order));
    wait_until(PATIENCE, "their failures", || {
        world.value("SELECT count(*) FROM poll WHERE failures > 1") == "2"
    });
    assert!(!told("A-1") && !told("A-2"), "its time is not over");
    let open_still = "SELECT count(*) FROM invoices WHERE created_ms > (unixepoch() - 11) * 1000";
    wait_until(PATIENCE, "the horizon", || world.value(open_still) == "0");
    // As many as in some minutes, each a little later.
    world
        .neighbour()
        .tamper("UPDATE poll SET failures = 5, asked_ms = 1, due_ms = 1 WHERE failures > 1");
    wait_until(PATIENCE, "the alert", || told("A-1") && told("A-2"));
    assert_eq!(alert(&world, "outage"), None);
    // An operator ends it, and so does an answer.
    world.tilld(&["ack", "A-2"]).ends_with(0);
    world.tilld(&["invoice", "poll", "A-2"]).ends_with(8);
    assert!(told("A-1") && !told("A-2"), "it was acknowledged");
    let id = world.invoice("A-1", "invoice_id");
    world.faults(&json!({ "invoice": id, "reset": true }));
    world.tilld(&["invoice", "poll", "A-1"]).ends_with(0);
    assert_eq!(alert(&world, "unanswered"), None);
}

/// The login is of another shop, or the service has lost them.
#[test]
fn open_invoices_that_the_service_does_not_know_are_an_alert() {
    let world = setup().start();
    for order in ["A-1", "A-2"] {
        world.create(order);
    }
    let unknown = json!({ "endpoint": "fetch", "status": 404, "body": r#"{"error":"not_found"}"#, "times": true });
    world.faults(&json!({ "api_status": unknown }));
    wait_until(PATIENCE, "refusals", || {
        world.value("SELECT count(*) FROM poll WHERE gone_since_ms IS NOT NULL") == "2"
    });
    assert_eq!(alert(&world, "not_found"), None);
    // The service may need some minutes to find its own.
    world
        .neighbour()
        .tamper("UPDATE poll SET gone_since_ms = gone_since_ms - 600000");
    wait_until(PATIENCE, "the alert", || {
        alert(&world, "not_found").is_some_and(|told| told.contains("2 invoices"))
    });
}
