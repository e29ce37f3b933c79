//! The ledger is all of its files: what happens when one of them is removed, renamed, replaced or overwritten under the
//! daemon. Relies on the real program and the real file system. What is at stake: payments that were acknowledged and that
//! no later start finds, and a damaged file that is served.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::process::Signal;

use crate::harness::{Issued, PATIENCE, Setup, World, wait_until};

/// The ledger's three files.
const FILES: [&str; 3] = ["ledger.db", "ledger.db-wal", "ledger.db-shm"];

/// What happens to one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accident {
    Removed,
    Renamed,
    Replaced,
}

impl Accident {
    const ALL: [Self; 3] = [Self::Removed, Self::Renamed, Self::Replaced];

    fn happens(self, world: &World, name: &str) {
        let file = world.state_dir().join(name);
        match self {
            Self::Removed => fs::remove_file(file).expect("removed"),
            Self::Renamed => fs::rename(&file, world.dir().join("away")).expect("renamed"),
            Self::Replaced => {
                let copy = world.dir().join("copy");
                fs::copy(&file, &copy).expect("copied");
                fs::rename(copy, file).expect("replaced");
            }
        }
    }
}

fn quiet() -> World {
    Setup::new().quiet().sandbox(&["--pool=100"]).start()
}

/// Orders that were opened, and not paid yet.
fn opened(world: &World, count: usize) -> Vec<Issued> {
    let order = |at: usize| world.create(&format!("A-{at}"));
    (0..count).map(order).collect()
}

/// Has one paid, and gives what its notification was answered.
fn pay(world: &World, issued: &Issued) -> u16 {
    let paid = world.dictate(issued, "paid");
    world.tell_as_it_is(&paid).status
}

/// Orders that are paid by the ledger at this place.
fn paid_in(ledger: &Path) -> usize {
    let query = "SELECT count(*) FROM invoices WHERE outcome = 'paid'";
    let count = crate::harness::sql(ledger, query).concat().concat();
    count.parse().expect("a number")
}

/// Waits for a word in the daemon's log.
fn told(world: &World, word: &str) {
    wait_until(PATIENCE, word, || world.serve_log().contains(word));
}

