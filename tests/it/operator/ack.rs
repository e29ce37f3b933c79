//! `tilld ack`: what the operator acknowledges raises no alert any more, and nothing else is changed by it.

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

#[test]
fn an_acknowledged_invoice_raises_no_alert_until_something_new_does() {
    let world = Setup::new().quiet().noting_hook("all", &["*"]).start();
    let less = world.create("A-1");
    let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    world.settle();
    world.tilld(&["status"]).ends_with(16);
    let told = world.hook_log("all").len();
    let dry = world.tilld(&["ack", "A-1", "--dry-run"]).ends_with(0);
    assert_eq!(dry.stdout, "order A-1: mismatch would be acknowledged\n");
    assert!(dry.stderr.contains("nothing was changed"), "{dry:?}");
    world.tilld(&["status"]).ends_with(16);
    let acknowledged = world.tilld(&["ack", "A-1"]).ends_with(0);
    assert_eq!(acknowledged.stdout, "order A-1: mismatch acknowledged\n");
    world.tilld(&["status"]).ends_with(0);
    assert_eq!(world.invoice("A-1", "outcome"), "mismatch");
    let explained = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert!(
        explained.contains("the operator acknowledged what needed a look"),
        "{explained}"
    );
    // The same claim again is no news, and no hook ran for the acknowledgement.
    assert_eq!(world.tell_as_it_is(&less).status, 200);
    wait_until(PATIENCE, "it to be heard", || {
        world.value("SELECT count(*) FROM heard WHERE source = 'notification'") == "2"
    });
    world.tilld(&["status"]).ends_with(0);
    assert_eq!(world.hook_log("all").len(), told);

    let none = world.tilld(&["ack", "A-1"]).ends_with(1);
    assert!(
        none.stderr
            .contains("hint: `tilld status` shows what needs attention"),
        "{none:?}"
    );
    world.tilld(&["ack", "A-9"]).ends_with(3);
    world.tilld(&["ack", "--all"]).ends_with(1);
    // What ends with its cause stays.
    let odd = world.create("A-2");
    let odd = world.dictate(&odd, "ODD");
    assert_eq!(world.tell_as_it_is(&odd).status, 200);
    let kept = world.tilld(&["ack", "A-2"]).ends_with(1);
    assert!(
        kept.stderr
            .contains("hint: unsorted_status ends with its cause"),
        "{kept:?}"
    );
}

/// One verb for all that must be acknowledged: of an order, of a hook, or everything there is.
#[test]
fn given_up_deliveries_and_invoices_are_acknowledged_by_the_same_verb() {
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid", "mismatch"], "#!/bin/sh\nexit 65\n")
        .hook("mail", &["paid"], "#!/bin/sh\nexit 65\n")
        .start();
    for order in ["A-1", "A-2", "A-3"] {
        world.pay(order);
    }
    for order in ["B-1", "B-2"] {
        let less = world.create(order);
        let less = world.dictate_fields(&less, &json!({ "status": "paid", "amount": "500" }));
        assert_eq!(world.tell_as_it_is(&less).status, 200);
    }
    let given_up = "SELECT count(*) FROM deliveries WHERE state = 'abandoned'";
    wait_until(PATIENCE, "all to be given up", || {
        world.value(given_up) == "8"
    });
    let critical = Some((json!("critical"), json!("ack")));
    let (abandoned, severities) = ends_at(&world, "abandoned");
    let (mismatch, _) = ends_at(&world, "mismatch");
    assert_eq!((abandoned, mismatch), (critical.clone(), critical.clone()));
    assert!(
        severities.is_sorted(),
        "the most severe first: {severities:?}"
    );

    let dry = world.tilld(&["ack", "--all", "--dry-run", "--json"]);
    let dry = dry.ends_with(0).json();
    assert_eq!(dry.pointer("/deliveries"), Some(&json!(8)));
    assert_eq!(
        dry.pointer("/invoices/1/reasons"),
        Some(&json!(["mismatch"]))
    );

    let one = world.tilld(&["ack", "A-1", "--json"]).ends_with(0).json();
    assert_eq!(
        one,
        json!({ "invoices": [], "deliveries": 2, "dry_run": false })
    );
    let of_hook = world.tilld(&["ack", "--all", "--hook=mail"]).ends_with(0);
    assert_eq!(of_hook.stdout, "2 deliveries acknowledged\n");
    let none = world.tilld(&["ack", "--all", "--hook=mail"]).ends_with(1);
    assert!(none.stderr.contains("without `--hook`"), "{none:?}");
    // What was settled with the customer is one matter, the script that never ran is another.
    let settled = world
        .tilld(&["ack", "B-1", "--reason=mismatch"])
        .ends_with(0);
    assert_eq!(settled.stdout, "order B-1: mismatch acknowledged\n");
    assert_eq!(ends_at(&world, "abandoned").0, critical);
    let script = world.tilld(&["ack", "B-1"]).ends_with(0);
    assert_eq!(script.stdout, "1 delivery acknowledged\n");
    world.tilld(&["status"]).ends_with(16);
    let rest = world.tilld(&["ack", "--all"]).ends_with(0);
    assert_eq!(
        rest.stdout,
        "order B-2: mismatch acknowledged\n3 deliveries acknowledged\n"
    );
    world.tilld(&["status"]).ends_with(0);
    // They stay given up by the schedule, so a retry of everything takes them.
    assert_eq!(world.value(given_up), "8");
    let by = "SELECT count(*) FROM deliveries WHERE abandoned_by IS NOT NULL";
    assert_eq!(world.value(by), "0");
    let again = world.tilld(&["delivery", "retry", "--all"]).ends_with(0);
    assert!(again.stdout.contains("8 deliveries"), "{again:?}");

    for wrong in [
        &["ack"][..],
        &["ack", "A-1", "--all"],
        &["ack", "--all", "--reason=held"],
        &["ack", "--all", "--reason=mismatch", "--hook=mail"],
    ] {
        world.tilld(wrong).ends_with(2);
    }
}

