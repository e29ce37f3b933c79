//! `POST /v1/invoices`: one order, one invoice, however many ask and whoever leaves.

use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::client::{Line, problem, text, wish};
use crate::create::stub;
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Askers at once: pages of one customer who reloads, and more.
const AT_ONCE: usize = 200;

/// Openings under way at once, as the daemon bounds them.
const OPENINGS: usize = 128;

fn free(world: &World, requisites: u64) {
    world.control("POST", "/pool", &json!({ "free": requisites }));
}

/// A world with a service that holds answers back and may go away.
fn beside(shop: &stub::Stub) -> World {
    prepared(Setup::new(), shop)
}

fn prepared(setup: Setup, shop: &stub::Stub) -> World {
    let mut world = setup.quiet().service(&shop.url()).not_served().start();
    world.tilld(&["login"]).ends_with(0);
    world.start_serve();
    world
}

#[test]
fn an_order_is_opened_once_and_given_again() {
    let world = Setup::new().quiet().start();
    let opened = world.wish("A/1");
    assert_eq!(opened.status, 201, "{opened:?}");
    assert_eq!(text(&opened, "/opening"), "answered");
    assert_eq!(text(&opened, "/amount_asked"), "599.80");
    assert!(
        opened.json().pointer("/requisites/phoneNumber").is_some(),
        "{opened:?}"
    );
    let reference = text(&opened, "/ref");
    let at = format!("/v1/invoices/{reference}");
    assert_eq!(opened.header("location"), Some(at.as_str()));

    let again = world.wish("A/1");
    assert_eq!((again.status, &again.body), (200, &opened.body));
    assert_eq!(again.header("location"), None, "nothing was made");
    for name in [at.as_str(), "/v1/invoices/A%2F1"] {
        let shown = world.call("GET", name, "");
        assert_eq!((shown.status, &shown.body), (200, &opened.body), "{name}");
    }
    assert_eq!(world.requests("create"), 1);

    let differs = world.call("POST", "/v1/invoices", &wish("A/1", &json!("600")));
    problem(&differs, 409, "error");
    assert_eq!(text(&differs, "/invoice/ref"), reference);
    assert_eq!(world.requests("create"), 1);
}

/// A page that two hundred customers' clicks load opens one invoice with one request.
#[test]
fn two_hundred_who_ask_for_one_order_at_once_get_one_invoice() {
    let mut shop = stub::start();
    shop.holds_creates();
    let world = beside(&shop);
    let body = wish("A-1", &json!("599.80"));
    let mut lines: Vec<Line> = (0..AT_ONCE)
        .map(|_| Line::ask(&world.control_socket(), "POST", "/v1/invoices", &[], &body))
        .collect();
    shop.next_create();
    world.round_trips();
    shop.lets_go();
    let answers: Vec<_> = lines
        .iter_mut()
        .map(|line| line.answer().expect("an answer"))
        .map(|answer| (answer.status, answer.body))
        .collect();
    let (status, body) = answers.first().expect("some");
    assert_eq!(*status, 201, "{body}");
    assert!(
        answers
            .iter()
            .all(|(other, text)| other == status && text == body)
    );
    assert_eq!(shop.further_creates(), 0, "one request left");
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "1");
}

#[test]
fn occupied_requisites_are_told_and_waited_for_as_is_preferred() {
    let world = Setup::new().quiet().start();
    free(&world, 0);
    let full = world.wish("A-1");
    problem(&full, 503, "no_requisites");
    assert!(
        full.header("retry-after")
            .is_some_and(|wait| wait.parse::<u32>().is_ok())
    );

    let before = world.requests("create");
    let body = wish("A-2", &json!("599.80"));
    let prefers = [("Prefer", "respond-async, wait=60")];
    let mut waits = Line::ask(
        &world.control_socket(),
        "POST",
        "/v1/invoices",
        &prefers,
        &body,
    );
    wait_until(PATIENCE, "two tries", || {
        world.requests("create") >= before + 2
    });
    // Whoever is in a hurry is not made to wait by one who is not.
    problem(&world.wish("A-2"), 503, "no_requisites");
    free(&world, 5);
    let opened = waits.answer().expect("an answer");
    assert_eq!(opened.status, 201, "{opened:?}");
    assert_eq!(world.wish("A-2").status, 200);
    let of_order = "SELECT count(*) FROM invoices WHERE order_id = 'A-2' AND opening = 'answered'";
    assert_eq!(world.value(of_order), "1");
}

