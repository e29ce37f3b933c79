//! The one thread that writes. Replies only after the batch is durable, so a reply can be trusted across a crash.
//!
//! It takes what waits in a bounded queue (never waiting for more), applies it in one transaction, commits, replies to
//! all, and only then tidies. More than once a second it looks whether anybody committed, other processes included, and rings for
//! whoever works from what is stored. Refused requests and the nudges they make are gathered in memory and written at most once
//! a second, behind everything else: they are worth little, and strangers can make many.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::Bells;
use super::apply::{ApplyError, Rules};
use super::batch;
use super::command::{Command, Operated, Recorded, Reply};
use super::error::WriteError;
use super::fact::{REFUSED_UNRECORDED, TRIED};
use super::health::Health;
use super::queue::{Gathered, Job, Message, Owe, Queue, answer};
use super::store::{Store, StoreError};
use super::trouble::Trouble;
use crate::clock::wall_ms;
use crate::fault;
use crate::shutdown::Shutdown;
use crate::telemetry::{self, LogRate};

/// How often it is told how many refusals were not recorded: strangers can make them without end.
const UNRECORDED_EVERY: Duration = Duration::from_secs(10);
/// Refusals are written at most this often.
const GATHER_FOR: Duration = Duration::from_secs(1);
/// How often it is looked whether the ledger was changed: what a command of the operator or another process makes due is
/// begun within a second. It is this thread that looks since its look is one wake-up and some microseconds; a loop of the
/// runtime that read by itself would take five for each.
const LOOK_EVERY: Duration = Duration::from_millis(900);
/// An accident of the files is noticed within two seconds, by the next look but one at the latest.
const _: () = assert!(
    LOOK_EVERY.as_millis() * 2 < 2_000,
    "two looks in two seconds"
);
/// How often it is tried whether the ledger can store again.
const TRY_EVERY: Duration = Duration::from_secs(2);

/// The thread, to be waited for at the end.
pub(super) struct WriterThread {
    handle: thread::JoinHandle<()>,
    /// Requested when the thread ends, also by a panic.
    pub(super) ended: Shutdown,
}

/// What the thread tells others.
pub(super) struct Around {
    /// Rung when there is work.
    pub(super) bells: Bells,
    /// Told when nothing can be stored, and when it can again.
    pub(super) health: Health,
    /// The ledger's file, for the log.
    pub(super) ledger: PathBuf,
}

/// Starts the thread on a store that is settled there: how many commands may wait, and how many go into one commit at most.
pub(super) fn start<S: Store>(
    store: impl FnOnce() -> S + Send + 'static,
    rules: Rules,
    (queue, batch): (usize, usize),
    around: Around,
) -> std::io::Result<(Queue, WriterThread)> {
    let (messages, inbox) = sync_channel(queue.max(1));
    let gathered = Arc::new(Mutex::new(Gathered::default()));
    let ended = Shutdown::new();
    let end = End(ended.clone());
    let waiting = Arc::clone(&gathered);
    let handle = thread::Builder::new()
        .name("ledger-writer".into())
        .spawn(move || {
            // Owned by the thread: told when it ends, however it does.
            let _end = end;
            let mut worker = Worker {
                store: store(),
                rules,
                around,
                batch,
                inbox,
                gathered: waiting,
                flush_at: None,
                unrecorded: LogRate::new(1, UNRECORDED_EVERY),
                tidy_at: None,
                look_at: Instant::now() + LOOK_EVERY,
                committed: false,
                lost: false,
                failing: false,
                try_at: Instant::now(),
                trouble: Trouble::default(),
                wishes: Vec::new(),
                probes: Vec::new(),
            };
            worker.run();
        })?;
    let queue = Queue::new(messages, gathered);
    Ok((queue, WriterThread { handle, ended }))
}

impl WriterThread {
    /// Waits for the thread to end, at most this long; it does when the last [`Queue`] is dropped. False when it has not.
    pub(super) async fn join(self, within: Duration) -> bool {
        if tokio::time::timeout(within, self.ended.requested())
            .await
            .is_err()
        {
            return false;
        }
        if self.handle.join().is_err() {
            tracing::error!("the ledger's writer ended by a panic");
        }
        true
    }
}

