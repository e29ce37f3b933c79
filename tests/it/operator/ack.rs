//! `tilld ack`: what the operator acknowledges raises no alert any more, and nothing else is changed by it.

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, wait_until};

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
    assert_eq!(dry.stdout, "order A-1: mismatch acknowledged\n");
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
        none.stderr.contains("hint: nothing of it needs a person"),
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
    let status = world.tilld(&["status", "--json"]).ends_with(16).json();
    let ends = |reason: &str| {
        let needs = status.pointer("/needs").and_then(Value::as_array);
        let mut of = needs.into_iter().flatten();
        let need = of.find(|need| need.pointer("/reason") == Some(&json!(reason)))?;
        Some((need.get("severity").cloned()?, need.get("ends").cloned()?))
    };
    let critical = Some((json!("critical"), json!("ack")));
    assert_eq!(
        (ends("abandoned"), ends("mismatch")),
        (critical.clone(), critical)
    );

    let one = world.tilld(&["ack", "A-1", "--json"]).ends_with(0);
    assert_eq!(one.json(), json!({ "invoices": [], "deliveries": 2 }));
    let of_hook = world.tilld(&["ack", "--all", "--hook=mail"]).ends_with(0);
    assert_eq!(of_hook.stdout, "2 deliveries acknowledged\n");
    world.tilld(&["ack", "--all", "--hook=mail"]).ends_with(1);
    let both = world.tilld(&["ack", "B-1"]).ends_with(0);
    assert_eq!(
        both.stdout,
        "order B-1: mismatch acknowledged\n1 delivery acknowledged\n"
    );
    world.tilld(&["status"]).ends_with(16);
    let rest = world.tilld(&["ack", "--all"]).ends_with(0);
    assert_eq!(
        rest.stdout,
        "order B-2: mismatch acknowledged\n3 deliveries acknowledged\n"
    );
    world.tilld(&["status"]).ends_with(0);
    // They stay given up, and can be retried by name.
    assert_eq!(world.value(given_up), "8");
    world.tilld(&["delivery", "retry", "--all"]).ends_with(1);
    world
        .tilld(&["delivery", "retry", "--order=A-1"])
        .ends_with(0);

    for wrong in [&["ack"][..], &["ack", "A-1", "--all"]] {
        world.tilld(wrong).ends_with(2);
    }
}
