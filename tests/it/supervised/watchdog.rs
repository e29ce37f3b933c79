//! systemd hears that all goes on while it does, and nothing of the kind when a loop stands still (A43).

use std::thread;
use std::time::{Duration, Instant};

use super::{Faults, Systemd, logs, plays_none};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

const ALIVE: &str = "WATCHDOG=1";

/// Becomes the program with a watchdog that names it.
const NAMES_IT: &str = r#"export WATCHDOG_PID=$$; exec "$@""#;

/// At stake: a shop whose own program holds the ledger for a while, and a daemon that is killed for it again and again.
#[test]
fn a_daemon_that_waits_for_the_ledger_is_alive() {
    let systemd = Systemd::without_a_path();
    let mut world = Setup::new()
        .quiet()
        .set("ledger.busy_budget_ms", 600)
        .under(&[
            "env",
            &systemd.variable,
            "WATCHDOG_USEC=3000000",
            "/bin/sh",
            "-c",
            NAMES_IT,
            "sh",
        ])
        .start();
    systemd.hears("READY=1");
    let issued = world.create("A-1");
    let neighbour = world.neighbour();
    neighbour.hold();
    let began = Instant::now();
    let mut heard = Vec::new();
    thread::scope(|scope| {
        // Somebody waits all the time, and longer than the budget.
        let refused = scope.spawn(|| {
            let mut last = 0;
            while began.elapsed() < Duration::from_millis(2_400) {
                last = world.tell_as_it_is(&issued).status;
            }
            last
        });
        let mut last = Instant::now();
        while began.elapsed() < Duration::from_millis(2_600) {
            if systemd
                .listens_for(Duration::from_millis(20))
                .concat()
                .contains(ALIVE)
            {
                heard.push(last.elapsed());
                last = Instant::now();
            }
        }
        assert_eq!(refused.join().expect("no panic"), 503);
    });
    neighbour.let_go();
    assert!(heard.len() >= 2, "{heard:?}");
    // What systemd grants; that it is less than half of it where the machine is not busy is looked at in virtual time.
    let longest = heard.iter().max().expect("some");
    assert!(*longest < Duration::from_secs(3), "{heard:?}");
    assert!(!world.serve_log().contains("stands still"));
    assert_eq!(world.tell_as_it_is(&issued).status, 200);
    assert_eq!(world.stop_serve(PATIENCE), 0);
}

#[test]
fn a_watchdog_of_another_process_is_not_fed() {
    let systemd = Systemd::without_a_path();
    let world = Setup::new()
        .quiet()
        .under(&[
            "env",
            &systemd.variable,
            "WATCHDOG_USEC=300000",
            "WATCHDOG_PID=1",
        ])
        .start();
    systemd.hears("READY=1");
    let heard = systemd.listens_for(Duration::from_millis(600));
    assert!(!heard.concat().contains(ALIVE), "{heard:?}");
    drop(world);
}

/// Holds a loop still, and looks that systemd hears no more of it until it goes on.
fn stands_still(point: &str, name: &str, bound: Duration) {
    let (systemd, faults) = (Systemd::without_a_path(), Faults::new());
    let world = Setup::new()
        .set("ledger.busy_budget_ms", 10)
        .under(&[
            "env",
            &systemd.variable,
            &faults.variable(),
            "WATCHDOG_USEC=600000",
        ])
        .start();
    if plays_none(&world) {
        skip!("this build has no faults to play");
    }
    systemd.hears(ALIVE);
    let hold = format!("hold-{point}");
    faults.play(&hold);
    // Each loop comes round, and to the point where it is held.
    world.neighbour().write();
    let still = format!("{name} stands still");
    let held = Instant::now();
    wait_until(bound + PATIENCE, &still, || {
        // Read, or the socket would be full.
        systemd.listens_for(Duration::from_millis(1));
        world.serve_log().contains(&still)
    });
    assert!(
        held.elapsed() < bound + Duration::from_secs(10),
        "its bound"
    );
    systemd.listens_for(Duration::from_millis(1));
    let heard = systemd.listens_for(Duration::from_millis(900));
    assert!(!heard.concat().contains(ALIVE), "{heard:?}");
    faults.end(&hold);
    logs(&world, &format!("{name} goes on"));
    systemd.hears(ALIVE);
    is_well(&world);
}

fn is_well(world: &World) {
    world.pay("A-1");
    world.settle();
}

#[test]
fn a_writer_that_stands_still_is_not_told_as_alive() {
    stands_still("writer", "the ledger's writer", Duration::from_secs(5));
}

/// As above, for as long as their bounds are.
#[test]
#[ignore = "takes three quarters of a minute"]
fn loops_that_stand_still_are_not_told_as_alive() {
    stands_still("poller", "the poller", Duration::from_secs(14));
    stands_still("outbox", "the outbox", Duration::from_secs(26));
}
