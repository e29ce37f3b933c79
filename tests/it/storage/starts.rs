//! What a start makes of the files it finds: those that were served are served at once, those in doubt are read in full, and
//! what is missing is said until it is acknowledged. Relies on the real program.
//! What is at stake: a mix of two ledgers that is served as one, and a loss that nobody notices.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::attention;
use crate::harness::{PATIENCE, Setup, World, wait_until};

const IN_FULL: &str = "the ledger is checked in full before it is served: ";

fn paid(orders: &[&str]) -> World {
    let world = Setup::new().quiet().sandbox(&["--pool=100"]).start();
    for order in orders {
        pay(&world, order);
    }
    world
}

fn pay(world: &World, order: &str) {
    let paid = world.dictate(&world.create(order), "paid");
    assert_eq!(world.tell_as_it_is(&paid).status, 200);
}

#[test]
fn a_ledger_that_was_killed_is_not_read_in_full_and_another_file_is() {
    let mut world = paid(&["A-1", "A-2"]);
    world.kill9_serve();
    world.start_serve();
    assert!(
        !world.serve_log().contains(IN_FULL),
        "{}",
        world.serve_log()
    );
    pay(&world, "A-3");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    assert!(
        !world.serve_log().contains(IN_FULL),
        "{}",
        world.serve_log()
    );
    world.kill9_serve();
    let copy = world.dir().join("copy");
    fs::copy(world.ledger(), &copy).expect("copied");
    fs::rename(&copy, world.ledger()).expect("another file of the same content");
    world.start_serve();
    let log = world.serve_log();
    assert!(
        log.contains(&format!("{IN_FULL}it is another file")),
        "{log}"
    );
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "3");
}

/// The database of one ledger beside the log of another.
#[test]
fn a_mix_of_two_ledgers_is_refused_and_left_as_it_is() {
    let mut world = paid(&["A-1"]);
    let mut other = paid(&["B-1", "B-2", "B-3", "B-4", "B-5", "B-6", "B-7", "B-8"]);
    assert!(other.neighbour().moves_all());
    pay(&other, "B-9");
    world.kill9_serve();
    other.kill9_serve();
    let log = world.ledger().with_extension("db-wal");
    fs::copy(other.ledger().with_extension("db-wal"), &log).expect("copied over");
    let content = |world: &World| {
        let read = |end: &str| fs::read(world.ledger().with_extension(end)).expect("read");
        (read("db"), read("db-wal"))
    };
    let before = content(&world);
    let refused = world.tilld(&["serve"]).ends_with(11);
    assert!(refused.stderr.contains(IN_FULL), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("hint: put the newest backup in its place"),
        "{refused:?}"
    );
    assert!(content(&world) == before, "files were changed");
    world.is_sound = false;
}

#[test]
fn a_file_that_was_cut_while_it_was_not_served_is_refused() {
    let mut world = paid(&["A-1", "A-2"]);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let file = OpenOptions::new().write(true).open(world.ledger());
    let file = file.expect("opened");
    let bytes = file.metadata().expect("there").len();
    file.set_len(bytes / 2).expect("cut");
    let refused = world.tilld(&["serve"]).ends_with(11);
    let why = format!("{IN_FULL}a part of the file was cut off");
    assert!(refused.stderr.contains(&why), "{refused:?}");
    // It has its length again, and a hole.
    file.set_len(bytes).expect("long again");
    let refused = world.tilld(&["serve"]).ends_with(11);
    assert!(refused.stderr.contains(&why), "{refused:?}");
    world.is_sound = false;
}

/// SQLite ends before such a page, and says nothing.
#[test]
fn a_log_with_a_page_that_was_written_over_is_read_in_full_and_what_is_missing_is_said() {
    let mut world = paid(&["A-1", "A-2", "A-3"]);
    let mark = world.state_dir().join("ledger.mark");
    wait_until(PATIENCE, "the mark", || {
        let mark = fs::read_to_string(&mark).unwrap_or_default();
        mark.contains("\"event\":6")
    });
    world.kill9_serve();
    let log = OpenOptions::new()
        .write(true)
        .open(world.ledger().with_extension("db-wal"));
    // The content of its second page.
    let over = log
        .expect("opened")
        .write_all_at(&[7; 64], 32 + 4_120 + 100);
    over.expect("written over");
    world.start_serve();
    let log = world.serve_log();
    let why = format!("{IN_FULL}a page of the log beside it was written over");
    assert!(log.contains(&why), "{log}");
    assert_eq!(attention_words(&world), ["ledger_behind"]);
}

