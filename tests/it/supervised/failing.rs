//! How it ends by a bug of its own: as a whole and at once where a part of it is broken, one request alone where that is.
//!
//! The faults are those of a debug build. The release panics in row R12 of `tests/reliability`, over a clock it cannot read.

use std::time::Duration;

use super::{Faults, logs, plays_none};
use crate::admin;
use crate::harness::{Setup, World, skip, wait_until};

/// From a panic to the end of the process.
const AT_ONCE: Duration = Duration::from_secs(1);
const BUG: i32 = 17;

fn world(faults: &Faults) -> World {
    Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .under(&["env", &faults.variable()])
        .start()
}

#[test]
fn a_panic_in_any_loop_ends_the_process_with_its_code() {
    let faults = Faults::new();
    let mut world = world(&faults);
    if plays_none(&world) {
        skip!("this build has no faults to play");
    }
    for (order, point, thread) in [
        ("A-1", "writer", "ledger-writer"),
        ("A-2", "poller", "poller"),
        ("A-3", "outbox", "outbox"),
    ] {
        world.pay(order);
        let fault = format!("panic-{point}");
        faults.play(&fault);
        if point == "outbox" {
            // By itself it turns every fifteen seconds only, and within one of what another process stores.
            world.neighbour().write();
        }
        wait_until(Duration::from_secs(30), &fault, || faults.is_played(&fault));
        // Its log is read before it is gone.
        let told = format!("`{thread}` panicked at src/");
        logs(&world, &format!("the fault of the point {point} is played"));
        logs(&world, &told);
        logs(&world, "tilld has a bug and ends, to be started anew");
        assert_eq!(world.serve_ends(AT_ONCE), BUG, "{point}");
        world.start_serve();
    }
    world.settle();
    // A script that ran when it ended is run once more: each order is told, if not once only.
    let told = world.hook_log("fulfil");
    let mut orders: Vec<&str> = told
        .iter()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    orders.sort_unstable();
    orders.dedup();
    assert_eq!(orders, ["A-1", "A-2", "A-3"]);
}

#[test]
fn a_panic_in_one_request_ends_that_request_alone() {
    let faults = Faults::new();
    let world = world(&faults);
    if plays_none(&world) {
        skip!("this build has no faults to play");
    }
    let issued = world.create("A-1");
    let paid = world.dictate(&issued, "paid");
    faults.play("panic-request");
    let answer = world.tell_as_it_is(&paid);
    assert_eq!(answer.status, 500, "{answer:?}");
    logs(&world, "a request panicked at src/listener/mod.rs:");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}

/// What a request asks of the ledger is looked up on another thread, and is of that request all the same.
#[test]
fn a_panic_in_a_read_ends_what_asked_for_it() {
    let faults = Faults::new();
    let mut world = admin::setup()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .under(&["env", &faults.variable()])
        .start();
    if plays_none(&world) {
        skip!("this build has no faults to play");
    }
    world.pay("A-1");
    world.settle();
    let counted = "tilld_invoices{status=\"paid\",outcome=\"paid\"} 1\n";
    for (point, path, shown, place) in [
        ("list", "/", "A-1", "src/ledger/invoice_reads.rs:"),
        ("count", "/metrics", counted, "src/admin/tally.rs:"),
    ] {
        assert_eq!(admin::get(&world, path).status, 200, "{path}");
        let fault = format!("panic-{point}");
        faults.play(&fault);
        let answer = admin::get(&world, path);
        assert_eq!(answer.status, 500, "{answer:?}");
        assert!(faults.is_played(&fault));
        logs(&world, &format!("a request panicked at {place}"));
        // Nothing of it is left behind, and nothing is counted twice.
        let answer = admin::get(&world, path);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains(shown), "{}", answer.body);
    }
    // The same where a loop reads is of the process.
    faults.play("panic-outlook");
    world.neighbour().write();
    logs(&world, "the fault of the point outlook is played");
    assert_eq!(world.serve_ends(AT_ONCE), BUG);
    world.start_serve();
}
