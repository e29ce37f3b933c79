//! Hooks and the program of `[attention]`: whether they will run for the user tilld runs as, under what systemd and tilld leave
//! of an environment, and whether nobody else may change them (A38).

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::Finding;
use super::user::User;
use crate::config::{Hook, Settings};
use crate::hook::executed::{Interpreter, first_line, in_path};
use crate::hook::exposed;
use crate::hook::process::PATH;

const CHECK: &str = "hook";

pub(super) fn look(settings: &Settings, user: &User) -> Vec<Finding> {
    let hooks = settings.every_hook();
    let all = hooks.into_iter().chain(settings.attention.program());
    let findings: Vec<Finding> = all.flat_map(|hook| of(&hook, user)).collect();
    if findings.is_empty() {
        let told = "none is configured: nothing happens when money comes";
        return vec![
            Finding::warn(CHECK, told).hint("add a `[[hook]]` with `name`, `on` and `run`"),
        ];
    }
    findings
}

fn of(hook: &Hook, user: &User) -> Vec<Finding> {
    let name = &hook.name;
    if let Err(error) = hook.check() {
        let reason = std::error::Error::source(&error)
            .map_or_else(|| error.to_string(), ToString::to_string);
        let what = hook.run.first().map_or("its secret", String::as_str);
        let told = format!("{name}: {what}: {reason}");
        let hint = "a program is named by its absolute path, may be run by tilld's user, and its first line names an interpreter \
                    by an absolute path";
        return vec![Finding::fail(CHECK, told).hint(hint)];
    }
    let Some((program, args)) = hook.run.split_first() else {
        let told = format!(
            "{name}: there is a secret to sign posts with; the address itself is not asked"
        );
        return vec![Finding::ok(CHECK, told)];
    };
    // What an interpreter is given by its absolute path is as much of the hook as the interpreter.
    let exposed = exposed::of_run(Path::new(program), args, user.uid);
    let mut files = vec![PathBuf::from(program)];
    let given = hook.run.iter().skip(1).map(PathBuf::from);
    files.extend(given.filter(|path| path.is_absolute() && path.is_file()));
    let mut findings: Vec<Finding> = files
        .iter()
        .enumerate()
        .filter_map(|(at, file)| file_trouble(name, file, at == 0, user))
        .collect();
    findings.extend(
        files
            .iter()
            .filter_map(|file| interpreter_trouble(name, file)),
    );
    findings.extend(exposed.map(|exposed| {
        let told = format!("{name}: {exposed}");
        Finding::fail(CHECK, told).hint(exposed.remedy(user.uid))
    }));
    if findings.is_empty() {
        let told = format!(
            "{name}: {} can be run by `{}`",
            hook.run.join(" "),
            user.name
        );
        findings.push(Finding::ok(CHECK, told));
    }
    findings
}

/// What keeps the user from it.
fn file_trouble(name: &str, file: &Path, is_program: bool, user: &User) -> Option<Finding> {
    let real = fs::canonicalize(file).ok()?;
    let about = fs::metadata(&real).ok()?;
    let wanted = if is_program { 1 } else { 4 };
    if let Some(directory) = user.shut_out_by(&real) {
        let told = format!(
            "{name}: `{}` may not enter `{}`, where `{}` lies",
            user.name,
            directory.display(),
            real.display()
        );
        return Some(
            Finding::fail(CHECK, told)
                .hint("let the user or its group enter the directory: mode 0750, say"),
        );
    }
    if user.rights(&about) & wanted == 0 {
        let verb = if is_program { "run" } else { "read" };
        let told = format!(
            "{name}: `{}` may not {verb} `{}` (mode {:04o})",
            user.name,
            real.display(),
            about.mode() & 0o7777
        );
        return Some(
            Finding::fail(CHECK, told).hint("`chmod 0755` it, or give it to the user's group"),
        );
    }
    None
}

/// What a script's first line asks for and hooks do not have.
fn interpreter_trouble(name: &str, file: &Path) -> Option<Finding> {
    let line = first_line(file).ok()?;
    let asked = Interpreter::of(&line)?;
    let interpreter = asked.program;
    if !Path::new(interpreter).is_absolute() {
        let told = format!(
            "{name}: the first line of `{}` names `{interpreter}`, which is no absolute path",
            file.display()
        );
        return Some(
            Finding::fail(CHECK, told)
                .hint("hooks run in a directory of their own: write the interpreter's whole path"),
        );
    }
    let wanted = asked.by_env?;
    in_path(wanted).is_none().then(|| {
        let told = format!("{name}: `{}` is run by `{wanted}`, which is in none of the directories that hooks look in: {PATH}", file.display());
        Finding::fail(CHECK, told).hint("write the interpreter's whole path into the first line; a hook has not the shell's PATH")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::State;
    use super::*;

    fn own() -> User {
        super::super::user::of(Path::new("/no/such/directory"))
    }

    fn hook(run: &[&Path]) -> Hook {
        Hook {
            name: "fulfil".to_owned(),
            run: run.iter().map(|path| path.display().to_string()).collect(),
            ..Hook::default()
        }
    }

    #[track_caller]
    fn script(dir: &Path, first: &str, mode: u32) -> PathBuf {
        let path = dir.join(format!("{mode:o}-{}", first.len()));
        fs::write(&path, format!("{first}\ntrue\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
        path
    }

    #[test]
    fn what_works_in_a_shell_and_not_for_a_hook_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        for (first, mode, part) in [
            ("#!/bin/sh", 0o755, "can be run by"),
            ("#!/bin/sh", 0o757, "anybody may change"),
            ("#!/usr/bin/env sh", 0o755, "can be run by"),
            (
                "#!/usr/bin/env no-such-interpreter",
                0o755,
                "in none of the directories",
            ),
            ("#!/no/such/interpreter", 0o755, "interpreter"),
            ("#!/bin/sh", 0o644, "Permission denied"),
        ] {
            let path = script(dir.path(), first, mode);
            let found = of(&hook(&[&path]), &own());
            assert!(
                found.iter().any(|found| found.told.contains(part)),
                "{first} {mode:o}: {found:?}"
            );
            let fails = found.iter().any(|found| found.state == State::Fail);
            assert_eq!(fails, part != "can be run by", "{found:?}");
        }
    }

    #[test]
    fn another_user_is_judged_by_the_modes() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("ours");
        let path = script(dir.path(), "#!/bin/sh", 0o755);
        let other = User {
            uid: 4_000_000_001,
            groups: Vec::new(),
            name: "shop".to_owned(),
        };
        let found = of(&hook(&[&path]), &other);
        assert!(
            found
                .iter()
                .any(|found| found.told.contains("`shop` may not enter")),
            "{found:?}"
        );
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("ours");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("ours");
        let found = of(&hook(&[&path]), &other);
        assert!(
            found
                .iter()
                .any(|found| found.told.contains("`shop` may not run")),
            "{found:?}"
        );
        // A script that an interpreter is given need only be read.
        let found = of(&hook(&[Path::new("/bin/sh"), &path]), &other);
        assert!(
            found
                .iter()
                .any(|found| found.told.contains("`shop` may not read")),
            "{found:?}"
        );
    }
}