/// Tells the end of the thread when it is dropped.
struct End(Shutdown);

impl Drop for End {
    fn drop(&mut self) {
        self.0.request();
    }
}

struct Worker<S> {
    store: S,
    rules: Rules,
    around: Around,
    /// Commands in one transaction at most.
    batch: usize,
    inbox: Receiver<Message>,
    gathered: Arc<Mutex<Gathered>>,
    /// When the gathered refusals are written, while there are some.
    flush_at: Option<Instant>,
    /// Those that are not, as it is told.
    unrecorded: LogRate,
    /// When the store wants to tidy again, if it does.
    tidy_at: Option<Instant>,
    /// When it is looked whether the ledger was changed.
    look_at: Instant,
    /// There was a commit of ours since that was looked at.
    committed: bool,
    /// The file at the ledger's path is another one: what is known here is not what stands there.
    lost: bool,
    /// The last commit failed.
    failing: bool,
    /// When it is tried, while it is so, whether that is over.
    try_at: Instant,
    /// That nothing can be stored, as it is told.
    trouble: Trouble,
    /// Other rules for what hooks are owed, to be taken up between two commits.
    wishes: Vec<Owe>,
    /// Who asked for this turn.
    probes: Vec<oneshot::Sender<()>>,
}

impl<S: Store> Worker<S> {
    fn run(&mut self) {
        loop {
            let times = self.flush_at.into_iter().chain(self.tidy_at);
            let wake_at = times.fold(self.look_at, Instant::min);
            let next = self
                .inbox
                .recv_timeout(wake_at.saturating_duration_since(Instant::now()));
            fault::point("writer");
            let closed = matches!(next, Err(RecvTimeoutError::Disconnected));
            let jobs = self.drain(next.ok());
            if !jobs.is_empty() {
                self.work(jobs);
                self.look_for_gathered();
            }
            self.take_up();
            if closed || self.flush_at.is_some_and(|at| at <= Instant::now()) {
                self.flush();
            }
            self.look(closed);
            self.try_again();
            let last = closed || self.lost;
            self.tidy_at = self.store.tidy(last);
            if self.lost {
                // Whoever asked for a turn hears of the end instead.
                self.probes.clear();
            }
            for probe in self.probes.drain(..) {
                // Nobody may wait for it any more.
                probe.send(()).unwrap_or_default();
            }
            if last {
                return;
            }
        }
    }

    /// Looks whether the ledger's files are still what was opened. Rings when anybody has committed since the last look: within [`LOOK_EVERY`] of any change to the ledger, whoever
    /// made it and whether a ring for it was lost or not, the outbox looks at what is due.
    fn look(&mut self, last: bool) {
        let now = Instant::now();
        let is_due = now >= self.look_at;
        if !self.lost
            && (is_due || last || !self.probes.is_empty())
            && let Err(moved) = self.store.stands()
        {
            drop(self.fail(Vec::new(), moved));
        }
        if !is_due {
            return;
        }
        self.look_at = now + LOOK_EVERY;
        if self.store.others_wrote() | std::mem::take(&mut self.committed) {
            self.around.bells.owed.ring();
            self.around.bells.told.ring();
        }
    }

    /// While nothing can be stored, looks now and then whether it can: otherwise a shop without a customer would be told of a
    /// trouble that is long over.
    fn try_again(&mut self) {
        let now = Instant::now();
        if !self.failing || self.lost || now < self.try_at || self.store.is_log_full() {
            return;
        }
        self.try_at = now + TRY_EVERY;
        let note = Command::Note(TRIED.note(&wall_ms()));
        match batch::run(&mut self.store, &self.rules, &[&note]) {
            Ok(_) => {
                self.committed = true;
                self.tell_recovered();
            }
            Err(failed) => drop(self.fail(Vec::new(), failed)),
        }
    }

