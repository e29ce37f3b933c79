//! A daemon that stands still for a while, as a machine does that is suspended or short of memory: what ended meanwhile has
//! ended in time. Relies on SIGSTOP and SIGCONT.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::harness::{PATIENCE, Setup, World, wait_until};

/// Hooks at once.
const HOOKS: usize = 10;
/// What a hook may take, seconds.
const HOOK_S: u64 = 6;

/// Stops the daemon from running until all of its deadlines have passed, and lets it go on.
#[track_caller]
pub(crate) fn stand_still(world: &World, at_least: Duration, meanwhile: impl FnOnce()) {
    let began = Instant::now();
    world.signal_serve(Signal::STOP);
    meanwhile();
    wait_until(PATIENCE.max(at_least * 2), "the deadlines to pass", || {
        began.elapsed() > at_least
    });
    world.signal_serve(Signal::CONT);
}

#[test]
fn hooks_that_ended_while_the_daemon_stood_still_are_done_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let gate = dir.path().join("gate");
    let script = format!(
        "echo begun >> \"$1\"; until [ -e '{}' ]; do sleep 0.1; done; echo ended >> \"$1\"",
        gate.display()
    );
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], &script)
        .at_once(10)
        .within_s(HOOK_S)
        .start();
    for number in 0..HOOKS {
        world.pay(&format!("A-{number}"));
    }
    let noted = |word: &str| {
        let log = world.hook_log("fulfil");
        log.iter().filter(|line| *line == word).count()
    };
    wait_until(PATIENCE, "all to begin", || noted("begun") == HOOKS);
    stand_still(&world, Duration::from_secs(HOOK_S + 1), || {
        fs::write(&gate, "").expect("opened");
        wait_until(PATIENCE, "all to end", || noted("ended") == HOOKS);
    });
    world.settle();
    let results = world.sql("SELECT result, count(*) FROM attempts GROUP BY result");
    assert_eq!(results, [["exit 0", "10"]]);
    assert_eq!(noted("begun"), HOOKS);
}
