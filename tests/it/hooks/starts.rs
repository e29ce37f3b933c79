//! A failed start is an attempt, and its result names the operating system's reason with its number.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{results, state};
use crate::harness::{Setup, World};

/// More than Linux takes as one argument.
const TOO_LONG: usize = 200_000;

/// Another process writes the file: one that this process wrote may be open in a child that another test is just starting.
fn program(world: &World, name: &str, content: &str) -> PathBuf {
    let path = world.dir().join(name);
    let draft = world.dir().join(format!("{name}.draft"));
    fs::write(&draft, content).expect("written");
    let copied = Command::new("cp").arg(&draft).arg(&path).status();
    assert!(copied.expect("cp runs").success());
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a mode");
    path
}

/// The hooks of the test by their names, with what is run.
fn configure(world: &World, hooks: &[(&str, &Path, &str)]) {
    let file = world.dir().join("config.toml");
    let mut config = fs::read_to_string(&file).expect("readable");
    for (name, program, argument) in hooks {
        let run = [program.display().to_string(), (*argument).to_owned()];
        let block = format!("[[hook]]\nname = \"{name}\"\non = [\"paid\"]\nrun = {run:?}\n");
        config.push_str(&block);
    }
    fs::write(&file, config).expect("written");
}

#[test]
fn a_program_that_cannot_start_is_an_attempt_with_the_systems_reason() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .not_served()
        .start();
    let script = "#!/bin/sh\nexit 0\n";
    let gone = program(&world, "gone", script);
    let forbidden = program(&world, "forbidden", script);
    // Broken by an edit while the daemon runs: it would not start with them.
    let edits = [
        ("no-interpreter", "#!/no/such/perl\n"),
        ("crlf", "#!/bin/sh\r\nexit 0\r\n"),
        ("no-format", "exit 0\n"),
        ("empty", ""),
        ("foreign", "\x7fELF\x02\x02\x01"),
    ];
    let [no_interpreter, crlf, no_format, empty, foreign] =
        edits.map(|(name, _)| program(&world, name, script));
    let busy = program(&world, "busy", script);
    let looped = program(&world, "looped", script);
    let good = program(&world, "good", script);
    let long = "x".repeat(TOO_LONG);
    configure(
        &world,
        &[
            ("gone", &gone, ""),
            ("forbidden", &forbidden, ""),
            ("no-interpreter", &no_interpreter, ""),
            ("crlf", &crlf, ""),
            ("no-format", &no_format, ""),
            ("empty", &empty, ""),
            ("foreign", &foreign, ""),
            ("busy", &busy, ""),
            ("looped", &looped, ""),
            ("too-long", &good, &long),
        ],
    );
    world.start_serve();
    for (name, content) in edits {
        program(&world, name, content);
    }
    fs::remove_file(&gone).expect("removed");
    fs::set_permissions(&forbidden, Permissions::from_mode(0o644)).expect("a mode");
    let held = OpenOptions::new().append(true).open(&busy).expect("opened");
    fs::remove_file(&looped).expect("removed");
    symlink(&looped, &looped).expect("linked");
    world.pay("A-1");
    world.settle();
    drop(held);
    for (hook, number) in [
        ("gone", 2),
        ("forbidden", 13),
        ("no-interpreter", 2),
        ("crlf", 2),
        ("no-format", 8),
        ("empty", 8),
        ("foreign", 8),
        ("busy", 26),
        ("looped", 40),
        ("too-long", 7),
    ] {
        let results = results(&world, hook);
        let [result] = results.as_slice() else {
            panic!("{hook}: {results:?}");
        };
        assert!(result.starts_with("not started: "), "{hook}: {result}");
        let wanted = format!("(os error {number})");
        assert!(result.ends_with(&wanted), "{hook}: {result}");
        assert_eq!(state(&world, hook), "abandoned", "{hook}");
    }
    let of = |hook| results(&world, hook).concat();
    assert!(of("no-interpreter").contains("`/no/such/perl` is missing"));
    assert!(
        of("crlf").contains("`/bin/sh\\r` is missing (its first line ends in a carriage return)")
    );
    assert!(of("no-format").contains("no `#!` line"));
}
