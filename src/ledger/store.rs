//! The seam: what the writer needs from a database. SQLite stands behind it today; nothing above knows which one does.
//!
//! All methods between `begin` and `commit` belong to one transaction. A method that fails leaves the transaction to be
//! rolled back by the caller.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Instant;

use crate::invoice::event::{Change, EventKind};
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::polled::Polled;
use crate::invoice::silence::{Class, Ended};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Claim, Decision, Invoice, Why};
use crate::process_mark::ProcessMark;

use super::choice::{Acting, Choice, Missing};
use super::command::{AttemptRecord, Intent, Lane, Refusal};
use super::fact::{Fact, Note};
use super::files::Moved;
use super::retention::{Cutoffs, Emptied};
use super::row::{Claimed, DeliveryKey, InvoiceKey, InvoiceRow};

/// Why a database could not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the lock longer than the budget.
    #[error("another process holds the ledger's write lock")]
    Busy,
    /// No room on the disk, or a quota.
    #[error("the disk is full")]
    Full,
    /// The log has reached its bound, since a read keeps it from being moved into the file.
    #[error("the ledger's log has reached its bound")]
    LogFull,
    /// Reading or writing failed; what the page cache holds is not to be trusted any more.
    #[error("the disk failed")]
    Io(#[source] Cause),
    /// The ledger's files are not what was opened.
    #[error("the ledger's files are not what was opened: {0}")]
    Moved(Moved),
    /// It is read-only to us.
    #[error("the ledger file cannot be written")]
    ReadOnly(#[source] Cause),
    /// The content is damaged.
    #[error("the ledger file is damaged")]
    Corrupt(#[source] Cause),
    /// A statement or a value was not as expected: a bug or a foreign hand.
    #[error("the ledger refused a change")]
    Refused(#[source] Cause),
}

impl StoreError {
    /// What a person does about it, for the log.
    pub(crate) fn remedy(&self, ledger: &Path) -> String {
        let ledger = ledger.display();
        match self {
            Self::Busy => format!(
                "end the program that holds the lock, `fuser -v {ledger}` names those that have it open; what only reads \
                 never takes it"
            ),
            Self::Full => format!(
                "make room on the file system of `{ledger}`, `df {ledger}` shows it; it is stored again by itself then"
            ),
            Self::LogFull => format!(
                "end the program that keeps a read transaction open, `fuser -v {ledger}` names those that have it open"
            ),
            Self::Io(_) => format!(
                "look at the disk of `{ledger}`, `dmesg` says what failed; the file is opened anew before anything more is \
                 acknowledged"
            ),
            Self::Moved(_) => format!(
                "tilld ends, and its next start looks at what lies at `{ledger}`; to put a backup back, stop tilld and use \
                 `tilld db restore`"
            ),
            Self::ReadOnly(_) => format!(
                "look at the mode of `{ledger}` and how its file system is mounted; it is stored again by itself then"
            ),
            Self::Corrupt(_) => "run `tilld db check`; keep the backups you have".to_owned(),
            Self::Refused(_) => {
                "another program may have changed tilld's tables: `tilld db check` looks".to_owned()
            }
        }
    }
}

/// A database's own error.
pub(super) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An invoice as the writer changes it.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// What decides. Its `recorded` claims are loaded by [`Store::recorded_claims`] when they matter.
    pub invoice: Invoice,
    /// What is shown.
    pub row: InvoiceRow,
    /// The last authentic observation, milliseconds since 1970.
    pub heard_ms: Option<i64>,
    /// The number of the lists its claims were sorted by; below zero while a poll must confirm what those lists made of
    /// claims that are older than they are.
    pub sorted_by: i64,
    /// The generation of the ledger under which a poll last told how it stands, or under which it was opened. Below the
    /// ledger's own: it was restored since, and what is found may have been found before.
    pub generation: i64,
    /// No claim that was heard of it is newer: one that is cannot be an event already. 1970 while nothing dated was heard.
    pub newest: Moment,
}

/// The polling side of an invoice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PollState {
    /// When it is due; `None`: not at all.
    pub due_ms: Option<i64>,
    /// What it is filed under: its class when it will be due.
    pub class: Class,
    /// When it was asked last.
    pub asked_ms: Option<i64>,
    /// When a refused notification wants it asked, or wanted.
    pub nudged_ms: Option<i64>,
    /// Polls in a row that brought nothing.
    pub failures: u32,
    /// The service's clock at its last answer, when that was dated.
    pub service_ms: Option<i64>,
    /// The service's clock at its first dated answer: it tells when the invoice was opened where our clock was wrong.
    pub first_service_ms: Option<i64>,
    /// Answers after the end, by our clock.
    pub ended: Ended,
    /// Since when it is not asked about any more because its time is over, by our clock; `None` while it is due, and when
    /// it is final.
    pub retired_ms: Option<i64>,
    /// What polls brought last.
    pub polled: Polled,
    /// When an alert was raised because polls bring no answer about it.
    pub alerted_ms: Option<i64>,
}

impl PollState {
    /// True while something wants a poll that no answer has followed yet.
    pub(super) fn is_owed(&self) -> bool {
        // That there is no such invoice is an answer.
        let answered = self.failures == 0 || self.polled.gone_ms.is_some();
        let is_answered =
            |nudged: i64| answered && self.asked_ms.is_some_and(|asked| asked >= nudged);
        self.nudged_ms.is_some_and(|nudged| !is_answered(nudged))
    }
}

/// An invoice of an order that decides whether the order may be given another.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    /// The invoice.
    pub(crate) row: InvoiceRow,
    /// An answer waits for a second one.
    pub(super) is_pending: bool,
    /// Its polling side.
    pub(super) poll: PollState,
}

