//! R03, power loss. A kill takes nothing from what the kernel was told; a power loss takes all that was not synced. So the
//! daemon's writes and syncs are recorded under load, and power losses are played from the record.

mod log;
mod replay;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use self::log::{Op, Record, as_normal, without_names};
use self::replay::play;
pub(crate) use self::replay::{Files, States};
use crate::between::{Between, Wrong};
use crate::harness::dice::Dice;
use crate::harness::{PATIENCE, World};
use crate::load::{Ack, Load};
use crate::options::Options;
use crate::rows::quiet;
use crate::verdict::{Found, Verdict};

/// States that are played, short and long.
const STATES: (usize, usize) = (1_000, 10_000);
/// Of a daemon that is wrong on purpose.
const CONTROL_STATES: usize = 100;
/// Of a daemon that makes its ledger anew, so many in all of its life and as many before its first acknowledgement.
const FRESH_STATES: (usize, usize) = (200, 2_000);
/// How long that one is sent to.
const FRESH_LOAD: Duration = Duration::from_millis(500);
/// Connections, and how long they send.
const SENDERS: usize = 16;
const LOAD: Duration = Duration::from_secs(2);

/// What a load left.
struct Recording {
    before: Files,
    records: Vec<Record>,
    acks: Vec<Ack>,
}

pub(crate) fn run(options: &Options) -> Verdict {
    let mut dice = Dice::new(options.seed);
    let states = options.effort.of(STATES.0, STATES.1);
    let honest = record(None);
    let found = honest.play(&honest.records, states, &mut dice);
    let normal = as_normal(&honest.records);
    let normal = honest.play(&normal, CONTROL_STATES, &mut dice);
    let fresh = record_from_nothing();
    let fresh_states = options.effort.of(FRESH_STATES.0, FRESH_STATES.1);
    let made = fresh.play_all(&fresh.records, fresh_states, &mut dice);
    let unnamed = without_names(&fresh.records);
    let unnamed = fresh.play_all(&unnamed, CONTROL_STATES, &mut dice);
    let found = found.and(made);
    let unsynced = record(Some(Wrong::Unsynced));
    let unsynced = unsynced.play(&unsynced.records, CONTROL_STATES, &mut dice);
    Verdict::new(found)
        .control("`synchronous=NORMAL`", normal)
        .control("no directory is synced", unnamed)
        .control("no sync at all", unsynced)
}

impl Recording {
    /// Of a daemon that began with nothing: in all of its life, and before its first acknowledgement.
    fn play_all(&self, records: &[Record], states: usize, dice: &mut Dice) -> Found {
        let first = self.acks.iter().map(|ack| ack.at_ns).min();
        let before = records.partition_point(|record| Some(record.at_ns) < first);
        let before = records.get(..before).unwrap_or_default();
        let States {
            played,
            with_lost,
            lost,
            damaged,
            looked_for,
            ..
        } = play(&self.before, records, &self.acks, states, dice);
        let early = play(&self.before, before, &self.acks, states, dice);
        let damaged = damaged + early.damaged;
        let n = format!("{} of a first start", played + early.played);
        let figure = format!("of a first start {with_lost} with lost acks, {damaged} damaged");
        Found::new(n, figure)
            .bar(with_lost == 0, format!("{lost} acknowledged and gone"))
            .bar(damaged == 0, format!("{damaged} states damaged"))
            .needs(
                early.played == states,
                "nothing was written before the first",
            )
            .needs(looked_for > played, "too little was acknowledged")
    }

    fn play(&self, records: &[Record], states: usize, dice: &mut Dice) -> Found {
        let syncs = records.iter().filter(|record| record.op == Op::Sync);
        let syncs = syncs.count();
        let States {
            played,
            with_lost,
            lost,
            damaged,
            looked_for,
            unsynced,
        } = play(&self.before, records, &self.acks, states, dice);
        let n = format!(
            "{played} states of {} writes, {syncs} syncs, {} acks",
            records.len() - syncs,
            self.acks.len()
        );
        let figure = format!("{with_lost} of {played} with lost acks ({lost}), {damaged} damaged");
        Found::new(n, figure)
            .bar(with_lost == 0, format!("{lost} acknowledged and gone"))
            .bar(damaged == 0, format!("{damaged} states damaged"))
            .needs(unsynced > 0, "no write was under way in any state")
            .needs(looked_for > played, "too little was acknowledged")
    }
}

/// Plays power losses from what the recorder wrote since `before`.
pub(crate) fn replayed(
    before: &Files,
    record: &Path,
    acks: &[Ack],
    states: usize,
    seed: u64,
) -> States {
    let mut dice = Dice::new(seed);
    play(before, &log::read(record), acks, states, &mut dice)
}

fn record(wrong: Option<Wrong>) -> Recording {
    let between = Between::build();
    let mut world = quiet().start();
    let mut load = Load::open(&world, SENDERS);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    let before = files(&world);
    world.under = between.program(wrong, Some(&world.state_dir()));
    world.is_sound = wrong.is_none();
    world.start_serve();
    let (heard, ()) = load.during(|_live| thread::sleep(LOAD));
    assert_eq!(world.stop_serve(PATIENCE), 0);
    Recording {
        before,
        records: log::read(&between.record()),
        acks: heard.acks,
    }
}

/// A daemon that finds an empty directory, and makes its ledger.
fn record_from_nothing() -> Recording {
    let between = Between::build();
    let mut world = quiet().not_served().start();
    world.under = between.program(None, Some(&world.state_dir()));
    world.start_serve();
    let mut load = Load::open(&world, SENDERS);
    let (heard, ()) = load.during(|live| {
        live.one_more();
        thread::sleep(FRESH_LOAD);
    });
    assert_eq!(world.stop_serve(PATIENCE), 0);
    Recording {
        before: Files::new(),
        records: log::read(&between.record()),
        acks: heard.acks,
    }
}

/// The ledger and its log as they lie there, all of it on the disk.
pub(crate) fn files(world: &World) -> Files {
    let names = ["ledger.db", "ledger.db-wal"];
    let read = |name: &str| fs::read(world.state_dir().join(name)).unwrap_or_default();
    names.map(|name| (name.to_owned(), read(name))).into()
}
