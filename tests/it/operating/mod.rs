//! What an operator does with deliveries, beside a running daemon and without one: each command with its dry run, its
//! refusals and its exit codes. At stake: goods that leave twice, or never, because a command meant something else.

mod bounds;
mod lists;

use std::fs;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Setup, World, wait_until};

/// Notes what it is told; fails while `$1.broken` is there, and for good while `$1.hopeless` is.
const NOTE: &str = "echo \"$TILLD_EVENT_ID $TILLD_ORDER_ID $TILLD_ATTEMPT $TILLD_REPLAY\" >> \"$1\"\n\
    [ ! -e \"$1.hopeless\" ] || exit 65\n[ ! -e \"$1.broken\" ] || exit 1";

/// Notes its start, and waits for `$1.go`.
const SLOW: &str =
    "echo \"$TILLD_ORDER_ID\" >> \"$1\"\nwhile [ ! -e \"$1.go\" ]; do sleep 0.02; done";

fn file(world: &World, name: &str) -> std::path::PathBuf {
    world.dir().join("hooks").join(name)
}

/// All columns of all deliveries that a command could change, to see that it changed none.
fn all(world: &World) -> Vec<Vec<String>> {
    world.sql("SELECT * FROM delivery ORDER BY id")
}

/// `hook order state attempts` of each delivery, oldest first.
fn states(world: &World) -> Vec<String> {
    let query = "SELECT hook || ' ' || order_id || ' ' || state || ' ' || attempts FROM deliveries ORDER BY seq, hook";
    world.sql(query).concat()
}

fn event(world: &World, order: &str) -> String {
    world.value(&format!(
        "SELECT event_id FROM events WHERE kind = 'paid' AND order_id = '{order}'"
    ))
}

/// `tilld delivery …`, to be ended with this code.
#[track_caller]
fn delivery(world: &World, args: &[&str], code: i32) -> Ran {
    let args: Vec<&str> = ["delivery"].iter().chain(args).copied().collect();
    world.tilld(&args).ends_with(code)
}

/// Looks that the dry run of a command shows these orders, changes nothing and says how many.
#[track_caller]
fn dry(world: &World, args: &[&str], orders: &[&str]) {
    let before = all(world);
    let args: Vec<&str> = args.iter().chain(&["--dry-run"]).copied().collect();
    let shown = delivery(world, &args, 0);
    assert!(shown.stderr.contains("nothing was changed: "), "{shown:?}");
    let json = delivery(world, &[&args[..], &["--json"]].concat(), 0);
    let rows = json.stdout.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect("JSON");
        row.get("order_id")
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
    let rows: Vec<String> = rows.flatten().collect();
    assert_eq!(rows, orders, "{json:?}");
    assert!(
        orders.iter().all(|order| shown.stdout.contains(order)),
        "{shown:?}"
    );
    assert_eq!(all(world), before, "{args:?}");
}

#[test]
fn what_is_done_runs_once_more_when_a_person_says_so_and_is_told_so() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 0]")
        .hook("fulfil", &["paid"], NOTE)
        .noting_hook("mail", &["paid"])
        .start();
    for order in ["A-1", "A-2"] {
        world.pay(order);
    }
    world.settle();
    let (first, other) = (event(&world, "A-1"), event(&world, "A-2"));
    dry(&world, &["replay", &first, "--hook=fulfil"], &["A-1"]);

    let told = delivery(&world, &["replay", &first, "--hook=fulfil"], 0);
    assert_eq!(told.stdout, "1 delivery is due once more\n");
    assert_eq!(told.stderr, "");
    world.settle();
    let replayed = |attempt: u32| format!("{first} A-1 {attempt} 1");
    wait_until(PATIENCE, "the replay", || {
        world.hook_log("fulfil").contains(&replayed(2))
    });
    assert_eq!(
        world.hook_log("fulfil").len(),
        3,
        "the other order did not run"
    );
    assert_eq!(world.hook_log("mail").len(), 2, "nor did the other hook");

    // One that fails is tried again by a fresh schedule, as the replay it is, and can be given up like any other.
    fs::write(file(&world, "fulfil.log.broken"), "").expect("written");
    delivery(&world, &["replay", "--order=A-1", "--hook=fulfil"], 0);
    wait_until(PATIENCE, "the replay to be given up", || {
        states(&world).contains(&"fulfil A-1 abandoned 4".to_owned())
    });
    assert_eq!(
        world.hook_log("fulfil").split_off(3),
        [replayed(3), replayed(4)]
    );
    let shown = delivery(&world, &["show", &first, "--hook=fulfil"], 0).stdout;
    for part in ["replay", "yes: it was done once", "Attempt 4", "exit 1"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = delivery(&world, &["show", &other, "--json"], 0).json();
    assert_eq!(shown.get("replay"), Some(&json!(false)));
    let refused = delivery(&world, &["replay", &first, "--hook=fulfil"], 1);
    assert!(
        refused
            .stderr
            .contains("`fulfil` was given up, `tilld delivery retry`"),
        "{refused:?}"
    );

    // Without a daemon it is noted down; asked for twice it is still once.
    fs::remove_file(file(&world, "fulfil.log.broken")).expect("there");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let told = delivery(&world, &["resend", &other, "--json"], 0);
    assert_eq!(
        told.json(),
        json!({ "event_id": other, "replayed": 2, "left_alone": 0 })
    );
    assert!(told.stderr.contains("no daemon runs"), "{told:?}");
    let again = delivery(&world, &["replay", &other], 1);
    assert!(
        again
            .stderr
            .contains("nothing to replay: `fulfil` waits to be run, `mail` waits"),
        "{again:?}"
    );
    delivery(&world, &["retry", &first], 0);
    world.start_serve();
    world.settle();
    let wanted = [
        "fulfil A-1 done 5",
        "mail A-1 done 1",
        "fulfil A-2 done 2",
        "mail A-2 done 2",
    ];
    assert_eq!(states(&world), wanted);
    let last = world.hook_log("fulfil").split_off(5);
    assert!(
        last.contains(&replayed(5)) && last.contains(&format!("{other} A-2 2 1")),
        "{last:?}"
    );

    // Everything at once is never meant.
    delivery(&world, &["replay"], 2);
    delivery(&world, &["replay", "--all"], 2);
    delivery(&world, &["replay", "--order=none"], 3);
    delivery(&world, &["replay", &first, "--hook=none"], 3);
    let none = delivery(&world, &["replay", "--order=A-1", "--hook=none"], 1);
    assert!(
        none.stderr
            .contains("no delivery of order `A-1` for hook `none` is done"),
        "{none:?}"
    );
}