    fn drain(&mut self, first: Option<Message>) -> Vec<Job> {
        let mut jobs = Vec::new();
        let mut next = first;
        while let Some(message) = next {
            match message {
                Message::Job(job) => jobs.push(*job),
                // A few more than a batch holds, if it must be.
                Message::Together(together) => jobs.extend(together),
                Message::Gathered => {
                    let soon = Instant::now() + GATHER_FOR;
                    self.flush_at = Some(self.flush_at.map_or(soon, |at| at.min(soon)));
                }
                Message::Owe(owe) => self.wishes.push(*owe),
                Message::Probe(probe) => self.probes.push(probe),
            }
            next = if jobs.len() < self.batch {
                self.inbox.try_recv().ok()
            } else {
                None
            };
        }
        jobs
    }

    fn work(&mut self, mut jobs: Vec<Job>) {
        if self.store.is_log_full() {
            jobs = turn_away(jobs);
            if jobs.is_empty() {
                return;
            }
        }
        let commands: Vec<&Command> = jobs.iter().map(|job| &job.command).collect();
        match batch::run(&mut self.store, &self.rules, &commands) {
            Ok(replies) => {
                self.committed = true;
                let mut wrote = false;
                for (job, reply) in jobs.into_iter().zip(replies) {
                    self.ring_for(&reply);
                    wrote |= reply.is_ok() && job.command.surely_writes();
                    answer(job, reply.map_err(WriteError::from));
                }
                // A commit that changes nothing succeeds on a full disk too.
                if self.failing && wrote {
                    self.tell_recovered();
                }
            }
            Err(failed) => drop(self.fail(jobs, failed)),
        }
    }

    /// Takes other rules up once the ledger remembers them: whoever writes beside goes by what stands there.
    fn take_up(&mut self) {
        for Owe { rules, reply } in std::mem::take(&mut self.wishes) {
            let mut next = self.rules.owing_as(rules);
            let answer = match batch::settle(&mut self.store, &mut next) {
                Ok(()) => {
                    self.rules = next;
                    self.committed = true;
                    Ok(())
                }
                Err(failed) => Err(WriteError::NotStored(self.fail(Vec::new(), failed))),
            };
            // Nobody may wait for it any more.
            reply.send(answer).unwrap_or_default();
        }
    }

    /// Wakes whoever has work now. A lost ring costs a little time: both loops also look by themselves.
    fn ring_for(&self, reply: &Result<Reply, ApplyError>) {
        let recorded = match reply {
            Ok(Reply::Recorded(recorded) | Reply::Settled(_, Some(recorded))) => {
                std::slice::from_ref(recorded)
            }
            Ok(Reply::Operated(Operated::Done(_, recorded))) => recorded,
            Ok(Reply::Acted(_)) => return self.around.bells.owed.ring(),
            Ok(Reply::Reassessed(done)) if done.ask_soon => return self.around.bells.ask.ring(),
            Ok(_) | Err(_) => return,
        };
        if recorded.iter().any(|one| one.event.is_some()) {
            self.around.bells.told.ring();
        }
        let owed = |one: &Recorded| one.event.as_ref().is_some_and(|event| event.deliveries > 0);
        if recorded.iter().any(owed) {
            self.around.bells.owed.ring();
        }
        if recorded.iter().any(|one| one.ask_soon) {
            self.around.bells.ask.ring();
        }
    }

