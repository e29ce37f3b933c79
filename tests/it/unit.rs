//! The systemd unit read as data: that it waits long enough for a stop, and what systemd itself thinks of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilld::config::keys;

use crate::harness::{skip, under_test};

/// What the daemon allows itself beyond its settings: 5 s of the outbox, 5 s for parts that do not end, 5 s to close the
/// ledger.
const MARGINS_S: u64 = 15;

fn unit_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("systemd")
        .join(name)
}

/// The value of the one line `KEY=VALUE`.
#[track_caller]
fn value(unit: &str, key: &str) -> String {
    let lead = format!("{key}=");
    let mut found = unit.lines().filter_map(|line| line.strip_prefix(&lead));
    let value = found.next().unwrap_or_else(|| panic!("no {key}"));
    assert!(found.next().is_none(), "{key} stands twice");
    value.to_owned()
}

#[test]
fn systemd_waits_longer_than_a_stop_may_take() {
    let default = |name: &str| -> u64 {
        let key = keys().into_iter().find(|key| key.name == name);
        let default = key.and_then(|key| key.default).expect("a default");
        default.parse().expect("seconds")
    };
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    let most: u64 = value(&unit, "TimeoutStopSec").parse().expect("seconds");
    let hooks = default("outbox.drain_s") + default("outbox.grace_s");
    let stop = hooks.max(default("listener.drain_s")) + MARGINS_S;
    assert!(most > stop, "{most} s for a stop of up to {stop} s");
    // SIGTERM goes to the daemon alone, which lets its hooks finish (A42): `control-group` would tell them, too.
    assert_eq!(value(&unit, "KillMode"), "mixed");
    for other in ["KillSignal=", "SendSIGHUP=", "ExecStop="] {
        assert!(!unit.contains(other), "{other}");
    }
}

/// What a hook may not do in the unit's sandbox is said where a person looks for it, with the line that allows it (A38).
#[test]
fn the_unit_says_how_a_directory_is_opened_for_hooks() {
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    assert_eq!(value(&unit, "ProtectSystem"), "strict");
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(readme).expect("the README");
    for (place, text) in [("unit", &unit), ("README", &readme)] {
        assert!(text.contains("ReadWritePaths=/"), "{place}");
    }
}

#[test]
fn what_a_new_start_cannot_mend_is_not_tried_again() {
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    assert_eq!(value(&unit, "RestartPreventExitStatus"), "2 10 11 15");
    assert_eq!(value(&unit, "Restart"), "always");
    assert_eq!(value(&unit, "StartLimitIntervalSec"), "0");
    assert_eq!(value(&unit, "Type"), "notify");
}

#[test]
fn systemd_finds_nothing_wrong_with_it() {
    if Command::new("systemd-analyze")
        .arg("--version")
        .output()
        .is_err()
    {
        skip!("systemd-analyze is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    // The program is not installed where the unit expects it.
    let unit = unit.replace("/usr/local/bin/tilld", &under_test());
    let verify = |text: &str| {
        let file = dir.path().join("tilld.service");
        fs::write(&file, text).expect("written");
        let mut command = Command::new("systemd-analyze");
        let output = command.args(["verify", "--man=no"]).arg(&file).output();
        let output = output.expect("it was there a moment ago");
        // It exits 0 whatever it finds to warn about.
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        let ours = said.lines().filter(|line| line.contains("tilld.service"));
        ours.map(str::to_owned).collect::<Vec<_>>()
    };
    let broken = verify(&unit.replace("KillMode=mixed", "KillMood=mixed"));
    assert!(!broken.is_empty(), "it sees what is wrong");
    assert_eq!(verify(&unit), Vec::<String>::new());
}

#[test]
fn the_user_it_runs_as_can_be_made() {
    if Command::new("systemd-sysusers")
        .arg("--version")
        .output()
        .is_err()
    {
        skip!("systemd-sysusers is not installed");
    }
    let mut command = Command::new("systemd-sysusers");
    let output = command
        .arg("--dry-run")
        .arg(unit_path("sysusers.d/tilld.conf"));
    let output = output.output().expect("it was there a moment ago");
    assert!(output.status.success(), "{output:?}");
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    let line = fs::read_to_string(unit_path("sysusers.d/tilld.conf")).expect("the snippet");
    let made = format!("\nu {} ", value(&unit, "User"));
    assert!(line.contains(&made), "{line}");
}
