//! `tilld delivery …` and `tilld hook …` beside real deliveries: what a merchant does about a script that failed.

use std::fs;

use serde_json::{Value, json};

use super::results;
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Fails until `$1.mended` is there.
const BROKEN: &str = "echo \"run $TILLD_ATTEMPT $TILLD_EVENT_ID\" >> \"$1\"\n\
    [ -e \"$1.mended\" ] || { echo 'no stock' >&2; exit 1; }\necho shipped";

fn mend(world: &World) {
    fs::write(world.dir().join("hooks/fulfil.log.mended"), "").expect("written");
}

#[test]
fn what_was_given_up_runs_again_when_a_person_says_so() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .hook("fulfil", &["paid"], BROKEN)
        .noting_hook("mail", &["paid"])
        .start();
    world.pay("A-1");
    world.settle();
    let list = |state: &str| {
        let ran = world.tilld(&["delivery", "list", "--state", state, "--json"]);
        let lines = ran.ends_with(0).stdout;
        let rows: Vec<Value> = lines
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        rows
    };
    let abandoned = list("abandoned");
    let [row] = abandoned.as_slice() else {
        panic!("{abandoned:?}")
    };
    assert_eq!(row.get("hook"), Some(&json!("fulfil")));
    assert_eq!(list("done").len(), 1);
    let event = row
        .get("event_id")
        .and_then(Value::as_str)
        .expect("an id")
        .to_owned();

    let shown = world
        .tilld(&["delivery", "show", &event, "--hook=fulfil", "--json"])
        .ends_with(0)
        .json();
    assert_eq!(
        shown.pointer("/ended_attempts/0/result"),
        Some(&json!("exit 1"))
    );
    assert_eq!(
        shown.pointer("/ended_attempts/0/stderr/data"),
        Some(&json!("no stock\n"))
    );
    let table = world
        .tilld(&["delivery", "show", &event])
        .ends_with(0)
        .stdout;
    assert!(
        table.contains("no stock") && table.contains("abandoned"),
        "{table}"
    );

    // What is done is not run again by this.
    let done = world
        .tilld(&["delivery", "retry", &event, "--hook=mail"])
        .ends_with(1);
    assert!(done.stderr.contains("`mail` is done already"), "{done:?}");

    // Still broken: it is tried once more, with a fresh schedule, and given up again.
    world
        .tilld(&["delivery", "retry", &event, "--hook=fulfil"])
        .ends_with(0);
    wait_until(PATIENCE, "the second attempt", || {
        results(&world, "fulfil").len() == 2
    });
    assert_eq!(list("abandoned").len(), 1);

    // Beside no daemon it is noted down, and runs at the next start.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    mend(&world);
    let retried = world
        .tilld(&["delivery", "retry", &event, "--json"])
        .ends_with(0);
    assert_eq!(retried.json().get("retried"), Some(&json!(1)));
    assert!(retried.stderr.contains("no daemon runs"), "{retried:?}");
    world.start_serve();
    world.settle();
    assert_eq!(results(&world, "fulfil"), ["exit 1", "exit 1", "exit 0"]);
    let wanted = [1, 2, 3].map(|attempt| format!("run {attempt} {event}"));
    assert_eq!(world.hook_log("fulfil"), wanted, "the same event each time");
    assert_eq!(world.hook_log("mail").len(), 1);
    let shown = world
        .tilld(&["delivery", "show", &event, "--hook=fulfil", "--json"])
        .ends_with(0)
        .json();
    assert_eq!(
        shown.pointer("/ended_attempts/2/stdout/data"),
        Some(&json!("shipped\n"))
    );
    world
        .tilld(&["delivery", "show", "no-such-event"])
        .ends_with(3);
}

#[test]
fn a_waiting_delivery_can_be_hurried_and_a_test_run_leaves_no_trace() {
    let world = Setup::new()
        .quiet()
        // Nobody waits an hour in a test: the second attempt comes by hand or never.
        .set("outbox.schedule_s", "[0, 3600]")
        .hook("fulfil", &["paid"], BROKEN)
        .start();
    world.pay("A-1");
    let waits = "SELECT state || attempts FROM deliveries";
    wait_until(PATIENCE, "the first attempt", || {
        world.value(waits) == "waiting1"
    });

    let listed = world.tilld(&["hook", "list", "--json"]).ends_with(0).json();
    assert_eq!(listed.get("name"), Some(&json!("fulfil")), "{listed}");
    let id = world.value("SELECT invoice_id FROM invoices");
    let reference = world.value("SELECT ref FROM invoices");
    for (flag, name) in [("--order", "A-1"), ("--id", &id), ("--ref", &reference)] {
        let tried = world.tilld(&["hook", "test", "fulfil", flag, name, "--json"]);
        assert!(tried.stdout.contains("no stock"), "{tried:?}");
        assert!(tried.stdout.contains("\"TILLD_REPLAY\":\"1\""), "{tried:?}");
        assert!(
            tried.stdout.contains("\"TILLD_ORDER_ID\":\"A-1\""),
            "{tried:?}"
        );
    }
    assert_eq!(
        world.value(waits),
        "waiting1",
        "nothing is stored of a test run"
    );
    assert_eq!(results(&world, "fulfil").len(), 1);

    mend(&world);
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    world.tilld(&["delivery", "retry", &event]).ends_with(0);
    world.settle();
    assert_eq!(results(&world, "fulfil"), ["exit 1", "exit 0"]);
}
