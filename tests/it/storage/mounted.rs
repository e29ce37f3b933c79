//! Where a ledger may not lie (A28), and what SQLite it is kept with.

use std::fs;
use std::process::Command;

use super::disk;
use crate::harness::{Setup, skip};

#[test]
fn a_ledger_that_is_mounted_as_a_single_file_is_refused() {
    if let Some(why) = disk::lacks() {
        skip!("{why}");
    }
    let world = Setup::new().quiet().not_served().start();
    world.create("A-1");
    let kept = world.dir().join("kept.db");
    fs::copy(world.ledger(), &kept).expect("copied");
    let script = "mount --bind \"$0\" \"$1\"; shift; exec \"$@\"";
    let (kept, ledger) = (kept.to_string_lossy().into_owned(), world.ledger());
    let ledger = ledger.to_string_lossy().into_owned();
    let under = ["unshare", "-m", "sh", "-c", script, &kept, &ledger];
    for command in [&["serve"] as &[&str], &["invoice", "poll", "A-1"]] {
        let ran = world.tilld_under(&under, command).ends_with(11);
        assert!(
            ran.stderr.contains("is mounted as a single file"),
            "{ran:?}"
        );
        assert!(ran.stderr.contains("hint: mount the directory"), "{ran:?}");
    }
}

#[test]
fn the_version_names_an_sqlite_without_the_bug_of_its_log() {
    let world = Setup::new().quiet().logged_out().not_served().start();
    let said = world.tilld(&["--version"]).ends_with(0).stdout;
    let version = said
        .split("SQLite ")
        .nth(1)
        .map(str::trim)
        .unwrap_or_default();
    let parts: Vec<u32> = version
        .trim_end_matches(')')
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    assert!(parts >= vec![3, 51, 3], "{said}");
}

/// FUSE stands for every file system of which nobody can tell who else has it open.
#[test]
fn a_network_file_system_is_refused_unless_the_operator_knows() {
    let works = |program: &str| Command::new(program).arg("-V").output().is_ok();
    if disk::lacks().is_some() || !works("bindfs") {
        skip!("bindfs is not installed, or file systems may not be mounted here");
    }
    let world = Setup::new().quiet().not_served().start();
    let behind = world.dir().join("behind");
    fs::rename(world.state_dir(), &behind).expect("moved");
    fs::create_dir(world.state_dir()).expect("a place");
    let script = "bindfs \"$0\" \"$1\" || exit 99; place=$1; shift; \"$@\"; code=$?; umount \"$place\"; exit $code";
    let (behind, state) = (behind.to_string_lossy().into_owned(), world.state_dir());
    let state = state.to_string_lossy().into_owned();
    let under = ["unshare", "-m", "sh", "-c", script, &behind, &state];
    let create = [
        "invoice",
        "create",
        "--order=A-1",
        "--amount=1.00",
        "--currency=RUB",
        "--method=SBP",
    ];
    let ran = world.tilld_under(&under, &create).ends_with(11);
    assert!(
        ran.stderr.contains("lies on a network file system (FUSE)"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("--i-know"), "{ran:?}");
}
