//! A wall clock that is wrong, jumps, or was right while nobody served: what is silent is asked for in time, nothing is
//! given up by our clock alone, and nothing comes in a burst (A06, A29).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Clock, Issued, PATIENCE, Setup, World, skip, wait_until};

/// The schedule as it is by default.
const BY_DEFAULT: &str = "[{ until_s = 1800, every_s = 50 }, { until_s = 7200, every_s = 300 }, \
    { until_s = 86400, every_s = 1800 }, { until_s = 259200, every_s = 14400 }]";
/// A lost notification of a young invoice is found within this time.
const BOUND: Duration = Duration::from_mins(1);

macro_rules! clock {
    () => {
        match Clock::find() {
            Some(clock) => clock,
            None => skip!("libfaketime is not there (Debian: `apt-get install faketime`)"),
        }
    };
}

fn under(setup: Setup, clock: &Clock) -> Setup {
    let program = clock.program();
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    setup.under(&words)
}

/// Waits until the service was asked so many times more.
#[track_caller]
fn asked_again(world: &World, times: u64) {
    let so_far = world.requests("fetch");
    wait_until(PATIENCE, "questions", || {
        world.requests("fetch") >= so_far + times
    });
}

/// A06: nobody listened for three minutes, and the sender gave up.
#[test]
fn changes_while_nothing_served_are_found_after_the_start_with_one_run_each() {
    let clock = clock!();
    let setup = Setup::new()
        .set("poller.schedule", BY_DEFAULT)
        .set("poller.cadence_s", 5)
        .set("poller.requests_per_second", 5)
        .noting_hook("fulfil", &["paid"])
        .noting_hook("cancel", &["failed"]);
    let mut world = under(setup, &clock).start();
    let issued = ["A-1", "A-2", "A-3"].map(|order| world.create(order));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    for (issued, status) in issued.iter().zip(["paid", "expired", "canceled"]) {
        world.dictate(issued, status);
    }
    clock.set("+180");
    world.start_serve();
    let started = Instant::now();
    wait_until(BOUND, "all three to be found", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome <> 'open' AND found_by = 'poll'")
            == "3"
    });
    assert!(started.elapsed() < BOUND);
    world.settle();
    let runs = |hook: &str| {
        let log = world.hook_log(hook);
        let mut orders: Vec<String> = log
            .iter()
            .filter_map(|line| line.split(' ').nth(2))
            .map(str::to_owned)
            .collect();
        orders.sort();
        orders
    };
    assert_eq!(runs("fulfil"), ["A-1"]);
    assert_eq!(runs("cancel"), ["A-2", "A-3"]);
}

#[test]
fn a_clock_that_was_days_ahead_retires_nobody() {
    let clock = clock!();
    let mut world = under(Setup::new().noting_hook("all", &["*"]), &clock).start();
    world.faults(&json!({ "lose": true }));
    let open = world.create("A-1");
    let failed = world.create("A-2");
    world.dictate(&failed, "canceled");
    wait_until(PATIENCE, "the failure", || {
        world.invoice("A-2", "outcome") == "failed"
    });
    clock.set("+30d");
    asked_again(&world, 4);
    // Also while nobody looks: a restart must not take the wrong dates for good.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    clock.set("+0");
    world.start_serve();
    let unresolved = "SELECT count(*) FROM events WHERE kind = 'unresolved'";
    assert_eq!(world.value(unresolved), "0");
    paid_is_found(&world, &open);
    // The failed one is due five minutes after it failed, and no sooner for the jump.
    world.dictate(&failed, "paid");
    clock.set("+360");
    wait_until(PATIENCE, "the late payment", || {
        world.invoice("A-2", "outcome") == "paid"
    });
    assert_eq!(world.value(unresolved), "0");
}

#[test]
fn a_clock_set_back_while_it_runs_silences_nobody() {
    let clock = clock!();
    clock.set("+400d");
    let world = under(Setup::new(), &clock).start();
    world.faults(&json!({ "lose": true }));
    let issued = world.create("A-1");
    asked_again(&world, 2);
    clock.set("+0");
    paid_is_found(&world, &issued);
}

#[test]
fn a_clock_of_1970_at_boot_takes_notifications_and_is_set_right_without_a_burst() {
    let clock = clock!();
    let setup = Setup::new()
        .set("poller.requests_per_second", 2)
        .noting_hook("all", &["paid"]);
    let mut world = under(setup, &clock).start();
    world.faults(&json!({ "lose": true }));
    let orders: Vec<String> = (0..8).map(|number| format!("A-{number}")).collect();
    let issued: Vec<Issued> = orders.iter().map(|order| world.create(order)).collect();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    clock.set("@1970-01-01 00:00:10");
    world.start_serve();
    let issued: Vec<Issued> = issued
        .iter()
        .map(|issued| world.dictate(issued, "paid"))
        .collect();
    // Heard, stored and told to the shop whatever the clock shows.
    let told = issued.first().expect("eight of them");
    assert_eq!(world.tell_as_it_is(told).status, 200);
    // The others may have been asked about by now: what is dated by a clock that was right counts as due.
    wait_until(PATIENCE, "the hook", || {
        world
            .hook_log("all")
            .iter()
            .any(|line| line.contains(" A-0 "))
    });
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'unresolved'"),
        "0"
    );
    let before = (world.requests("fetch"), Instant::now());
    clock.set("+0");
    wait_until(PATIENCE, "all payments", || {
        world.value("SELECT count(*) FROM invoices WHERE outcome = 'paid'") == "8"
    });
    let asked = world.requests("fetch") - before.0;
    // Two in a second, and the one that was under way.
    let most = before.1.elapsed().as_secs() * 2 + 3;
    assert!(asked <= most, "{asked} of {most}");
    wait_until(PATIENCE, "the hooks", || world.hook_log("all").len() == 8);
}

