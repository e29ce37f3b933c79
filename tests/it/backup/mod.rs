//! `tilld db backup`, and a ledger that was put back from a copy (A27). What is at stake: a backup that is none, and goods
//! that are sent a second time.

mod again;
mod catch_up;
mod mark;
mod restore;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Ran, Setup, World, skip, sql, wait_until};

/// Where backups are made.
fn backups(world: &World) -> PathBuf {
    let dir = world.dir().join("backups");
    fs::create_dir_all(&dir).expect("a directory");
    dir
}

/// `db backup` to this file.
#[track_caller]
fn back_up(world: &World, file: &Path) -> Ran {
    let file = file.to_string_lossy();
    world.tilld(&["db", "backup", &file, "--json"])
}

/// Puts a copy in the ledger's place as the docs say it, while no daemon runs.
fn put_back(world: &World, copy: &Path) {
    for log in ["db-wal", "db-shm"] {
        drop(fs::remove_file(world.ledger().with_extension(log)));
    }
    fs::copy(copy, world.ledger()).expect("the copy is put back");
}

/// The names in the directory of backups.
fn names(world: &World) -> Vec<String> {
    let entries = fs::read_dir(backups(world)).expect("it can be read");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

/// Every delivery: order, hook's event kind, state and why it is held.
fn deliveries(world: &World) -> Vec<String> {
    let query = "SELECT order_id || ' ' || kind || ' ' || state || ' ' || coalesce(held_why, '-') \
                 FROM deliveries ORDER BY seq";
    world.sql(query).concat()
}

#[test]
fn a_backup_under_a_stream_of_notifications_is_one_complete_moment() {
    let world = Setup::new()
        .quiet()
        .sandbox(&["--pool=100"])
        .noting_hook("fulfil", &["paid"])
        .start();
    let orders: Vec<_> = (0..40)
        .map(|at| world.dictate(&world.create(&format!("A-{at}")), "paid"))
        .collect();
    let backup = |name: &str| {
        let file = backups(&world).join(name);
        let told = back_up(&world, &file).ends_with(0).json();
        let number = |field: &str| told.get(field).and_then(Value::as_u64).expect("a number");
        assert_eq!(
            told.get("path").and_then(Value::as_str),
            file.to_str(),
            "{told}"
        );
        assert_eq!(
            number("bytes"),
            fs::metadata(&file).expect("it is there").len()
        );
        for (query, field) in [
            ("SELECT max(seq) FROM events", "last_event"),
            ("SELECT count(*) FROM events", "events"),
            ("SELECT count(*) FROM invoices", "invoices"),
            ("SELECT count(*) FROM deliveries", "deliveries"),
            ("SELECT count(*) FROM attempts", "attempts"),
            (
                "SELECT count(*) FROM deliveries WHERE state <> 'held'",
                "deliveries",
            ),
        ] {
            let found = sql(&file, query).concat();
            assert_eq!(found, [number(field).to_string()], "{query}");
        }
        // Of each event what belongs to it, and nothing cut off.
        assert_eq!(sql(&file, "PRAGMA integrity_check").concat(), ["ok"]);
        let owed = "SELECT count(*) FROM events WHERE kind = 'paid' AND event_id NOT IN \
                    (SELECT event_id FROM deliveries)";
        assert_eq!(sql(&file, owed).concat(), ["0"]);
        file
    };
    let before = world.value("SELECT count(*) FROM events");
    thread::scope(|scope| {
        scope.spawn(|| {
            for issued in &orders {
                assert_eq!(world.tell_as_it_is(issued).status, 200);
            }
        });
        for at in 0..5 {
            backup(&format!("ledger-{at}.db"));
        }
    });
    world.settle();
    let last = backup("last.db");
    assert_eq!(before, "40");
    let paid = "SELECT count(*) FROM events WHERE kind = 'paid'";
    assert_eq!(sql(&last, paid).concat(), ["40"]);
    let mode = fs::metadata(&last).expect("there").permissions().mode();
    assert_eq!(mode & 0o7777 & !0o640, 0, "{mode:o}");
    // One file each, and no log beside it: not even after it was read.
    assert_eq!(names(&world).len(), 6, "{:?}", names(&world));
    let people = back_up_for_people(&world);
    assert!(people.stdout.contains("last event"), "{people:?}");
    assert!(people.stderr.contains("ledger-key"), "{people:?}");
    // What was read back keeps no secret.
    let token = &orders.first().expect("one").token;
    let bytes = fs::read(&last).expect("read");
    let leaks = bytes
        .windows(token.len())
        .any(|part| part == token.as_bytes());
    assert!(!leaks, "a notify token is readable in the backup");
}

fn back_up_for_people(world: &World) -> Ran {
    let file = backups(world).join("people.db");
    let file = file.to_string_lossy();
    world.tilld(&["db", "backup", &file]).ends_with(0)
}

#[test]
fn what_cannot_be_made_is_said_and_leaves_nothing() {
    let world = Setup::new().quiet().start();
    world.create("A-1");
    let dir = backups(&world);
    let taken = dir.join("taken.db");
    fs::write(&taken, "mine").expect("written");
    let refused = back_up(&world, &taken).ends_with(1);
    assert!(refused.stderr.contains("is there already"), "{refused:?}");
    assert_eq!(fs::read(&taken).expect("read"), b"mine");
    // The ledger itself is a file that is there.
    let refused = back_up(&world, &world.ledger()).ends_with(1);
    assert!(refused.stderr.contains("is there already"), "{refused:?}");
    let refused = back_up(&world, &dir.join("none/ledger.db")).ends_with(1);
    assert!(
        refused.stderr.contains("could not write backup") && refused.stderr.contains("hint:"),
        "{refused:?}"
    );

    // A disk that has no room for it; the signal that comes with this limit is ignored, as a full disk sends none.
    let small = dir.join("small.db");
    let small = small.to_string_lossy();
    let line = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let full = world
        .tilld_under(&["/bin/sh", "-c", line, "sh"], &["db", "backup", &small])
        .ends_with(1);
    assert!(
        full.stderr.contains("could not copy the ledger") && full.stderr.contains("hint:"),
        "{full:?}"
    );
    assert_eq!(names(&world), ["taken.db"]);
    let nobody = world.tilld(&["--state-dir=/nowhere/at/all", "db", "backup", &small]);
    assert_ne!(nobody.code, 0, "{nobody:?}");
    assert_eq!(names(&world), ["taken.db"]);
}

#[test]
fn a_reader_makes_a_backup_and_writes_nothing_in_the_state_directory() {
    let setpriv = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "true"])
        .output();
    if !setpriv.is_ok_and(|output| output.status.success()) {
        skip!("setpriv is not there or may not change the user");
    }
    let world = Setup::new().quiet().start();
    world.create("A-1");
    let dir = backups(&world);
    let open = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("ours");
    };
    // As a member of the group may: enter, and read.
    open(world.dir(), 0o755);
    open(&world.dir().join("config.toml"), 0o644);
    open(&world.state_dir(), 0o755);
    for file in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
        open(&world.state_dir().join(file), 0o644);
    }
    open(&dir, 0o777);
    let listed = |world: &World| {
        let entries = fs::read_dir(world.state_dir()).expect("it can be read");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    let before = listed(&world);
    let file = dir.join("ledger.db");
    let made = world
        .tilld_under(
            &["setpriv", "--reuid=65534", "--clear-groups"],
            &["db", "backup", &file.to_string_lossy(), "--json"],
        )
        .ends_with(0);
    assert_eq!(made.json().get("invoices"), Some(&json!(1)));
    assert_eq!(listed(&world), before);
    assert_eq!(
        sql(&file, "SELECT order_id FROM invoices").concat(),
        ["A-1"]
    );
}

