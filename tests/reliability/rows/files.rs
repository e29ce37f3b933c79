//! R43, a file of the ledger is taken away under load: WAL and shared memory removed, renamed and replaced in turn. Relies on the
//! daemon ending by itself, and on its next start. The control is a daemon that is killed with the WAL's name: what it
//! acknowledged must be found lost, or the count shows nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::harness::{PATIENCE, World};
use crate::load::{Ack, Load, since_1970};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Rounds over all accidents, short and long.
const ROUNDS: (usize, usize) = (2, 80);
/// Connections.
const SENDERS: usize = 8;
/// Acknowledged before each accident, at least.
const BEFORE: usize = 100;
/// A commit that began before the accident is answered by then.
const UNDER_WAY: Duration = Duration::from_secs(1);

type Accident = fn(&Path);

const ACCIDENTS: [(&str, Accident); 6] = [
    ("ledger.db-wal", removed),
    ("ledger.db-wal", renamed),
    ("ledger.db-wal", replaced),
    ("ledger.db-shm", removed),
    ("ledger.db-shm", renamed),
    ("ledger.db-shm", replaced),
];

fn removed(file: &Path) {
    fs::remove_file(file).expect("removed");
}

fn renamed(file: &Path) {
    fs::rename(file, file.with_extension("away")).expect("renamed");
}

fn replaced(file: &Path) {
    let copy = file.with_extension("copy");
    fs::copy(file, &copy).expect("copied");
    fs::rename(copy, file).expect("replaced");
}

pub(crate) fn taken_away(options: &Options) -> Verdict {
    let rounds = options.effort.of(ROUNDS.0, ROUNDS.1);
    Verdict::new(played(rounds, false)).control("killed with the WAL's name", played(1, true))
}

fn played(rounds: usize, is_killed: bool) -> Found {
    let mut world = quiet().start();
    world.is_sound = !is_killed;
    let mut load = Load::open(&world, SENDERS);
    let (mut acks, mut after, mut accidents): (Vec<Ack>, usize, usize) = (Vec::new(), 0, 0);
    let most = if is_killed { 1 } else { ACCIDENTS.len() };
    for (name, accident) in (0..rounds).flat_map(|_| ACCIDENTS.iter().take(most)) {
        let file = world.state_dir().join(name);
        let (heard, at_ns) = load.during(|live| {
            while live.acks() < BEFORE {
                live.one_more();
            }
            accident(&file);
            let at_ns = since_1970();
            end(&mut world, is_killed);
            at_ns
        });
        let late = at_ns + UNDER_WAY.as_nanos();
        after += heard.acks.iter().filter(|ack| ack.at_ns > late).count();
        acks.extend(heard.acks);
        accidents += 1;
        world.start_serve();
    }
    world.kill9_serve();
    let lost = stored::lost(&world.ledger(), &acks);
    Found::new(
        format!("{accidents} accidents, {} acks", acks.len()),
        format!("lost {lost}; acknowledged afterwards {after}"),
    )
    .bar(lost == 0, format!("{lost} acknowledged and gone"))
    .bar(after == 0, format!("{after} acknowledged afterwards"))
    .needs(acks.len() >= BEFORE, "too little was acknowledged")
}

fn end(world: &mut World, is_killed: bool) {
    if is_killed {
        world.kill9_serve();
    } else {
        world.serve_ends(PATIENCE);
    }
}
