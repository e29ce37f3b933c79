//! Waiting for an invoice, and asking the service about it.

use std::time::Instant;

use serde_json::json;

use super::client::{Line, problem, text};
use crate::harness::{PATIENCE, Setup, wait_until};

#[test]
fn a_paid_invoice_is_not_waited_for_and_an_open_one_is_until_the_time_is_over() {
    let world = Setup::new().quiet().start();
    world.pay("A-1");
    let paid = world.call("GET", "/v1/invoices/A-1/wait?timeout=300", "");
    assert_eq!(
        (paid.status, text(&paid, "/outcome")),
        (200, "paid".to_owned())
    );

    world.create("A-2");
    for query in ["timeout=1", "timeout=0", "timeout=1&for=final"] {
        let open = world.call("GET", &format!("/v1/invoices/A-2/wait?{query}"), "");
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
        let refused = world.call("GET", &format!("/v1/invoices/A-2/wait?{query}"), "");
        problem(&refused, 400, "usage");
    }
    for call in ["wait?timeout=300", "poll", ""] {
        let method = if call == "poll" { "POST" } else { "GET" };
        let target = format!("/v1/invoices/nobody/{call}");
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
    let started = Instant::now();
    let target = "/v1/invoices/A-1/wait?timeout=300";
    let mut waits = Line::ask(&world.control_socket(), "GET", target, &[], "");
    world.round_trips();
    let no_place = world.call("GET", target, "");
    problem(&no_place, 429, "error");
    assert!(no_place.header("retry-after").is_some(), "{no_place:?}");

    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    let told = waits.answer().expect("an answer");
    assert_eq!(
        (told.status, text(&told, "/outcome")),
        (200, "paid".to_owned())
    );
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
}

/// Else customers who reload a page would hold all places until the times they no longer wait for are over.
#[test]
fn whoever_leaves_while_waiting_gives_its_place_back() {
    let world = Setup::new().quiet().set("control.followers", 1).start();
    world.create("A-1");
    for target in ["/v1/invoices/A-1/wait?timeout=300", "/v1/events?wait=300"] {
        let leaves = Line::ask(&world.control_socket(), "GET", target, &[], "");
        world.round_trips();
        problem(&world.call("GET", target, ""), 429, "error");
        drop(leaves);
        wait_until(PATIENCE, "a place", || {
            world
                .call("GET", "/v1/invoices/A-1/wait?timeout=1", "")
                .status
                == 202
        });
    }
    let path = "GET /v1/invoices/A-1/wait: left before the answer";
    assert!(world.serve_log().contains(path), "{}", world.serve_log());
}

#[test]
fn a_poll_asks_the_service() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    let asked = world.requests("fetch");
    let open = world.call("POST", "/v1/invoices/A-1/poll", "");
    assert_eq!(
        (open.status, text(&open, "/outcome")),
        (200, "open".to_owned()),
        "{open:?}"
    );
    assert_eq!(world.requests("fetch"), asked + 1);
    world.dictate(&issued, "paid");
    let paid = world.call("POST", &format!("/v1/invoices/{}/poll", issued.id), "");
    assert_eq!(
        (paid.status, text(&paid, "/outcome")),
        (200, "paid".to_owned()),
        "{paid:?}"
    );

    world.faults(&json!({ "api_status": { "endpoint": "fetch", "status": 500, "times": 1 } }));
    let failed = world.call("POST", "/v1/invoices/A-1/poll", "");
    problem(&failed, 503, "unreachable");
    assert_eq!(
        text(&failed, "/invoice/outcome"),
        "paid",
        "what is known is told"
    );

    world.faults(&json!({ "drop_create_answer": 1 }));
    assert_eq!(world.wish("A-2").status, 202);
    let nameless = world.call("POST", "/v1/invoices/A-2/poll", "");
    assert_eq!(nameless.status / 100, 4, "{nameless:?}");
    problem(&nameless, nameless.status, &text(&nameless, "/error"));
}
