//! The systemd units read as data: that it waits long enough for a stop, and what systemd itself thinks of it.

mod sandbox;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilld::config::{keys, variable_of};

use crate::harness::{skip, under_test};

/// What the daemon allows itself beyond its settings: 5 s of the outbox, 5 s for parts that do not end, 5 s to close the
/// ledger.
const MARGINS_S: u64 = 15;
/// All of them.
const UNITS: [&str; 6] = [
    "tilld.service",
    "tilld.socket",
    "tilld-control.socket",
    "tilld@.service",
    "tilld@.socket",
    "tilld-control@.socket",
];

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

/// One that waits for the ledger as long as it may is no reason to start anew (A43).
#[test]
fn the_watchdog_waits_longer_than_the_ledger_may_be_held() {
    let budget = keys()
        .into_iter()
        .find(|key| key.name == "ledger.busy_budget_ms");
    let budget = budget.and_then(|key| key.default).expect("a default");
    let budget_ms: u64 = budget.parse().expect("milliseconds");
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    let most: u64 = value(&unit, "WatchdogSec").parse().expect("seconds");
    assert!(most * 1000 > 2 * (3 * budget_ms + 5000), "{most} s");
    // A process that was stopped heeds no other.
    assert_eq!(value(&unit, "WatchdogSignal"), "SIGKILL");
}

/// What a hook may not do in the unit's sandbox is said where a person looks for it, with the line that allows it (A38).
#[test]
fn the_unit_says_how_a_directory_is_opened_for_hooks() {
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    assert_eq!(value(&unit, "ProtectSystem"), "strict");
    for (place, text) in [("unit", &unit), ("docs", &crate::docs::docs())] {
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
    // Under [Unit]: elsewhere it counts for nothing, and the fifth crash in ten seconds would be the end.
    let (head, _) = unit.split_once("\n[Service]").expect("a section");
    assert!(head.contains("\nStartLimitIntervalSec=0\n"), "{head}");
}

fn lacks_systemd() -> bool {
    let mut command = Command::new("systemd-analyze");
    command.arg("--version").output().is_err()
}

/// What systemd says of a unit with this text, beside all others as they are.
fn verified(name: &str, text: &str) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    for unit in UNITS {
        let text = fs::read_to_string(unit_path(unit)).expect("the unit");
        fs::write(dir.path().join(instance(unit)), installed(&text)).expect("written");
    }
    let file = dir.path().join(name);
    fs::write(&file, installed(text)).expect("written");
    let mut command = Command::new("systemd-analyze");
    let output = command.args(["verify", "--man=no"]).arg(&file).output();
    let output = output.expect("it was there a moment ago");
    // It exits 0 whatever it finds to warn about.
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let ours = said.lines().filter(|line| line.contains("tilld"));
    ours.map(str::to_owned).collect()
}

/// The program is not installed where the unit looks for it.
fn installed(unit: &str) -> String {
    unit.replace("ExecStart=tilld ", &format!("ExecStart={} ", under_test()))
}

/// The name under which a unit for several is one for one of them.
fn instance(unit: &str) -> String {
    unit.replace('@', "@one")
}

#[test]
fn systemd_finds_nothing_wrong_with_them() {
    if lacks_systemd() {
        skip!("systemd-analyze is not installed");
    }
    for unit in UNITS {
        let text = fs::read_to_string(unit_path(unit)).expect("the unit");
        let name = instance(unit);
        let broken = verified(&name, &text.replace("Description=", "Descriptor="));
        assert!(!broken.is_empty(), "{unit}: it sees what is wrong");
        assert_eq!(verified(&name, &text), Vec::<String>::new(), "{unit}");
    }
}

/// The shop reaches the socket and nothing else of tilld's: the directory is everybody's to enter, the socket the group's, and
/// both ways to it agree.
#[test]
fn the_control_socket_is_the_clients_alone() {
    let service = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    let socket = fs::read_to_string(unit_path("tilld-control.socket")).expect("the unit");
    let clients = value(&service, "SupplementaryGroups");
    assert_eq!(
        value(&service, "Environment"),
        format!("{}={clients}", variable_of("control.group"))
    );
    assert_eq!(value(&socket, "SocketGroup"), clients);
    let mode = keys().into_iter().find(|key| key.name == "control.mode");
    let mode = mode.and_then(|key| key.default).expect("a default");
    assert_eq!(format!("\"{}\"", value(&socket, "SocketMode")), mode);
    let directory = value(&service, "RuntimeDirectory");
    assert_eq!(
        value(&socket, "ListenStream"),
        format!("/run/{directory}/control.sock")
    );
    assert_eq!(value(&service, "RuntimeDirectoryMode"), "0755");
    assert_eq!(value(&service, "RuntimeDirectoryPreserve"), "yes");
    assert_eq!(value(&service, "StateDirectoryMode"), "0750");
    assert_eq!(value(&socket, "FileDescriptorName"), "control");
    let families = value(&service, "RestrictAddressFamilies");
    assert!(
        families.split(' ').any(|family| family == "AF_UNIX"),
        "{families}"
    );
    let made = fs::read_to_string(unit_path("sysusers.d/tilld.conf")).expect("the snippet");
    assert!(made.contains(&format!("\ng {clients} ")), "{made}");
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config.example.toml");
    let config = fs::read_to_string(config).expect("the example");
    assert!(
        config.contains(&format!("#group = \"{clients}\"")),
        "{clients}"
    );
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
