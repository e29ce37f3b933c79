//! The file beside the ledger that tells an older copy from the ledger that was served.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{back_up, backups, deliveries, put_back};
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// The mark's file.
fn mark(world: &World) -> PathBuf {
    world.state_dir().join("ledger.mark")
}

/// One number of the mark.
fn number(world: &World, name: &str) -> i64 {
    let text = fs::read(mark(world)).expect("the mark is there");
    let mark: Value = serde_json::from_slice(&text).expect("JSON");
    mark.get(name).and_then(Value::as_i64).expect("a number")
}

/// A plain copy of the ledger and its log while nobody serves, with all of it in one file.
fn plain_copy(world: &World, name: &str) -> PathBuf {
    let copy = backups(world).join(name);
    for end in ["", "-wal"] {
        let from = format!("{}{end}", world.ledger().display());
        let to = format!("{}{end}", copy.display());
        fs::copy(from, to).expect("copied");
    }
    // Read by a program that moves the log into the file and takes it away.
    let whole = copy.with_extension("whole");
    let made = std::process::Command::new("sqlite3")
        .arg(&copy)
        .arg(format!("VACUUM INTO '{}'", whole.display()))
        .status();
    assert!(made.is_ok_and(|status| status.success()));
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    fs::set_permissions(&whole, mode).expect("own file");
    whole
}

fn serve_and_stop(world: &mut World) -> String {
    world.start_serve();
    let log = world.serve_log();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    log
}

fn generation(ledger: &World) -> String {
    ledger.value("SELECT value FROM meta WHERE key = 'generation'")
}

#[test]
fn it_follows_events_and_attempts_while_the_daemon_serves_and_at_its_end() {
    let mut world = Setup::new()
        .quiet()
        .noting_hook("fulfil", &["paid"])
        .start();
    world.pay("A-1");
    world.settle();
    let last = |world: &World| -> i64 {
        let last = world.value("SELECT max(seq) FROM events");
        last.parse().expect("a number")
    };
    let steps = |world: &World| -> i64 {
        let steps = world.value("SELECT value FROM meta WHERE key = 'delivery_steps'");
        steps.parse().expect("a number")
    };
    // Nothing comes any more: it is written all the same, soon after the last commit.
    wait_until(PATIENCE, "the mark", || {
        (number(&world, "event"), number(&world, "step")) == (last(&world), steps(&world))
    });
    assert_eq!(steps(&world), 2, "a claim and an end");
    let mode = fs::metadata(mark(&world)).expect("there").mode();
    assert_eq!(mode & 0o7777, 0o640);
    world.pay("A-2");
    world.settle();
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let at_end = (number(&world, "event"), number(&world, "step"));
    assert_eq!(at_end, (last(&world), steps(&world)));
    // A command that writes keeps it too, and one that reads does not.
    world.create("A-3");
    assert_eq!(number(&world, "event"), last(&world));
    let numbers = |world: &World| (number(world, "event"), number(world, "step"));
    let before = numbers(&world);
    fs::remove_file(mark(&world)).expect("removed");
    world.tilld(&["status"]);
    world.tilld(&["delivery", "list"]).ends_with(0);
    back_up(&world, &backups(&world).join("ledger.db")).ends_with(0);
    assert!(!mark(&world).exists(), "a reader wrote it");
    serve_and_stop(&mut world);
    assert_eq!(numbers(&world), before);
    assert_eq!(generation(&world), "0");
}