#[test]
fn a_ledger_behind_its_mark_says_how_much_is_missing_until_that_is_acknowledged() {
    let mut world = paid(&["A-1"]);
    let copy = world.dir().join("copy.db");
    world
        .tilld(&["db", "backup", &copy.to_string_lossy()])
        .ends_with(0);
    pay(&world, "A-2");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world
        .tilld(&["db", "restore", &copy.to_string_lossy()])
        .ends_with(0);
    world.start_serve();
    let log = world.serve_log();
    assert!(log.contains("the ledger lacks at least 2 events"), "{log}");
    let told = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(
        told.contains("the ledger lacks at least 2 events"),
        "{told}"
    );
    assert_eq!(attention_words(&world), ["ledger_behind"]);
    // A further start says it still.
    assert_eq!(world.stop_serve(PATIENCE), 0);
    world.start_serve();
    assert_eq!(attention_words(&world), ["ledger_behind"]);
    world
        .tilld(&["ack", "--all", "--reason", "ledger_new"])
        .ends_with(1);
    let line = ["ack", "--all", "--reason", "ledger_behind"];
    let acknowledged = world.tilld(&line).ends_with(0).stdout;
    assert_eq!(
        acknowledged.trim(),
        "the ledger: ledger_behind acknowledged"
    );
    world.tilld(&line).ends_with(1);
    assert!(attention_words(&world).is_empty());
}

/// The copy that was put aside has more events than the ledger that was served since, and not the same.
#[test]
fn a_longer_copy_of_before_a_restore_lacks_what_was_acknowledged_since() {
    let mut world = paid(&["A-1"]);
    let restore = |world: &World, copy: &Path| {
        let copy = copy.to_string_lossy();
        world.tilld(&["db", "restore", &copy]).ends_with(0);
    };
    let copy = world.dir().join("copy.db");
    world
        .tilld(&["db", "backup", &copy.to_string_lossy()])
        .ends_with(0);
    for order in ["A-2", "A-3", "A-4"] {
        pay(&world, order);
    }
    assert_eq!(world.stop_serve(PATIENCE), 0);
    restore(&world, &copy);
    let longer = beside(&world, ".replaced-", &[]);
    world.start_serve();
    world.tilld(&["ack", "--all"]).ends_with(0);
    pay(&world, "B-1");
    assert_eq!(world.stop_serve(PATIENCE), 0);
    restore(&world, &longer);
    let served = beside(&world, ".replaced-", &[&longer]);
    world.start_serve();
    let log = world.serve_log();
    assert!(log.contains("the ledger lacks at least 2 events"), "{log}");
    let held = "; what its invoices are found to have become is held;";
    assert!(log.contains(held), "nothing waited in it: {log}");
    assert_eq!(attention_words(&world), ["ledger_behind"]);
    let told = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(told.contains(&*served.to_string_lossy()), "{told}");
}

