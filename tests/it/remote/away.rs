//! A daemon that goes away while a command waits for it: nothing is opened twice, and nothing is taken for what it is not.

use std::fs;

use serde_json::json;

use super::{Booth, CREATE, lacks};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

#[test]
fn a_create_whose_daemon_dies_is_unknown_and_may_be_repeated() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let mut booth = Booth::start(Setup::new().quiet());
    booth
        .world
        .faults(&json!({ "lose": true, "hold_create_ms": 20_000 }));
    let args = [&CREATE as &[&str], &["--order", "1"]].concat();
    let mut create = booth.start_shop(&args);
    wait_until(PATIENCE, "the request", || {
        booth.world.issued("1").is_some()
    });
    booth.world.kill9_serve();
    assert_eq!(create.wait(PATIENCE), 9, "{}", create.stderr());
    let talk = create.stderr();
    assert!(
        talk.contains("error: nobody knows whether the invoice was opened: the daemon on "),
        "{talk}"
    );
    assert!(talk.contains("hint: run the command again"), "{talk}");
    booth.world.start_serve();
    booth.open("1", &[]).ends_with(9);
    assert_eq!(booth.world.requests("create"), 1, "nothing was sent twice");
}

#[test]
fn a_wait_outlasts_a_restart() {
    if let Some(why) = lacks() {
        skip!("{why}");
    }
    let mut booth = Booth::start(Setup::new().quiet());
    booth.open("1", &[]).ends_with(0);
    let issued = booth.world.issued("1").expect("the service has it");
    let mut wait = booth.start_shop(&["invoice", "wait", "1", "--json"]);
    wait_until(PATIENCE, "it to wait", || is_in_use(&booth.socket));
    assert_eq!(booth.world.stop_serve(PATIENCE), 0);
    wait_until(PATIENCE, "the daemon to be missed", || {
        wait.stderr().contains("trying again")
    });
    booth.world.start_serve();
    booth.world.happens(&issued, &json!({ "status": "paid" }));
    assert_eq!(wait.wait(PATIENCE), 0, "{}", wait.stderr());
    let talk = wait.stderr();
    assert_eq!(talk.matches("trying again\n").count(), 1, "{talk}");
    assert_eq!(
        talk.matches("the daemon answers again\n").count(),
        1,
        "{talk}"
    );
}

/// True while somebody is connected to the socket, as the kernel lists it.
fn is_in_use(socket: &str) -> bool {
    const CONNECTED: &str = "03";
    let listed = fs::read_to_string("/proc/net/unix").expect("a list of sockets");
    listed.lines().any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.get(5) == Some(&CONNECTED) && fields.get(7) == Some(&socket)
    })
}