/// Severity and end of the need with this reason; and all severities, in the order of the list.
fn ends_at(world: &World, reason: &str) -> (Option<(Value, Value)>, Vec<String>) {
    let status = world.tilld(&["status", "--json"]).ends_with(16).json();
    let needs = status.pointer("/needs").and_then(Value::as_array);
    let needs = needs.cloned().unwrap_or_default();
    let field = |need: &Value, name: &str| need.get(name).cloned().unwrap_or_default();
    let found = needs.iter().find(|need| field(need, "reason") == reason);
    let found = found.map(|need| (field(need, "severity"), field(need, "ends")));
    let severities = needs.iter().map(|need| field(need, "severity").to_string());
    (found, severities.collect())
}

/// More invoices than one read finds, and those that end with their cause between them.
#[test]
fn every_invoice_is_acknowledged_however_many_there_are() {
    let world = Setup::new().quiet().start();
    world.create("A-1");
    world.neighbour().tamper(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) \
         INSERT INTO invoice (ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, currency_asked, \
           amount_agreed, currency_agreed, outcome, outcome_ms, created_ms, updated_ms, attention) \
         SELECT printf('%022d', i), 'B-' || i, 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 'mismatch', 0, 0, 0, \
           iif(i % 2, 'mismatch', 'unsorted_status rewound') FROM n",
    );
    let count = |args: &[&str]| {
        let done = world.tilld(args).ends_with(0).json();
        let invoices = done.pointer("/invoices").and_then(Value::as_array);
        invoices.map(Vec::len)
    };
    let dry = ["ack", "--all", "--dry-run", "--json"];
    assert_eq!(count(&dry), Some(1100));
    let mismatched = ["ack", "--all", "--reason=mismatch", "--json"];
    assert_eq!(count(&mismatched), Some(550));
    assert_eq!(count(&["ack", "--all", "--json"]), Some(550));
    world.tilld(&["ack", "--all"]).ends_with(1);
    let left = "SELECT count(*) FROM invoices WHERE attention = 'unsorted_status'";
    assert_eq!(world.value(left), "550");
    // It is no ledger that the harness's look at its invariants would find sound.
    world.neighbour().tamper(
        "DELETE FROM history WHERE invoice IN (SELECT id FROM invoice WHERE order_id LIKE 'B-%'); \
         DELETE FROM invoice WHERE order_id LIKE 'B-%'",
    );
}
