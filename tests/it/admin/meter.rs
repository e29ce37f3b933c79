//! The meter of lost notifications: what a notification told is told, even where an answer of the service must confirm it first.
//! What is at stake: a merchant who is told that all his notifications are lost looks for a fault that is not there.

use serde_json::{Value, json};

use super::{get, setup};
use crate::harness::{PATIENCE, World, wait_until};

/// Changes since the start that were found by this one.
fn found_by(world: &World, finder: &str) -> String {
    let figures = get(world, "/metrics").body;
    let name = format!("tilld_transitions_total{{found_by=\"{finder}\"}} ");
    let mut lines = figures.lines();
    let count = lines.find_map(|line| line.strip_prefix(&name));
    count.unwrap_or("not counted").to_owned()
}

#[test]
fn what_a_notification_told_and_asking_confirmed_is_told() {
    let world = setup()
        .quiet()
        .set("moves.confirm_paid", true)
        .set("attention.polled_in_a_row", 2)
        .start();
    let orders = ["A-1", "A-2", "A-3"];
    for order in orders {
        let issued = world.create(order);
        let paid = world.dictate(&issued, "paid");
        assert_eq!(world.tell_as_it_is(&paid).status, 200);
    }
    // Another sum is believed only of an answer, too.
    let less = world.create("A-4");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    wait_until(PATIENCE, "the answers", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome <> 'open'") == "4"
    });
    assert_eq!(
        world.value("SELECT group_concat(DISTINCT source) FROM events WHERE kind <> 'opened'"),
        "poll"
    );
    assert_eq!(
        world.value("SELECT group_concat(DISTINCT found_by) FROM invoices"),
        "notification"
    );
    assert_eq!(
        (found_by(&world, "notification"), found_by(&world, "poll")),
        ("4".to_owned(), "0".to_owned())
    );
    let page = get(&world, "/").body;
    assert!(page.contains("<strong>0 of 4</strong>"), "{page}");
    let told = world.tilld(&["status"]).stdout;
    assert!(!told.contains("polled"), "{told}");
}

#[test]
fn what_nobody_told_is_lost_even_where_something_was_told_before() {
    let world = setup()
        .set("moves.confirm_paid", true)
        .set("attention.polled_in_a_row", 2)
        .start();
    world.faults(&json!({ "lose": true }));
    // Its payment was told, its other status and a second payment were not.
    let told = world.create("A-1");
    let paid = world.dictate(&told, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    let lost = world.create("A-2");
    world.dictate(&lost, "waiting");
    wait_until(PATIENCE, "the status", || {
        world.invoice("A-2", "status") == "waiting"
    });
    world.dictate(&lost, "paid");
    wait_until(PATIENCE, "the second payment", || {
        world.invoice("A-2", "outcome") == "paid"
    });
    assert_eq!(
        (
            world.invoice("A-1", "found_by"),
            world.invoice("A-2", "found_by")
        ),
        ("notification".to_owned(), "poll".to_owned())
    );
    assert_eq!(
        (found_by(&world, "notification"), found_by(&world, "poll")),
        ("1".to_owned(), "2".to_owned())
    );
    let status = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(status.contains("polled"), "{status}");
}

#[test]
fn the_last_notification_is_known_when_the_history_has_forgotten_it() {
    let mut world = setup()
        .quiet()
        .set("attention.silent_after_s", 3_600)
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "it to be noted", || {
        world.value("SELECT count(*) FROM meta WHERE key = 'last_heard'") == "1"
    });
    assert_eq!(world.stop_serve(PATIENCE), 0);
    // As after ten thousand answers to questions: what is looked at has no notification, and the first event is years old.
    world.neighbour().tamper(
        "DELETE FROM history; UPDATE event SET source = 'poll'; \
         UPDATE event SET at_ms = 1000 WHERE seq = (SELECT min(seq) FROM event)",
    );
    world.start_serve();
    let told = world.tilld(&["status", "--json"]).ends_with(0).json();
    assert_eq!(
        told.pointer("/last_notification/order_id"),
        Some(&Value::from("A-1"))
    );
    let figures = get(&world, "/metrics").body;
    let name = "tilld_last_notification_timestamp_seconds ";
    let mut lines = figures.lines();
    let at = lines.find_map(|line| line.strip_prefix(name)?.split('.').next()?.parse().ok());
    assert!(at > Some(1_600_000_000_u64), "{figures}");
}
