//! `POST /v1/invoices`: one order, one invoice, however many ask and whoever leaves.

use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::client::{Line, Stream, problem, text, wish};
use crate::create::stub;
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Askers at once: pages of one customer who reloads, and more.
const AT_ONCE: usize = 200;

/// Openings under way at once, more than are sent at once.
const OPENINGS: usize = 128;

/// How the service says that no requisites are free.
const FULL: &str = r#"{"error":"Нет доступных реквизитов"}"#;

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
    let at = format!("/v1/invoices/by-ref/{reference}");
    assert_eq!(opened.header("location"), Some(at.as_str()));

    let again = world.wish("A/1");
    assert_eq!((again.status, &again.body), (200, &opened.body));
    assert_eq!(again.header("location"), None, "nothing was made");
    let shown = world.call("GET", &at, "");
    assert_eq!((shown.status, &shown.body), (200, &opened.body));
    // The order is its invoice, the money that came, and all of its invoices.
    let mut order = world.call("GET", "/v1/orders/A%2F1", "").json();
    let fields = order.as_object_mut().expect("an object");
    assert_eq!(fields.remove("received"), Some(json!("0")));
    let short = json!([{
        "ref": reference, "invoice_id": text(&opened, "/invoice_id"), "outcome": "open", "amount_agreed": "599.80",
        "amount_reported": text(&opened, "/amount_reported"), "currency": "RUB", "superseded": false,
    }]);
    assert_eq!(fields.remove("invoices"), Some(short));
    assert_eq!(order, opened.json());
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

/// Creates that wait for requisites.
fn crowd(world: &World) -> Vec<Line> {
    let (socket, prefers) = (world.control_socket(), [("Prefer", "wait=300")]);
    let ask = |number| {
        let body = wish(&format!("A-{number}"), &json!("599.80"));
        Line::ask(&socket, "POST", "/v1/invoices", &prefers, &body)
    };
    let waiting = (0..OPENINGS).map(ask).collect();
    world.round_trips();
    waiting
}

/// More than are sent at once: none is refused for the others, and what the ledger can tell waits for nothing.
#[test]
fn openings_that_wait_for_requisites_keep_no_other_out() {
    let mut world = Setup::new().quiet().start();
    world.create("has-one");
    world.pay("is-paid");
    free(&world, 0);
    let waiting = crowd(&world);
    problem(&world.wish("B-1"), 503, "no_requisites");
    assert_eq!(world.wish("has-one").status, 200);
    problem(&world.wish("is-paid"), 409, "error");
    assert_eq!(world.call("GET", "/v1/status", "").status, 200);
    assert_eq!(world.stop_serve(super::events::STOPS_WITHIN), 0);
    drop(waiting);
}

/// Else they would keep all others out for as long as they had wished to wait, and open invoices for nobody.
#[test]
fn what_waits_for_clients_who_left_is_given_up() {
    let world = Setup::new().quiet().start();
    free(&world, 0);
    drop(crowd(&world));
    wait_until(PATIENCE, "a place", || world.wish("B-1").status == 503);
    wait_until(PATIENCE, "all of them to be given up", || {
        world.value("SELECT count(*) FROM invoices WHERE opening = 'creating'") == "0"
    });
    free(&world, 500);
    assert_eq!(world.wish("B-2").status, 201);
    // More turns than all of them need, and longer than any of their pauses was by then.
    for number in 0..10 {
        assert_eq!(world.wish(&format!("B-3-{number}")).status, 201);
    }
    let opened = "SELECT count(*) FROM invoices WHERE opening = 'answered' AND order_id LIKE 'A-%'";
    assert_eq!(world.value(opened), "0");
}

/// One of two who wait leaves: the other is still waited for.
#[test]
fn what_another_waits_for_too_goes_on() {
    let world = Setup::new().quiet().start();
    free(&world, 0);
    let body = wish("A-1", &json!("599.80"));
    let (socket, prefers) = (world.control_socket(), [("Prefer", "wait=60")]);
    let ask = || Line::ask(&socket, "POST", "/v1/invoices", &prefers, &body);
    let (leaves, mut stays) = (ask(), ask());
    world.round_trips();
    drop(leaves);
    wait_until(PATIENCE, "it to be noticed", || {
        world.serve_log().contains("left before the answer")
    });
    free(&world, 5);
    assert_eq!(stays.answer().expect("an answer").status, 201);
}

/// The time is the one that the document names.
#[test]
fn a_refusal_says_when_to_come_again_as_the_service_said_it() {
    let world = Setup::new().quiet().start();
    let refuse = |status: u16, body: &str, seconds: u64| {
        let fault = json!({ "endpoint": "create", "status": status, "body": body, "retry_after_s": seconds });
        world.faults(&json!({ "api_status": fault }));
    };
    refuse(503, FULL, 70);
    let full = world.wish("A-1");
    problem(&full, 503, "no_requisites");
    assert_eq!(full.header("retry-after"), Some("70"), "{full:?}");

    refuse(429, "{\"error\":\"slow down\"}", 900);
    let often = world.wish("A-2");
    problem(&often, 503, "unreachable");
    assert!(
        text(&often, "/hint").contains("try again in 900 s"),
        "{often:?}"
    );
    assert_eq!(often.header("retry-after"), Some("900"), "{often:?}");

    // By now the gate is closed, for so long and up to a quarter longer.
    let closed = world.wish("A-3");
    problem(&closed, 503, "unreachable");
    let after: u64 = closed
        .header("retry-after")
        .and_then(|after| after.parse().ok())
        .expect("seconds");
    assert!((880..=1_130).contains(&after), "{closed:?}");
    let detail = text(&closed, "/detail");
    assert!(detail.contains(&format!("another {after} s")), "{closed:?}");
}

