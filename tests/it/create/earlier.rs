//! An order gets no second payable invoice while an earlier one may have been paid: it is polled first, and only the service's
//! clear word makes room.

use serde_json::{Value, json};

use crate::control::client::text;
use crate::harness::{Clock, Issued, PATIENCE, Ran, Setup, World, skip, wait_for, wait_until};

/// The socket's answer to a create of order A-1.
fn wish(world: &World) -> crate::harness::Answer {
    world.wish("A-1")
}

/// The first end of `invoice create` that is not the earlier invoice once more.
fn after_the_end(world: &World, earlier: &Issued) -> Ran {
    wait_for(PATIENCE, "the window to close", || {
        let ran = world.open("A-1", "599.80", &[]);
        let is_earlier = ran.code == 0 && ran.text("invoice_id") == earlier.id;
        (!is_earlier).then_some(ran)
    })
}

/// Every fetch is answered so.
fn fetches(world: &World, status: u16) {
    let fault = json!({ "endpoint": "fetch", "status": status, "times": true });
    world.faults(&json!({ "api_status": fault }));
}

fn short() -> Setup {
    Setup::new().quiet().sandbox(&["--window=1"])
}

#[test]
fn a_payment_whose_notification_was_lost_is_found_before_another_is_opened() {
    let world = short().not_served().start();
    let issued = world.create("A-1");
    world.dictate(&issued, "paid");
    let ended = after_the_end(&world, &issued).ends_with(1);
    assert!(ended.stderr.contains("`A-1` is paid already"), "{ended:?}");
    assert_eq!(world.requests("create"), 1);
    assert_eq!(world.invoice("A-1", "outcome"), "paid");
}

#[test]
fn a_payment_in_doubt_blocks_another_until_the_service_answers() {
    // The first is still open when the doubted notification comes, the other is failed.
    for before in [None, Some("canceled")] {
        let world = short().start();
        let issued = world.create("A-1");
        fetches(&world, 500);
        if let Some(status) = before {
            assert_eq!(
                world
                    .tell(&issued, &issued.saying(status, &issued.at(1)))
                    .status,
                200
            );
        }
        let paid = world.dictate(&issued, "paid");
        let undated = paid.with(&json!({ "updatedAt": "yesterday" }));
        assert_eq!(world.tell(&paid, &undated.to_string()).status, 200);
        assert_eq!(world.invoice("A-1", "doubt"), "1");

        let ended = after_the_end(&world, &issued).ends_with(9);
        assert!(ended.stderr.contains("may have been paid"), "{ended:?}");
        let answer = wish(&world);
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(text(&answer, "/type"), "urn:tilld:problem:unsettled");
        assert_eq!(answer.json().pointer("/code"), Some(&json!(9)));
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
        assert_eq!(world.requests("create"), 1);

        // The explicit way around it.
        world.open("A-1", "599.80", &["--new"]).ends_with(0);
        assert_eq!(world.requests("create"), 2);
    }
}

/// The service wants its polls left alone: the earlier invoice cannot be polled, and no other order waits for it.
#[test]
fn an_order_in_doubt_is_refused_at_once_while_polls_are_left_alone() {
    let world = short().start();
    let issued = world.create("A-1");
    let paid = world.dictate(&issued, "paid");
    let undated = paid.with(&json!({ "updatedAt": "yesterday" }));
    let busy = json!({
        "endpoint": "fetch", "status": 429, "body": "{\"error\":\"slow down\"}", "retry_after_s": 3_600,
    });
    world.faults(&json!({ "api_status": busy }));
    assert_eq!(world.tell(&paid, &undated.to_string()).status, 200);
    wait_until(PATIENCE, "the window to close", || {
        wish(&world).status == 503
    });
    let polls = world.requests("fetch");
    let answer = wish(&world);
    assert_eq!(text(&answer, "/type"), "urn:tilld:problem:unsettled");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    assert_eq!(world.requests("fetch"), polls, "no poll leaves");
    assert_eq!(world.wish("B-1").status, 201);
    assert_eq!(world.requests("create"), 2);
}

/// A service that closes no invoice by itself: its `new` counts once it is dated after the end, and not a moment before.
#[test]
fn new_after_the_end_makes_room() {
    let world = short().start();
    let issued = world.create("A-1");
    world.faults(&json!({ "lose": true }));
    let said = issued.object.to_string();
    let answer = json!({ "endpoint": "fetch", "status": 200, "body": said, "times": true });
    world.faults(&json!({ "api_status": answer }));
    let opened = wait_for(PATIENCE, "room", || {
        let answer = wish(&world);
        if answer.status == 503 {
            assert_eq!(text(&answer, "/type"), "urn:tilld:problem:unsettled");
        } else {
            assert!([200, 201].contains(&answer.status), "{answer:?}");
        }
        (answer.status == 201).then_some(answer)
    });
    assert_ne!(text(&opened, "/invoice_id"), issued.id);
    assert!(world.requests("fetch") > 0, "it was polled first");
}

