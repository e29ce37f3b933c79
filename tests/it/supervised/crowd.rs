//! Clients of the control socket that read without end. What is at stake: the shop's hooks, its customers and its alarms wait for
//! nobody's lists, and a client that hangs up leaves nothing behind.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

use super::{Faults, plays_none};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

/// Clients that hang up together, more than there are places.
const CLIENTS: usize = 10;
/// How often they do.
const WAVES: usize = 4;
/// Threads that clients' reads may take, whatever clients do.
const OF_CLIENTS: usize = 4;
/// Threads that the daemon's own work may take meanwhile.
const OF_DAEMON: usize = 10;

fn threads(world: &World) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", world.serve_pid()));
    tasks.expect("it runs").count()
}

/// A client that has asked for a list, and hangs up when it is dropped.
fn asks(world: &World) -> UnixStream {
    let mut client = UnixStream::connect(world.control_socket()).expect("it listens");
    let asked = "GET /v1/invoices HTTP/1.1\r\nHost: tilld\r\n\r\n";
    client.write_all(asked.as_bytes()).expect("it reads");
    client
}

#[test]
fn clients_that_read_and_leave_delay_neither_hooks_nor_status_and_leave_no_threads() {
    let faults = Faults::new();
    let world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .under(&["env", &faults.variable()])
        .start();
    if plays_none(&world) {
        skip!("this build has no faults to play");
    }
    world.pay("A-1");
    world.settle();
    let before = threads(&world);
    // Each read stands still for as long as this lies there, as one of a million rows does.
    faults.play("hold-list");
    for _ in 0..WAVES {
        let clients: Vec<_> = (0..CLIENTS).map(|_| asks(&world)).collect();
        // Read in turn: what was sent before is begun.
        assert_eq!(world.call("GET", "/v1/status", "").status, 200);
        drop(clients);
        assert_eq!(world.call("GET", "/v1/status", "").status, 200);
    }
    // A customer pays, and the shop's script runs.
    world.pay("A-2");
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 2);
    assert_eq!(world.call("GET", "/v1/status", "").status, 200);
    let most = before + OF_CLIENTS + OF_DAEMON;
    assert!(threads(&world) <= most, "{before} {}", threads(&world));
    faults.end("hold-list");
    wait_until(PATIENCE, "the lists to go on", || {
        world.call("GET", "/v1/invoices", "").status == 200
    });
}
