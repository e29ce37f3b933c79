//! A log that somebody keeps from being moved (A24). What is at stake: the disk the whole shop lives on.

use std::fs::{self, File, TryLockError};

use serde_json::Value;

use super::attention;
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

const MIB: u64 = 1024 * 1024;

fn log_bytes(world: &World) -> u64 {
    fs::metadata(world.dir().join("state/ledger.db-wal")).map_or(0, |log| log.len())
}

#[test]
fn a_log_at_its_bound_turns_notifications_away_until_the_reader_is_gone() {
    is_bounded("after_answers");
}

/// Whoever moves it within a commit has the same bound.
#[test]
fn a_log_that_is_moved_in_commits_is_bounded_too() {
    is_bounded("in_commit");
}

fn is_bounded(checkpoint: &str) {
    let world = Setup::new()
        .quiet()
        .set("ledger.checkpoint", format!("{checkpoint:?}"))
        .set("ledger.log_attention_bytes", 16 * MIB)
        .set("ledger.log_bound_bytes", 32 * MIB)
        .noting_hook("fulfil", &["paid"])
        .start();
    let (issued, other) = (world.create("A-1"), world.create("A-2"));
    let (reader, writer) = (world.neighbour(), world.neighbour());
    reader.keep_reading();
    writer.lengthen_log(4_500);
    let waiting = world.dictate(&issued, "waiting");
    assert_eq!(world.tell_as_it_is(&waiting).status, 200);
    wait_until(PATIENCE, "status to tell", || {
        attention(&world) == ["wal_large"]
    });
    let people = world.tilld(&["status"]).ends_with(16).stdout;
    // The reader is this very process.
    let own = format!("(pid {})", std::process::id());
    assert!(people.contains(&own), "{people}");
    assert!(
        people.contains("a SELECT that is not read to its end"),
        "{people}"
    );

    writer.lengthen_log(4_500);
    let paid = world.dictate(&other, "paid");
    let new = world.dictate(&issued, "new");
    // The one that finds it so is stored, and none after it.
    assert_eq!(world.tell_as_it_is(&new).status, 200);
    let refused = world.tell_as_it_is(&paid);
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(attention(&world), ["wal_full"]);
    let held = log_bytes(&world);
    assert!(held > 32 * MIB, "{held}");
    assert_eq!(world.tell_as_it_is(&paid).status, 503);
    assert_eq!(log_bytes(&world), held, "it grows no more");

    reader.let_go();
    // Nothing comes, and it heals all the same.
    wait_until(PATIENCE, "the log to be short again", || {
        log_bytes(&world) <= 15 * MIB
    });
    wait_until(PATIENCE, "nothing to need a person", || {
        attention(&world).is_empty()
    });
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
    let log = world.serve_log();
    let told = |what: &str| log.matches(what).count();
    assert_eq!(
        told("the ledger's log has reached `ledger.log_bound_bytes`"),
        1
    );
    assert_eq!(told("and notifications are recorded again"), 1);
    let told = world.tilld(&["status", "--json"]).ends_with(0).json();
    assert_eq!(told.get("needs_person"), Some(&Value::Bool(false)));
}

/// Whether a command says that it reads the ledger.
fn is_said(world: &World) -> bool {
    let directory = File::open(world.state_dir()).expect("a directory");
    matches!(directory.try_lock(), Err(TryLockError::WouldBlock))
}

/// What is at stake: a person who is called because of tilld's own backup, and told to end some program.
#[test]
fn a_command_that_reads_for_long_says_so_and_is_named_for_what_it_is() {
    let faults = tempfile::tempdir().expect("a directory");
    let played = format!("TILLD_FAULTS={}", faults.path().display());
    let under = ["env", played.as_str()];
    let world = Setup::new()
        .quiet()
        .set("ledger.log_attention_bytes", 16 * MIB)
        .under(&under)
        .start();
    if !world.serve_log().contains("faults are played from") {
        skip!("a release plays no faults");
    }
    let issued = world.create("A-1");
    let hold = |command: &str| faults.path().join(format!("hold-{command}"));
    let copy = world.dir().join("copy.db").to_string_lossy().into_owned();
    assert!(!is_said(&world));
    for args in [["db", "check"].as_slice(), &["db", "backup", &copy]] {
        let command = args.get(1).expect("two words");
        fs::write(hold(command), "").expect("written");
        let mut reads = world.start_under(&under, args);
        wait_until(PATIENCE, "it to be said", || is_said(&world));
        if *command == "backup" {
            wait_until(PATIENCE, "it to read", || {
                let holds = world.neighbour();
                holds.lengthen_log(1);
                !holds.moves_all()
            });
            world.neighbour().lengthen_log(4_500);
            let waiting = world.dictate(&issued, "waiting");
            assert_eq!(world.tell_as_it_is(&waiting).status, 200);
            wait_until(PATIENCE, "status to tell", || {
                attention(&world) == ["wal_large"]
            });
            let people = world.tilld(&["status"]).ends_with(16).stdout;
            assert!(people.contains("`tilld db backup` or"), "{people}");
            assert!(!people.contains("SELECT"), "{people}");
        }
        fs::remove_file(hold(command)).expect("it was held");
        assert_eq!(reads.wait(PATIENCE), 0, "{}", reads.stderr());
        assert!(!is_said(&world));
    }
    wait_until(PATIENCE, "nothing to need a person", || {
        attention(&world).is_empty()
    });
}
