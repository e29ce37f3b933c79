//! `docs/scenarios.md`: its lines work as they stand, and its tables are the program's own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{out, run, talk};
use crate::docs::{example, rows};
use crate::harness::under_test;

/// Once for each order and only for what was paid, as the page asks for.
const FULFIL: &str = r#"#!/bin/sh
[ "$TILLD_OUTCOME" = paid ] || exit 0
if mkdir "SHIPPED/$TILLD_ORDER_ID" 2>/dev/null; then echo "handed over $TILLD_ORDER_ID"; fi
"#;

#[test]
fn the_lines_work_as_they_stand() {
    let dir = tempfile::tempdir().expect("a directory");
    let shipped = dir.path().join("shipped");
    fs::create_dir(&shipped).expect("made");
    let script = dir.path().join("fulfil.sh");
    let text = FULFIL.replace("SHIPPED", shipped.to_str().expect("UTF-8"));
    fs::write(&script, text).expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("set");
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