#[test]
fn a_copy_that_lacks_what_the_daemon_kept_is_refused_until_one_of_the_two_is_put_back() {
    for (stamped, is_kept_wanted) in [(true, true), (false, true), (true, false)] {
        let mut world = paid(&["A-1"]);
        let copy = world.dir().join("copy.db");
        let name = copy.to_string_lossy().into_owned();
        if stamped {
            world.tilld(&["db", "backup", &name]).ends_with(0);
        } else {
            world.neighbour().tamper(&format!("VACUUM INTO '{name}'"));
            fs::set_permissions(&copy, Permissions::from_mode(0o640)).expect("own file");
        }
        let saved = world.dir().join("saved.db");
        fs::copy(&copy, &saved).expect("copied");
        pay(&world, "A-2");
        fs::rename(&copy, world.ledger()).expect("put over it");
        assert_eq!(world.serve_ends(PATIENCE), 1);
        for part in ["-wal", "-shm"] {
            drop(fs::remove_file(
                world.state_dir().join(format!("ledger.db{part}")),
            ));
        }
        let kept = beside(&world, ".kept-", &[]).to_string_lossy().into_owned();
        for _ in 0..2 {
            let refused = world.tilld(&["serve"]).ends_with(11);
            assert!(
                refused.stderr.contains(&format!("is behind `{kept}`")),
                "{refused:?}"
            );
            let told = world.tilld(&["doctor"]).ends_with(16).stdout;
            assert!(told.contains(&kept), "{told}");
        }
        // The older one is served when somebody asks for it.
        let saved = saved.to_string_lossy();
        let (back, orders, lacks) = if is_kept_wanted {
            (&*kept, "2", &[][..])
        } else {
            (&*saved, "1", &["ledger_behind"][..])
        };
        world.tilld(&["db", "restore", back]).ends_with(0);
        world.start_serve();
        assert_eq!(attention_words(&world), lacks);
        assert_eq!(world.value("SELECT count(*) FROM invoices"), orders);
    }
}

#[test]
fn a_ledger_that_is_gone_is_said_to_be_known_by_a_kept_copy_where_there_is_no_mark() {
    let mut world = paid(&["A-1"]);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let lies = |name: &str| world.state_dir().join(name);
    fs::rename(world.ledger(), lies("ledger.db.kept-1")).expect("renamed");
    for name in ["ledger.db-wal", "ledger.db-shm", "ledger.mark"] {
        fs::remove_file(lies(name)).expect("removed");
    }
    let refused = world.tilld(&["serve"]).ends_with(11).stderr;
    let why = "is gone: a copy that was kept when the daemon ended lies beside it";
    assert!(refused.contains(why), "{refused}");
    assert!(refused.contains("ledger.db.kept-1` was kept"), "{refused}");
    world.is_sound = false;
}

/// A database beside the ledger with this in its name, beside those that were there.
fn beside(world: &World, word: &str, before: &[&PathBuf]) -> PathBuf {
    let entries = fs::read_dir(world.state_dir()).expect("the state directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let found = paths.find(|path| {
        let name = path.to_string_lossy();
        name.contains(word)
            && !name.ends_with("-wal")
            && !name.ends_with("-shm")
            && !before.contains(&path)
    });
    found.expect("such a file")
}

#[test]
fn a_new_ledger_where_one_was_known_says_so() {
    let runtime = tempfile::tempdir().expect("a directory");
    let variable = format!("RUNTIME_DIRECTORY={}", runtime.path().display());
    let mut world = Setup::new().quiet().under(&["env", &variable]).start();
    // The first life of a daemon, with events and without.
    for (events, word) in [
        (0, "another one was known"),
        (2, "one with 2 events was known"),
    ] {
        if events > 0 {
            pay(&world, "A-1");
        }
        assert_eq!(world.stop_serve(PATIENCE), 0);
        for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.mark"] {
            fs::remove_file(world.state_dir().join(name)).expect("removed");
        }
        world.start_serve();
        let word = format!("a new ledger was made where {word}");
        wait_until(PATIENCE, "it to be told", || {
            world.serve_log().contains(&word)
        });
        assert_eq!(attention_words(&world), ["ledger_new"]);
        world.tilld(&["ack", "--all"]).ends_with(0);
        assert!(attention_words(&world).is_empty());
    }
}

/// The reasons of the ledger itself.
fn attention_words(world: &World) -> Vec<String> {
    let told = world.tilld(&["status", "--json"]).json();
    let needs = told.get("needs").and_then(serde_json::Value::as_array);
    let reason = |need: &serde_json::Value| Some(need.get("reason")?.as_str()?.to_owned());
    let all = needs.into_iter().flatten().filter_map(reason);
    all.chain(attention(world))
        .filter(|word| word.starts_with("ledger_"))
        .collect()
}
