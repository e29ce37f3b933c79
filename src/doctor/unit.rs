//! The systemd unit's sandbox against what the scripts need: it holds for them too, and a script that works in a shell finds
//! its files gone, or not its to write, under systemd (A38).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::Finding;
use super::interpreter::{Code, code_of};
use crate::config::Settings;

const CHECK: &str = "unit";
/// What is asked of the unit.
const PROPERTIES: [&str; 9] = [
    "LoadState",
    "ProtectHome",
    "PrivateTmp",
    "ProtectSystem",
    "ReadWritePaths",
    "InaccessiblePaths",
    "NoExecPaths",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
];

pub(super) fn look(settings: &Settings, unit: &str) -> Vec<Finding> {
    let Some(properties) = properties(unit) else {
        return vec![Finding::ok(CHECK, "not under systemd: nothing to compare")];
    };
    judge(unit, &properties, settings)
}

/// What systemd says; `None` where there is none to ask, or it has no such unit.
fn properties(unit: &str) -> Option<BTreeMap<String, String>> {
    let shown = Command::new("systemctl")
        .args(["show", unit, "--no-pager"])
        .args(PROPERTIES.map(|name| format!("--property={name}")))
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    if !shown.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let all: BTreeMap<String, String> = pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    (all.get("LoadState").map(String::as_str) == Some("loaded")).then_some(all)
}

fn judge(unit: &str, properties: &BTreeMap<String, String>, settings: &Settings) -> Vec<Finding> {
    let value = |name: &str| properties.get(name).map_or("", String::as_str);
    let below = |path: &Path, list: &str| {
        list.split_whitespace()
            .any(|dir| path.starts_with(dir.trim_start_matches(['-', '+'])))
    };
    let hooks = settings.every_hook();
    let all = hooks.iter().cloned().chain(settings.attention.program());
    let mut findings = Vec::new();
    for hook in all {
        for part in hook.run.iter().filter(|part| Path::new(part).is_absolute()) {
            let path = Path::new(part);
            let name = &hook.name;
            let mut fail = |told: String, hint: &str| {
                findings.push(Finding::fail(CHECK, format!("{name}: {told}")).hint(hint));
            };
            let at_home = below(path, "/home /root /run/user");
            if at_home && matches!(value("ProtectHome"), "yes" | "tmpfs") {
                fail(
                    format!(
                        "`{part}` is not there for {unit}: ProtectHome={}",
                        value("ProtectHome")
                    ),
                    "put the script elsewhere, or set `ProtectHome=read-only` by `systemctl edit`",
                );
            }
            if below(path, "/tmp /var/tmp")
                && value("PrivateTmp") != "no"
                && !value("PrivateTmp").is_empty()
            {
                fail(
                    format!(
                        "`{part}` is not there for {unit}, which has a /tmp of its own: PrivateTmp={}",
                        value("PrivateTmp")
                    ),
                    "put it where it stays, such as /usr/local/bin or /etc/tilld",
                );
            }
            if below(path, value("InaccessiblePaths")) {
                fail(
                    format!(
                        "`{part}` is not there for {unit}: InaccessiblePaths={}",
                        value("InaccessiblePaths")
                    ),
                    "put it elsewhere, or change the unit by `systemctl edit`",
                );
            }
            if below(path, value("NoExecPaths")) {
                fail(
                    format!(
                        "`{part}` may not be run by {unit}: NoExecPaths={}",
                        value("NoExecPaths")
                    ),
                    "put it elsewhere, or name it in `ExecPaths=` by `systemctl edit`",
                );
            }
        }
        if value("MemoryDenyWriteExecute") == "yes" {
            findings.extend(code(unit, &hook.name, &code_of(&hook.run)));
        }
    }
    if findings.is_empty() {
        findings.push(writable(unit, properties));
    }
    findings
}