/// The copy that the daemon kept at its end.
fn kept(world: &World) -> Option<PathBuf> {
    let entries = fs::read_dir(world.state_dir()).expect("the state directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.to_string_lossy().contains("ledger.db.kept-"))
}

#[test]
fn nothing_is_acknowledged_after_a_file_was_taken_away_and_nothing_acknowledged_is_lost() {
    for name in FILES {
        for accident in Accident::ALL {
            let mut world = quiet();
            let orders = opened(&world, 3);
            for issued in orders.iter().take(2) {
                assert_eq!(pay(&world, issued), 200);
            }
            accident.happens(&world, name);
            let what = format!("{name} {accident:?}");
            let third = pay(&world, orders.last().expect("three"));
            assert_eq!(third, 503, "{what}");
            told(&world, &format!("`{name}` was "));
            if (name, accident) == ("ledger.db", Accident::Renamed) {
                let away = world.dir().join("away");
                told(&world, &format!("`tilld db restore {}`", away.display()));
            }
            assert_eq!(world.serve_ends(PATIENCE), 1, "{what}");
            // Where the acknowledged payments are.
            let place = match (name, accident) {
                ("ledger.db", Accident::Renamed) => world.dir().join("away"),
                ("ledger.db", _) => kept(&world).unwrap_or_else(|| panic!("{what}: no copy")),
                _ => world.ledger(),
            };
            if name != "ledger.db" {
                let started = world.try_start_serve();
                assert!(started.is_ok(), "{what}: {started:?}");
                assert_eq!(world.stop_serve(PATIENCE), 0, "{what}");
            }
            assert_eq!(paid_in(&place), 2, "{what}");
            if name == "ledger.db" {
                world.is_sound = false;
            }
        }
    }
}

/// Such a file is none of tilld's, and what was there is what matters.
#[test]
fn a_ledger_that_was_cut_to_nothing_is_to_be_put_back_and_not_moved_away() {
    let mut world = quiet();
    for issued in opened(&world, 2) {
        assert_eq!(pay(&world, &issued), 200);
    }
    world.neighbour().moves_all();
    fs::write(world.ledger(), "").expect("cut");
    told(&world, "`ledger.db` was overwritten");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    let refused = world.tilld(&["serve"]).ends_with(11).stderr;
    assert!(refused.contains("is not a ledger of tilld"), "{refused}");
    let hint = "hint: put the newest backup in its place with `tilld db restore FILE`";
    assert!(refused.contains(hint), "{refused}");
    world.is_sound = false;
}

#[test]
fn a_log_that_is_removed_from_a_quiet_shop_is_noticed_and_costs_nothing() {
    for stopped in [false, true] {
        let mut world = quiet();
        for issued in opened(&world, 5) {
            assert_eq!(pay(&world, &issued), 200);
        }
        for name in ["ledger.db-wal", "ledger.db-shm"] {
            fs::remove_file(world.state_dir().join(name)).expect("removed");
        }
        let code = if stopped {
            world.stop_serve(PATIENCE)
        } else {
            told(&world, "`ledger.db-wal` was removed");
            world.serve_ends(PATIENCE)
        };
        assert_eq!(code, i32::from(!stopped));
        world.start_serve();
        assert_eq!(paid_in(&world.ledger()), 5);
    }
}

/// An older copy does not know the newer order: that it is unknown is what cannot be read, and no wrong token.
#[test]
fn a_copy_over_the_file_in_place_is_noticed_and_answered_503() {
    let mut world = quiet();
    let first = world.create("B-1");
    assert_eq!(pay(&world, &first), 200);
    let copy = world.dir().join("copy.db");
    world
        .tilld(&["db", "backup", &copy.to_string_lossy()])
        .ends_with(0);
    let orders = opened(&world, 5);
    world.neighbour().moves_all();
    assert!(orders.iter().take(3).all(|one| pay(&world, one) == 200));
    fs::write(world.ledger(), fs::read(&copy).expect("read")).expect("written over");
    assert_eq!(pay(&world, orders.last().expect("some")), 503);
    told(&world, "`ledger.db` was overwritten");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    // The log is the other ledger's: nothing is served from the two, and nothing is changed.
    let before = fs::read(world.ledger()).expect("read");
    world.tilld(&["serve"]).ends_with(11);
    assert!(fs::read(world.ledger()).expect("read") == before);
    world.is_sound = false;
}

/// What the daemon has read of it does not count any more after the commit of another program.
#[test]
fn a_cut_file_that_another_program_commits_to_is_noticed() {
    let mut world = quiet();
    for issued in opened(&world, 3) {
        assert_eq!(pay(&world, &issued), 200);
    }
    let other = world.neighbour();
    other.moves_all();
    other.tamper("BEGIN IMMEDIATE; INSERT INTO meta (key, value) VALUES ('other', '1')");
    let file = fs::OpenOptions::new().write(true).open(world.ledger());
    file.expect("opened").set_len(8_192).expect("cut");
    other.tamper("COMMIT");
    told(&world, "`ledger.db` was overwritten");
    let log = world.serve_log();
    let asked = log.matches("could not be asked how far it is").count();
    assert!(asked < 10, "{asked}");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    world.tilld(&["serve"]).ends_with(11);
    world.is_sound = false;
}

/// By such an index the newest pages are not in the WAL, so the order in them is unknown.
#[test]
fn an_index_that_was_written_over_is_no_wrong_token_and_costs_nothing() {
    let mut world = quiet();
    let first = world.create("C-1");
    assert_eq!(pay(&world, &first), 200);
    world.neighbour().moves_all();
    let second = world.dictate(&world.create("C-2"), "paid");
    let index = world.ledger().with_extension("db-shm");
    let file = fs::OpenOptions::new().write(true).open(index);
    // The hash table of its first block.
    let over = file.expect("opened").write_all_at(&[0; 16_384], 16_384);
    over.expect("written over");
    assert_eq!(world.tell_as_it_is(&second).status, 503);
    told(&world, "`ledger.db-shm` was overwritten");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    world.start_serve();
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "2");
    assert_eq!(world.tell_as_it_is(&second).status, 200);
    assert_eq!(paid_in(&world.ledger()), 2);
}

