//! The way to the writing thread: commands wait here for a place in its commits, and refusals for their second.
//!
//! Promises never to wait for a place, and that what was handed over is stored whatever becomes of whoever asked.

use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::apply::Rules;
use super::command::{Command, Refusal, Reply};
use super::error::WriteError;

/// Refusals for known invoices, and others, held in memory at most; more are counted and dropped. Apart, since a poll may hang
/// on one for a known invoice, and strangers send as many as they like.
pub(super) const GATHERED_MOST: usize = 1_000;

/// One command and the place its answer goes to.
pub(super) struct Job {
    pub(super) command: Command,
    pub(super) reply: oneshot::Sender<Result<Reply, WriteError>>,
}

/// Other rules for what hooks are owed, and the place the answer goes to.
pub(super) struct Owe {
    pub(super) rules: Rules,
    pub(super) reply: oneshot::Sender<Result<(), WriteError>>,
}

/// What travels to the thread.
pub(super) enum Message {
    Job(Box<Job>),
    /// These go into one commit, in this order.
    Together(Vec<Job>),
    /// Refusals were gathered: write them within a second.
    Gathered,
    /// Hooks are to be owed what these say.
    Owe(Box<Owe>),
    /// Somebody asks whether the thread turns: answered at the end of the turn that takes it.
    Probe(oneshot::Sender<()>),
}

/// Refusals waiting to be written. Owned by the handles; the thread takes them.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) refusals: Vec<Refusal>,
    pub(super) dropped: u64,
    /// How many of the refusals are for known invoices.
    known: usize,
}

impl Gathered {
    /// One more, or one that was dropped.
    pub(super) fn add(&mut self, refusal: Refusal) {
        let is_known = refusal.invoice.is_some();
        let alike = if is_known {
            self.known
        } else {
            self.refusals.len() - self.known
        };
        if alike >= GATHERED_MOST {
            self.dropped += 1;
            return;
        }
        self.known += usize::from(is_known);
        self.refusals.push(refusal);
    }
}

/// The sending side, cloned by the handles.
#[derive(Clone)]
pub(super) struct Queue {
    messages: SyncSender<Message>,
    gathered: Arc<Mutex<Gathered>>,
    /// Commands that wait for the next one which takes them along. Owned by the handles.
    held_back: Arc<Mutex<Vec<Job>>>,
}

impl Queue {
    /// One whose messages go there.
    pub(super) fn new(messages: SyncSender<Message>, gathered: Arc<Mutex<Gathered>>) -> Self {
        Self {
            messages,
            gathered,
            held_back: Arc::default(),
        }
    }

    /// Hands a command over and waits for its answer. Never waits for a place in the queue.
    pub(super) async fn ask(&self, command: Command) -> Result<Reply, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Job(Box::new(Job { command, reply })))?;
        answer.await.unwrap_or(Err(WriteError::Ended))
    }

    fn send(&self, message: Message) -> Result<(), WriteError> {
        match self.messages.try_send(message) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => Err(WriteError::QueueFull),
            Err(TrySendError::Disconnected(_)) => Err(WriteError::Ended),
        }
    }

    /// Resolves when hooks are owed what these rules say.
    pub(super) async fn owe(&self, rules: Rules) -> Result<(), WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Owe(Box::new(Owe { rules, reply })))?;
        answer.await.unwrap_or(Err(WriteError::Ended))
    }

    /// Resolves at the end of a turn of the thread that took this. A turn is bounded by how long a lock of others is waited for,
    /// three times at most, and by the disk.
    pub(super) async fn probe(&self) -> Result<(), WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(Message::Probe(reply))?;
        answer.await.map_err(|_dropped| WriteError::Ended)
    }

    /// Lets a command wait for the next [`Queue::ask_with_those`], but no longer than this, and waits for its answer.
    pub(super) async fn ask_later(
        &self,
        command: Command,
        within: Duration,
    ) -> Result<Reply, WriteError> {
        let (reply, mut answer) = oneshot::channel();
        self.held_back().push(Job { command, reply });
        // Whoever asks may be dropped meanwhile: what was asked is stored all the same.
        let mut leaving = Leaving(Some(self));
        let in_time = tokio::time::timeout(within, &mut answer).await;
        if in_time.is_err() {
            self.send_those();
        }
        let answered = match in_time {
            Ok(answered) => answered,
            Err(_late) => answer.await,
        };
        leaving.0 = None;
        answered.unwrap_or(Err(WriteError::Ended))
    }

    /// Hands a command over behind all that wait for it, to be stored in one commit with them, and waits for its answer.
    pub(super) async fn ask_with_those(&self, command: Command) -> Result<Reply, WriteError> {
        let (reply, answer) = oneshot::channel();
        let mut jobs = std::mem::take(&mut *self.held_back());
        jobs.push(Job { command, reply });
        self.send_together(jobs);
        answer.await.unwrap_or(Err(WriteError::Ended))
    }

    /// Hands those over that wait: nothing comes soon that would take them along.
    pub(super) fn send_those(&self) {
        let jobs = std::mem::take(&mut *self.held_back());
        if !jobs.is_empty() {
            self.send_together(jobs);
        }
    }

    fn held_back(&self) -> MutexGuard<'_, Vec<Job>> {
        // Nothing that holds it can leave it half changed.
        self.held_back
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn send_together(&self, jobs: Vec<Job>) {
        // Without a writer they are dropped, and whoever waits is told that by it.
        if let Err(TrySendError::Full(Message::Together(jobs))) =
            self.messages.try_send(Message::Together(jobs))
        {
            for job in jobs {
                answer(job, Err(WriteError::QueueFull));
            }
        }
    }

    /// Adds a refusal to those waiting. Never waits, never fails; beyond the bound it only counts.
    pub(super) fn refuse(&self, refusal: Refusal) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = gathered.refusals.is_empty();
        gathered.add(refusal);
        drop(gathered);
        // A full queue is no loss: the thread looks at what was gathered after every batch.
        if is_first
            && let Err(TrySendError::Disconnected(_)) = self.messages.try_send(Message::Gathered)
        {
            tracing::debug!("a refusal came after the ledger was closed");
        }
    }
}

/// Hands those over that wait, when it is dropped before they were.
struct Leaving<'a>(Option<&'a Queue>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(queue) = self.0 {
            queue.send_those();
        }
    }
}

/// The asker may be gone; what was stored stays stored.
pub(super) fn answer(job: Job, reply: Result<Reply, WriteError>) {
    if job.reply.send(reply).is_err() {
        tracing::debug!("the asker left before the ledger answered");
    }
}
