//! The run of kills and its control as tests, and the script tried by itself.

use std::fs;
use std::io::{Write as _, stderr};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::judge::judge;
use super::{Course, SCRIPT, found_out, killed_under_load, marks, marks_file};
use crate::harness::dice;
use crate::harness::{PATIENCE, children, wait_until};

/// Kills, unless `TILLD_KILLS` says otherwise.
const KILLS: usize = 20;

#[test]
fn kills_under_load_lose_nothing_and_run_nothing_twice_at_once() {
    let (kills, seed) = (dice::count("TILLD_KILLS", KILLS), dice::seed());
    // A test's output may have no reader.
    drop(writeln!(stderr(), "TILLD_SEED={seed} TILLD_KILLS={kills}"));
    let course = killed_under_load(kills, seed);
    drop(stderr().write_all(course.table.as_bytes()));
    let Course { hits, verdict, .. } = &course;
    assert_eq!(verdict.wrong(), Vec::<&String>::new());
    assert!(hits.are_enough(), "the kills met nothing: {hits:?}");
    assert!(hits.kills() >= kills && verdict.counts() == [0, 0, 0]);
    let [runs, _doubled] = verdict.runs_and_doubled();
    assert!(course.by_poll > 0 && runs > course.owed);
}

#[test]
fn a_daemon_that_waits_for_no_old_hook_is_found_out() {
    assert!(found_out() > 0);
}

/// An event id whose first attempt hangs in the hook `fulfil`: its lot is 5.
const HANGS: &str = "0-000000001378";

/// The lock in the script is what sees runs that note no end: two of one invoice started side by side are seen.
#[test]
fn the_script_itself_sees_that_it_is_not_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let hooks = dir.path().join("hooks");
    fs::create_dir(&hooks).expect("a directory");
    let script = hooks.join("script");
    fs::write(&script, SCRIPT).expect("written");
    let start = |attempt: u32| {
        let mut command = Command::new("/bin/sh");
        command.arg(&script).arg(hooks.join("fulfil.log"));
        command
            .env("TILLD_ORDER_ID", "A-1")
            .env("TILLD_EVENT", "paid");
        command.env("TILLD_EVENT_ID", HANGS);
        command.env("TILLD_ATTEMPT", attempt.to_string());
        command.process_group(0).stdin(Stdio::null());
        command.spawn().expect("sh starts")
    };
    let read = || {
        let text = fs::read_to_string(marks_file(dir.path())).unwrap_or_default();
        marks::read(&text).expect("marks")
    };
    let mut first = start(1);
    let group = i32::try_from(first.id()).ok().and_then(Pid::from_raw);
    wait_until(PATIENCE, "its sleep", || {
        !read().is_empty() && !children(first.id()).is_empty()
    });
    // From the fourth on everybody is lucky.
    assert!(start(4).wait().expect("it ends").success());
    first.kill().expect("it hangs");
    first.wait().expect("reaped");
    // Its `sleep` lives on and holds the lock: a run is over when the last of it is gone.
    assert!(start(5).wait().expect("it ends").success());
    kill_process_group(group.expect("a group"), Signal::KILL).expect("it sleeps");
    let lock = || start(6).wait().expect("it ends").success();
    wait_until(PATIENCE, "the lock to be free", || {
        lock() && read().last().is_some_and(|run| !run.found_held)
    });
    let found: Vec<bool> = read().iter().map(|run| run.found_held).collect();
    assert_eq!(found.get(..3), Some(&[false, true, true][..]));
    let verdict = judge(&read(), &[], &[], &[]);
    assert!(verdict.overlapping.len() >= 2, "{verdict:?}");
}
