//! The ledger is all of its files: what happens when one of them is removed, renamed, replaced or overwritten under the
//! daemon. Relies on the real program and the real file system. What is at stake: payments that were acknowledged and that
//! no later start finds, and a damaged file that is served.

use std::fs;
use std::path::{Path, PathBuf};

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

#[test]
fn an_overwritten_file_is_noticed_within_two_seconds_without_any_notification() {
    let mut world = quiet();
    for issued in opened(&world, 3) {
        assert_eq!(pay(&world, &issued), 200);
    }
    world.neighbour().moves_all();
    let began = std::time::Instant::now();
    let file = fs::OpenOptions::new().write(true).open(world.ledger());
    file.expect("opened").set_len(8_192).expect("cut");
    told(&world, "`ledger.db` was overwritten");
    assert!(began.elapsed().as_millis() < 2_500, "{:?}", began.elapsed());
    assert_eq!(world.serve_ends(PATIENCE), 1);
    world.tilld(&["serve"]).ends_with(11);
    world.is_sound = false;
}