/// One attempt failed while the clock was three hours ahead; it is corrected while the daemon runs, or while none does.
#[test]
fn an_attempt_planned_by_a_clock_that_was_ahead_is_made_once_it_is_corrected() {
    let clock = clock!();
    for down in [false, true] {
        clock.set("+3h");
        let setup = Setup::new().set("outbox.schedule_s", "[0, 2, 36000]").hook(
            "fulfil",
            &["paid"],
            "exit 1",
        );
        let mut world = under(setup, &clock).start();
        world.pay("A-1");
        wait_until(PATIENCE, "the first attempt", || {
            world.value("SELECT count(*) FROM attempts") == "1"
        });
        if down {
            assert_eq!(world.stop_serve(PATIENCE), 0);
        }
        clock.set("+0");
        if down {
            world.start_serve();
        }
        wait_until(Duration::from_secs(30), "the second attempt", || {
            world.value("SELECT count(*) FROM attempts") == "2"
        });
    }
}

/// The reasons that `status` shows.
fn reasons(world: &World) -> Vec<String> {
    let status = world.tilld(&["status", "--json"]);
    let told = status.json();
    let needs = told.get("needs").and_then(Value::as_array);
    let word = |need: &Value| need.get("reason")?.as_str().map(str::to_owned);
    needs.expect("a list").iter().filter_map(word).collect()
}

#[test]
fn a_clock_that_is_ahead_raises_an_alert_and_what_it_dates_is_marked() {
    let clock = clock!();
    clock.set("+3h");
    let world = under(Setup::new(), &clock).start();
    world.create("open");
    world.pay("A-1");
    let is_told = || reasons(&world).contains(&"clock".to_owned());
    wait_until(PATIENCE, "the alert", is_told);
    let marked = |order: &str| {
        let ask = format!(
            "SELECT group_concat(DISTINCT time_unsure) FROM events WHERE order_id = '{order}'"
        );
        world.value(&ask)
    };
    wait_until(PATIENCE, "the mark", || marked("A-1").contains('1'));
    assert_eq!(world.invoice("A-1", "time_unsure"), "1");
    let refused = world.tilld(&["db", "prune"]).ends_with(1);
    assert!(refused.stderr.contains("nothing is emptied"), "{refused:?}");
    world.tilld(&["db", "prune", "--dry-run"]).ends_with(0);
    clock.set("+0");
    wait_until(PATIENCE, "the alert to end", || !is_told());
    world.tilld(&["db", "prune"]).ends_with(0);
    world.pay("A-2");
    assert_eq!((marked("A-2").as_str(), is_told()), ("0", false));
    assert_eq!(world.invoice("A-2", "time_unsure"), "0");
    let (json, text) = (world.tilld(&["status", "--json"]), world.tilld(&["status"]));
    assert!(!json.stdout.contains("clock") && !text.stdout.contains("clock"));
}

/// Nobody polls, so no answer of the service says that the clock is right.
#[test]
fn an_idle_shops_alert_ends_once_the_clock_is_set() {
    let clock = clock!();
    clock.set("@1970-01-01 00:00:10");
    let world = under(Setup::new().quiet(), &clock).start();
    let is_told = || reasons(&world).contains(&"clock".to_owned());
    wait_until(PATIENCE, "the alert", is_told);
    clock.set("+0");
    wait_until(PATIENCE, "the alert to end", || !is_told());
}

/// What is at stake: requisites of a payment that has just come, deleted as half a century old.
#[test]
fn what_was_paid_while_the_clock_showed_1970_keeps_its_texts() {
    let clock = clock!();
    let setup = Setup::new()
        .set("retention.requisites_days", 1)
        .set("retention.raw_days", 1);
    let mut world = under(setup, &clock).start();
    let issued = world.create("A-1");
    world.create("open");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    clock.set("@1970-01-01 00:00:10");
    world.start_serve();
    wait_until(PATIENCE, "the alert", || {
        reasons(&world).contains(&"clock".to_owned())
    });
    let paid = world.dictate(&issued, "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    wait_until(PATIENCE, "the payment", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    assert_eq!(world.invoice("A-1", "time_unsure"), "1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    clock.set("+0");
    world.start_serve();
    // The walk comes at the start, once the service has told the time.
    asked_again(&world, 3);
    let pruned = world.tilld(&["db", "prune", "--json"]).ends_with(0).json();
    let emptied = ["requisites", "raw"].map(|kind| pruned.get(kind).and_then(Value::as_u64));
    assert_eq!(emptied, [Some(0), Some(0)]);
    let kept = "SELECT requisites IS NOT NULL AND raw IS NOT NULL \
        AND outcome_ms < 1735689600000 FROM invoice WHERE order_id = 'A-1'";
    assert_eq!(world.value(kept), "1");
}

#[track_caller]
fn paid_is_found(world: &World, issued: &Issued) {
    world.dictate(issued, "paid");
    wait_until(PATIENCE, "the payment", || {
        world.invoice(&issued.order, "outcome") == "paid"
    });
    assert_eq!(world.invoice(&issued.order, "found_by"), "poll");
}
