//! Runs the hooks that are owed an event: claim stored, run, outcome stored, again and again until a hook says it is done.
//!
//! Works from the ledger's state alone: the wake only says when to look, and comes well within a second of any commit,
//! another process's too, since the ledger's writer rings after it looked whether there was one; what an earlier daemon (or
//! a claim whose answer was lost) left running is found by the looks and settled before anything else of its invoice. Which
//! deliveries may run, and in which order, is the ledger's judgement when it claims them; how many of each hook run at once is kept in `places`. Looks read; a claim is made only when one found something.
//! Of hooks whose runs are as short as a commit some are claimed ahead (`hand`) while more is due than can run: a run that
//! ends is followed by one that is claimed, named and ready, and the ends of several are stored with the next claim.
//! Relies on being the only outbox of its ledger while its process lives.

mod attempt;
mod claims;
mod hand;
mod places;
mod renew;
pub(crate) mod retry;
mod runs;
mod settings;
mod settle;
#[cfg(test)]
mod tests;
mod unowned;
mod waits;

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};

use crate::clock::Reading;
use crate::fault;
use crate::hook;
use crate::hook::process::Waiting;
use crate::ledger::{DeliveryKey, Reader, Writer};
use crate::news;
use crate::process_mark::ProcessMark;
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;
use crate::wake::Wake;

pub(crate) use attempt::facts;
pub(crate) use places::Room;
pub(crate) use runs::Runs;
pub(crate) use settings::{Action, Earlier, Hook, STOP_MARGIN, Settings};

use attempt::Went;
use hand::Hand;
use places::Places;

/// How often the ledger is looked at though nobody rang and nothing was due: whatever changes in it rings, so this is for a
/// clock that was set forward, and each look costs an idle machine some wake-ups.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// How long the loop waits at most before it turns again.
pub(crate) const TURNS_WITHIN: Duration = LOOK_EVERY;
/// When the ledger is looked at again after it could not be read.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Processes that wait for the next claim while more is due than can run: named with it, they need no commit of their own.
/// As many as usually end together, or as are claimed ahead at once; those that are claimed beyond are started and named one by
/// one.
const STARTED_AHEAD: usize = 2;

/// How often deliveries that stand as running, with nobody here who runs them, are looked for while there are some, or were
/// not all settled; otherwise with each look of [`LOOK_EVERY`], since none comes up by itself. As long rests the outbox
/// after the ledger could not store something.
const SCAN_EVERY: Duration = Duration::from_secs(5);
/// How long nothing is begun when a program could not be started for want of something, at first and at most: what runs already
/// may give it back at any time.
const WANT_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What may be wished of a running outbox, and how it is watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Begin nothing new, and stop.
    pub stop: Shutdown,
    /// Do not wait for what runs: end it once `stop` was wished.
    pub hurry: Shutdown,
    /// Told at each turn of the loop: within [`TURNS_WITHIN`], what a turn does not counted.
    pub pulse: Pulse,
}

/// Runs hooks, those of the latest settings, until the wish to stop, then lets the running ones finish as long as `drain` allows, ends the others, and
/// returns within [`Settings::stop_within`]. A panic of an attempt is passed on.
pub(crate) async fn run(
    writer: Writer,
    reader: Reader,
    mut news: watch::Receiver<Settings>,
    wake: Wake,
    Wishes {
        stop: shutdown,
        hurry,
        pulse,
    }: Wishes,
) {
    let settings = news.borrow_and_update().clone();
    let parent = settings.surroundings.work_dir.clone();
    let leftovers = spawn_blocking(move || hook::leftovers(&parent))
        .await
        .unwrap_or_default();
    unowned::tell(&reader, &settings).await;
    let (hand, places) = (
        Hand::new(&settings.rooms()),
        Places::new(settings.named_rooms()),
    );
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
        hand,
        places,
        leftovers,
        more: false,
        ahead: Vec::new(),
        starting: JoinSet::new(),
        rest_until: None,
        wants: 0,
        scan_at: Instant::now(),
        looked: None,
    };
    outbox.work(&wake, &shutdown, (&pulse, &mut news)).await;
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

/// An attempt that is made ready and waits for a place. Dropped, its delivery is given back.
#[derive(Debug)]
struct InHand {
    id: Id,
    turn: oneshot::Sender<()>,
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
    /// What has no place yet.
    hand: Hand<InHand>,
    /// Working directories of earlier daemons, removed when none of their hooks can be running any more.
    leftovers: Vec<PathBuf>,
    /// The last claim filled the places of a hook: there may be more for it, and it is claimed without a look.
    more: bool,
    /// Processes that wait for the next claim, while there is `more`.
    ahead: Vec<Waiting>,
    /// Those that are being started for it.
    starting: JoinSet<Option<Waiting>>,
    /// Nothing is claimed before this time, since the ledger had trouble, or a program could not be started.
    rest_until: Option<Instant>,
    /// Rests in a row since a program could be started.
    wants: u32,
    /// When deliveries that stand as running, with nobody here who runs them, are looked for.
    scan_at: Instant,
    /// The clocks when waits were last known to be right; `None` before that.
    looked: Option<Reading>,
}

