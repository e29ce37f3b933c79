//! A merchant who sorts a status name late, or wrongly: old orders come out right, and no script runs by surprise. What is
//! at stake: goods that leave for an order of last month because a word was added to a config.

use std::fs;

use serde_json::json;

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Notes what each run was told, with whether it is a replay.
const NOTE: &str = "echo \"$TILLD_EVENT $TILLD_ORDER_ID $TILLD_ATTEMPT $TILLD_REPLAY\" >> \"$1\"";

/// Stops the daemon, makes these the names for paid, and starts it again.
#[track_caller]
fn restart_with_paid(world: &mut World, names: &str) {
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("a config");
    let lines = config.lines().map(|line| {
        if line.starts_with("statuses.paid") {
            format!("statuses.paid = {names}\n")
        } else {
            format!("{line}\n")
        }
    });
    fs::write(&file, lines.collect::<String>()).expect("written");
    world.start_serve();
}

/// Waits until so many orders have this outcome.
#[track_caller]
fn until_outcome(world: &World, outcome: &str, orders: usize) {
    let query = format!("SELECT count(*) FROM invoices WHERE outcome = '{outcome}'");
    wait_until(PATIENCE, "the outcomes", || {
        world.value(&query) == orders.to_string()
    });
}

/// Kinds of all events of an order, in their order.
fn kinds(world: &World, order: &str) -> Vec<String> {
    let query = format!("SELECT kind FROM events WHERE order_id = '{order}' ORDER BY seq");
    world.sql(&query).into_iter().flatten().collect()
}

fn events(world: &World) -> String {
    world.value("SELECT count(*) FROM events")
}

#[test]
fn what_a_newly_sorted_name_would_run_is_held_until_a_person_releases_it() {
    let mut world = Setup::new().quiet().hook("fulfil", &["paid"], NOTE).start();
    let orders = ["A-1", "A-2", "A-3"];
    let told = orders.map(|order| {
        let issued = world.dictate(&world.create(order), "settled");
        assert_eq!(world.tell_as_it_is(&issued).status, 200);
        issued
    });
    restart_with_paid(&mut world, r#"["paid", "settled"]"#);
    until_outcome(&world, "paid", 3);
    wait_until(PATIENCE, "the line at the end", || {
        world
            .serve_log()
            .contains("3 changed, 3 deliveries are held")
    });
    for order in orders {
        assert_eq!(kinds(&world, order), ["opened", "status", "paid"]);
        assert_eq!(world.invoice(order, "attention"), "");
    }
    let held = "SELECT DISTINCT state, held_why FROM deliveries";
    assert_eq!(world.sql(held), [["held", "newly_sorted"]]);

    // The same word again, pushed and polled, is no news.
    let before = events(&world);
    for issued in &told {
        assert_eq!(world.tell_as_it_is(issued).status, 200);
        assert_eq!(world.notify(&issued.reference, &[], "{}").status, 400);
    }
    let polled = "SELECT count(DISTINCT invoice) FROM heard WHERE source = 'poll'";
    wait_until(PATIENCE, "the nudges to be answered", || {
        world.value(polled) == "3"
    });
    assert_eq!(events(&world), before);

    // A new order is no surprise: its script runs, and none of the old ones did.
    let issued = world.dictate(&world.create("B-1"), "settled");
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["paid B-1 1 0"]);

    let list = world
        .tilld(&["delivery", "list", "--state=held", "--json"])
        .ends_with(0);
    assert_eq!(list.stdout.lines().count(), 3, "{list:?}");
    assert_eq!(list.json().get("held_why"), Some(&json!("newly_sorted")));
    let dry = world
        .tilld(&["delivery", "release", "--order=A-2", "--dry-run", "--json"])
        .ends_with(0);
    assert_eq!(dry.json().get("order_id"), Some(&json!("A-2")));
    assert_eq!(
        world.value("SELECT count(*) FROM deliveries WHERE state = 'held'"),
        "3"
    );
    let event = list.text("event_id");
    let retried = world.tilld(&["delivery", "retry", &event]).ends_with(1);
    assert!(retried.stderr.contains("delivery release"), "{retried:?}");

    let one = world
        .tilld(&["delivery", "release", "--order=A-2"])
        .ends_with(0);
    assert_eq!(one.stdout, "1 delivery is due now\n");
    world.settle();
    assert_eq!(world.hook_log("fulfil"), ["paid B-1 1 0", "paid A-2 1 0"]);
    let rest = world
        .tilld(&["delivery", "release", "--all", "--json"])
        .ends_with(0);
    assert_eq!(rest.json(), json!({ "released": 2, "left_alone": 0 }));
    world.settle();
    let mut ran = world.hook_log("fulfil");
    ran.sort();
    let wanted = [
        "paid A-1 1 0",
        "paid A-2 1 0",
        "paid A-3 1 0",
        "paid B-1 1 0",
    ];
    assert_eq!(ran, wanted);

    for (args, why) in [
        (vec!["--all"], "no delivery is held"),
        (
            vec!["--order=A-1", "--hook=mail"],
            "of order `A-1` for hook `mail`",
        ),
        (vec![event.as_str()], "`fulfil` is done already"),
    ] {
        let args = [vec!["delivery", "release"], args].concat();
        let again = world.tilld(&args).ends_with(1);
        assert!(again.stderr.contains(why), "{again:?}");
    }
    world.tilld(&["delivery", "release"]).ends_with(2);
    world
        .tilld(&["delivery", "release", "--order=none"])
        .ends_with(3);
    assert_eq!(world.hook_log("fulfil").len(), 4);
}

#[test]
fn a_name_that_was_sorted_wrongly_gives_the_outcome_back_and_paid_stays_once() {
    let mut world = Setup::new().quiet().hook("fulfil", &["paid"], NOTE).start();
    world.pay("A-1");
    world.settle();
    restart_with_paid(&mut world, r#"["settled"]"#);
    until_outcome(&world, "open", 1);
    assert_eq!(world.invoice("A-1", "attention"), "unsorted_status");
    restart_with_paid(&mut world, r#"["paid"]"#);
    until_outcome(&world, "paid", 1);
    let life = ["opened", "paid", "status", "paid_again"];
    assert_eq!(kinds(&world, "A-1"), life);

    // Nothing changed: nothing is looked at again. Another order shows that the daemon is at work.
    restart_with_paid(&mut world, r#"["paid"]"#);
    world.pay("A-2");
    world.settle();
    assert_eq!(kinds(&world, "A-1"), life);
    assert!(!world.serve_log().contains("sorted by the new lists"));
    let number = world.value("SELECT value FROM meta WHERE key = 'lists_number'");
    assert_eq!(number, "3");
    assert_eq!(world.hook_log("fulfil"), ["paid A-1 1 0", "paid A-2 1 0"]);
}
