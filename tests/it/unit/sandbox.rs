//! The sandbox of the units as data: how tight systemd finds it, that several shops have the same as one, and that the drop-ins
//! which open it are what the docs say. That it forbids what it should is tried in a booted machine, by `tests/container/run`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{lacks_systemd, unit_path, verified};
use crate::docs::{example, rows};
use crate::harness::skip;

/// In tenths, as `systemd-analyze` takes it: 1.5 of 10.
const MOST_EXPOSED: &str = "--threshold=15";

fn drop_ins() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/drop-ins");
    let files = fs::read_dir(dir).expect("the drop-ins");
    files.map(|file| file.expect("readable").path()).collect()
}

#[test]
fn it_is_as_tight_as_it_is_said_to_be() {
    if lacks_systemd() {
        skip!("systemd-analyze is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let is_tight = |name: &str, text: &str| {
        let file = dir.path().join(name);
        fs::write(&file, text).expect("written");
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--no-pager", "--offline=yes", MOST_EXPOSED]);
        let output = command.arg(&file).output();
        output.expect("it was there a moment ago").status.success()
    };
    for (file, name) in [
        ("tilld.service", "tilld.service"),
        ("tilld@.service", "tilld@one.service"),
    ] {
        let unit = fs::read_to_string(unit_path(file)).expect("the unit");
        assert!(is_tight(name, &unit), "{file}");
        for line in ["ProtectSystem=strict", "SystemCallFilter=@system-service"] {
            let looser = unit.replace(line, "");
            assert_ne!(looser, unit, "{line}");
            assert!(!is_tight(name, &looser), "{file} without {line}");
        }
    }
}

/// The lines of a unit that say something.
fn lines(unit: &str) -> Vec<&str> {
    let lines = unit.lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// What is true of the one is true of each of several: nothing is forgotten in the copy.
#[test]
fn several_shops_have_what_one_has() {
    for (one, several) in [
        ("tilld.service", "tilld@.service"),
        ("tilld-control.socket", "tilld-control@.socket"),
    ] {
        let one = fs::read_to_string(unit_path(one)).expect("the unit");
        let text = fs::read_to_string(unit_path(several)).expect("the unit");
        let text = text
            .replace("tilld --config /etc/tilld/%i.toml serve", "tilld serve")
            .replace("tilld@%i", "tilld")
            .replace("tilld-%i", "tilld");
        let named: Vec<String> = lines(&text)
            .iter()
            .map(|line| line.trim_end_matches(" %i").to_owned())
            .collect();
        assert_eq!(named, lines(&one), "{several}");
    }
    for socket in ["tilld.socket", "tilld@.socket"] {
        let socket = fs::read_to_string(unit_path(socket)).expect("the unit");
        for line in ["FileDescriptorName=notifications", "Backlog=4096"] {
            assert!(lines(&socket).contains(&line), "{line}");
        }
    }
}

#[test]
fn the_socket_listens_where_the_settings_would() {
    let socket = fs::read_to_string(unit_path("tilld.socket")).expect("the unit");
    let listen = tilld::config::keys()
        .into_iter()
        .find(|key| key.name == "listener.listen");
    let listen = listen.and_then(|key| key.default).expect("a default");
    let listen = format!("ListenStream={}", listen.trim_matches('"'));
    assert!(lines(&socket).contains(&listen.as_str()), "{listen}");
}

/// What the docs show for a listener that the world reaches: both ways to it say the same address.
#[test]
fn the_socket_can_be_told_to_listen_to_the_world() {
    let drop_in = example("socket");
    let tls = example("tls");
    let listen = tls.lines().find_map(|line| line.strip_prefix("listen = "));
    let listen = format!(
        "ListenStream={}",
        listen.expect("it is set").trim_matches('"')
    );
    // The empty one takes away what the unit has.
    assert_eq!(lines(&drop_in), ["[Socket]", "ListenStream=", &listen]);
    if lacks_systemd() {
        skip!("systemd-analyze is not installed");
    }
    let unit = fs::read_to_string(unit_path("tilld.socket")).expect("the unit");
    let edited = |drop_in: &str| verified("tilld.socket", &format!("{unit}\n{drop_in}"));
    assert_eq!(edited(&drop_in), Vec::<String>::new());
    let mistyped = edited(&drop_in.replace("0.0.0.0:", "0.0.0:"));
    assert!(!mistyped.is_empty(), "it sees what is wrong");
}

#[test]
fn the_drop_ins_are_those_that_readme_names() {
    let there: BTreeSet<String> = drop_ins()
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    let named: BTreeSet<String> = rows("drop-in")
        .into_iter()
        .filter_map(|row| row.into_iter().next())
        .collect();
    assert_eq!(there, named);
}

#[test]
fn systemd_takes_each_drop_in() {
    if lacks_systemd() {
        skip!("systemd-analyze is not installed");
    }
    let unit = fs::read_to_string(unit_path("tilld.service")).expect("the unit");
    for path in drop_ins() {
        let text = fs::read_to_string(&path).expect("a drop-in");
        assert!(text.starts_with("# Scripts "), "{}", path.display());
        let setting = lines(&text).pop().expect("a setting");
        let (key, _) = setting.split_once('=').expect("a key");
        // It is about something that the unit says, or opens to be written.
        let is_known = unit.contains(&format!("\n{key}=")) || key == "ReadWritePaths";
        assert!(is_known, "{key}");
        let together = format!("{unit}\n{text}");
        assert_eq!(verified("tilld.service", &together), Vec::<String>::new());
        let broken = together.replace(setting, &format!("{key}X=1"));
        assert!(!verified("tilld.service", &broken).is_empty(), "{key}");
    }
}