/// All of everything is not taken for a wish.
fn everything_is_not_given_up(world: &World) {
    for wrong in [
        &["abandon"][..],
        &["abandon", "--all"],
        &["abandon", "--all", "--order=A-1"],
    ] {
        delivery(world, wrong, 2);
    }
}

#[test]
fn what_waits_is_given_up_when_a_person_says_so_and_nobody_is_told() {
    let world = Setup::new()
        .quiet()
        // Nobody waits an hour in a test.
        .set("outbox.schedule_s", "[0, 3600]")
        .hook("fulfil", &["paid"], NOTE)
        .hook("slow", &["paid"], SLOW)
        .start();
    fs::write(file(&world, "fulfil.log.broken"), "").expect("written");
    fs::write(file(&world, "slow.log.go"), "").expect("written");
    for order in ["A-1", "A-2", "A-3"] {
        world.pay(order);
    }
    wait_until(PATIENCE, "the first attempts", || {
        let states = states(&world);
        let are = |end: &str| states.iter().filter(|row| row.ends_with(end)).count();
        are("waiting 1") == 3 && are("done 1") == 3
    });
    let first = event(&world, "A-1");
    dry(&world, &["abandon", &first], &["A-1"]);
    dry(
        &world,
        &["abandon", "--all", "--hook=fulfil"],
        &["A-1", "A-2", "A-3"],
    );
    dry(
        &world,
        &["abandon", "--all", "--state=waiting"],
        &["A-1", "A-2", "A-3"],
    );

    dry(
        &world,
        &["retry", "--all", "--hook=fulfil"],
        &["A-1", "A-2", "A-3"],
    );
    let told = delivery(&world, &["retry", "--all", "--state=waiting", "--json"], 0);
    assert_eq!(told.json(), json!({ "retried": 3, "left_alone": 0 }));
    wait_until(PATIENCE, "the second attempts", || {
        let again = |row: &&String| row.ends_with("waiting 2");
        states(&world).iter().filter(again).count() == 3
    });

    everything_is_not_given_up(&world);
    let told = delivery(&world, &["abandon", &first], 0);
    assert_eq!(
        (told.stdout.as_str(), told.stderr.as_str()),
        ("1 delivery is given up\n", "")
    );
    let again = delivery(&world, &["abandon", &first, "--hook=fulfil"], 1);
    assert!(
        again.stderr.contains("`fulfil` was given up already"),
        "{again:?}"
    );
    let shown = delivery(&world, &["show", &first, "--hook=fulfil"], 0).stdout;
    assert!(shown.contains("abandoned by operator"), "{shown}");
    assert!(
        !world.tilld(&["status"]).stdout.contains("Needs a person"),
        "a person has seen it"
    );
    let by_order = delivery(&world, &["abandon", "--order=A-2", "--json"], 0);
    assert_eq!(by_order.json(), json!({ "abandoned": 1, "left_alone": 0 }));
    let none = delivery(&world, &["abandon", "--order=A-2"], 1);
    assert!(
        none.stderr
            .contains("nothing to abandon: no delivery of order `A-2` waits"),
        "{none:?}"
    );

    // What tilld gave up needs a person, until one says that it was seen.
    fs::write(file(&world, "fulfil.log.hopeless"), "").expect("written");
    delivery(&world, &["retry", "--order=A-3"], 0);
    world.settle();
    fs::remove_file(file(&world, "fulfil.log.hopeless")).expect("there");
    world.tilld(&["status"]).ends_with(16);
    delivery(&world, &["abandon", "--all", "--state=abandoned"], 2);
    delivery(&world, &["abandon", "--order=A-3", "--hook=fulfil"], 1);
    world.tilld(&["ack", "--all"]).ends_with(0);
    world.tilld(&["status"]).ends_with(0);

    // It can be taken back by name; a wish for all is none for what a person decided against.
    fs::remove_file(file(&world, "fulfil.log.broken")).expect("there");
    dry(&world, &["retry", "--all"], &["A-3"]);
    dry(&world, &["retry", "--order=A-2"], &["A-2"]);
    let told = delivery(&world, &["retry", "--order=A-2", "--json"], 0);
    assert_eq!(told.json(), json!({ "retried": 1, "left_alone": 0 }));
    // A dry run is held against all that stands there, and it runs at this moment.
    world.settle();
    dry(&world, &["retry", &first, "--state=abandoned"], &["A-1"]);
    delivery(&world, &["retry", &first], 0);
    delivery(&world, &["retry", "--order=A-3"], 0);
    world.settle();
    assert!(
        states(&world).iter().all(|row| row.contains(" done ")),
        "{:?}",
        states(&world)
    );
    let done = delivery(&world, &["retry", &first], 1);
    assert!(
        done.stderr
            .contains("`fulfil` is done already, `tilld delivery replay`"),
        "{done:?}"
    );
}