/// The daemon stands still, so that it does not end first.
#[test]
fn a_command_beside_a_daemon_refuses_a_ledger_without_its_log_or_index_and_makes_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let copy = dir.path().join("copy.db").to_string_lossy().into_owned();
    for name in ["ledger.db-wal", "ledger.db-shm"] {
        let mut world = quiet();
        let orders = opened(&world, 2);
        assert_eq!(pay(&world, orders.first().expect("two")), 200);
        world.signal_serve(Signal::STOP);
        fs::remove_file(world.state_dir().join(name)).expect("removed");
        let before = fs::read(world.ledger()).expect("read");
        let reads = [["db", "check"], ["delivery", "list"], ["refusal", "list"]];
        let writes = [["ack", "--all"], ["db", "prune"]];
        let lines = reads.into_iter().chain(writes).map(|line| line.to_vec());
        let lines: Vec<_> = lines.chain([vec!["db", "backup", &copy]]).collect();
        // Side by side, since each waits for a daemon that may just be making its files.
        let running = lines.iter().map(|line| world.start_tilld(line));
        let running: Vec<_> = running.collect();
        for (line, mut command) in lines.iter().zip(running) {
            let (code, said) = (command.wait(PATIENCE), command.stderr());
            assert_ne!(code, 0, "{name} {line:?}: {said}");
            let why = format!("`{name}` was removed");
            assert!(said.contains(&why), "{name} {line:?}: {said}");
            let hint = "hint: tilld ends, and its next start looks at what lies at";
            assert!(said.contains(hint), "{name} {line:?}: {said}");
        }
        let told = world.tilld(&["doctor"]).ends_with(16).stdout;
        assert!(!told.contains("start `tilld serve` once"), "{told}");
        assert!(!world.state_dir().join(name).exists(), "{name} was made");
        assert!(fs::read(world.ledger()).expect("read") == before, "{name}");
        world.signal_serve(Signal::CONT);
        assert_eq!(world.serve_ends(PATIENCE), 1, "{name}");
        world.start_serve();
        assert_eq!(paid_in(&world.ledger()), 1, "{name}");
    }
}

/// However soon that is after the start: the mark is written at the end.
#[test]
fn a_cut_log_is_noticed_before_the_next_answer_and_what_was_in_it_is_counted() {
    let mut world = quiet();
    let orders = opened(&world, 3);
    for issued in orders.iter().take(2) {
        assert_eq!(pay(&world, issued), 200);
    }
    let log = world.ledger().with_extension("db-wal");
    let file = fs::OpenOptions::new().write(true).open(log);
    file.expect("opened").set_len(0).expect("cut");
    assert_eq!(pay(&world, orders.last().expect("three")), 503);
    told(&world, "`ledger.db-wal` was overwritten");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    world.start_serve();
    assert_eq!(paid_in(&world.ledger()), 0);
    let status = world.tilld(&["status"]).ends_with(16).stdout;
    assert!(
        status.contains("the ledger lacks at least 5 events"),
        "{status}"
    );
}

#[test]
fn an_overwritten_file_is_noticed_within_two_seconds_without_any_notification() {
    let mut world = quiet();
    for issued in opened(&world, 3) {
        assert_eq!(pay(&world, &issued), 200);
    }
    world.neighbour().moves_all();
    let file = fs::OpenOptions::new().write(true).open(world.ledger());
    file.expect("opened").set_len(8_192).expect("cut");
    let about = fs::metadata(world.ledger()).expect("there");
    let happened = Timestamp::try_from(about.modified().expect("a time")).expect("of today");
    let word = "`ledger.db` was overwritten";
    told(&world, word);
    // By the daemon's own clock, since this process may be late.
    let log = world.serve_log();
    let line = log.lines().find(|line| line.contains(word));
    let at = line.and_then(|line| line.split(' ').next()?.parse().ok());
    let noticed: Timestamp = at.expect("a line with its time");
    let took = noticed.duration_since(happened);
    assert!(took.as_secs() < 2, "{took:?}");
    assert_eq!(world.serve_ends(PATIENCE), 1);
    world.tilld(&["serve"]).ends_with(11);
    world.is_sound = false;
}
