//! The writer's handle: one method for each command, which takes the answer apart and tells the log what changed. Here and
//! nowhere else events are logged, since every way in comes through here.

use std::sync::Arc;
use std::time::Duration;

use super::REDATE_AT_ONCE;
use super::apply::Rules;
use super::choice::{Acting, Supplying};
use super::clock_note::WrongClock;
use super::command::{
    Acceptance, After, AttemptRecord, Begun, Command, Intent, Lane, Operated, PollFailed,
    Reassessed, Recorded, Refusal, Reply, Resorted, Settled, Tracking,
};
use super::error::WriteError;
use super::fact::Fact;
use super::queue::Queue;
use super::retention::{Cutoffs, Emptied};
use super::row::{Claimed, DeliveryKey, InvoiceKey, InvoiceRow};
use super::seal::{Sealed, Sealer};
use crate::invoice::attention::Attention;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::Observation;
use crate::process_mark::ProcessMark;

/// One line for each invoice that the changed lists changed.
fn tell_resorted(resorted: &Resorted) {
    let Resorted {
        order_id,
        outcome,
        event,
        withdrawn,
    } = resorted;
    tracing::info!(
        order.id = %order_id,
        event.seq = event.seq,
        event.kind = %event.kind,
        outcome = %outcome,
        withdrawn,
        "order {order_id}: {} by the changed lists; what hooks are owed for it is held",
        event.kind
    );
}

/// One line per event, and one per status name that stands on no list: here, since every way in comes through here.
fn tell(recorded: &Recorded) {
    recorded.resorted.iter().for_each(tell_resorted);
    if let Some(event) = &recorded.event {
        tracing::info!(
            order.id = %recorded.order_id,
            event.seq = event.seq,
            event.kind = %event.kind,
            outcome = %recorded.outcome,
            "order {}: {}",
            recorded.order_id,
            event.kind
        );
    }
    for odd in &recorded.new_odd {
        tracing::warn!(
            field = odd.field,
            order.id = %recorded.order_id,
            "the service keeps not to its contract: {odd}"
        );
    }
    if let Some(status) = &recorded.new_unsorted {
        tracing::warn!(
            status = %status,
            "the service uses the status `{status}`, which stands on no list: sort it under `[statuses]` in the config"
        );
    }
}

/// Hands changes to the writing thread. Every method resolves after the change is durable, or says that nothing of it was
/// stored. Dropping the future does not undo a change that was handed over.
#[derive(Clone)]
pub struct Writer {
    pub(super) queue: Queue,
    pub(super) sealer: Arc<Sealer>,
}

impl Writer {
    /// Seals a notify token for the invoice with this ref.
    pub fn seal(&self, token: &NotifyToken, reference: &InvoiceRef) -> Sealed {
        self.sealer.seal(token, reference)
    }

    /// Records an observation of an invoice.
    pub fn record(
        &self,
        key: InvoiceKey,
        observation: Observation,
    ) -> impl Future<Output = Result<Recorded, WriteError>> + Send {
        // Made before the waiting begins, so that what waits does not hold the observation itself: a future of more than a
        // kibibyte is a piece of memory that the allocator must look for.
        let asked = self.queue.ask(Command::Record(key, Box::new(observation)));
        async move {
            match asked.await? {
                Reply::Recorded(recorded) => {
                    tell(&recorded);
                    Ok(recorded)
                }
                other => unreachable!("the writer answered a record with {other:?}"),
            }
        }
    }

    /// Judges whether the order may have this invoice, and if so writes its row.
    pub async fn begin_opening(&self, intent: Intent) -> Result<Begun, WriteError> {
        match self.queue.ask(Command::Begin(Box::new(intent))).await? {
            Reply::Begun(begun) => Ok(begun),
            other => unreachable!("the writer answered a begin with {other:?}"),
        }
    }

    /// Records how the request that opens an invoice ended. Returns the invoice and what became of the answer.
    pub async fn settle_opening(
        &self,
        key: InvoiceKey,
        settled: Settled,
    ) -> Result<(InvoiceRow, Option<Recorded>), WriteError> {
        match self.queue.ask(Command::Settle(key, settled)).await? {
            Reply::Settled(row, recorded) => {
                recorded.iter().for_each(tell);
                Ok((*row, recorded))
            }
            other => unreachable!("the writer answered a settle with {other:?}"),
        }
    }

