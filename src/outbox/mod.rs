//! Runs the hooks that are owed an event: claim stored, run, outcome stored, again and again until a hook says it is done.
//!
//! Works from the ledger's state alone: a lost wake costs at most one scan, and what an earlier daemon (or a claim whose
//! answer was lost) left running is found there and settled before anything else of its invoice. Which deliveries may
//! run, and in which order, is the ledger's judgement when it claims them; the limit on how many run at once is kept here.
//! Relies on being the only outbox of its ledger while its process lives.

mod attempt;
pub(crate) mod retry;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::wall_ms;
use crate::hook;
use crate::hook::post::Target;
use crate::hook::process::{Program, Surroundings};
use crate::ledger::{Claimed, DeliveryKey, Reader, Writer};
use crate::process_mark::ProcessMark;
use crate::shutdown::Shutdown;
use crate::wake::Wake;

pub(crate) use attempt::facts;

use attempt::Went;

/// How long a wake may stay lost: the ledger is looked at this often anyway. As long rests the outbox after the ledger
/// could not store something.
const SCAN_EVERY: Duration = Duration::from_secs(5);

/// How long a stop may take beyond the drain and the longest grace: SIGKILL's work and the last results to be stored.
pub(crate) const STOP_MARGIN: Duration = Duration::from_secs(5);

/// A hook as far as running it goes.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    /// Its name, unique in the config.
    pub name: String,
    /// What to do.
    pub action: Action,
}

/// How a hook is told.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// This is run.
    Run(Program),
    /// It is posted there.
    Post(Target),
}

impl Action {
    /// How long it may go on after it was asked to end. A request ends at once.
    fn grace(&self) -> Duration {
        match self {
            Self::Run(program) => program.grace,
            Self::Post(_) => Duration::ZERO,
        }
    }
}

/// What the merchant configured, as far as the outbox acts on it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The hooks.
    pub hooks: Vec<Hook>,
    /// The gap after each failed attempt; one more failure, and the delivery is abandoned.
    pub schedule: Vec<Duration>,
    /// How many hooks run at once.
    pub concurrency: NonZeroU32,
    /// How long running hooks may go on after the wish to stop.
    pub drain: Duration,
    /// Launcher, home, and the directory that is the outbox's own: it removes what earlier daemons left there.
    pub surroundings: Surroundings,
}

impl Settings {
    /// The longest a stop may take: drain, grace, and [`STOP_MARGIN`]. What supervises this must wait as long.
    pub(crate) fn stop_within(&self) -> Duration {
        self.drain + self.longest_grace() + STOP_MARGIN
    }

    fn longest_grace(&self) -> Duration {
        self.hooks
            .iter()
            .map(|hook| hook.action.grace())
            .max()
            .unwrap_or_default()
    }
}

/// What may be wished of a running outbox.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Begin nothing new, and stop.
    pub stop: Shutdown,
    /// Do not wait for what runs: end it once `stop` was wished.
    pub hurry: Shutdown,
}

/// Runs hooks until the wish to stop, then lets the running ones finish as long as `drain` allows, ends the others, and
/// returns within [`Settings::stop_within`]. A panic of an attempt is passed on.
pub(crate) async fn run(
    writer: Writer,
    reader: Reader,
    settings: Settings,
    wake: Wake,
    Wishes {
        stop: shutdown,
        hurry,
    }: Wishes,
) {
    let parent = settings.surroundings.work_dir.clone();
    let leftovers = spawn_blocking(move || hook::leftovers(&parent))
        .await
        .unwrap_or_default();
    let desk = Arc::new(Desk {
        writer,
        settings,
        stopping: shutdown.clone(),
        ending: Shutdown::new(),
    });
    let mut outbox = Outbox {
        desk,
        reader,
        own: ProcessMark::own(),
        attempts: JoinSet::new(),
        active: HashMap::new(),
        settling: JoinSet::new(),
        being_settled: HashMap::new(),
        leftovers,
        rest_until: None,
    };
    outbox.work(&wake, &shutdown).await;
    outbox.stop(&hurry).await;
}

/// What every attempt needs.
struct Desk {
    writer: Writer,
    settings: Settings,
    /// Nothing new is begun.
    stopping: Shutdown,
    /// What runs is ended.
    ending: Shutdown,
}

impl Desk {
    fn action(&self, hook: &str) -> Option<&Action> {
        self.settings
            .hooks
            .iter()
            .find(|known| known.name == hook)
            .map(|known| &known.action)
    }
}

struct Outbox {
    desk: Arc<Desk>,
    reader: Reader,
    own: ProcessMark,
    attempts: JoinSet<Went>,
    /// The deliveries behind `attempts`; an entry goes only when its task was joined.
    active: HashMap<Id, DeliveryKey>,
    settling: JoinSet<Went>,
    /// The deliveries behind `settling`.
    being_settled: HashMap<Id, DeliveryKey>,
    /// Working directories of earlier daemons, removed when none of their hooks can be running any more.
    leftovers: Vec<PathBuf>,
    /// Nothing is claimed before this time, since the ledger had trouble.
    rest_until: Option<Instant>,
}