#[test]
fn what_is_held_is_released_or_given_up_and_is_not_retried() {
    let world = Setup::new()
        .quiet()
        // By itself nothing runs in this test.
        .set("outbox.schedule_s", "[3600]")
        .hook("fulfil", &["paid"], NOTE)
        .start();
    for order in ["A-1", "A-2", "A-3"] {
        world.pay(order);
    }
    // A person brought in what another one's shop owes: the hook is told of what was given up, under its reserved name.
    world.neighbour().tamper(
        "UPDATE delivery SET state = 'held', held_why = 'newly_sorted', next_ms = NULL; \
         INSERT INTO delivery (event, invoice, hook, state, attempts) \
         SELECT event, invoice, 'on_abandoned:fulfil', 'abandoned', 0 FROM delivery ORDER BY id LIMIT 1",
    );
    let first = event(&world, "A-1");
    let shown = delivery(&world, &["show", &first, "--hook=fulfil"], 0).stdout;
    let number = world.value("SELECT seq FROM events WHERE kind = 'paid' AND order_id = 'A-1'");
    let way_out = format!("`tilld delivery release {number} --hook fulfil` runs it");
    for part in ["held for", "newly_sorted", &way_out] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for act in ["retry", "replay"] {
        let refused = delivery(&world, &[act, &first, "--hook=fulfil"], 1);
        assert!(
            refused
                .stderr
                .contains("`fulfil` is held until `tilld delivery release`"),
            "{refused:?}"
        );
    }
    let colon = "--hook=on_abandoned:fulfil";
    dry(&world, &["retry", &first, colon], &["A-1"]);
    let ack = world
        .tilld(&["ack", "--all", colon, "--dry-run"])
        .ends_with(0);
    assert_eq!(ack.stdout, "1 delivery would be acknowledged\n");
    delivery(&world, &["release", &first, colon], 1);
    let listed = delivery(&world, &["list", colon, "--json"], 0).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");

    dry(&world, &["release", "--all"], &["A-1", "A-2", "A-3"]);
    dry(&world, &["release", "--order=A-1"], &["A-1"]);
    delivery(&world, &["release", &number], 0);
    wait_until(PATIENCE, "the daemon to run it", || {
        world.hook_log("fulfil") == [format!("{first} A-1 1 0")]
    });
    wait_until(PATIENCE, "its end", || {
        states(&world).contains(&"fulfil A-1 done 1".to_owned())
    });
    delivery(&world, &["release", &number], 1);
    dry(
        &world,
        &["abandon", "--all", "--state=held"],
        &["A-2", "A-3"],
    );
    delivery(&world, &["abandon", "--order=A-2"], 0);
    let refused = delivery(&world, &["release", "--order=A-2"], 1);
    assert!(
        refused.stderr.contains("of order `A-2` is held"),
        "{refused:?}"
    );
    let held = "SELECT order_id FROM deliveries WHERE held_why <> ''";
    assert_eq!(world.sql(held), [["A-3"]]);
    assert_eq!(world.hook_log("fulfil").len(), 1);
}
