//! Creates whose answer is lost (A32): recorded as unknown, never posted again by themselves, settled by the first word
//! of the service that comes by another way.

use std::net::TcpListener;

use rustix::process::Signal;
use serde_json::json;

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// What a row says whose answer was lost.
fn is_unknown(world: &World, order: &str) -> bool {
    world.invoice(order, "opening || ' ' || attention") == "unknown outcome_unknown"
}

#[test]
fn a_lost_answer_is_unknown_until_the_service_is_heard_of() {
    let world = Setup::new().quiet().start();
    world.faults(&json!({ "drop_create_answer": 1 }));
    world.open("A-1", "599.80", &[]).ends_with(9);
    assert!(is_unknown(&world, "A-1"));
    for _ in 0..2 {
        let again = world.open("A-1", "599.80", &[]).ends_with(9);
        assert!(
            again.stderr.contains("hint: look for the order"),
            "{again:?}"
        );
        assert_eq!(again.text("opening"), "unknown", "it is shown");
    }
    assert_eq!(world.requests("create"), 1, "never posted again by itself");
    let lost = world.issued("A-1").expect("the service made it");

    let anew = world.open("A-1", "599.80", &["--new"]).ends_with(0);
    assert_eq!(world.requests("create"), 2);
    // Whoever insisted has an invoice, and gets it again.
    let again = world.open("A-1", "599.80", &[]).ends_with(0);
    assert_eq!(again.text("invoice_id"), anew.text("invoice_id"));
    assert_eq!(world.requests("create"), 2);

    world.happens(&lost, &json!({ "status": "waiting" }));
    let settled = format!(
        "SELECT opening || attention || status FROM invoices WHERE invoice_id = '{}'",
        lost.id
    );
    wait_until(PATIENCE, "the notification", || {
        world.sql(&settled).concat() == ["answeredwaiting"]
    });
}

#[test]
fn a_creator_that_is_killed_leaves_the_outcome_unknown() {
    let mut world = Setup::new().quiet().not_served().start();
    world.faults(&json!({ "lose": true, "hold_create_ms": 20_000 }));
    for order in ["A-1", "A-2"] {
        let mut create = world.start_open(order);
        wait_until(PATIENCE, "the request", || world.issued(order).is_some());
        create.signal(Signal::KILL);
        create.wait(PATIENCE);
        assert_eq!(world.invoice(order, "opening"), "creating");
    }
    // Nobody has written it down yet, and it is seen all the same.
    let waited = world.wait("A-1", "20s").ends_with(9);
    assert!(waited.stderr.contains("nobody knows"), "{waited:?}");
    world.open("A-1", "599.80", &[]).ends_with(9);
    assert!(is_unknown(&world, "A-1"));
    assert_eq!(world.requests("create"), 2);
    // A daemon writes it down by itself.
    world.start_serve();
    wait_until(PATIENCE, "the daemon to notice", || {
        is_unknown(&world, "A-2")
    });
}

#[test]
fn the_row_is_durable_before_the_request_leaves() {
    let mut shop = super::stub::start();
    shop.holds_creates();
    let world = Setup::new()
        .quiet()
        .service(&shop.url())
        .not_served()
        .start();
    world.tilld(&["login"]).ends_with(0);
    let mut create = world.start_open("A-1");
    let request = shop.next_create();
    create.signal(Signal::KILL);
    create.wait(PATIENCE);
    let url = request.get("notificationUrl").and_then(|url| url.as_str());
    let reference = world.invoice("A-1", "ref");
    let wanted = format!("http://{}/n/{reference}", world.listen());
    assert_eq!(url, Some(wanted.as_str()));
    assert_eq!(
        world.value("SELECT count(*) FROM secret"),
        "1",
        "its token is there too"
    );
    shop.lets_go();
}

#[test]
fn nobody_there_leaves_nothing_unknown() {
    let world = Setup::new().quiet().not_served().start();
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let url = format!("http://{}", nobody.expect("a port"));
    let variables = [
        ("SERVICE_TOKEN", "shop:token"),
        ("TILLD_SERVICE__URL", url.as_str()),
    ];
    let args = [
        "invoice",
        "create",
        "--order=A-1",
        "--amount=599.80",
        "--currency=RUB",
        "--method=SBP",
    ];
    let unreachable = world.tilld_with(&variables, &args).ends_with(8);
    assert!(
        unreachable.stderr.contains("could not connect"),
        "{unreachable:?}"
    );
    assert_eq!(world.invoice("A-1", "opening || attention"), "refused");
    world.open("A-1", "599.80", &[]).ends_with(0);
}

#[test]
fn a_notification_during_the_create_settles_a_lost_answer() {
    let world = Setup::new().quiet().start();
    // It goes out while the answer is held, and the answer never comes.
    world.faults(&json!({ "drop_create_answer": 1, "hold_create_ms": 50 }));
    let create = world.open("A-1", "599.80", &[]);
    assert!([0, 9].contains(&create.code), "{create:?}");
    wait_until(PATIENCE, "the notification", || {
        world.invoice("A-1", "opening || attention || status") == "answerednew"
    });
    assert_eq!(
        world
            .open("A-1", "599.80", &[])
            .ends_with(0)
            .text("opening"),
        "answered"
    );
    assert_eq!(world.requests("create"), 1);
}

/// Whoever looks how things stand sees the order and the way out, before and after a daemon has seen it.
#[test]
fn status_names_the_order_whose_answer_was_lost_and_the_way_out() {
    let mut world = Setup::new().quiet().not_served().start();
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    world.open("A-1", "599.80", &[]).ends_with(9);
    for served in [false, true] {
        if served {
            world.start_serve();
        }
        let told = world.tilld(&["status"]).ends_with(16).stdout;
        // The terminal may wrap the lines.
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "outcome_unknown: 1 invoice, order A-1",
            "`tilld invoice adopt ORDER --id ID`",
        ] {
            assert!(told.contains(part), "{part} in {told}");
        }
        let told = world.tilld(&["status", "--json"]).ends_with(16).json();
        let reason = told.pointer("/attention/0").cloned().unwrap_or_default();
        assert_eq!(reason.get("reason"), Some(&json!("outcome_unknown")));
        assert_eq!(reason.get("orders"), Some(&json!(["A-1"])));
    }
    let lost = world.issued("A-1").expect("the service made it");
    let adopt = ["invoice", "adopt", "A-1", "--id", &lost.id];
    world.tilld(&adopt).ends_with(0);
    let told = world.tilld(&["status", "--json"]).ends_with(0).json();
    assert_eq!(told.get("attention"), Some(&json!([])));
}