impl Outbox {
    async fn work(&mut self, wake: &Wake, shutdown: &Shutdown) {
        let mut scan_at = Instant::now();
        while !shutdown.is_requested() {
            if Instant::now() >= scan_at {
                self.find_left_running().await;
                scan_at = Instant::now() + SCAN_EVERY;
            }
            self.claim().await;
            let until = self.rest_until.map_or(scan_at, |until| until.min(scan_at));
            let nap = self
                .until_next()
                .await
                .min(until.saturating_duration_since(Instant::now()));
            let may_claim = self.free() > 0 && self.rest_until.is_none();
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                Some(joined) = self.attempts.join_next_with_id() => self.ended(joined),
                Some(joined) = self.settling.join_next_with_id() => self.settled(joined),
                () = wake.rung(), if may_claim => {}
                () = sleep(nap) => {}
            }
        }
    }

    fn free(&self) -> u32 {
        let busy = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        self.desk.settings.concurrency.get().saturating_sub(busy)
    }

    /// Claims as many as may run, and begins them. Nothing runs whose claim is not stored (A26).
    async fn claim(&mut self) {
        if self.rest_until.is_some_and(|until| until > Instant::now()) {
            return;
        }
        self.rest_until = None;
        // Until nothing is left: an answer shorter than what was wanted does not mean that there is no more.
        while self.free() > 0 {
            match self
                .desk
                .writer
                .claim_deliveries(self.own.clone(), wall_ms(), self.free())
                .await
            {
                Ok(claimed) if claimed.is_empty() => return,
                Ok(claimed) => claimed.into_iter().for_each(|claimed| self.begin(claimed)),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "no hook is run, since no claim could be stored"
                    );
                    return self.rest();
                }
            }
        }
    }

    fn begin(&mut self, claimed: Claimed) {
        let key = claimed.key;
        let task = self
            .attempts
            .spawn(attempt::run(Arc::clone(&self.desk), claimed));
        self.active.insert(task.id(), key);
    }

    fn rest(&mut self) {
        self.rest_until = Some(Instant::now() + SCAN_EVERY);
    }

    /// How long there is surely nothing to begin, unless a wake or the end of an attempt says otherwise.
    async fn until_next(&self) -> Duration {
        if self.free() == 0 {
            return SCAN_EVERY;
        }
        match self.reader.next_delivery_ms(wall_ms()).await {
            // What is due already was not claimed just now, so it waits for the end of another one.
            Ok(next) => match next.map(|at_ms| u64::try_from(at_ms.saturating_sub(wall_ms()))) {
                Some(Ok(wait_ms)) if wait_ms > 0 => Duration::from_millis(wait_ms),
                Some(Ok(_) | Err(_)) | None => SCAN_EVERY,
            },
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn Error,
                    "could not look for the next delivery"
                );
                SCAN_EVERY
            }
        }
    }

    fn ended(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, went) = passed_on(joined);
        self.active.remove(&id);
        if went == Went::Trouble {
            self.rest();
        }
    }

    fn settled(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, _) = passed_on(joined);
        self.being_settled.remove(&id);
    }

    /// Takes up deliveries that stand as running though nobody here runs them (A41).
    async fn find_left_running(&mut self) {
        let running = match self.reader.running_deliveries().await {
            Ok(running) => running,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "could not look for hooks of an earlier daemon"
                );
                return;
            }
        };
        // The answer is a moment old, and harmless for that: an attempt leaves `active` after its end is stored, and
        // nothing left it while we asked.
        let ours: HashSet<DeliveryKey> = self
            .active
            .values()
            .chain(self.being_settled.values())
            .copied()
            .collect();
        for left in running
            .into_iter()
            .filter(|running| !ours.contains(&running.key))
        {
            if left.claimant != self.own && left.claimant.is_running() {
                tracing::warn!(
                    pid = left.claimant.pid,
                    "another tilld runs hooks of this ledger"
                );
                continue;
            }
            let key = left.key;
            let task = self
                .settling
                .spawn(settle::run(Arc::clone(&self.desk), left));
            self.being_settled.insert(task.id(), key);
        }
        if self.settling.is_empty() && !self.leftovers.is_empty() {
            let leftovers = std::mem::take(&mut self.leftovers);
            if let Err(error) = spawn_blocking(move || hook::remove(leftovers)).await {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "could not remove the working directories of earlier hooks"
                );
            }
        }
    }

    async fn stop(&mut self, hurry: &Shutdown) {
        // They only wait for others; the next start finds the same.
        self.settling.shutdown().await;
        let drain = self.desk.settings.drain;
        if !self.attempts.is_empty() {
            tracing::info!(
                running = self.attempts.len(),
                "waiting up to {drain:?} for running hooks"
            );
        }
        tokio::select! {
            biased;
            ended = timeout(drain, self.all_ended()) => if ended.is_ok() {
                return;
            },
            () = hurry.requested() => {}
        }
        tracing::warn!(running = self.attempts.len(), "ending hooks that still run");
        self.desk.ending.request();
        if timeout(
            self.desk.settings.longest_grace() + STOP_MARGIN,
            self.all_ended(),
        )
        .await
        .is_err()
        {
            tracing::error!(
                running = self.attempts.len(),
                "the end of some hooks is not stored; they will be run again"
            );
            self.attempts.shutdown().await;
        }
    }

    async fn all_ended(&mut self) {
        while let Some(joined) = self.attempts.join_next_with_id().await {
            self.ended(joined);
        }
    }
}

/// A panic in an attempt is a bug: it ends the outbox, and whoever supervises it ends the process.
fn passed_on(joined: Result<(Id, Went), JoinError>) -> (Id, Went) {
    match joined {
        Ok(ended) => ended,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only `stop` aborts, and joins nothing afterwards.
            Err(aborted) => (aborted.id(), Went::Trouble),
        },
    }
}
