//! The whole system in virtual time: the real ledger, moves, plans and paces against the sandbox's service, through a
//! network that loses, delays, repeats, reorders and tears, with a daemon that dies anywhere and a clock that jumps. Some
//! ledgers are lost, and an older copy is put back. Then everything heals, and the promises are looked over.
//!
//! Nothing sleeps, no thread is part of a scenario, no socket or file is opened: a seed is one course of events, and
//! replays. What is left out: HTTP, SQLite (its store answers as the one in memory, `ledger/tests/conformance`), and the
//! programs of hooks.
//!
//! `TILLD_SEED=N cargo test simulation -- --nocapture` replays one seed and prints what happened;
//! `TILLD_SEEDS=N` sets how many are tried.

mod asking;
mod book;
mod checks;
mod daemon;
mod dice;
mod jumps;
mod opening;
mod operator;
mod outage;
mod restoring;
mod running;
mod sabotage;
mod scenario;
mod second;
mod service;
mod waits;
mod world;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use book::Counts;
use scenario::Scenario;
use world::{Sabotage, World};

/// Seeds in the ordinary test command.
const SEEDS: u64 = 2_000;
/// Seeds within which a rule that is broken on purpose must be noticed.
const NOTICED_WITHIN: u64 = 300;

/// Broken seeds that are shown beside the first.
const OTHERS_SHOWN: usize = 20;

/// What became of one seed.
struct Ended {
    broken: Vec<String>,
    counts: Counts,
    trace: Vec<String>,
}

fn play(seed: u64, sabotage: Sabotage, traced: bool) -> Ended {
    let mut world = World::new(Scenario::of(seed), sabotage, traced);
    // A panic is a broken promise like any other, and what led to it is worth reading.
    let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
    let (mut broken, untold) = checks::check(&world);
    if ran.is_err() {
        broken.insert(0, format!("no panic: at {} ms", world.now));
    }
    let mut counts = world.book.counts;
    counts.untold = untold;
    counts.events = u64::try_from(world.store.events().count()).unwrap_or(u64::MAX);
    Ended {
        broken,
        counts,
        trace: world.take_trace(),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| {
        panic!("`{variable}` is `{text}`, not a number");
    }))
}

/// Past the capture of tests: the seeds are named whether the test fails or not.
fn tell(line: &str) {
    let mut out = std::io::stderr().lock();
    // Nobody reads: nothing to be told.
    drop(writeln!(out, "{line}"));
}

fn complain(seed: u64, broken: &[String]) -> String {
    format!(
        "seed {seed} breaks a promise:\n  {}\nreplay: TILLD_SEED={seed} cargo test simulation -- --nocapture",
        broken.join("\n  ")
    )
}

fn replay(seed: u64) {
    let ended = play(seed, Sabotage::Nothing, true);
    tell(&format!("{:#?}", Scenario::of(seed)));
    for line in &ended.trace {
        tell(line);
    }
    assert!(ended.broken.is_empty(), "{}", complain(seed, &ended.broken));
    tell(&format!(
        "simulation: seed {seed} holds, {:?}",
        ended.counts
    ));
}

#[test]
fn every_promise_holds_through_whatever_a_seed_does() {
    if let Some(seed) = number_from("TILLD_SEED") {
        return replay(seed);
    }
    let (seeds, began) = (number_from("TILLD_SEEDS").unwrap_or(SEEDS), Instant::now());
    let next = AtomicU64::new(1);
    let total = Mutex::new((Counts::default(), BTreeMap::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                break;
            }
            let ended = play(seed, Sabotage::Nothing, false);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.0.add(ended.counts);
            if !ended.broken.is_empty() {
                total.1.insert(seed, ended.broken);
            }
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (counts, broken) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((seed, first)) = broken.first_key_value() {
        let some: Vec<String> = broken
            .iter()
            .skip(1)
            .take(OTHERS_SHOWN)
            .map(|(seed, broken)| format!("{seed}: {}", broken.join("; ")))
            .collect();
        panic!(
            "{} of {seeds} seeds break a promise\n{}\nothers:\n  {}",
            broken.len(),
            complain(*seed, first),
            some.join("\n  ")
        );
    }
    tell(&format!(
        "simulation: seeds 1..={seeds} hold: {} notifications, {} polls, {} outages, {} commits, {} events, {} hook runs, {} crashes, \
         {} ends nobody was told of, in {:.1} s",
        counts.notifications,
        counts.polls,
        counts.outages,
        counts.commits,
        counts.events,
        counts.runs,
        counts.crashes,
        counts.untold,
        began.elapsed().as_secs_f32()
    ));
}

#[test]
fn one_seed_is_one_course_of_events() {
    for seed in [3, 8] {
        let (one, other) = (
            play(seed, Sabotage::Nothing, true),
            play(seed, Sabotage::Nothing, true),
        );
        assert_eq!(one.trace, other.trace);
        assert!(one.trace.len() > 10, "something happened");
    }
}

/// The first seed whose checks notice, and what they say.
fn noticed(sabotage: Sabotage) -> (u64, Vec<String>) {
    (1..=NOTICED_WITHIN)
        .map(|seed| (seed, play(seed, sabotage, false).broken))
        .find(|(_, broken)| !broken.is_empty())
        .unwrap_or_else(|| panic!("{sabotage:?} was not noticed within {NOTICED_WITHIN} seeds"))
}

#[test]
fn a_rule_broken_on_purpose_is_noticed() {
    let cases = [
        (Sabotage::AcknowledgeFirst, "acknowledged is stored"),
        (Sabotage::DropDoubt, "the service's word"),
        (Sabotage::NoPace, "the cap"),
        (Sabotage::NoSettling, "never two runs at once"),
        (Sabotage::OpenUnsettled, "one payable invoice"),
        (Sabotage::NothingSuperseded, "an order is paid once"),
        (Sabotage::TrustInstants, "the service's word"),
        (Sabotage::KeepWaits, "no wait is longer than its step"),
        (Sabotage::NothingAgain, "known after a restore"),
    ];
    for (sabotage, promise) in cases {
        let (seed, broken) = noticed(sabotage);
        assert!(
            broken.iter().any(|line| line.starts_with(promise)),
            "{sabotage:?}, seed {seed}: {broken:?}"
        );
        tell(&format!(
            "simulation: {sabotage:?} is noticed by seed {seed}"
        ));
    }
}