impl Earlier {
    /// Only a poll can show how it stands.
    pub(super) fn is_unsure(&self) -> bool {
        self.row.doubt || self.is_pending || self.poll.is_owed()
    }
}

/// How an invoice comes to stand among those of its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Before all others: it stands for the order.
    First,
    /// It was refused: as if it were not there, until it turns out to be.
    Refused,
    /// It is there after all, where it was before it was refused.
    Known,
}

/// An event to be written.
#[derive(Clone, Debug)]
pub(super) struct NewEvent<'a> {
    /// Its stable id.
    pub event_id: &'a str,
    /// Its invoice.
    pub invoice: InvoiceKey,
    /// What changed.
    pub change: &'a Change,
    /// Who brought it.
    pub source: Option<Source>,
    /// When.
    pub at_ms: i64,
    /// The reported amount and currency.
    pub reported: (Option<&'a str>, Option<&'a str>),
    /// The service's document, secrets cut out.
    pub raw: Option<&'a str>,
    /// How what was heard was judged, when its claim is the change's cause: then the event is its line of history too.
    pub judged: Option<(Decision, Why)>,
}

/// What became of the held deliveries of an invoice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Withdrawn {
    /// How many there were.
    pub count: usize,
    /// A payment is still owed to some hook, or was told to one.
    pub payment_left: bool,
}

/// When a new delivery is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Later, by our clock.
    At {
        /// At this time, milliseconds since 1970.
        at_ms: i64,
        /// So long after it was planned, milliseconds.
        wait_ms: i64,
    },
    /// When a person releases it; why it is held, as a fixed word.
    Held(&'static str),
}

/// One line of an invoice's history.
#[derive(Clone, Debug)]
pub(super) struct NewHistory<'a> {
    /// Its invoice.
    pub invoice: InvoiceKey,
    /// When.
    pub at_ms: i64,
    /// Who said it.
    pub source: Source,
    /// What was claimed; `None` for what a person did.
    pub claim: Option<&'a Claim>,
    /// What was decided.
    pub decision: Decision,
    /// By which rule.
    pub why: Why,
    /// The reported amount and currency.
    pub reported: (Option<String>, Option<String>),
    /// `updatedAt` as it was written, when it is not readable.
    pub updated_at_text: Option<&'a str>,
}

/// A claim of an invoice as it was heard.
#[derive(Clone, Debug)]
pub(super) struct HeardClaim {
    /// The claim, with the verdict of that time.
    pub claim: Claim,
    /// Who said it.
    pub source: Source,
    /// What was decided.
    pub decision: Decision,
    /// It was decided because it is an event already: it counted before.
    pub known: bool,
    /// When it was heard, milliseconds since 1970.
    pub at_ms: i64,
    /// The reported amount and currency; both `None` when nothing was reported.
    pub reported: (Option<String>, Option<String>),
}

/// Lines of history there may be beyond a bound, of an invoice or in all, before they are dropped.
const HISTORY_TRIM_EVERY: i64 = 16;

/// With which line of history those beyond a bound are dropped: every so manieth.
pub(super) fn trim_every(bound: i64) -> i64 {
    HISTORY_TRIM_EVERY.min(bound.max(1))
}