/// What becomes of a program that makes machine code as it runs.
fn code(unit: &str, hook: &str, code: &Code) -> Option<Finding> {
    let hint = "the drop-in jit.conf allows it: `MemoryDenyWriteExecute=no` by `systemctl edit`";
    match code {
        Code::None => None,
        Code::Made(program) => {
            let told = format!(
                "{hook}: `{}` makes code as it runs, which MemoryDenyWriteExecute=yes of {unit} forbids",
                program.display()
            );
            Some(Finding::fail(CHECK, told).hint(hint))
        }
        Code::MadeByPhp(program) => {
            let told = format!(
                "{hook}: `{}` has a JIT, which MemoryDenyWriteExecute=yes of {unit} forbids: it works without, slower, and warns \
                 on stderr each time",
                program.display()
            );
            Some(
                Finding::warn(CHECK, told).hint(format!("set `opcache.jit=off` for it, or {hint}")),
            )
        }
    }
}

/// Where scripts may write; what they need to, nobody but the merchant knows.
fn writable(unit: &str, properties: &BTreeMap<String, String>) -> Finding {
    let value = |name: &str| properties.get(name).map_or("", String::as_str);
    if !matches!(value("ProtectSystem"), "strict") {
        return Finding::ok(CHECK, format!("{unit} keeps no script from its files"));
    }
    let more = value("ReadWritePaths");
    let more = if more.is_empty() {
        "nothing else"
    } else {
        more
    };
    Finding::ok(
        CHECK,
        format!(
            "{unit} finds all scripts; they may write to the state directory, to a /tmp of their own, and to {more} (`ReadWritePaths=`)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::config::Hook;

    fn found(program: &str, properties: &[(&str, &str)]) -> Vec<Finding> {
        let settings = Settings {
            hook: vec![Hook {
                name: "fulfil".to_owned(),
                run: vec![program.to_owned()],
                ..Hook::default()
            }],
            ..Settings::default()
        };
        let all = properties.iter();
        let all = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        judge("tilld.service", &all.collect(), &settings)
    }

    #[test]
    fn a_script_that_the_sandbox_hides_or_forbids_is_found() {
        for (program, property, state) in [
            ("/home/shop/ship", ("ProtectHome", "yes"), State::Fail),
            ("/home/shop/ship", ("ProtectHome", "read-only"), State::Ok),
            ("/tmp/ship", ("PrivateTmp", "yes"), State::Fail),
            ("/tmp/ship", ("PrivateTmp", "no"), State::Ok),
            (
                "/opt/shop/ship",
                ("InaccessiblePaths", "/srv -/opt/shop"),
                State::Fail,
            ),
            (
                "/opt/shopping/ship",
                ("InaccessiblePaths", "/opt/shop"),
                State::Ok,
            ),
            ("/srv/ship", ("NoExecPaths", "/srv"), State::Fail),
            (
                "/usr/bin/node",
                ("MemoryDenyWriteExecute", "yes"),
                State::Fail,
            ),
            ("/usr/bin/sh", ("MemoryDenyWriteExecute", "yes"), State::Ok),
        ] {
            let found = found(program, &[property]);
            let states: Vec<State> = found.iter().map(|found| found.state).collect();
            assert_eq!(states, [state], "{program} {property:?}: {found:?}");
        }
    }

    /// What a script is run by, not what it is called.
    #[test]
    fn a_script_whose_interpreter_makes_code_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().join("ship.sh");
        for (first, state) in [
            ("#!/usr/bin/luajit", State::Fail),
            ("#!/opt/java/bin/java --source 21", State::Fail),
            (
                "#!/usr/bin/php -dopcache.enable_cli=1 -dopcache.jit=on -dopcache.jit_buffer_size=8M",
                State::Warn,
            ),
            ("#!/bin/sh", State::Ok),
        ] {
            std::fs::write(&script, format!("{first}\n")).expect("written");
            let program = script.display().to_string();
            let found = found(&program, &[("MemoryDenyWriteExecute", "yes")]);
            let states: Vec<State> = found.iter().map(|found| found.state).collect();
            assert_eq!(states, [state], "{first}: {found:?}");
            assert_eq!(
                state == State::Ok,
                found.iter().all(|found| found.hint.is_none())
            );
        }
    }

    #[test]
    fn where_scripts_may_write_is_told() {
        let told = found(
            "/bin/true",
            &[("ProtectSystem", "strict"), ("ReadWritePaths", "/srv/shop")],
        );
        assert!(
            told.iter()
                .all(|found| found.told.contains("/srv/shop (`ReadWritePaths=`)")),
            "{told:?}"
        );
    }
}