    /// The creator of this invoice is gone or too late: its outcome is unknown from now on, unless its id is known.
    pub async fn give_up_opening(&self, key: InvoiceKey) -> Result<(), WriteError> {
        self.queue.ask(Command::GiveUpOpening(key)).await.map(drop)
    }

    /// A poll brought no answer about its invoice: it is asked again later, and later each time.
    pub async fn poll_failed(&self, failed: PollFailed) -> Result<(), WriteError> {
        self.queue.ask(Command::PollFailed(failed)).await.map(drop)
    }

    /// Counts the due times of these invoices again, in commits of at most [`REDATE_AT_ONCE`].
    pub async fn redate(&self, keys: &[InvoiceKey], now_ms: i64) -> Result<(), WriteError> {
        for some in keys.chunks(REDATE_AT_ONCE) {
            self.queue
                .ask(Command::Redate(some.to_vec(), now_ms))
                .await?;
        }
        Ok(())
    }

    /// The horizon of this invoice has passed: event and attention, once.
    pub async fn unresolve(&self, key: InvoiceKey, now_ms: i64) -> Result<(), WriteError> {
        self.queue
            .ask(Command::Unresolve(key, now_ms))
            .await
            .map(drop)
    }

    /// Claims deliveries to be run by this process, of each lane as many as it wants and all that may run if they are
    /// fewer. None of them may run before its child is named. Ends that wait for a claim are stored before it, in the same
    /// commit.
    pub async fn claim_deliveries(
        &self,
        claimant: ProcessMark,
        now_ms: i64,
        lanes: Vec<Lane>,
    ) -> Result<Vec<Claimed>, WriteError> {
        match self
            .queue
            .ask_with_those(Command::Claim {
                claimant,
                now_ms,
                lanes,
            })
            .await?
        {
            Reply::Claimed(claimed) => Ok(claimed),
            other => unreachable!("the writer answered a claim with {other:?}"),
        }
    }

    /// Stores the process that will run a claimed delivery.
    pub async fn name_child(&self, key: DeliveryKey, child: ProcessMark) -> Result<(), WriteError> {
        self.queue
            .ask(Command::NameChild(key, child))
            .await
            .map(drop)
    }

    /// Gives a claimed delivery back of which nothing was begun: it waits as it did before, and that is no attempt.
    pub async fn give_back(&self, key: DeliveryKey) -> Result<(), WriteError> {
        self.queue.ask(Command::GiveBack(key)).await.map(drop)
    }

    /// Stores how a run ended and what follows. Repeating it changes nothing.
    pub async fn finish_attempt(
        &self,
        key: DeliveryKey,
        record: AttemptRecord,
        after: After,
    ) -> Result<(), WriteError> {
        self.queue
            .ask(Command::Finish(key, Box::new(record), after))
            .await
            .map(drop)
    }

    /// As [`Writer::finish_attempt`], with the next claim, which is stored in the same commit then; or by itself when none is
    /// made for so long, or [`Writer::finish_waiting`] says so.
    pub async fn finish_with_claim(
        &self,
        key: DeliveryKey,
        record: AttemptRecord,
        after: After,
        within: Duration,
    ) -> Result<(), WriteError> {
        let finish = Command::Finish(key, Box::new(record), after);
        self.queue.ask_later(finish, within).await.map(drop)
    }

    /// No claim follows soon: ends that wait for one are stored now.
    pub fn finish_waiting(&self) {
        self.queue.send_those();
    }

    /// Does what a person wants with deliveries that were found before, in one commit. Returns how many it changed: those
    /// that began to run meanwhile, or ended, are left alone.
    pub async fn act(&self, acting: Acting) -> Result<usize, WriteError> {
        match self.queue.ask(Command::Act(acting)).await? {
            Reply::Acted(count) => Ok(count),
            other => unreachable!("the writer answered an act with {other:?}"),
        }
    }

    /// The next step of the pass over stored invoices after the lists changed; one bounded commit.
    pub async fn reassess(&self, now_ms: i64) -> Result<Reassessed, WriteError> {
        match self.queue.ask(Command::Reassess(now_ms)).await? {
            Reply::Reassessed(done) => {
                done.resorted.iter().for_each(tell_resorted);
                Ok(done)
            }
            other => unreachable!("the writer answered a reassessment with {other:?}"),
        }
    }

    /// Empties outdated texts of these invoices, at most [`EMPTIED_AT_ONCE`](super::retention::EMPTIED_AT_ONCE) of them.
    pub(crate) async fn empty(
        &self,
        keys: Vec<InvoiceKey>,
        cutoffs: Cutoffs,
    ) -> Result<Emptied, WriteError> {
        match self.queue.ask(Command::Empty(keys, cutoffs)).await? {
            Reply::Emptied(emptied) => Ok(emptied),
            other => unreachable!("the writer answered an emptying with {other:?}"),
        }
    }

