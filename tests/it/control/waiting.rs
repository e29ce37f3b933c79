//! Waiting for an invoice, and asking the service about it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::client::{Line, problem, text};
use crate::harness::{PATIENCE, Setup, wait_until};

#[test]
fn a_paid_invoice_is_not_waited_for_and_an_open_one_is_until_the_time_is_over() {
    let world = Setup::new().quiet().start();
    world.pay("A-1");
    let paid = world.call("GET", "/v1/orders/A-1/wait?timeout=300", "");
    assert_eq!(
        (paid.status, text(&paid, "/outcome")),
        (200, "paid".to_owned())
    );

    world.create("A-2");
    for query in ["timeout=1", "timeout=0", "timeout=1&for=final"] {
        let open = world.call("GET", &format!("/v1/orders/A-2/wait?{query}"), "");
        assert_eq!(
            (open.status, text(&open, "/outcome")),
            (202, "open".to_owned()),
            "{query}"
        );
    }
    for query in [
        "timeout=301",
        "timeout=-1",
        "timeout=x",
        "for=ever",
        "colour=red",
        "timeout=1&timeout=2",
    ] {
        let refused = world.call("GET", &format!("/v1/orders/A-2/wait?{query}"), "");
        problem(&refused, 400, "usage");
    }
    for call in ["wait?timeout=300", "poll", ""] {
        let method = if call == "poll" { "POST" } else { "GET" };
        let target = format!("/v1/orders/nobody/{call}");
        problem(
            &world.call(method, target.trim_end_matches('/'), ""),
            404,
            "not_found",
        );
    }
}

