//! What `tilld status` says of the polling: a login that is needed, a service that gives no answers or wants to be left
//! alone, and how late a lost notification is made up for (A06, A29, A30). What is at stake: a daemon that asks nobody
//! looks like one that has nothing to ask, unless it says so.

use serde_json::{Value, json};

use super::{at, people, status};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Waits until `status --json` holds this.
#[track_caller]
fn tells(world: &World, pointer: &str, wanted: impl Fn(&Value) -> bool) {
    let mut told = Value::Null;
    wait_until(PATIENCE, pointer, || {
        told = world.tilld(&["status", "--json"]).json();
        wanted(&at(&told, pointer))
    });
}

#[test]
fn a_refused_login_needs_a_person_until_somebody_logs_in() {
    let world = Setup::new().start();
    world.faults(&json!({ "lose": true }));
    world.create("A-1");
    tells(&world, "/polling/login", |login| *login == "good");
    assert_eq!(at(&status(&world, 0), "/polling/login_since"), Value::Null);
    world.control("POST", "/tokens/revoke", &Value::Null);
    tells(&world, "/polling/login", |login| *login == "refused");
    let told = status(&world, 16);
    assert_eq!(at(&told, "/needs_person"), true);
    assert_eq!(at(&told, "/polling/found_within_ms"), Value::Null);
    let since = at(&told, "/polling/login_since");
    let since = since.as_str().expect("a time").to_owned();
    let why = format!("the service refuses it since {since}, so nothing is asked\n");
    people(
        &world,
        16,
        &[
            &why,
            "run `tilld ",
            " login`\n",
            "is not found before somebody logs in anew",
        ],
    );

    // It is over at once: the daemon's last word is about another login.
    world.login();
    let told = status(&world, 0);
    assert_ne!(at(&told, "/polling/login"), "refused");
    assert_eq!(at(&told, "/polling/login_since"), Value::Null);
    tells(&world, "/polling/login", |login| *login == "good");
    people(
        &world,
        0,
        &["is found within ", "\nNothing needs a person.\n"],
    );
}

#[test]
fn a_login_nobody_made_yet_is_missed_by_the_daemon_alone() {
    let mut world = Setup::new().logged_out().start();
    tells(&world, "/polling/login", |login| *login == "needed");
    people(
        &world,
        16,
        &[
            "there is none that can be used since ",
            "is not found before somebody logs in",
        ],
    );
    // Nothing has changed for that by a stop; a login changes it, whether a daemon sees it or not.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    assert_eq!(at(&status(&world, 16), "/polling/login"), "needed");
    world.login();
    assert_eq!(at(&status(&world, 16), "/polling/login"), "unknown");
    world.start_serve();
    tells(&world, "/polling/login", |login| *login == "good");
}

#[test]
fn an_outage_is_told_while_it_lasts_and_needs_nobody() {
    let world = Setup::new().start();
    let out = json!({ "endpoint": "fetch", "status": 502, "body": "<html>bad gateway</html>", "times": true });
    world.faults(&json!({ "lose": true, "api_status": out }));
    for order in ["A-1", "A-2", "A-3"] {
        world.create(order);
    }
    tells(&world, "/polling/outage_since", Value::is_string);
    let told = status(&world, 0);
    let reason = at(&told, "/polling/outage_reason");
    assert!(reason.as_str().is_some_and(|why| !why.is_empty()), "{told}");
    assert_eq!(at(&told, "/polling/found_within_ms"), Value::Null);
    people(
        &world,
        0,
        &[
            "the service gives no answers since ",
            "is not found while the service gives no answers",
            "\nNothing needs a person.\n",
        ],
    );
    world.faults(&json!({ "reset": true, "lose": true }));
    tells(&world, "/polling/outage_since", Value::is_null);
    assert_eq!(
        at(&status(&world, 0), "/polling/outage_reason"),
        Value::Null
    );
}

#[test]
fn the_wish_to_be_left_alone_is_told_with_its_end_while_a_daemon_heeds_it() {
    let mut world = Setup::new().start();
    let busy = json!({ "endpoint": "fetch", "status": 429, "body": "{\"error\":\"slow down\"}", "retry_after_s": 600, "times": 1 });
    world.faults(&json!({ "lose": true, "api_status": busy }));
    world.create("A-1");
    tells(&world, "/polling/left_alone_until", Value::is_string);
    let told = status(&world, 0);
    assert_eq!(at(&told, "/polling/outage_since"), Value::Null);
    let until = at(&told, "/polling/left_alone_until");
    let until = until.as_str().expect("a time").to_owned();
    people(
        &world,
        0,
        &[
            &format!("no polls until {until}, as the service wishes"),
            "is not found while the service wants to be left alone",
        ],
    );
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let told = status(&world, 16);
    assert_eq!(at(&told, "/polling/left_alone_until"), Value::Null);
}

#[test]
fn caps_and_delay_are_those_of_the_settings() {
    let world = Setup::new()
        .set("poller.schedule", "[{ until_s = 86400, every_s = 600 }]")
        .set("poller.requests_per_second", 7)
        .set("poller.concurrency", 2)
        .start();
    tells(&world, "/polling/login", |login| *login == "good");
    world.create("A-1");
    world.create("A-2");
    let told = status(&world, 0);
    assert_eq!(at(&told, "/polling/requests_per_second"), 7);
    assert_eq!(at(&told, "/polling/at_once"), 2);
    assert_eq!(at(&told, "/polling/young_below_ms"), 1_800_000);
    assert_eq!(at(&told, "/polling/young/count"), 2);
    // The gap, and the cadence of this world.
    assert_eq!(at(&told, "/polling/found_within_ms"), 601_000);
    people(
        &world,
        0,
        &[
            "at most 7 polls per second, 2 at once",
            " is found within 11 min; 2 are that young",
        ],
    );

    // Nothing is asked here, so what the daemon said of itself stays as it is put.
    world.neighbour().tamper(
        "UPDATE meta SET value = '{\"login\":\"good\",\"login_since_ms\":null,\"no_polls\":null,\
         \"outage\":{\"since_ms\":0,\"reason\":\"odd \\u001b[31m\\u202e\"}}' WHERE key = 'poller'",
    );
    let shown = people(
        &world,
        16,
        &["no answers since 1970-01-01T00:00:00.000Z: odd \\u001b[31m\\u202e"],
    );
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}