#[test]
fn a_plain_copy_of_an_older_ledger_is_noticed_by_events_or_by_attempts_alone() {
    let script = "echo x >> \"$1\"; test -e \"$1.go\"";
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], script)
        .set("outbox.schedule_s", "[0, 3600]")
        .start();
    world.pay("A-1");
    let attempts = "SELECT count(*) FROM attempts";
    wait_until(PATIENCE, "the first failure", || {
        world.value(attempts) == "1"
    });
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let older = plain_copy(&world, "older.db");
    // The same ledger opened again is no copy.
    assert!(!serve_and_stop(&mut world).contains("was restored"));
    assert_eq!(deliveries(&world), ["A-1 paid waiting -"]);

    // No event more, but the delivery is done since.
    world.start_serve();
    fs::write(world.dir().join("hooks/fulfil.log.go"), "").expect("written");
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    world.tilld(&["delivery", "retry", &event]).ends_with(0);
    world.settle();
    assert_eq!(deliveries(&world), ["A-1 paid done -"]);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    put_back(&world, &older);
    let log = serve_and_stop(&mut world);
    assert!(
        log.contains("it is older than the one that was here"),
        "{log}"
    );
    assert_eq!(deliveries(&world), ["A-1 paid held restored"]);
    assert_eq!(generation(&world), "1");

    // An event more, and a copy that was restored before: again, and under a number that never was.
    put_back(&world, &older);
    let log = serve_and_stop(&mut world);
    assert!(
        log.contains("it is older than the one that was here"),
        "{log}"
    );
    assert_eq!(generation(&world), "2");
    assert_eq!(number(&world, "generation"), 2);
    assert!(!serve_and_stop(&mut world).contains("was restored"));
    assert_eq!(world.hook_log("fulfil").len(), 2);
}

#[test]
fn a_command_that_writes_catches_up_as_the_daemon_does_and_says_so() {
    let mut world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], "exit 1")
        .set("outbox.schedule_s", "[3600]")
        .start();
    world.pay("A-1");
    let file = backups(&world).join("ledger.db");
    back_up(&world, &file).ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    put_back(&world, &file);
    let created = world.tilld(&[
        "invoice",
        "create",
        "--order=A-2",
        "--amount=1",
        "--currency=RUB",
        "--method=SBP",
    ]);
    assert!(
        created
            .ends_with(0)
            .stderr
            .contains("the ledger was restored; held of what waited in it: 1,"),
    );
    assert_eq!(deliveries(&world), ["A-1 paid held restored"]);
    assert!(!serve_and_stop(&mut world).contains("was restored"));
}

#[test]
fn another_ledger_is_held_a_new_one_is_not_and_a_damaged_mark_is_told() {
    let never = || {
        Setup::new()
            .quiet()
            .hook("fulfil", &["paid"], "exit 1")
            .set("outbox.schedule_s", "[3600]")
    };
    let mut other = never().start();
    other.pay("B-1");
    assert_eq!(other.stop_serve(PATIENCE), 0);
    let mut world = never().start();
    world.pay("A-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);

    for text in ["", "{\"ledger\":"] {
        fs::write(mark(&world), text).expect("written");
        let log = serve_and_stop(&mut world);
        assert!(log.contains("cannot be read and is written anew"), "{log}");
        assert_eq!(deliveries(&world), ["A-1 paid waiting -"]);
    }
    fs::remove_file(mark(&world)).expect("removed");
    assert!(serve_and_stop(&mut world).contains("is not there and is made"));
    assert_eq!(deliveries(&world), ["A-1 paid waiting -"]);

    // Nobody knows how far the other one was.
    let copy = plain_copy(&other, "other.db");
    put_back(&world, &copy);
    copy_key(&other, &world);
    let log = serve_and_stop(&mut world);
    assert!(log.contains("another ledger was here before"), "{log}");
    assert_eq!(deliveries(&world), ["B-1 paid held restored"]);
    assert!(!serve_and_stop(&mut world).contains("was restored"));

    // A new one beside the old mark.
    for end in ["", "-wal", "-shm"] {
        let file = format!("{}{end}", world.ledger().display());
        fs::remove_file(file).expect("removed");
    }
    // Not made while the mark is there: it would be a ledger that was lost.
    let gone = world.tilld(&["serve"]).ends_with(11);
    assert!(gone.stderr.contains("remove `ledger.mark`"), "{gone:?}");
    let old = fs::read(mark(&world)).expect("a mark");
    fs::remove_file(mark(&world)).expect("removed as the hint says");
    serve_and_stop(&mut world);
    fs::write(mark(&world), old).expect("written");
    let log = serve_and_stop(&mut world);
    assert!(
        log.contains("is of another ledger") && !log.contains("was restored"),
        "{log}"
    );
    world.start_serve();
    world.pay("C-1");
    assert_eq!(deliveries(&world), ["C-1 paid waiting -"]);
}

/// The key that opens the notify tokens of the other ledger.
fn copy_key(from: &World, to: &World) {
    let key = |world: &World| world.state_dir().join(Path::new("secret/ledger-key"));
    fs::copy(key(from), key(to)).expect("copied");
}