impl Outbox {
    async fn work(
        &mut self,
        wake: &Wake,
        shutdown: &Shutdown,
        (pulse, news): (&Pulse, &mut watch::Receiver<Settings>),
    ) {
        while !shutdown.is_requested() {
            pulse.turn();
            fault::point("outbox");
            let scans = Instant::now() >= self.scan_at;
            self.correct_waits(scans).await;
            if scans {
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
                Some(id) = self.overs.recv() => { let _hook = self.over(id); }
                Ok(()) = news.changed() => {
                    let settings = news.borrow_and_update().clone();
                    self.renew(settings).await;
                }
                Some(started) = self.starting.join_next() => self.ahead.extend(started.ok().flatten()),
                () = wake.rung(), if may_claim => {}
                () = sleep(nap) => {}
            }
            // Those that ended together are followed by one claim.
            while let Some(joined) = self.attempts.try_join_next_with_id() {
                self.ended(joined);
            }
            while let Ok(id) = self.overs.try_recv() {
                let _hook = self.over(id);
            }
        }
    }

    /// What could not be stored may have been stored all the same: it is looked for afterwards.
    fn rest(&mut self) {
        let until = Instant::now() + SCAN_EVERY;
        self.rest_until = Some(until);
        self.scan_at = self.scan_at.min(until);
    }

    /// Twice as long each time; those that failed together rest once.
    fn rest_for_want(&mut self) {
        let now = Instant::now();
        if self.rest_until.is_none_or(|until| until <= now) {
            self.rest_until = Some(now + rest_after(self.wants));
            self.wants += 1;
        }
    }

    fn ended(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, went) = passed_on(joined);
        self.active.remove(&id);
        let hook = self.over(id);
        if let Some(hook) = hook
            && matches!(went, Went::Wanting | Went::Exposed)
        {
            // It was over soon for it never began: nothing more of it is claimed ahead.
            self.hand.ended(hook, Duration::MAX);
        }
        match went {
            Went::Trouble => self.rest(),
            Went::Wanting => self.rest_for_want(),
            Went::Exposed => self.close(hook),
            Went::Started => self.wants = 0,
            Went::Stored => {}
        }
    }

    /// A run is over, or an attempt without one. Gives the number of its hook.
    fn over(&mut self, id: Id) -> Option<usize> {
        let (hook, lasted) = self.places.end(&Run::Ours(id), Instant::now().into_std())?;
        self.hand.ended(hook, lasted);
        Some(hook)
    }

    /// The hook rests: its program may not be run, and the others are none the worse for it.
    fn close(&mut self, hook: Option<usize>) {
        if let Some(hook) = hook
            && self.places.close(hook, Instant::now().into_std())
            && let Some(hook) = self.desk.settings.hooks.get(hook)
        {
            tracing::warn!(
                hook.name = &*hook.name,
                "hook `{}` is not run, since others could change what it runs; hint: `tilld status` says what puts it right",
                hook.name
            );
        }
    }

    fn settled(&mut self, joined: Result<(Id, Went), JoinError>) {
        let (id, went) = passed_on(joined);
        let key = self.being_settled.remove(&id);
        // One that could not be watched may still run: its place is kept until the next look for it takes it up again.
        if let Some(key) = key.filter(|_| went == Went::Stored) {
            self.places.end(&Run::Old(key), Instant::now().into_std());
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
            let hooks = &self.desk.settings;
            let hook = hooks
                .hook_of(&left.hook)
                .and_then(|hook| hooks.hooks.get(hook));
            let name = hook.map_or(&left.hook, |hook| &hook.name);
            self.places
                .find(Run::Old(key), name, Instant::now().into_std());
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
        // Of what has no place yet nothing has begun.
        let running = self.attempts.len() - self.hand.give_back();
        let drain = self.desk.settings.drain;
        if running > 0 {
            tracing::info!(running, "waiting up to {drain:?} for running hooks");
        }
        tokio::select! {
            biased;
            ended = news::within(drain, self.all_ended()) => if ended.is_some() {
                return;
            },
            () = hurry.requested() => {}
        }
        tracing::warn!(running = self.attempts.len(), "ending hooks that still run");
        self.desk.ending.request();
        let grace = self.desk.settings.longest_grace();
        if news::within(grace + STOP_MARGIN, self.all_ended())
            .await
            .is_none()
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

/// How long it does good to rest after a program could not be started for want of something, for so many times before.
fn rest_after(wants: u32) -> Duration {
    let (first, longest) = WANT_AGAIN;
    let pause = first.saturating_mul(2_u32.saturating_pow(wants));
    pause.min(longest)
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
