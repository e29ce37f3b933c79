//! The service never says how an invoice ended: a person is called, and nobody is told that it failed.

use serde_json::json;

use crate::harness::{PATIENCE, Setup, wait_until};

#[test]
fn an_invoice_past_its_horizon_is_unresolved_and_never_called_failed() {
    let world = Setup::new()
        // A redirect invoice has no `expireAt`: its end is counted from its opening.
        .set("poller.horizon_s", 3)
        .noting_hook("person", &["unresolved"])
        .noting_hook("cancel", &["failed"])
        .start();
    world.faults(&json!({ "lose": true }));
    let opened = [
        "--redirect",
        "--success-url=https://shop.example/ok",
        "--cancel-url=https://shop.example/cancel",
        "--error-url=https://shop.example/error",
    ];
    world.open("R-1", "1500", &opened).ends_with(0);
    wait_until(PATIENCE, "a person to be called", || {
        world.hook_log("person").len() == 1
    });
    assert!(world.invoice("R-1", "attention").contains("unresolved"));
    assert_eq!(world.invoice("R-1", "outcome"), "open");
    let retired = || world.value("SELECT count(*) FROM poll WHERE due_ms IS NULL");
    wait_until(PATIENCE, "the end of the questions", || retired() == "1");
    world.settle();
    let told = "SELECT count(*) FROM events WHERE kind IN ('unresolved', 'failed')";
    assert_eq!(world.value(told), "1");
    assert_eq!(world.hook_log("cancel").len(), 0);
    world.tilld(&["status"]).ends_with(16);
    world.tilld(&["ack", "R-1"]).ends_with(0);
    world.tilld(&["status"]).ends_with(0);
}
