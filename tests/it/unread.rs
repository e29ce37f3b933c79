//! Commands whose output is not read, or finds no room. Relies on the real binary with the dead end of a pipe, or
//! `/dev/full`, as its stdout.
//! Promises that the exit code is the command's own and that its work is whole, and that lost output is an error.

use std::fs::File;
use std::io;
use std::process::Stdio;

use crate::harness::{PATIENCE, Ran, Setup, World};

/// A pipe that nobody reads: the first byte into it is refused.
fn unread() -> Stdio {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

/// A file on a disk without room.
fn full() -> Stdio {
    let file = File::options().write(true).open("/dev/full");
    file.expect("Linux has it").into()
}

/// Runs a command into the pipe that nobody reads: it must say nothing of that.
#[track_caller]
fn ends_unread(world: &World, args: &[&str], code: i32) -> Ran {
    let ran = world.tilld_into(unread(), args);
    assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    for word in ["stdout", "pipe", "os error"] {
        assert!(!ran.stderr.contains(word), "{args:?}: {ran:?}");
    }
    ran
}

#[test]
fn the_exit_code_is_the_commands_own_when_nobody_reads() {
    let world = Setup::new().quiet().hook("fulfil", &["paid"], ":").start();
    world.pay("A-1");
    world.settle();
    for args in [
        ["status"].as_slice(),
        &["status", "--json"],
        &["invoice", "list"],
        &["invoice", "list", "--json"],
        &["invoice", "wait", "A-1"],
        &["event", "list", "--json"],
        &["event", "follow", "--after=0"],
        &["event", "follow", "--after=0", "--json"],
        &["delivery", "list"],
        &["hook", "list"],
        &["hook", "test", "fulfil"],
        &["explain", "A-1"],
        &["db", "check"],
        &["control", "openapi"],
        &["whoami"],
        &["--help"],
        &["--version"],
        &["status", "--help"],
    ] {
        ends_unread(&world, args, 0);
    }
    for args in [
        ["completions", "bash"].as_slice(),
        &["man"],
        &["sandbox", "openapi"],
    ] {
        let ran = world.alone_into(unread(), args);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
    }
    for (args, code) in [
        (["invoice", "show", "none"].as_slice(), 3),
        (&["invoice", "show", "none", "--json"], 3),
        (&["explain", "none", "--json"], 3),
        (&["ack", "A-1", "--json"], 1),
        (&["invoice", "list", "--limit=x", "--json"], 2),
    ] {
        let ran = ends_unread(&world, args, code);
        assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    }
}

#[test]
fn what_needs_a_person_is_seen_behind_a_pipe() {
    let mut world = Setup::new()
        .quiet()
        .hook("fails", &["paid"], "exit 65")
        .start();
    world.pay("A-1");
    world.settle();
    for args in [["status"].as_slice(), &["status", "--json"]] {
        ends_unread(&world, args, 16);
    }
    ends_unread(&world, &["hook", "test", "fails"], 1);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    ends_unread(&world, &["status"], 16);
}

#[test]
fn a_create_is_whole_and_a_refused_one_is_refused_when_nobody_reads() {
    let world = Setup::new().quiet().start();
    let create = |order: &'static str, amount: &'static str| {
        let args = ["invoice", "create", "--order", order, "--amount", amount];
        [args.as_slice(), &["--currency=RUB", "--method=SBP"]].concat()
    };
    ends_unread(&world, &create("A-1", "599.80"), 0);
    assert_eq!(world.invoice("A-1", "opening"), "answered");
    for json in [[].as_slice(), &["--json"]] {
        let other = [create("A-1", "9.80").as_slice(), json].concat();
        let refused = ends_unread(&world, &other, 1);
        assert!(refused.stderr.starts_with("error: "), "{refused:?}");
    }
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "1");
}

/// What the loss of all output must look like.
#[track_caller]
fn is_lost(args: &[&str], ran: &Ran) {
    assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
    let said = "error: could not write to stdout: No space left on device";
    assert!(ran.stderr.contains(said), "{args:?}: {ran:?}");
}

#[test]
fn a_login_that_nobody_was_shown_is_none() {
    let world = Setup::new().logged_out().not_served().start();
    for args in [
        ["login", "--start"].as_slice(),
        &["login", "--start", "--json"],
        &["login"],
    ] {
        let ran = world.tilld_into(unread(), args);
        assert_eq!(ran.code, 1, "{args:?}: {ran:?}");
        assert!(
            ran.stderr.contains("could not show where to confirm"),
            "{ran:?}"
        );
    }
}

#[test]
fn output_that_finds_no_room_is_an_error() {
    let world = Setup::new().quiet().hook("fulfil", &["paid"], ":").start();
    world.pay("A-1");
    world.settle();
    for args in [
        ["status"].as_slice(),
        &["status", "--json"],
        &["invoice", "list"],
        &["invoice", "list", "--json"],
        &["event", "list"],
        &["event", "follow", "--after=0"],
        &["delivery", "list", "--json"],
        &["explain", "A-1"],
        &["control", "openapi"],
        &["--help"],
        &["--version"],
    ] {
        is_lost(args, &world.tilld_into(full(), args));
    }
    for args in [
        ["completions", "bash"].as_slice(),
        &["man"],
        &["sandbox", "openapi"],
    ] {
        is_lost(args, &world.alone_into(full(), args));
    }
    let refused = world.tilld_into(full(), &["invoice", "show", "none", "--json"]);
    assert_eq!(refused.code, 3, "{refused:?}");
}
