//! Who may run when: each hook has places of its own, a program that hangs leaves its place to others, a limit of its own
//! is never exceeded, and what somebody else makes due is begun soon.

mod quick;
mod troublemakers;

use std::fs;
use std::io::{Write as _, stderr};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Notes its begin, hangs until it is let go, notes its end.
const HANGS: &str =
    "echo begins >> \"$1\"; while [ ! -e \"$1.go\" ]; do sleep 0.05; done; echo ends >> \"$1\"";

/// Lets a hook that [`HANGS`] go on.
fn let_go(world: &World, hook: &str) {
    fs::write(world.dir().join(format!("hooks/{hook}.log.go")), "").expect("written");
}

/// How many runs of a hook are under way, and how many were at most, by what its script noted.
fn under_way(world: &World, hook: &str) -> (i32, i32) {
    let (mut now, mut most) = (0, 0);
    for line in world.hook_log(hook) {
        now += if line == "begins" { 1 } else { -1 };
        most = most.max(now);
    }
    (now, most)
}

#[test]
fn a_hook_that_hangs_for_everybody_holds_up_no_other() {
    let world = Setup::new()
        .quiet()
        .set("outbox.concurrency", 2)
        .set("outbox.slow_concurrency", 1)
        .hook("hangs", &["paid"], HANGS)
        .noting_hook("ships", &["paid"])
        .start();
    let orders: Vec<String> = (1..=8).map(|number| format!("A-{number}")).collect();
    for order in &orders {
        world.pay(order);
    }
    // One of the two leaves its place, and a third hangs there; that is all.
    wait_until(
        PATIENCE,
        "all three places of the first to be taken",
        || under_way(&world, "hangs") == (3, 3),
    );
    // An order whose own run hangs is held up, since it has one at a time.
    wait_until(PATIENCE, "every other order", || {
        world.hook_log("ships").len() >= orders.len() - 3
    });
    assert_eq!(under_way(&world, "hangs"), (3, 3));
    let_go(&world, "hangs");
    world.settle();
    assert_eq!(under_way(&world, "hangs"), (0, 3));
    assert_eq!(world.hook_log("hangs").len(), 2 * orders.len());
    assert_eq!(world.hook_log("ships").len(), orders.len());
}

#[test]
fn a_limit_of_its_own_is_never_exceeded_however_slow_the_runs_are() {
    let world = Setup::new()
        .quiet()
        .set("outbox.concurrency", 1)
        .set("outbox.slow_concurrency", 4)
        .hook("alone", &["paid"], HANGS)
        .at_once(1)
        .hook("beside", &["failed"], HANGS)
        .start();
    for order in ["A-1", "A-2"] {
        world.pay(order);
    }
    wait_until(PATIENCE, "one to begin", || {
        under_way(&world, "alone").0 == 1
    });
    for order in ["B-1", "B-2"] {
        let issued = world.create(order);
        let expired = world.dictate(&issued, "expired");
        assert_eq!(world.tell_as_it_is(&expired).status, 200);
    }
    // Both ran for longer than it takes to count as slow, and only one hook may have a second run for that.
    wait_until(PATIENCE, "the other hook to have a slow run", || {
        under_way(&world, "beside").0 == 2
    });
    assert_eq!(under_way(&world, "alone"), (1, 1));
    let_go(&world, "alone");
    let_go(&world, "beside");
    world.settle();
    assert_eq!(under_way(&world, "alone"), (0, 1));
    assert_eq!(world.hook_log("alone").len(), 4);
}

/// A daemon that was killed leaves a run behind, and the next one may not begin another beside it.
#[test]
fn a_limit_of_its_own_holds_across_a_crash_of_the_daemon() {
    let mut world = Setup::new()
        .quiet()
        .hook("alone", &["paid"], HANGS)
        .at_once(1)
        .noting_hook("ships", &["paid"])
        .start();
    for order in ["A-1", "A-2"] {
        world.pay(order);
    }
    wait_until(PATIENCE, "one to begin", || {
        under_way(&world, "alone").0 == 1
    });
    world.kill9_serve();
    world.start_serve();
    // The daemon is at work: the order whose run hangs waits, the other is told.
    world.pay("A-3");
    wait_until(PATIENCE, "the other hook to run for the new order", || {
        let log = world.hook_log("ships");
        log.iter().any(|line| line.contains("A-3"))
    });
    assert_eq!(under_way(&world, "alone"), (1, 1));
    let_go(&world, "alone");
    world.settle();
    assert_eq!(under_way(&world, "alone"), (0, 1));
}

/// What an outbox takes that finds work only when it looks for what was left running, milliseconds: here each wish comes
/// just after such a look.
const WITHOUT_LOOKS_MS: i64 = 5_000;

/// Nobody rings here: the command is another process, and only writes the ledger. On a busy machine no clock can say what
/// a second is, so it prints what it took, and fails only for what no outbox reaches that looks every half second.
#[test]
fn what_a_command_makes_due_is_begun_within_a_second() {
    let world = Setup::new()
        .quiet()
        // Nobody waits an hour in a test: an attempt comes by hand or never.
        .set("outbox.schedule_s", "[0, 3600]")
        .hook("fulfil", &["paid"], "exit 1")
        .start();
    world.pay("A-1");
    let attempts = |count: usize| {
        wait_until(PATIENCE, "an attempt", || {
            world.value("SELECT count(*) FROM attempts") == count.to_string()
        });
    };
    attempts(1);
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    let mut delays = Vec::new();
    for attempt in 2..=8 {
        world.tilld(&["delivery", "retry", &event]).ends_with(0);
        let wished = SystemTime::now().duration_since(UNIX_EPOCH);
        let wished = i64::try_from(wished.expect("after 1970").as_millis()).expect("not so late");
        attempts(attempt);
        let begun = format!("SELECT started_ms FROM attempts WHERE number = {attempt}");
        let begun: i64 = world.value(&begun).parse().expect("a time");
        delays.push((begun - wished).max(0));
    }
    delays.sort_unstable();
    // A test's output may have no reader.
    drop(writeln!(stderr(), "begun after a command: {delays:?} ms"));
    let at = |place: usize| delays.get(place).copied().unwrap_or(i64::MAX);
    assert!(at(0) < 1_000, "{delays:?} ms");
    let middle = at(delays.len() / 2);
    assert!(middle < WITHOUT_LOOKS_MS / 2, "{delays:?} ms");
}

/// An invoice that a command opened is an event as well, told by a process that has ended since.
#[test]
fn an_invoice_that_a_command_opened_is_told_without_a_bell() {
    let world = Setup::new().quiet().noting_hook("told", &["*"]).start();
    let opened: Value = world.try_create("A-1").json();
    wait_until(PATIENCE, "the opening to be told", || {
        world.hook_log("told").len() == 1
    });
    assert_eq!(opened.get("order_id"), Some(&json!("A-1")));
}
