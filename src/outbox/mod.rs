//! Runs the hooks that are owed an event: claim stored, run, outcome stored, again and again until a hook says it is done.
//!
//! Works from the ledger's state alone: the wake only says when to look, and comes well within a second of any commit,
//! another process's too, since the ledger's writer rings after it looked whether there was one; what an earlier daemon (or
//! a claim whose answer was lost) left running is found by the looks and settled before anything else of its invoice. Which deliveries may run, and in which order, is the ledger's judgement when it claims
//! them; how many of each hook run at once is kept in `places`. Looks read; a claim is made only when one found something.
//! Relies on being the only outbox of its ledger while its process lives.

mod attempt;
mod places;
pub(crate) mod retry;
mod settings;
mod settle;
#[cfg(test)]
mod tests;
mod unowned;

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use crate::clock::wall_ms;
use crate::hook;
use crate::hook::process::Waiting;
use crate::ledger::{Claimed, DeliveryKey, Lane, Reader, Writer};
use crate::process_mark::ProcessMark;
use crate::shutdown::Shutdown;
use crate::wake::Wake;

pub(crate) use attempt::facts;
pub(crate) use places::Room;
pub(crate) use settings::{Action, Hook, STOP_MARGIN, Settings};

use attempt::Went;
use places::Places;

/// How often the ledger is looked at though nobody rang and nothing was due: whatever changes in it rings, so this is for a
/// clock that was set forward, and each look costs an idle machine some wake-ups.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// When the ledger is looked at again after it could not be read.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Processes that wait for the next claim while more is due than can run: named with it, they need no commit of their own.
/// As many as usually end together; those that are claimed beyond are started and named one by one.
const STARTED_AHEAD: usize = 2;

/// How often deliveries that stand as running, with nobody here who runs them, are looked for while there are some, or were
/// not all settled; otherwise with each look of [`LOOK_EVERY`], since none comes up by itself. As long rests the outbox
/// after the ledger could not store something.
const SCAN_EVERY: Duration = Duration::from_secs(5);

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
    unowned::tell(&reader, &settings).await;
    let rooms = settings.hooks.iter().map(|hook| hook.room).collect();
    let (over, overs) = mpsc::unbounded_channel();
    let desk = Arc::new(Desk {
        writer,
        settings,
        stopping: shutdown.clone(),
        ending: Shutdown::new(),
        over,
    });
    let mut outbox = Outbox {
        desk,
        overs,
        reader,
        own: ProcessMark::own(),
        attempts: JoinSet::new(),
        active: HashMap::new(),
        settling: JoinSet::new(),
        being_settled: HashMap::new(),
        places: Places::new(rooms),
        leftovers,
        more: false,
        ahead: Vec::new(),
        starting: JoinSet::new(),
        rest_until: None,
        scan_at: Instant::now(),
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
    /// Told by an attempt whose run is over, once its end was handed to the ledger: one message each at most.
    over: mpsc::UnboundedSender<Id>,
}

impl Desk {
    /// What is done for a delivery to this hook.
    fn action(&self, name: &str) -> Option<&Action> {
        let hook = self.settings.hooks.get(self.settings.hook_of(name)?)?;
        Some(&hook.action)
    }
}

/// What takes a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Run {
    /// An attempt. Its delivery may be claimed once more before the last of it is done.
    Ours(Id),
    /// What an earlier daemon left.
    Old(DeliveryKey),
}

struct Outbox {
    desk: Arc<Desk>,
    overs: mpsc::UnboundedReceiver<Id>,
    reader: Reader,
    own: ProcessMark,
    attempts: JoinSet<Went>,
    /// The deliveries behind `attempts`; an entry goes only when its task was joined.
    active: HashMap<Id, DeliveryKey>,
    settling: JoinSet<Went>,
    /// The deliveries behind `settling`.
    being_settled: HashMap<Id, DeliveryKey>,
    /// Where all of them run. A place is free once its run is over: what follows is claimed behind the end, which stands
    /// before it in the writer's queue, and mostly in the same commit.
    places: Places<Run>,
    /// Working directories of earlier daemons, removed when none of their hooks can be running any more.
    leftovers: Vec<PathBuf>,
    /// The last claim filled the places of a hook: there may be more for it, and it is claimed without a look.
    more: bool,
    /// Processes that wait for the next claim, while there is `more`.
    ahead: Vec<Waiting>,
    /// Those that are being started for it.
    starting: JoinSet<Option<Waiting>>,
    /// Nothing is claimed before this time, since the ledger had trouble.
    rest_until: Option<Instant>,
    /// When deliveries that stand as running, with nobody here who runs them, are looked for.
    scan_at: Instant,
}

