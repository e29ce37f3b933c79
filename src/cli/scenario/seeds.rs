//! Plays a scenario with one seed, or with many at once: each on a thread of its own, since what one waits for must hold up no
//! other. Promises that a signal ends all of them in order, and that the runs are told in the order of their seeds.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::mpsc;

use super::judged::Script;
use super::play::{Ended, play};
use super::report::Played;
use super::step::Scenario;
use crate::cli::failure::{Exit, Failure};
use crate::cli::stage::directory::{Directory, Kind};
use crate::cli::stage::signals::Signals;
use crate::cli::stage::trouble::Trouble;
use crate::shutdown::Shutdown;

/// Most seeds of one run: what fits into memory and a day.
const MOST_SEEDS: u64 = 100_000;
/// So many at once for each processor: they mostly wait.
const FOR_EACH_PROCESSOR: usize = 4;

/// Seeds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    first: u64,
    last: u64,
}

impl Range {
    /// Reads `A..B`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wanted = || "two numbers as in `1..20`, the lower one first".to_owned();
        let (first, last) = text.split_once("..").ok_or_else(wanted)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_no_number| wanted());
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(wanted());
        }
        if last - first >= MOST_SEEDS {
            return Err(format!("at most {MOST_SEEDS} seeds"));
        }
        Ok(Self { first, last })
    }
}

/// What is played.
#[derive(Debug)]
pub(super) struct Work {
    /// The scenario.
    pub(super) scenario: Scenario,
    /// The script that is judged.
    pub(super) script: Option<Script>,
    /// Where it is played, when that is to be kept.
    pub(super) dir: Option<PathBuf>,
    /// The wish of a person who does not want to wait.
    pub(super) stop: Shutdown,
}

impl Work {
    async fn play(&self, seed: u64) -> Result<Played, Failure> {
        let directory = match &self.dir {
            Some(path) => Directory::named(Kind::Scenario, path)?,
            None => Directory::temporary(Kind::Scenario)?,
        };
        let script = self.script.as_ref();
        let played = play(&self.scenario, &directory, seed, script, &self.stop).await;
        played.map_err(|ended| match ended {
            Ended::Interrupted => interrupted(),
            Ended::Trouble(trouble) => failure(trouble, seed),
        })
    }
}

fn interrupted() -> Failure {
    Failure::new(Exit::Error, "the scenario was interrupted")
}

fn failure(trouble: Trouble, seed: u64) -> Failure {
    Failure::new(Exit::Error, trouble)
        .context(format!("could not set the scenario up for seed {seed}"))
        .hint("`--dir DIR` keeps config, log and ledger")
}

/// With one seed.
pub(super) async fn one(work: &Work, seed: u64, signals: &mut Signals) -> Result<Played, Failure> {
    let played = work.play(seed);
    tokio::pin!(played);
    tokio::select! {
        biased;
        () = signals.any() => work.stop.request(),
        played = &mut played => return played,
    }
    played.await
}

/// What is known of many runs.
#[derive(Debug, Default)]
pub(super) struct Many {
    /// How many came to their ends.
    pub(super) count: u64,
    /// Those that do not hold, in the order of their seeds and without their traces: the rest is not kept.
    pub(super) failed: Vec<Played>,
    /// Why there are no more of them than these.
    pub(super) cut_short: Option<Failure>,
}

impl Many {
    fn take(&mut self, mut played: Played) {
        self.count += 1;
        if !played.holds() {
            played.trace = Vec::new();
            self.failed.push(played);
        }
    }
}

/// With many seeds. Whatever cuts them short, what is known by then is told.
pub(super) async fn many(
    work: Work,
    range: Range,
    jobs: Option<u64>,
    signals: &mut Signals,
) -> Many {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.and_then(|jobs| usize::try_from(jobs).ok());
    let seeds = usize::try_from(range.last - range.first).unwrap_or(usize::MAX);
    let jobs = jobs
        .unwrap_or(processors * FOR_EACH_PROCESSOR)
        .min(seeds + 1);
    let work = Arc::new(work);
    // Counted from the first one: the last may be the largest number there is.
    let next = Arc::new(AtomicU64::new(0));
    let length = range.last - range.first;
    // No bound: each seed is told once, and their number has one.
    let (sender, mut told) = mpsc::unbounded_channel();
    let mut threads = Vec::new();
    for _ in 0..jobs {
        let (work, next, sender) = (Arc::clone(&work), Arc::clone(&next), sender.clone());
        threads.push(thread::spawn(move || {
            let at = || next.fetch_add(1, Ordering::SeqCst);
            let wanted = |at: &u64| *at <= length && !work.stop.is_requested();
            while let Some(at) = Some(at()).filter(wanted) {
                let ended = alone(&work, range.first + at);
                let goes_on = ended.is_ok();
                if sender.send(ended).is_err() || !goes_on {
                    return;
                }
            }
        }));
    }
    drop(sender);
    let mut all = Many::default();
    loop {
        tokio::select! {
            biased;
            () = signals.any() => work.stop.request(),
            ended = told.recv() => match ended {
                Some(Ok(played)) => all.take(played),
                Some(Err(failure)) => {
                    // One that cannot be set up: the others could not either.
                    work.stop.request();
                    all.cut_short.get_or_insert(failure);
                }
                None => break,
            },
        }
    }
    for thread in threads {
        if thread.join().is_err() {
            let panicked = || Failure::new(Exit::Error, "a run of the scenario panicked");
            all.cut_short.get_or_insert_with(panicked);
        }
    }
    if work.stop.is_requested() {
        all.cut_short.get_or_insert_with(interrupted);
    }
    all.failed.sort_by_key(|played| played.seed);
    all
}

/// One seed on this thread.
fn alone(work: &Work, seed: u64) -> Result<Played, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(Exit::Error, error).context("could not start a thread for a seed")
    })?;
    runtime.block_on(work.play(seed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_hold_are_counted_and_not_kept() {
        let played = |seed, seen: &str| Played {
            seed,
            rows: vec![super::super::report::Row::new("x", "1", seen)],
            words: Vec::new(),
            trace: vec!["long".to_owned()],
            went_through: None,
        };
        let mut many = Many::default();
        many.take(played(1, "1"));
        many.take(played(2, "0"));
        let kept: Vec<_> = many
            .failed
            .iter()
            .map(|one| (one.seed, one.trace.len()))
            .collect();
        assert_eq!((many.count, kept), (2, vec![(2, 0)]));
    }

    #[test]
    fn a_range_has_both_its_ends() {
        assert_eq!(Range::parse("1..20"), Ok(Range { first: 1, last: 20 }));
        assert_eq!(Range::parse("7..7"), Ok(Range { first: 7, last: 7 }));
        for text in ["", "5", "5..4", "a..b", "1..", "0..100000"] {
            assert!(Range::parse(text).is_err(), "{text}");
        }
    }
}