#[test]
fn a_stop_ends_the_waiting_for_requisites() {
    let mut world = Setup::new().quiet().start();
    free(&world, 0);
    let body = wish("A-1", &json!("599.80"));
    let socket = world.control_socket();
    let mut waits = Line::ask(
        &socket,
        "POST",
        "/v1/invoices",
        &[("Prefer", "wait=300")],
        &body,
    );
    wait_until(PATIENCE, "a try", || world.requests("create") >= 1);
    assert_eq!(world.stop_serve(super::events::STOPS_WITHIN), 0);
    problem(&waits.answer().expect("an answer"), 503, "no_requisites");
}

/// The page would have had it; but a request that leaves during a stop may be cut off.
#[test]
fn a_stop_ends_the_waiting_without_the_payment_page() {
    let mut world = Setup::new().quiet().start();
    free(&world, 0);
    let mut body: Value = serde_json::from_str(&wish("A-1", &json!("599.80"))).expect("JSON");
    let fields = body.as_object_mut().expect("fields");
    fields.insert("fallback".to_owned(), json!("redirect"));
    for name in ["success_url", "cancel_url", "error_url"] {
        fields.insert(name.to_owned(), json!("https://shop.example/"));
    }
    let (socket, prefers) = (world.control_socket(), [("Prefer", "wait=300")]);
    let mut waits = Line::ask(&socket, "POST", "/v1/invoices", &prefers, &body.to_string());
    wait_until(PATIENCE, "a try", || world.requests("create") >= 1);
    assert_eq!(world.stop_serve(super::events::STOPS_WITHIN), 0);
    problem(&waits.answer().expect("an answer"), 503, "no_requisites");
}

#[test]
fn what_waits_for_its_turn_at_a_stop_is_not_sent() {
    let mut shop = stub::start();
    shop.holds_creates();
    // One is sent at a time, so the second waits for its turn.
    let mut world = prepared(Setup::new().set("poller.concurrency", "1"), &shop);
    let socket = world.control_socket();
    let ask = |order: &str| {
        let body = wish(order, &json!("599.80"));
        Line::ask(&socket, "POST", "/v1/invoices", &[], &body)
    };
    let mut sent = ask("A-1");
    shop.next_create();
    let mut waits = ask("A-2");
    world.round_trips();
    world.ask_to_stop();
    let refused = waits.answer().expect("an answer");
    problem(&refused, 503, "unreachable");
    shop.lets_go();
    assert_eq!(sent.answer().expect("an answer").status, 201);
    assert_eq!(world.serve_ends(PATIENCE), 0);
    assert_eq!(shop.further_creates(), 0);
}

#[test]
fn more_openings_than_may_be_under_way_are_asked_to_come_again() {
    let mut world = Setup::new().quiet().start();
    free(&world, 0);
    let (socket, prefers) = (world.control_socket(), [("Prefer", "wait=300")]);
    let waiting: Vec<Line> = (0..OPENINGS)
        .map(|number| {
            let body = wish(&format!("A-{number}"), &json!("599.80"));
            Line::ask(&socket, "POST", "/v1/invoices", &prefers, &body)
        })
        .collect();
    world.round_trips();
    let refused = world.wish("B-1");
    problem(&refused, 429, "error");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(world.call("GET", "/v1/status", "").status, 200);
    assert_eq!(world.stop_serve(super::events::STOPS_WITHIN), 0);
    drop(waiting);
}

#[test]
fn a_lost_answer_is_told_as_unknown_and_nothing_is_sent_again() {
    let world = Setup::new().quiet().start();
    world.faults(&json!({ "drop_create_answer": 1 }));
    let lost = world.wish("A-1");
    assert_eq!(lost.status, 202, "{lost:?}");
    assert_eq!(text(&lost, "/opening"), "unknown");
    for _ in 0..2 {
        let again = world.wish("A-1");
        assert_eq!(
            (again.status, text(&again, "/opening")),
            (202, "unknown".to_owned())
        );
    }
    assert_eq!(world.requests("create"), 1);
    let mut anew: Value = serde_json::from_str(&wish("A-1", &json!("599.80"))).expect("JSON");
    anew.as_object_mut()
        .expect("fields")
        .insert("new".to_owned(), json!(true));
    let anew = world.call("POST", "/v1/invoices", &anew.to_string());
    assert_eq!(anew.status, 201, "{anew:?}");
    assert_eq!(world.requests("create"), 2);
}

#[test]
fn what_was_begun_for_a_client_who_left_is_finished() {
    let mut shop = stub::start();
    shop.holds_creates();
    let world = beside(&shop);
    let body = wish("A-1", &json!("599.80"));
    let leaves = Line::ask(&world.control_socket(), "POST", "/v1/invoices", &[], &body);
    shop.next_create();
    drop(leaves);
    wait_until(PATIENCE, "it to be noticed", || {
        world.serve_log().contains("left before the answer")
    });
    shop.lets_go();
    wait_until(PATIENCE, "the answer to be recorded", || {
        world.invoice("A-1", "opening") == "answered"
    });
    assert_eq!(world.wish("A-1").status, 200);
    assert_eq!(shop.further_creates(), 0);
}