    /// Nothing of the batch was stored: everybody hears it, and so does everybody who waited behind it, since each of
    /// them would wait as long again for the same answer.
    fn fail(&mut self, mut jobs: Vec<Job>, failed: StoreError) -> Arc<StoreError> {
        let failed = Arc::new(failed);
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Job(job) => jobs.push(*job),
                Message::Together(together) => jobs.extend(together),
                Message::Gathered => self.flush_at = Some(Instant::now() + GATHER_FOR),
                Message::Owe(owe) => self.wishes.push(*owe),
                Message::Probe(probe) => self.probes.push(probe),
            }
        }
        self.tell(&failed);
        self.lost |= matches!(*failed, StoreError::Moved(_));
        for job in jobs {
            answer(job, Err(WriteError::NotStored(Arc::clone(&failed))));
        }
        if let Err(again) = self.store.recover(&failed) {
            self.tell(&Arc::new(again));
        }
        failed
    }

    /// The word that refusals were gathered is lost when the queue is full. Then there are jobs, and this follows them.
    fn look_for_gathered(&mut self) {
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        if !gathered.refusals.is_empty() {
            let soon = Instant::now() + GATHER_FOR;
            self.flush_at = Some(self.flush_at.map_or(soon, |at| at.min(soon)));
        }
    }

    fn flush(&mut self) {
        self.flush_at = None;
        let taken =
            std::mem::take(&mut *self.gathered.lock().unwrap_or_else(PoisonError::into_inner));
        if let Some(count) = self.unrecorded.add(taken.dropped, Instant::now()) {
            tracing::warn!(
                dropped = count,
                "more requests were refused than are recorded: {count} are not"
            );
        }
        self.flush_at = self.unrecorded.due();
        if taken.refusals.is_empty() {
            return;
        }
        let command = Command::Refuse(taken.refusals);
        let noted = (taken.dropped > 0).then(|| Command::Note(REFUSED_UNRECORDED.note(&wall_ms())));
        if self.store.is_log_full() {
            return self.keep(command);
        }
        let commands: Vec<&Command> = noted.iter().chain([&command]).collect();
        match batch::run(&mut self.store, &self.rules, &commands) {
            Ok(_) => {
                self.committed = true;
                if self.failing {
                    self.tell_recovered();
                }
            }
            Err(failed) => {
                self.fail(Vec::new(), failed);
                self.keep(command);
            }
        }
        self.around.bells.ask.ring();
    }

    /// Refusals that could not be written wait for the next time, since a poll may hang on each; as many as there is room.
    fn keep(&mut self, command: Command) {
        let Command::Refuse(older) = command else {
            return;
        };
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let newer = std::mem::take(&mut *gathered);
        gathered.dropped = newer.dropped;
        for refusal in older.into_iter().chain(newer.refusals) {
            gathered.add(refusal);
        }
        drop(gathered);
        self.flush_at = Some(Instant::now() + GATHER_FOR);
    }

    fn tell(&mut self, failed: &Arc<StoreError>) {
        if !self.failing {
            self.try_at = Instant::now() + TRY_EVERY;
        }
        self.failing = true;
        let reason = telemetry::chain(failed.as_ref());
        self.around.health.change(|state| {
            let since_ms = state.unstored.take().map(|(since_ms, _)| since_ms);
            state.unstored = Some((since_ms.unwrap_or_else(wall_ms), reason.clone()));
        });
        let is_to_be_told = self.trouble.is_to_be_told(&reason, Instant::now());
        // The last there is to say is said, whatever was said a moment ago.
        if is_to_be_told || matches!(**failed, StoreError::Moved(_)) {
            let ledger = self.around.ledger.display();
            tracing::error!(
                %reason,
                ledger = %ledger,
                "the ledger cannot store: {reason}; hint: {}",
                failed.remedy(&self.around.ledger)
            );
        }
    }

    fn tell_recovered(&mut self) {
        self.failing = false;
        self.around.health.change(|state| state.unstored = None);
        if let Some(reason) = self.trouble.over() {
            tracing::info!(%reason, "the ledger stores again");
        }
    }
}

/// Answers whoever brings something new, and gives the others.
fn turn_away(jobs: Vec<Job>) -> Vec<Job> {
    let full = Arc::new(StoreError::LogFull);
    let (ends, new): (Vec<Job>, Vec<Job>) = jobs
        .into_iter()
        .partition(|job| job.command.ends_something());
    for job in new {
        answer(job, Err(WriteError::NotStored(Arc::clone(&full))));
    }
    ends
}

impl From<ApplyError> for WriteError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Store(store) => Self::NotStored(Arc::new(store)),
            ApplyError::Missing(what) => Self::Missing(what),
        }
    }
}