    /// Gathers a refused request, which also nudges its invoice. Never waits; beyond a bound it is only counted.
    pub fn refuse(&self, refusal: Refusal) {
        self.queue.refuse(refusal);
    }

    /// Writes the row of an invoice that was opened elsewhere. A daemon finds it at its next look at what is due.
    pub async fn track(&self, wish: Tracking) -> Result<Operated, WriteError> {
        self.operate(Command::Track(Box::new(wish))).await
    }

    /// Gives an invoice whose create answer was lost the id in this answer, and records the answer.
    pub async fn adopt(
        &self,
        key: InvoiceKey,
        answer: Observation,
    ) -> Result<Operated, WriteError> {
        self.operate(Command::Adopt(key, Box::new(answer))).await
    }

    /// Takes reported figures as agreed, if they still are those that were shown, and judges the claims again.
    pub async fn accept(&self, wish: Acceptance) -> Result<Operated, WriteError> {
        self.operate(Command::Accept(wish)).await
    }

    /// The operator acknowledged these reasons at an invoice.
    pub async fn acknowledge(
        &self,
        key: InvoiceKey,
        reasons: Vec<Attention>,
        now_ms: i64,
    ) -> Result<Operated, WriteError> {
        self.operate(Command::Acknowledge(key, reasons, now_ms))
            .await
    }

    async fn operate(&self, command: Command) -> Result<Operated, WriteError> {
        match self.queue.ask(command).await? {
            Reply::Operated(operated) => {
                if let Operated::Done(_, recorded) = &operated {
                    recorded.iter().for_each(tell);
                }
                Ok(operated)
            }
            other => unreachable!("the writer answered a person's wish with {other:?}"),
        }
    }

    /// Makes deliveries that events are without, a bounded number in one commit. Returns how many; none is left when it is 0.
    pub(crate) async fn supply(&self, supplying: Supplying) -> Result<usize, WriteError> {
        match self.queue.ask(Command::Supply(supplying)).await? {
            Reply::Acted(count) => Ok(count),
            other => unreachable!("the writer answered a supply with {other:?}"),
        }
    }

    /// Stores what a look at the clock found, and marks the events behind `after` as dated by a clock that may have been wrong.
    /// Returns the newest event.
    pub(crate) async fn see_clock(
        &self,
        wrong: Option<WrongClock>,
        after: i64,
    ) -> Result<i64, WriteError> {
        match self.queue.ask(Command::SeeClock { wrong, after }).await? {
            Reply::Seen(newest) => Ok(newest),
            other => unreachable!("the writer answered a look at the clock with {other:?}"),
        }
    }

    /// Corrects what waits after the clock was set: see [`Command::Replan`]. Returns how many deliveries it corrected.
    pub(crate) async fn replan(&self, now_ms: i64, forward_ms: i64) -> Result<usize, WriteError> {
        let replan = Command::Replan { now_ms, forward_ms };
        match self.queue.ask(replan).await? {
            Reply::Acted(count) => Ok(count),
            other => unreachable!("the writer answered a corrected clock with {other:?}"),
        }
    }

    /// Once it is answered, hooks are owed what these rules say, in the ledger too; nothing else of them counts. What is owed
    /// already stays owed.
    pub(crate) async fn owe(&self, rules: Rules) -> Result<(), WriteError> {
        self.queue.owe(rules).await
    }

    /// Resolves when the writing thread has turned once more: the proof that it is alive, whether it can store or not. With
    /// [`WriteError::QueueFull`] it was not asked.
    pub(crate) async fn probe(&self) -> Result<(), WriteError> {
        self.queue.probe().await
    }

    /// Resolves when the writing thread took the write lock and gave it back; nothing is stored for it. So it says nothing of the
    /// disk: that is [`super::Reader::health`].
    pub(crate) async fn lock_once(&self) -> Result<(), WriteError> {
        let nothing = Command::Redate(Vec::new(), 0);
        self.queue.ask(nothing).await.map(drop)
    }

    /// Has a fact say this from now on.
    pub(crate) async fn note<T>(&self, fact: &Fact<T>, value: &T) -> Result<(), WriteError> {
        let note = Command::Note(fact.note(value));
        self.queue.ask(note).await.map(drop)
    }
}
