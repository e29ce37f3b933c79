//! Whoever does not want to wait leaves nothing behind: no process, no directory.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::{left, talk, tilld};
use crate::harness::{PATIENCE, wait_until};

/// Processes that were started with a path below `directory`.
fn running_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc is there");
    let lines = entries.filter_map(|entry| {
        // One that ended meanwhile has no command line any more.
        let line = fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    let wanted = directory.to_string_lossy().into_owned();
    lines.filter(|line| line.contains(&wanted)).collect()
}

#[track_caller]
fn leaves_nothing(args: &[&str], signal: Signal, at_once: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let text = "summary = \"it lasts\"\n[[step]]\nopen = { order = \"A-1\" }\n[[step]]\npause_ms = 60000\n";
    fs::write(dir.path().join("long.toml"), text).expect("written");
    let mut command = tilld(dir.path(), args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("tilld runs");
    wait_until(PATIENCE, "the daemons run", || {
        running_in(dir.path()).len() >= at_once
    });
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    kill_process(id.expect("a process id"), signal).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", talk(&output));
    assert!(
        talk(&output).contains("the scenario was interrupted"),
        "{}",
        talk(&output)
    );
    assert_eq!(running_in(dir.path()), Vec::<String>::new());
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    leaves_nothing(&["long.toml", "--seed", "1"], Signal::INT, 1);
}

#[test]
fn interrupted_runs_leave_nothing() {
    leaves_nothing(
        &["long.toml", "--seeds", "1..9", "--jobs", "3"],
        Signal::TERM,
        3,
    );
}
