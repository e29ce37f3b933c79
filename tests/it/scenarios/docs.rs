//! `docs/scenarios.md`: its lines work as they stand, and its tables are the program's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::{out, run, talk};
use crate::docs::{example, rows};
use crate::harness::{skip, under_test};

/// Saves the example script of this name as `fulfil.sh`, for one who may run it.
fn save(dir: &Path, name: &str) {
    let script = dir.join("fulfil.sh");
    fs::write(&script, example(name)).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
}

fn lacks_sqlite3() -> bool {
    Command::new("sqlite3").arg("--version").output().is_err()
}

#[test]
fn the_example_scripts_pass_their_judge() {
    if lacks_sqlite3() {
        skip!("sqlite3 is not installed");
    }
    for name in ["first-script", "fulfil"] {
        let dir = tempfile::tempdir().expect("a directory");
        save(dir.path(), name);
        let mut command = Command::new(under_test());
        let line = "sandbox run happy --seed 1 --verify ./fulfil.sh";
        command.args(line.split(' ')).current_dir(dir.path());
        let output = command
            .env("HOME", dir.path())
            .output()
            .expect("tilld runs");
        let said = out(&output);
        assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
    }
}

#[test]
fn the_lines_work_as_they_stand() {
    if lacks_sqlite3() {
        skip!("sqlite3 is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    save(dir.path(), "fulfil");
    let lines = example("scenarios");
    assert!(lines.contains("--seeds 1..500"), "{lines}");
    // The same with fewer seeds: `named` plays more.
    let lines = lines.replace("--seeds 1..500", "--seeds 1..3");
    let program = under_test();
    let lines = format!("set -eu\ntilld() {{ {program} \"$@\"; }}\n{lines}");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &lines]).current_dir(dir.path());
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", dir.path())
        .env("TMPDIR", dir.path());
    let output = command.output().expect("a shell");
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
    assert!(said.contains("3 of 3 seeds hold"), "{said}");
}

#[test]
fn the_scenario_it_shows_holds() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("mine.toml"), example("scenario")).expect("written");
    let output = run(dir.path(), &["mine.toml"]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
}

#[test]
fn the_table_is_the_programs_own_list() {
    let dir = tempfile::tempdir().expect("a directory");
    let listed = out(&run(dir.path(), &["--list"]));
    let listed: Vec<Vec<String>> = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, summary)| vec![name.to_owned(), summary.trim().to_owned()])
        .collect();
    assert_eq!(rows("scenario"), listed);
}