#[test]
fn an_unclear_status_makes_no_room_and_is_named() {
    for (status, is_mapped) in [("waiting", true), ("ODD", false)] {
        let world = short().start();
        let issued = world.create("A-1");
        world.faults(&json!({ "lose": true }));
        // The service would say `expired` by itself.
        let said = issued.saying(status, &issued.at(1));
        let answer = json!({ "endpoint": "fetch", "status": 200, "body": said, "times": true });
        world.faults(&json!({ "api_status": answer }));
        let ended = after_the_end(&world, &issued).ends_with(9);
        assert!(ended.stderr.contains(&format!("`{status}`")), "{ended:?}");
        let answer = wish(&world);
        assert_eq!(answer.status, 409, "{answer:?} {is_mapped}");
        assert_eq!(text(&answer, "/type"), "urn:tilld:problem:unsettled");
        let hint = text(&answer, "/hint");
        assert!(hint.contains("[statuses]"), "{answer:?}");
        assert!(hint.contains(&format!("paid = [\"{status}\"]")), "{hint}");
        assert_eq!(world.requests("create"), 1);
    }
}

#[test]
fn silence_and_errors_make_no_room() {
    for status in [500, 503] {
        let world = short().not_served().start();
        let issued = world.create("A-1");
        fetches(&world, status);
        let ended = after_the_end(&world, &issued).ends_with(9);
        assert!(ended.stderr.contains("may have been paid"), "{ended:?}");
        assert_eq!(world.requests("create"), 1, "{status}");
    }
}

#[test]
fn an_invoice_that_the_service_denies_makes_room_when_it_says_so_twice() {
    let world = short().not_served().start();
    let issued = world.create("A-1");
    fetches(&world, 404);
    let first = after_the_end(&world, &issued).ends_with(9);
    assert!(first.stderr.contains("must say so twice"), "{first:?}");
    let second = wait_for(PATIENCE, "the second answer", || {
        let ran = world.open("A-1", "599.80", &[]);
        (ran.code == 0).then_some(ran)
    });
    assert_ne!(second.text("invoice_id"), issued.id);
    assert_eq!(world.requests("create"), 2);
}

#[test]
fn a_clock_that_is_ahead_opens_no_second_one() {
    let Some(clock) = Clock::find() else {
        skip!("libfaketime is not there (Debian: `apt-get install faketime`)");
    };
    clock.set("+3600");
    let program = clock.program();
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let world = Setup::new().quiet().under(&words).start();
    let first = world.open("A-1", "599.80", &[]).ends_with(0);
    for _ in 0..2 {
        let again = world.open("A-1", "599.80", &[]).ends_with(0);
        assert_eq!(again.text("invoice_id"), first.text("invoice_id"));
    }
    assert_eq!(world.requests("create"), 1);
}

#[test]
fn what_is_settled_or_new_polls_nothing() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    assert_eq!(world.requests("fetch"), 0, "no earlier invoice");
    world.tell_as_it_is(&world.dictate(&issued, "canceled"));
    wait_until(PATIENCE, "the outcome", || {
        world.invoice("A-1", "outcome") == "failed"
    });
    world.open("A-1", "599.80", &[]).ends_with(0);
    assert_eq!((world.requests("create"), world.requests("fetch")), (2, 0));
}

#[test]
fn clients_tell_the_reasons_apart() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let typed = |body: &Value| {
        text(
            &world.call("POST", "/v1/invoices", &body.to_string()),
            "/type",
        )
    };
    let usual =
        json!({ "order_id": "A-1", "amount": "599.80", "currency": "RUB", "method": "SBP" });
    for (field, value, problem) in [
        ("amount", "600.00", "other_amount"),
        ("currency", "EUR", "other_currency"),
        ("method", "TO_CARD", "other_method"),
    ] {
        let mut body = usual.clone();
        if let Some(place) = body.get_mut(field) {
            *place = value.into();
        }
        assert_eq!(typed(&body), format!("urn:tilld:problem:{problem}"));
    }
    let mut page = usual.clone();
    for (field, value) in [
        ("mode", "redirect"),
        ("success_url", "https://shop.example/ok"),
        ("cancel_url", "https://shop.example/no"),
        ("error_url", "https://shop.example/error"),
    ] {
        if let Some(fields) = page.as_object_mut() {
            fields.insert(field.to_owned(), value.into());
        }
    }
    assert_eq!(typed(&page), "urn:tilld:problem:other_mode");
    world.tell_as_it_is(&world.dictate(&issued, "paid"));
    assert_eq!(typed(&usual), "urn:tilld:problem:already_paid");
    let less = world.create("A-3");
    let short = json!({ "status": "paid", "amount": "1.00" });
    world.tell_as_it_is(&world.dictate_fields(&less, &short));
    wait_until(PATIENCE, "the mismatch", || {
        world.invoice("A-3", "outcome") == "mismatch"
    });
    let mut again = usual.clone();
    if let Some(place) = again.get_mut("order_id") {
        *place = "A-3".into();
    }
    assert_eq!(typed(&again), "urn:tilld:problem:paid_other_amount");
    let refused = json!({ "endpoint": "create", "status": 400, "body": "{\"error\":\"no\"}" });
    world.faults(&json!({ "api_status": refused }));
    let mut other = usual;
    if let Some(place) = other.get_mut("order_id") {
        *place = "A-2".into();
    }
    assert_eq!(typed(&other), "urn:tilld:problem:refused_by_service");
}
