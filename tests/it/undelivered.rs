//! Events that a hook does not get done. What is at stake: a customer who paid and waits for days, while every command says that all
//! is well.

use std::fs;

use serde_json::Value;

use crate::harness::{Clock, PATIENCE, Setup, World, skip, wait_until};

/// The sentence and the orders of the alert, if it stands.
fn alert(world: &World, hook: &str) -> Option<(String, Vec<String>)> {
    let status = world.tilld(&["status", "--json"]).json();
    let needs = status.get("needs").and_then(Value::as_array);
    let of_hook = |need: &&Value| {
        let told = need["told"].as_str().unwrap_or_default();
        need["reason"] == "undelivered" && told.starts_with(&format!("hook {hook} "))
    };
    let need = needs.expect("a list").iter().find(of_hook)?;
    let orders = need["orders"].as_array().expect("a list").iter();
    let orders = orders.map(|order| order.as_str().expect("a text").to_owned());
    let told = need["told"].as_str().expect("a text").to_owned();
    assert_eq!(need["severity"], "critical");
    assert_eq!(need["ends"], "by_itself");
    Some((told, orders.collect()))
}

/// Ends with this code until the order's file is there, and says why.
fn until_mended(code: u8) -> String {
    format!("echo noise >&2; echo; echo \"no stock {code}\" >&2; test -e \"$1.go\" || exit {code}")
}

#[test]
fn an_event_that_is_not_done_in_time_is_an_alert_until_it_is() {
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 86400]")
        .hook("fails", &["paid"], &until_mended(1))
        .late_after_s(1)
        .hook("later", &["paid"], &until_mended(75))
        .late_after_s(1)
        .hook("patient", &["paid"], &until_mended(1))
        .hook("never", &["paid"], &until_mended(1))
        .late_after_s(0)
        .noting_hook("well", &["paid"])
        .late_after_s(1)
        .start();
    world.pay("A-1");
    for (hook, code) in [("fails", 1), ("later", 75)] {
        wait_until(PATIENCE, hook, || alert(&world, hook).is_some());
        let (told, orders) = alert(&world, hook).expect("it stands");
        assert!(
            told.contains(&format!("exit {code}, no stock {code}")),
            "{told}"
        );
        assert_eq!(orders, ["A-1"]);
        world.tilld(&["status"]).ends_with(16);
    }
    for hook in ["patient", "never", "well"] {
        assert_eq!(alert(&world, hook), None);
    }
    for hook in ["fails", "later", "patient", "never"] {
        let file = world.dir().join(format!("hooks/{hook}.log.go"));
        fs::write(file, "").expect("written");
    }
    let events = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    world.tilld(&["delivery", "retry", &events]).ends_with(0);
    world.settle();
    for hook in ["fails", "later"] {
        assert_eq!(alert(&world, hook), None);
    }
}

/// What waits behind an unfinished one of the same order is as late as that.
#[test]
fn only_the_time_in_which_tilld_serves_makes_late() {
    let Some(clock) = Clock::find() else {
        skip!("libfaketime is not there (Debian: `apt-get install faketime`)");
    };
    clock.set("+0");
    let program = clock.program();
    let words: Vec<&str> = program.iter().map(String::as_str).collect();
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 3600, 3600]")
        .hook("fails", &["paid"], "exit 1")
        .under(&words)
        .start();
    world.pay("A-1");
    let attempts = |count: &str| world.value("SELECT count(*) FROM attempts") == count;
    wait_until(PATIENCE, "the first attempt", || attempts("1"));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    clock.set("+3h");
    world.start_serve();
    let attempts = |count: &str| world.value("SELECT count(*) FROM attempts") == count;
    wait_until(PATIENCE, "the second attempt", || attempts("2"));
    assert_eq!(alert(&world, "fails"), None);
}