#[test]
fn an_opening_under_way_is_finished_before_the_daemon_ends() {
    let mut shop = stub::start();
    shop.holds_creates();
    let mut world = beside(&shop);
    let body = wish("A-1", &json!("599.80"));
    let socket = world.control_socket();
    let mut waits = Line::ask(&socket, "POST", "/v1/invoices", &[], &body);
    shop.next_create();
    world.ask_to_stop();
    wait_until(PATIENCE, "the socket to be closed", || {
        UnixStream::connect(&socket).is_err()
    });
    shop.lets_go();
    assert_eq!(waits.answer().expect("an answer").status, 201);
    assert_eq!(world.serve_ends(PATIENCE), 0);
    assert_eq!(world.invoice("A-1", "opening"), "answered");
}

#[test]
fn a_standing_invoice_is_given_while_the_service_is_away() {
    let shop = stub::start();
    let world = beside(&shop);
    let opened = world.wish("A-1");
    assert_eq!(opened.status, 201, "{opened:?}");
    shop.goes_away();
    let other = world.wish("A-2");
    assert_eq!(text(&other, "/opening"), "unknown", "{other:?}");
    let again = world.wish("A-1");
    assert_eq!((again.status, again.body), (200, opened.body));
}

#[test]
fn a_wish_that_is_not_understood_is_refused_before_anything_is_sent() {
    let world = Setup::new().quiet().start();
    let good = r#""order_id":"A-1","currency":"RUB","method":"SBP""#;
    let mut bodies: Vec<String> = [
        "1e3", "\"1e3\"", "1.5e2", "-5", "0", "\"\"", "\"1,50\"", "null", "true", "[5]", "NaN",
    ]
    .iter()
    .map(|amount| format!("{{{good},\"amount\":{amount}}}"))
    .collect();
    bodies.extend([
        format!("{{{good}}}"),
        format!("{{{good},\"amount\":\"5.00\",\"color\":\"red\"}}"),
        format!("{{{good},\"amount\":\"5.00\",\"amount\":\"6.00\"}}"),
        format!("{{{good},\"amount\":\"5.00\",\"mode\":\"fax\"}}"),
        format!("{{{good},\"amount\":\"5.00\",\"mode\":\"redirect\"}}"),
        format!("{{{good},\"amount\":\"5.00\"}} x"),
        r#"{"order_id":"A\n1","amount":"5.00","currency":"RUB","method":"SBP"}"#.to_owned(),
        r#"{"order_id":"A-1","amount":"5.00","currency":"roubles","method":"SBP"}"#.to_owned(),
        r#"{"order_id":"A-1","amount":"5.00","currency":"RUB","method":"CASH"}"#.to_owned(),
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
    ]);
    for body in bodies {
        problem(&world.call("POST", "/v1/invoices", &body), 400, "usage");
    }
    let long = format!("{{\"order_id\":\"{}\"}}", "x".repeat(100_000));
    problem(&world.call("POST", "/v1/invoices", &long), 413, "usage");
    let refused = world.call("DELETE", "/v1/invoices", "");
    problem(&refused, 405, "usage");
    assert_eq!(refused.header("allow"), Some("GET, HEAD, POST"));
    problem(&world.call("GET", "/v1/nothing", ""), 404, "not_found");
    assert_eq!(world.requests("create"), 0);
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "0");
}

/// A float would make it 90071992547409.92 or 90071992547409.94.
#[test]
fn an_amount_keeps_every_digit_as_text_and_as_a_number() {
    let shop = stub::start();
    let world = beside(&shop);
    for (order, amount) in [
        ("A-1", "\"90071992547409.93\""),
        ("A-2", "90071992547409.93"),
    ] {
        let body = format!(
            "{{\"order_id\":\"{order}\",\"amount\":{amount},\"currency\":\"RUB\",\"method\":\"SBP\"}}"
        );
        let opened = world.call("POST", "/v1/invoices", &body);
        assert_eq!(opened.status / 100, 2, "{opened:?}");
        assert_eq!(text(&opened, "/amount_asked"), "90071992547409.93");
        let sent = shop.next_create();
        let sent = sent.get("amount").expect("an amount").to_string();
        assert_eq!(sent.trim_matches('"'), "90071992547409.93");
        shop.renames("inv-2");
    }
}