impl Outbox {
    async fn work(&mut self, wake: &Wake, shutdown: &Shutdown) {
        while !shutdown.is_requested() {
            if Instant::now() >= self.scan_at {
                let found = self.find_left_running().await;
                let pause = if found { SCAN_EVERY } else { LOOK_EVERY };
                self.scan_at = Instant::now() + pause;
            }
            let nap = self.begin_due().await;
            let nap = nap.min(self.scan_at.saturating_duration_since(Instant::now()));
            let may_claim = self.rest_until.is_none() && self.is_open();
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                Some(joined) = self.attempts.join_next_with_id() => self.ended(joined),
                Some(joined) = self.settling.join_next_with_id() => self.settled(joined),
                Some(id) = self.overs.recv() => self.places.end(&Run::Ours(id)),
                Some(started) = self.starting.join_next() => self.ahead.extend(started.ok().flatten()),
                () = wake.rung(), if may_claim => {}
                () = sleep(nap) => {}
            }
            // Those that ended together are followed by one claim.
            while let Some(joined) = self.attempts.try_join_next_with_id() {
                self.ended(joined);
            }
            while let Ok(id) = self.overs.try_recv() {
                self.places.end(&Run::Ours(id));
            }
        }
    }

    /// What may begin, hook by hook.
    fn lanes(&self) -> Vec<Lane> {
        let now = Instant::now().into_std();
        let hooks = self.desk.settings.hooks.iter().enumerate();
        let lane = |(number, hook): (usize, &Hook)| Lane {
            names: hook.answers_to.clone(),
            want: self.places.free(number, now),
            children: Vec::new(),
        };
        hooks.map(lane).collect()
    }

    /// True when some hook has a place free.
    fn is_open(&self) -> bool {
        let now = Instant::now().into_std();
        let hooks = 0..self.desk.settings.hooks.len();
        hooks
            .into_iter()
            .any(|hook| self.places.free(hook, now) > 0)
    }

    /// Begins whatever may run. Gives how long there is nothing more to begin as far as can be known.
    async fn begin_due(&mut self) -> Duration {
        let until = self.rest_until.filter(|until| *until > Instant::now());
        if until.is_some() || !self.more || !self.is_open() {
            self.desk.writer.finish_waiting();
        }
        if let Some(until) = until {
            return until.saturating_duration_since(Instant::now());
        }
        self.rest_until = None;
        if self.more && self.is_open() {
            self.claim(self.lanes()).await;
        }
        let lanes = self.lanes();
        let next_ms = if lanes.iter().any(|lane| lane.want > 0) {
            self.look(lanes).await
        } else {
            None
        };
        let wait_ms = next_ms.map(|at_ms| at_ms.saturating_sub(wall_ms()).max(0));
        let due = wait_ms.map(|wait_ms| Duration::from_millis(wait_ms.unsigned_abs()));
        let now = Instant::now().into_std();
        let moves = self.places.next_move(now);
        let moves = moves.map(|at| at.saturating_duration_since(now));
        [due, moves]
            .into_iter()
            .flatten()
            .fold(LOOK_EVERY, Duration::min)
    }

    /// Looks for something to begin, and claims it when there is. Gives when the next delivery becomes due, or is looked for
    /// again.
    async fn look(&mut self, lanes: Vec<Lane>) -> Option<i64> {
        let now_ms = wall_ms();
        let ahead = now_ms..=now_ms.saturating_add(self.desk.settings.longest_delay_ms);
        match self.reader.outlook(ahead, lanes.clone()).await {
            Ok(outlook) => {
                if outlook.now {
                    self.claim(lanes).await;
                }
                outlook.next_ms
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn Error,
                    "could not look for deliveries to run"
                );
                let again_ms = i64::try_from(LOOK_AGAIN_AFTER.as_millis()).unwrap_or_default();
                Some(now_ms.saturating_add(again_ms))
            }
        }
    }

    /// Hands the lanes the processes that were started ahead.
    fn hand_out(&mut self, lanes: &mut [Lane]) {
        self.ahead.retain_mut(Waiting::waits);
        let mut marks = self.ahead.iter().map(Waiting::mark);
        let hooks = self.desk.settings.hooks.iter().zip(lanes);
        for (_, lane) in hooks.filter(|(hook, _)| matches!(hook.action, Action::Run(_))) {
            let want = usize::try_from(lane.want).unwrap_or(usize::MAX);
            lane.children.extend(marks.by_ref().take(want).cloned());
        }
    }

    /// While more is due than can run, has processes started for the next claim, beside the runs that go on: they are there
    /// when a place is. Otherwise none is kept.
    fn start_ahead(&mut self, wanted: bool) {
        if !wanted {
            self.ahead.clear();
            self.starting = JoinSet::new();
            return;
        }
        while self.ahead.len() + self.starting.len() < STARTED_AHEAD {
            let desk = Arc::clone(&self.desk);
            self.starting.spawn(async move {
                // The attempt that would have had it tries again, and tells.
                let started = Waiting::start(&desk.settings.surroundings.launcher).await;
                started.ok()
            });
        }
    }

    /// Claims what may run, and begins it. Nothing runs whose claim is not stored (A26).
    async fn claim(&mut self, mut lanes: Vec<Lane>) {
        self.hand_out(&mut lanes);
        let writer = &self.desk.writer;
        match writer
            .claim_deliveries(self.own.clone(), wall_ms(), lanes.clone())
            .await
        {
            Ok(claimed) => {
                self.more = lanes.iter().any(|lane| is_filled(lane, &claimed));
                let hooks = self.desk.settings.hooks.iter().zip(&lanes);
                let wanted = hooks
                    .filter(|(hook, _)| matches!(hook.action, Action::Run(_)))
                    .any(|(_, lane)| is_filled(lane, &claimed));
                for one in claimed {
                    let is_its = |waiting: &Waiting| Some(waiting.mark()) == one.child.as_ref();
                    let its = self.ahead.iter().position(is_its);
                    let its = its.map(|position| self.ahead.swap_remove(position));
                    self.begin(one, its);
                }
                self.start_ahead(wanted);
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "no hook is run, since no claim could be stored"
                );
                self.more = false;
                // It may be stored all the same, with these as its processes: they must never run anything.
                self.start_ahead(false);
                self.rest();
            }
        }
    }

    /// Begins an attempt, in the process that was named with its claim.
    fn begin(&mut self, claimed: Claimed, waiting: Option<Waiting>) {
        let (key, hook) = (claimed.key, self.desk.settings.hook_of(&claimed.hook));
        let task = self
            .attempts
            .spawn(attempt::run(Arc::clone(&self.desk), claimed, waiting));
        if let Some(hook) = hook {
            let run = Run::Ours(task.id());
            self.places.begin(run, hook, Instant::now().into_std());
        }
        self.active.insert(task.id(), key);
    }

    /// What could not be stored may have been stored all the same: it is looked for afterwards.
    fn rest(&mut self) {
        let until = Instant::now() + SCAN_EVERY;
        self.rest_until = Some(until);
        self.scan_at = self.scan_at.min(until);
    }

    fn ended(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, went) = passed_on(joined);
        self.active.remove(&id);
        self.places.end(&Run::Ours(id));
        if went == Went::Trouble {
            self.rest();
        }
    }

    fn settled(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, went) = passed_on(joined);
        let key = self.being_settled.remove(&id);
        // One that could not be watched may still run: its place is kept until the next look for it takes it up again.
        if let Some(key) = key.filter(|_| went == Went::Stored) {
            self.places.end(&Run::Old(key));
        }
    }

    /// Takes up deliveries that stand as running though nobody here runs them (A41). False when there are none, and none is
    /// being settled.
    async fn find_left_running(&mut self) -> bool {
        let running = match self.reader.running_deliveries().await {
            Ok(running) => running,
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn Error,
                    "could not look for hooks of an earlier daemon"
                );
                // They may be running, and count where a hook's runs are limited.
                self.rest();
                return true;
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
        let mut found = !self.settling.is_empty();
        for left in running
            .into_iter()
            .filter(|running| !ours.contains(&running.key))
        {
            found = true;
            if left.claimant != self.own && left.claimant.is_running() {
                tracing::warn!(
                    pid = left.claimant.pid,
                    "another tilld runs hooks of this ledger"
                );
                continue;
            }
            let key = left.key;
            if let Some(hook) = self.desk.settings.hook_of(&left.hook) {
                self.places
                    .find(Run::Old(key), hook, Instant::now().into_std());
            }
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
        found
    }

    async fn stop(&mut self, hurry: &Shutdown) {
        self.start_ahead(false);
        // Nothing is claimed any more that would take them along.
        self.desk.writer.finish_waiting();
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

/// True when a claim brought as many of the lane as it wanted.
fn is_filled(lane: &Lane, claimed: &[Claimed]) -> bool {
    let of_lane = claimed.iter().filter(|one| lane.names.contains(&one.hook));
    lane.want > 0 && of_lane.count() == usize::try_from(lane.want).unwrap_or(usize::MAX)
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