/// Makes a ledger of so many bytes that its copy takes a while.
const LARGE: &str =
    "INSERT INTO meta (key, value) VALUES ('padding', hex(zeroblob(32 * 1024 * 1024)))";

#[test]
fn a_command_that_is_stopped_leaves_nothing_half_made() {
    let world = Setup::new().quiet().not_served().start();
    world.create("A-1");
    world.neighbour().tamper(LARGE);
    let file = backups(&world).join("ledger.db");
    let file_name = file.to_string_lossy();
    for signal in [Signal::TERM, Signal::INT] {
        wait_until(PATIENCE, "the signal to meet it at work", || {
            let mut making = world.start_tilld(&["db", "backup", &file_name]);
            wait_until(PATIENCE, "the copy to begin", || !names(&world).is_empty());
            making.signal(signal);
            let (code, talk) = (making.wait(PATIENCE), making.stderr());
            // It was through already.
            if code == 0 {
                fs::remove_file(&file).expect("it is there");
            }
            assert_eq!(names(&world), Vec::<String>::new(), "{talk}");
            code == 1 && talk.contains("stopped before the backup was complete")
        });
    }
    back_up(&world, &file).ends_with(0);
    assert_eq!(sql(&file, "PRAGMA integrity_check").concat(), ["ok"]);
}
