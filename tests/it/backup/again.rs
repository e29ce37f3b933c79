//! After a restore, invoices that the plan polls no more are polled once.
//! Relies on the real program, and on a service whose words change after the copy was made.
//! Promises that a refund the lost ledger had acknowledged is found, and that what differs is held for a person.

use serde_json::json;

use super::{back_up, backups, deliveries, put_back};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Polls nothing by the plan, and one invoice at a time.
fn polling_one_by_one() -> Setup {
    Setup::new()
        .quiet()
        .sandbox(&["--pool=100"])
        .plain()
        .set("poller.concurrency", 1)
        .noting_hook("fulfil", &["paid", "late"])
        .noting_hook("undo", &["failed", "reversed"])
}

/// The service says this of an order from now on, and a webhook brings it.
#[track_caller]
fn becomes(world: &World, order: &str, status: &str) {
    let issued = world.issued(order).expect("it was opened");
    let said = world.dictate(&issued, status);
    assert_eq!(world.tell_as_it_is(&said).status, 200);
}

/// Orders in the order in which polls about them were recorded.
fn polled(world: &World) -> Vec<String> {
    let query = "SELECT i.order_id FROM heard h JOIN invoice i ON i.id = h.invoice \
                 WHERE h.source = 'poll' ORDER BY h.id";
    world.sql(query).concat()
}

#[test]
fn a_final_outcome_that_changed_after_the_copy_is_found_and_held() {
    let mut world = polling_one_by_one().start();
    for (order, status) in [
        ("A-1", "paid"),
        ("A-2", "canceled"),
        ("A-3", "paid"),
        ("A-4", "paid"),
    ] {
        world.create(order);
        becomes(&world, order, status);
    }
    world.settle();
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    becomes(&world, "A-2", "paid");
    world.settle();
    let ran = |world: &World| ["fulfil", "undo"].map(|hook| world.hook_log(hook).len());
    assert_eq!(ran(&world), [4, 1]);
    world.kill9_serve();
    for (order, status) in [("A-1", "refunded"), ("A-4", "canceled")] {
        let issued = world.issued(order).expect("it was opened");
        world.dictate(&issued, status);
    }
    put_back(&world, &file);
    world.start_serve();
    // What takes back a payment is believed when a second poll agrees, 30 s later.
    let outcomes = "SELECT order_id || ' ' || outcome FROM invoices ORDER BY order_id";
    wait_until(2 * PATIENCE, "the service's words", || {
        world.sql(outcomes).concat() == ["A-1 reversed", "A-2 paid", "A-3 paid", "A-4 reversed"]
    });
    world.settle();
    let mut held = deliveries(&world);
    held.retain(|delivery| delivery.contains("held"));
    held.sort();
    assert_eq!(
        held,
        [
            "A-1 reversed held restored",
            "A-2 late held restored",
            "A-4 reversed held restored"
        ]
    );
    assert_eq!(ran(&world), [4, 1], "nothing ran again");
    let polled = polled(&world);
    assert_eq!(
        polled.get(..4).unwrap_or_default(),
        ["A-4", "A-3", "A-2", "A-1"]
    );
    assert_eq!(polled.iter().filter(|order| *order == "A-3").count(), 1);
    let status = world.tilld(&["status", "--json"]).ends_with(16).json();
    let polled = status.pointer("/restored/polled");
    assert_eq!(polled, Some(&json!({"count": 4, "of": 4})), "{status}");
    let people = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(
        people.contains("; all 4 final outcomes polled again"),
        "{people}"
    );
}

#[test]
fn a_restart_goes_on_where_the_last_daemon_was() {
    let mut world = polling_one_by_one()
        .set("poller.requests_per_second", 4)
        .start();
    let orders: Vec<String> = (10..22).map(|at| format!("A-{at}")).collect();
    for order in &orders {
        world.create(order);
        becomes(&world, order, "paid");
    }
    world.settle();
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    world.kill9_serve();
    put_back(&world, &file);
    for at_least in [3, 9] {
        world.start_serve();
        wait_until(PATIENCE, "some to be polled", || {
            polled(&world).len() >= at_least
        });
        world.kill9_serve();
    }
    let status = world.tilld(&["status", "--json"]).json();
    let count = status.pointer("/restored/polled/count");
    let count = count.and_then(serde_json::Value::as_u64);
    let recorded = polled(&world).len();
    assert_eq!(count, u64::try_from(recorded).ok(), "{status}");
    world.start_serve();
    wait_until(PATIENCE, "all to be polled", || {
        polled(&world).len() >= orders.len()
    });
    let newest_first: Vec<String> = orders.into_iter().rev().collect();
    assert_eq!(polled(&world), newest_first, "each once");
    // What was polled is as every other: its news run, and it is polled no more.
    becomes(&world, "A-10", "partially_reversed");
    world.settle();
    assert_eq!(polled(&world).len(), newest_first.len());
}