/// All that wait, for whatever it is, leave connections free for calls that do not.
#[test]
fn a_socket_full_of_those_who_wait_answers_others() {
    let world = Setup::new()
        .quiet()
        .set("control.connections", 40)
        .set("control.followers", 15)
        .start();
    world.create("has-one");
    free(&world, 0);
    let socket = world.control_socket();
    let follow = || Stream::follow(&socket, "/v1/events", &[]);
    let streams: Vec<Stream> = (0..15).map(|_| follow()).collect();
    let create = |number: usize| {
        let body = wish(&format!("A-{number}"), &json!("599.80"));
        let prefers = [("Prefer", "wait=60")];
        Line::ask(&socket, "POST", "/v1/invoices", &prefers, &body)
    };
    // Nine seats are left, of 40 connections less 16.
    let waiting: Vec<Line> = (0..9).map(create).collect();
    world.round_trips();
    for mut refused in (10..30).map(create) {
        let refused = refused.answer().expect("an answer");
        problem(&refused, 429, "error");
        assert!(
            text(&refused, "/hint").contains("control.connections"),
            "{refused:?}"
        );
        assert_eq!(refused.header("retry-after"), Some("5"), "{refused:?}");
    }
    for target in ["/v1/orders/has-one/wait?timeout=9", "/v1/events?wait=9"] {
        problem(&world.call("GET", target, ""), 429, "error");
    }
    problem(
        &world.call("POST", "/v1/orders/has-one/poll", ""),
        429,
        "error",
    );
    for target in ["/v1/status", "/v1/orders/has-one", "/v1/events?after=0"] {
        assert_eq!(world.call("GET", target, "").status, 200, "{target}");
    }
    assert_eq!(world.wish("has-one").status, 200);
    drop((streams, waiting));
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

/// A browser would run the first of them.
const BACK: &str = r#""success_url":"javascript:alert(1)","cancel_url":"https://a.example/","error_url":"https://a.example/""#;

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
        format!("{{{good},\"amount\":\"5.00\",\"mode\":\"redirect\",{BACK}}}"),
        format!("{{{good},\"amount\":\"5.00\"}} x"),
        r#"{"order_id":"A\n1","amount":"5.00","currency":"RUB","method":"SBP"}"#.to_owned(),
        r#"{"order_id":"A-1","amount":"5.00","currency":"roubles","method":"SBP"}"#.to_owned(),
        r#"{"order_id":"A-1","amount":"5.00","currency":"RUB","method":"CASH"}"#.to_owned(),
        String::new(),
        "[]".to_owned(),
        "{".to_owned(),
    ]);
    for body in bodies {
        let refused = world.call("POST", "/v1/invoices", &body);
        problem(&refused, 400, "usage");
        assert_eq!(text(&refused, "/title"), "request not understood");
    }
    let long = format!("{{\"order_id\":\"{}\"}}", "x".repeat(100_000));
    problem(&world.call("POST", "/v1/invoices", &long), 413, "usage");
    let refused = world.call("DELETE", "/v1/invoices", "");
    problem(&refused, 405, "usage");
    assert_eq!(refused.header("allow"), Some("GET, HEAD, POST"));
    problem(&world.call("GET", "/v1/nothing", ""), 404, "not_found");
    let mut line = Line::open(&world.control_socket());
    line.send("GET /v1/status HTTP/1.1\r\n\r\n");
    problem(&line.answer().expect("an answer"), 400, "usage");
    assert_eq!(world.requests("create"), 0);
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "0");
}

/// A float would make it 90071992547409.92 or 90071992547409.94.
#[test]
fn an_amount_keeps_every_digit_as_text_and_as_a_whole_number() {
    let shop = stub::start();
    let world = beside(&shop);
    for (order, amount) in [
        ("A-1", "\"90071992547409.93\""),
        ("A-2", "9007199254740993000001"),
    ] {
        let digits = amount.trim_matches('"');
        let body = format!(
            "{{\"order_id\":\"{order}\",\"amount\":{amount},\"currency\":\"RUB\",\"method\":\"SBP\"}}"
        );
        let opened = world.call("POST", "/v1/invoices", &body);
        assert_eq!(opened.status / 100, 2, "{opened:?}");
        assert_eq!(text(&opened, "/amount_asked"), digits);
        let sent = shop.next_create();
        let sent = sent.get("amount").expect("an amount").to_string();
        assert_eq!(sent.trim_matches('"'), digits);
        shop.renames("inv-2");
    }
}
