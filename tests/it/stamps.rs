//! Instants that are ahead of the service's own clock. What is at stake: a payment that went back and stays paid, since all that
//! came later was dated earlier.

use std::time::SystemTime;

use serde_json::json;

use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

/// So many seconds from now, as the service writes it.
fn ahead(seconds: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(now.expect("after 1970").as_secs()).expect("small");
    jiff::Timestamp::from_second(now + seconds)
        .expect("a time")
        .to_string()
}

/// The service says so, dated so, and notifies.
fn says(world: &World, issued: &Issued, status: &str, seconds: i64) {
    let fields = json!({ "status": status, "updatedAt": ahead(seconds) });
    let issued = world.dictate_fields(issued, &fields);
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
}

fn becomes(world: &World, order: &str, outcome: &str) {
    // Two polls that agree are 30 s apart.
    wait_until(2 * PATIENCE, outcome, || {
        world.invoice(order, "outcome") == outcome
    });
}

#[test]
fn what_is_dated_ahead_is_settled_by_two_polls_and_hides_nothing() {
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    let courses = [("A-1", 3 * 3_600), ("A-2", 365 * 86_400), ("A-3", 60)];
    let issued = courses.map(|(order, _)| world.create(order));
    for ((order, far), issued) in courses.iter().zip(&issued) {
        says(&world, issued, "paid", *far);
        assert_eq!(world.invoice(order, "outcome || doubt"), "open1", "{order}");
    }
    // A word that is no payment blocks no later one.
    let waits = world.create("B-1");
    says(&world, &waits, "waiting", 3 * 3_600);
    says(&world, &waits, "paid", 0);
    for order in ["A-1", "A-2", "A-3", "B-1"] {
        becomes(&world, order, "paid");
    }
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 4);
    for issued in &issued {
        says(&world, issued, "refunded", 0);
    }
    for (order, _) in courses {
        becomes(&world, order, "reversed");
    }
}

/// A few seconds are no more than clocks differ.
#[test]
fn an_instant_a_few_seconds_ahead_is_as_good_as_any() {
    let world = Setup::new().quiet().start();
    let issued = world.create("A-1");
    says(&world, &issued, "paid", 3);
    assert_eq!(world.invoice("A-1", "outcome || doubt"), "paid0");
}