/// Also: a wait has a place among the followers, and whoever finds none is told so at once.
#[test]
fn a_notification_ends_the_wait() {
    let world = Setup::new().quiet().set("control.followers", 1).start();
    let issued = world.create("A-1");
    let target = "/v1/orders/A-1/wait?timeout=300";
    let mut waits = Line::ask(&world.control_socket(), "GET", target, &[], "");
    world.round_trips();
    let no_place = world.call("GET", target, "");
    problem(&no_place, 429, "error");
    assert!(no_place.header("retry-after").is_some(), "{no_place:?}");

    let paid = world.dictate(&issued, "paid");
    let started = Instant::now();
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    let told = waits.answer().expect("an answer");
    assert_eq!(
        (told.status, text(&told, "/outcome")),
        (200, "paid".to_owned())
    );
    // Without it the ledger is looked at every 5 s.
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// Else customers who reload a page would hold all places until the times they no longer wait for are over.
#[test]
fn whoever_leaves_while_waiting_gives_its_place_back() {
    let world = Setup::new().quiet().set("control.followers", 1).start();
    world.create("A-1");
    for target in ["/v1/orders/A-1/wait?timeout=300", "/v1/events?wait=300"] {
        let leaves = Line::ask(&world.control_socket(), "GET", target, &[], "");
        world.round_trips();
        problem(&world.call("GET", target, ""), 429, "error");
        drop(leaves);
        wait_until(PATIENCE, "a place", || {
            world
                .call("GET", "/v1/orders/A-1/wait?timeout=1", "")
                .status
                == 202
        });
    }
    let path = "GET /v1/orders/A-1/wait: left before the answer";
    assert!(world.serve_log().contains(path), "{}", world.serve_log());
}

/// Programs of the shop that ask without end, each about an invoice of its own: more than may ask at once.
const HAMMERS: usize = 12;

/// Ends them, also where the scenario fails.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The daemon's own questions have their share of the turns, however fast the shop asks.
#[test]
fn a_shop_that_polls_without_end_does_not_keep_the_daemon_from_finding_a_payment() {
    let world = Setup::new().set("poller.requests_per_second", 5).start();
    world.faults(&json!({ "lose": true }));
    let others: Vec<String> = (0..HAMMERS).map(|number| format!("B-{number}")).collect();
    world.create_all(&others);
    let victim = world.create("A-1");
    let (stop, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let hammer = |order: &String| {
        while !stop.load(Ordering::SeqCst) {
            let answer = world.call("POST", &format!("/v1/orders/{order}/poll"), "");
            if answer.status == 429 {
                problem(&answer, 429, "error");
                assert_eq!(answer.header("retry-after"), Some("5"));
                refused.fetch_add(1, Ordering::SeqCst);
            } else {
                assert_eq!(answer.status, 200, "{answer:?}");
            }
        }
    };
    thread::scope(|scope| {
        for order in &others {
            scope.spawn(|| hammer(order));
        }
        let _stops = Stops(&stop);
        wait_until(PATIENCE, "as many as may", || {
            refused.load(Ordering::SeqCst) > 0
        });
        world.happens(&victim, &json!({ "status": "paid" }));
        let paid = Instant::now();
        wait_until(PATIENCE, "the payment", || {
            world.invoice("A-1", "outcome") == "paid"
        });
        // Silence of 2 s, a cadence of 1 s, a turn in every five, and the others who are due before it.
        assert!(
            paid.elapsed() < Duration::from_secs(20),
            "{:?}",
            paid.elapsed()
        );
    });
    assert_eq!(world.invoice("A-1", "found_by"), "poll");
}

/// Customers who reload one page are one question.
#[test]
fn polls_of_one_invoice_share_a_question_and_are_finished_though_their_clients_leave() {
    let world = Setup::new()
        .quiet()
        .set("poller.requests_per_second", 1)
        .start();
    let issued = world.create("A-1");
    world.faults(&json!({ "lose": true }));
    world.happens(&issued, &json!({ "status": "paid" }));
    let asked = world.requests("fetch");
    let target = "/v1/orders/A-1/poll";
    let ask = || Line::ask(&world.control_socket(), "POST", target, &[], "");
    let mut lines: Vec<Line> = (0..30).map(|_| ask()).collect();
    for line in &mut lines {
        let paid = line.answer().expect("an answer");
        assert_eq!(
            (paid.status, text(&paid, "/outcome")),
            (200, "paid".to_owned())
        );
    }
    let questions = world.requests("fetch") - asked;
    assert!(questions <= 3, "{questions}");

    let issued = world.create("A-2");
    world.happens(&issued, &json!({ "status": "paid" }));
    let target = "/v1/orders/A-2/poll";
    let leaves = Line::ask(&world.control_socket(), "POST", target, &[], "");
    world.round_trips();
    drop(leaves);
    wait_until(PATIENCE, "the answer", || {
        world.invoice("A-2", "outcome") == "paid"
    });
}

#[test]
fn a_poll_asks_the_service() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let asked = world.requests("fetch");
    let open = world.call("POST", "/v1/orders/A-1/poll", "");
    assert_eq!(
        (open.status, text(&open, "/outcome")),
        (200, "open".to_owned()),
        "{open:?}"
    );
    assert_eq!(world.requests("fetch"), asked + 1);
    world.dictate(&issued, "paid");
    let paid = world.call(
        "POST",
        &format!("/v1/invoices/by-id/{}/poll", issued.segment()),
        "",
    );
    assert_eq!(
        (paid.status, text(&paid, "/outcome")),
        (200, "paid".to_owned()),
        "{paid:?}"
    );

    world.faults(&json!({ "api_status": { "endpoint": "fetch", "status": 500, "times": 1 } }));
    let failed = world.call("POST", "/v1/orders/A-1/poll", "");
    problem(&failed, 503, "unreachable");
    assert_eq!(
        text(&failed, "/invoice/outcome"),
        "paid",
        "what is known is told"
    );

    world.faults(&json!({ "drop_create_answer": 1 }));
    assert_eq!(world.wish("A-2").status, 202);
    let nameless = world.call("POST", "/v1/orders/A-2/poll", "");
    assert_eq!(nameless.status / 100, 4, "{nameless:?}");
    problem(&nameless, nameless.status, &text(&nameless, "/error"));
}
