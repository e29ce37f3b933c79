//! A disk on which no more files can be made. What is at stake: scripts that cannot be started are run once there is room, with
//! their first attempt, and an operator hears of it before the shop's customers do.

use rustix::fs::statvfs;
use serde_json::Value;

use super::attention;
use super::disk::{Disk, lacks};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

#[test]
fn without_inodes_scripts_wait_an_alert_says_so_and_no_attempt_is_used_up() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let setup = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        // One failed attempt, and it would be given up.
        .set("outbox.schedule_s", "[0]");
    let mut disk = Disk::of(setup, "200m");
    disk.world.start_serve();
    let world = &disk.world;
    let disk_of = |what: &str| {
        let doctor = world.tilld(&["doctor", "--json"]).json();
        let findings = doctor.as_array().cloned().unwrap_or_default();
        let of = |one: &Value, name: &str| one.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut its = findings
            .iter()
            .filter(|one| of(one, "check").as_deref() == Some(what));
        its.next().and_then(|one| of(one, "state"))
    };
    assert!(!attention(world).contains(&"inodes_low".to_owned()));
    assert_eq!(disk_of("inodes").as_deref(), Some("ok"));

    let found = statvfs(world.state_dir()).expect("it is there");
    disk.remount(&format!("nr_inodes={}", found.f_files - found.f_ffree));
    world.pay("A-1");
    let needs = || {
        let told = world.tilld(&["status", "--json"]).ends_with(16).json();
        told.get("needs").map(Value::to_string).unwrap_or_default()
    };
    wait_until(PATIENCE, "both alerts", || {
        needs().contains("\"starts_fail\"") && needs().contains("\"inodes_low\"")
    });
    assert_eq!(disk_of("inodes").as_deref(), Some("fail"));
    // More often than the schedule allows.
    wait_until(PATIENCE, "it to be tried again", || {
        world.serve_log().matches("a hook waits, since").count() > 1
    });
    let owed = "SELECT state, attempts FROM deliveries";
    wait_until(PATIENCE, "it to wait", || {
        world.sql(owed) == [["waiting", "0"]]
    });

    disk.remount(&format!("nr_inodes={}", found.f_files));
    world.settle();
    let runs = world.hook_log("fulfil");
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert!(runs.iter().all(|run| run.ends_with(" 1")), "{runs:?}");
    wait_until(PATIENCE, "nothing to need a person", || {
        world.tilld(&["status"]).code == 0
    });
}
