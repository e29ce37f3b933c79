//! `tilld invoice wait`: a shop's script branches on its exit code, whether a daemon runs beside it or not.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Invoices with every outcome there is to wait for, as the service has them. Nobody is told of it.
fn outcomes(world: &World) {
    for (order, change) in [
        ("paid", json!({ "status": "paid", "notify": false })),
        ("canceled", json!({ "status": "canceled", "notify": false })),
        (
            "less",
            json!({ "status": "paid", "amount": "1", "notify": false }),
        ),
    ] {
        let issued = world.create(order);
        world.happens(&issued, &change);
    }
    world.create("silent");
    world.faults(&json!({ "drop_create_answer": 1, "lose": true }));
    world.open("lost", "599.80", &[]).ends_with(9);
}

fn check_outcomes(world: &World) {
    for (order, code, outcome) in [
        ("paid", 0, "paid"),
        ("canceled", 5, "failed"),
        ("less", 5, "mismatch"),
        ("lost", 9, "open"),
    ] {
        let waited = world.wait(order, "20s").ends_with(code);
        assert_eq!(waited.text("outcome"), outcome, "{waited:?}");
    }
    let silent = world.wait("silent", "0").ends_with(6);
    assert!(
        silent.stderr.contains("is still open after 0 s"),
        "{silent:?}"
    );
    let absent = world.wait("absent", "20s").ends_with(3);
    assert!(absent.stderr.contains("`absent`"), "{absent:?}");
}

#[test]
fn every_end_has_its_code_beside_a_daemon() {
    let world = Setup::new().start();
    outcomes(&world);
    check_outcomes(&world);
    // One that is refused a second time is waited for by the invoice that stands.
    world.control("POST", "/pool", &json!({ "free": 0 }));
    world.open("silent", "599.80", &["--new"]).ends_with(7);
    world.wait("silent", "0").ends_with(6);
    world.open("full", "599.80", &[]).ends_with(7);
    let full = world.wait("full", "20s").ends_with(5);
    assert!(full.stderr.contains("opened no invoice"), "{full:?}");
    // By the service's id as well, behind its flag.
    let paid = world.issued("paid").expect("the service has it");
    assert_eq!(
        world
            .wait(&format!("--id={}", paid.id), "20s")
            .ends_with(0)
            .text("order_id"),
        "paid"
    );
}

#[test]
fn every_end_has_its_code_without_a_daemon() {
    let world = Setup::new().not_served().start();
    world.wait("absent", "1s").ends_with(3);
    outcomes(&world);
    check_outcomes(&world);
    let asked = world.wait("paid", "20s").ends_with(0);
    assert_eq!(asked.text("found_by"), "poll");

    // An order whose older invoice was paid late is paid.
    let old = world.create("late");
    world.open("late", "599.80", &["--new"]).ends_with(0);
    world.happens(&old, &json!({ "status": "paid", "notify": false }));
    world.wait(&format!("--id={}", old.id), "20s").ends_with(0);
    assert_eq!(
        world.wait("late", "20s").ends_with(0).text("invoice_id"),
        old.id
    );

    world.control("POST", "/tokens/revoke", &Value::Null);
    let login = world.wait("silent", "20s").ends_with(4);
    assert!(
        login.stderr.contains("hint: run `tilld --config "),
        "{login:?}"
    );
}

#[test]
fn a_wait_ends_in_time_though_the_service_wants_to_be_left_alone() {
    let world = Setup::new().not_served().start();
    world.create("A-1");
    world.faults(&json!({
        "api_status": {
            "endpoint": "fetch", "status": 429, "body": "{\"error\":\"slow down\"}",
            "retry_after_s": 600, "times": true,
        },
    }));
    let before = world.requests("fetch");
    let mut wait = world.start_tilld(&["invoice", "wait", "A-1", "--timeout", "2s"]);
    assert_eq!(wait.wait(Duration::from_secs(20)), 6, "{}", wait.stderr());
    assert!(wait.stderr().contains("no answer yet"), "{}", wait.stderr());
    assert_eq!(world.requests("fetch"), before + 1, "it was left alone");
}

#[test]
fn a_wait_sees_the_daemon_come_and_the_money_arrive() {
    let mut world = Setup::new().quiet().not_served().start();
    let issued = world.create("A-1");
    let mut wait = world.start_tilld(&["invoice", "wait", "A-1", "--timeout=60s", "--json"]);
    wait_until(PATIENCE, "a question of its own", || {
        world.requests("fetch") > 0
    });
    world.start_serve();
    world.happens(&issued, &json!({ "status": "paid" }));
    assert_eq!(wait.wait(PATIENCE), 0, "{}", wait.stderr());
    assert!(wait.stdout().contains("\"outcome\":\"paid\""));
}