/// What the writer needs from a database.
pub(super) trait Store {
    /// Takes the write lock, waiting at most the busy budget.
    fn begin(&mut self) -> Result<(), StoreError>;
    /// Makes everything since `begin` durable.
    fn commit(&mut self) -> Result<(), StoreError>;
    /// Drops everything since `begin`.
    fn rollback(&mut self);
    /// Marks a place to go back to within the transaction.
    fn savepoint(&mut self) -> Result<(), StoreError>;
    /// Forgets the mark and keeps what came after it.
    fn release(&mut self) -> Result<(), StoreError>;
    /// Drops what came after the mark, and the mark.
    fn rollback_to_savepoint(&mut self) -> Result<(), StoreError>;
    /// Work that may be done between transactions, after the answers: moves the log into the file, and keeps the mark beside
    /// it. `last`: the store is closed next. Gives when there is more to do.
    fn tidy(&mut self, last: bool) -> Option<Instant>;
    /// True when another connection or process has committed since this was asked last; the first time it may be true
    /// for nothing. What cannot be told counts as a change: whoever hears of it looks at the ledger.
    fn others_wrote(&mut self) -> bool;
    /// Looks whether the store is what was opened. Once it is not, nothing more may be acknowledged.
    fn stands(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    /// True while nothing new may be stored, so that the disk is not filled by a log that nobody can move.
    fn is_log_full(&self) -> bool {
        false
    }
    /// Empties what of an invoice is outdated, so that the file does not keep it either. A later look finds whatever was left.
    fn empty(&mut self, key: InvoiceKey, cutoffs: Cutoffs) -> Result<Emptied, StoreError>;

    /// Called after a failed transaction: closes and opens again what can no longer be trusted.
    fn recover(&mut self, failed: &StoreError) -> Result<(), StoreError>;

    /// Writes a new invoice with its sealed token, born under this generation of the ledger.
    fn insert_invoice(
        &mut self,
        intent: &Intent,
        generation: i64,
    ) -> Result<InvoiceKey, StoreError>;
    /// Loads an invoice to change it.
    fn load(&mut self, key: InvoiceKey) -> Result<Option<Stored>, StoreError>;
    /// The invoice with this id of the service.
    fn owner_of(&mut self, id: &InvoiceId) -> Result<Option<InvoiceKey>, StoreError>;
    /// The invoice that stands for an order, another one than this, and what it amounts to.
    fn standing_beside(
        &mut self,
        key: InvoiceKey,
        order_id: &str,
    ) -> Result<Option<(InvoiceKey, Outcome)>, StoreError>;
    /// Ranks an invoice among those of its order. [`Store::save`] leaves that as it is.
    fn rank(&mut self, key: InvoiceKey, order_id: &str, rank: Rank) -> Result<(), StoreError>;
    /// Stores a changed invoice.
    fn save(&mut self, stored: &Stored) -> Result<(), StoreError>;
    /// The invoices of an order that decide whether it may be given another ([`decides`]), all of them, and those with these
    /// refs, newest first.
    ///
    /// [`decides`]: crate::invoice::opening::decides
    fn standing_of_order(
        &mut self,
        order_id: &str,
        tries: [Option<&InvoiceRef>; 2],
    ) -> Result<Vec<Earlier>, StoreError>;
    /// The claims that are events of this invoice; asked for only where [`Stored::newest`] does not rule them out.
    fn recorded_claims(&mut self, key: InvoiceKey) -> Result<Vec<Claim>, StoreError>;

    /// Writes an event and returns its number.
    fn insert_event(&mut self, event: &NewEvent<'_>) -> Result<i64, StoreError>;
    /// True when the invoice has an event of this kind.
    fn has_event(&mut self, key: InvoiceKey, kind: EventKind) -> Result<bool, StoreError>;
    /// The number of the newest event; 0 while there is none.
    fn newest_event(&mut self) -> Result<i64, StoreError>;
    /// Writes a delivery.
    fn insert_delivery(
        &mut self,
        seq: i64,
        invoice: InvoiceKey,
        hook: &str,
        next: Next,
    ) -> Result<DeliveryKey, StoreError>;
    /// What events of this choice are without, a bounded number of them, though the rules of their time owed it to a hook. Of what tilld wrote itself nothing
    /// is, unless another program took it away.
    fn missing(&mut self, choice: &Choice) -> Result<Vec<Missing>, StoreError>;
    /// Whether a line of the invoice's history has this text in the place of an instant.
    fn was_undated(&mut self, key: InvoiceKey, text: &str) -> Result<bool, StoreError>;
    /// Writes a line of history and drops the oldest beyond the bounds.
    fn add_history(&mut self, line: &NewHistory<'_>) -> Result<(), StoreError>;

    /// The polling side of an invoice; the default when it has none yet.
    fn poll_state(&mut self, key: InvoiceKey) -> Result<PollState, StoreError>;
    /// Stores the polling side of an invoice.
    fn save_poll(&mut self, key: InvoiceKey, state: &PollState) -> Result<(), StoreError>;

    /// Claims up to as many deliveries as each lane wants: none whose invoice has a run under way, none before an earlier
    /// one of the same invoice and hook is done or abandoned, one of an invoice at most; the longest due first, whatever
    /// their lane, so that no hook passes another by at an invoice they share. Due is what is planned for the start of
    /// `ahead`, which is now, or before it, and after that what is planned for later than its end: a clock was ahead when
    /// that was written.
    fn claim(
        &mut self,
        claimant: &ProcessMark,
        ahead: RangeInclusive<i64>,
        lanes: &[Lane],
    ) -> Result<Vec<Claimed>, StoreError>;
    /// Stores the process of a running delivery. False when it is not running.
    fn name_child(&mut self, key: DeliveryKey, child: &ProcessMark) -> Result<bool, StoreError>;
    /// Undoes the claim of a delivery of which nothing was begun: it waits as it did before, or is held if it was to be
    /// from its end on. False when it is not running.
    fn give_back(&mut self, key: DeliveryKey) -> Result<bool, StoreError>;
    /// Marks the events behind this number as dated by a clock that may have been wrong.
    fn mark_unsure(&mut self, after: i64) -> Result<(), StoreError>;
    /// Corrects what waits after the clock was set, which shows `now_ms` from now on. Set forward by `forward_ms`, what was
    /// still to come is as far away as before. What was planned later than now starts its wait now. Returns how many.
    fn replan(&mut self, now_ms: i64, forward_ms: i64) -> Result<usize, StoreError>;
    /// Stores the end of a run and what follows. `None` as the time: no next run; `interrupted`: not counted. False when
    /// the delivery is not running: the end was stored before.
    fn finish(
        &mut self,
        key: DeliveryKey,
        record: &AttemptRecord,
        after: super::command::After,
    ) -> Result<bool, StoreError>;
    /// Owes it to somebody to be told that this delivery was given up with its last attempt, at this time, milliseconds
    /// since 1970. Whoever was told before that it was given up is told anew, with a fresh schedule; who was not told yet
    /// is told of the last time. That one which tells was given up is told nobody.
    fn owe_abandonment(&mut self, key: DeliveryKey, at_ms: i64) -> Result<(), StoreError>;
    /// Does what a person wants with those of the named deliveries whose state lets it. Returns how many.
    fn act(&mut self, acting: &Acting) -> Result<usize, StoreError>;

    /// Writes refused requests and drops the oldest beyond the bound.
    fn add_refusals(&mut self, refusals: &[Refusal]) -> Result<(), StoreError>;
    /// What a fact says; `None` when it was never stored, or cannot be read.
    fn fact<T>(&mut self, fact: &Fact<T>) -> Result<Option<T>, StoreError>;
    /// Has a fact say this from now on.
    fn set_fact<T>(&mut self, fact: &Fact<T>, value: &T) -> Result<(), StoreError> {
        self.note(&fact.note(value))
    }
    /// The same, of any fact.
    fn note(&mut self, note: &Note) -> Result<(), StoreError>;

    /// Up to `most` invoices in which one of these status names occurs, in key order, among the `among` invoices from this
    /// key on; and the key to go on from, `None` when there are no more invoices.
    fn with_status(
        &mut self,
        from: InvoiceKey,
        names: &[String],
        among: u32,
        most: u32,
    ) -> Result<(Vec<InvoiceKey>, Option<InvoiceKey>), StoreError>;
    /// What was heard of an invoice, oldest first: the causes of events whose line of history is dropped, as advances, then
    /// the history. An event with no document of the service was made by tilld or a person, and is not among them.
    fn heard_claims(&mut self, key: InvoiceKey) -> Result<Vec<HeardClaim>, StoreError>;
    /// Holds all that waits, and from its end on what stands as running: its process may still be there, and nothing of its
    /// invoice may run beside it. Returns how many.
    fn hold_unfinished(&mut self, why: &'static str) -> Result<usize, StoreError>;
    /// Takes back the held deliveries of an invoice that tell an outcome and never ran.
    fn withdraw_held(&mut self, key: InvoiceKey) -> Result<Withdrawn, StoreError>;
}
