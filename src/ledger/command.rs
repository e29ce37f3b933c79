//! What can be asked of the writer, and what it answers. One command is one all-or-nothing change.

use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::observation::{Observation, Odd};
use crate::invoice::opening::{Difference, Wanted};
use crate::invoice::status::Outcome;
use crate::invoice::sum::Sum;
use crate::invoice::transition::Decision;
use crate::process_mark::ProcessMark;

use super::choice::{Acting, Supplying};
use super::clock_note::WrongClock;
use super::fact::Note;
use super::retention::{Cutoffs, Emptied};
use super::row::{Claimed, DeliveryKey, InvoiceKey, InvoiceRow};
use super::seal::Sealed;

/// An invoice about to be opened. Its row stands before its request leaves.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The merchant's order.
    pub order_id: OrderId,
    /// What is asked for.
    pub wanted: Wanted,
    /// The path segment of its notificationUrl. When a refused invoice of the order has it already, that row begins
    /// anew: the same process tries again what certainly created nothing.
    pub reference: InvoiceRef,
    /// The ref of an earlier opening of the order that this one stands in for. It is made only while that one counts as
    /// refused, whatever the wish is.
    pub instead_of: Option<InvoiceRef>,
    /// Its notify token, sealed.
    pub sealed: Sealed,
    /// This process.
    pub creator: ProcessMark,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
    /// After this the opening counts as given up even if the process lives, milliseconds since 1970.
    pub deadline_ms: i64,
    /// How long a Redirect invoice, which has no `expireAt`, counts as open, milliseconds.
    pub window_ms: i64,
    /// Invoices of the order that were polled for this just now. A poll that is planned for later was wanted before.
    pub polled: Vec<InvoiceKey>,
}

/// The answer to an [`Intent`].
#[derive(Clone, Debug)]
pub enum Begun {
    /// The row stands; the request may leave.
    Fresh(InvoiceKey),
    /// This one is open and is what was asked for.
    Standing(Box<InvoiceRow>),
    /// This one is paid.
    Paid(Box<InvoiceRow>),
    /// Somebody is opening this one.
    BeingCreated(Box<InvoiceRow>),
    /// Nobody knows whether this one was opened.
    Unknown(Box<InvoiceRow>),
    /// This one is open and differs in the named respect.
    Differs(Box<InvoiceRow>, Difference),
    /// This one may have been paid: a poll must show it first.
    Unsettled(Box<InvoiceRow>),
    /// This one is superseded, and can be paid or holds a payment that does not pay the order.
    Superseded(Box<InvoiceRow>),
}

/// How the request that opens an invoice ended.
#[derive(Clone, Debug)]
pub enum Settled {
    /// The service answered with the invoice.
    Answered(Box<Observation>),
    /// The service refused it, had no requisites free, or the request never left.
    Refused(String),
    /// The request may have arrived; nobody knows.
    Unknown(String),
}

/// What became of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The merchant's order, for logs.
    pub order_id: String,
    /// What was decided.
    pub decision: Decision,
    /// The event it made, if any.
    pub event: Option<RecordedEvent>,
    /// The outcome from now on.
    pub outcome: Outcome,
    /// A status that stands on no list and was not seen before in this ledger.
    pub new_unsorted: Option<String>,
    /// What was odd about the service's fields and was not seen before in this ledger.
    pub new_odd: Vec<Odd>,
    /// It left something to ask at once.
    pub ask_soon: bool,
    /// What the invoice came to by lists that changed, before this was decided.
    pub resorted: Option<Resorted>,
}

/// An invoice that changed because the merchant's lists did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resorted {
    /// The merchant's order, for logs.
    pub order_id: String,
    /// The outcome from now on.
    pub outcome: Outcome,
    /// The event; its deliveries are held.
    pub event: RecordedEvent,
    /// Deliveries of what the lists before made of it that were held and never ran; they are gone.
    pub withdrawn: usize,
}

/// One step of the pass over the invoices that were stored before the lists changed.
#[derive(Clone, Debug, Default)]
pub struct Reassessed {
    /// What changed in this step.
    pub resorted: Vec<Resorted>,
    /// Invoices that changed since the lists did.
    pub changed: u64,
    /// It is not through yet.
    pub more: bool,
    /// It left something to ask at once.
    pub ask_soon: bool,
}

/// The event an observation made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its number.
    pub seq: i64,
    /// Its id.
    pub event_id: String,
    /// Its kind.
    pub kind: EventKind,
    /// How many deliveries it is owed to.
    pub deliveries: usize,
}

/// How a run ended, as it is stored.
#[derive(Clone, Debug)]
pub struct AttemptRecord {
    /// When it began, milliseconds since 1970.
    pub started_ms: i64,
    /// When it ended, milliseconds since 1970.
    pub ended_ms: i64,
    /// For example `exit 0`, `signal 9`, `timeout`, `interrupted`.
    pub result: String,
    /// First and last of what it wrote to stdout.
    pub stdout: Vec<u8>,
    /// First and last of what it wrote to stderr.
    pub stderr: Vec<u8>,
}

/// What follows a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The hook said it is done.
    Done,
    /// It is run again at this time, milliseconds since 1970.
    Retry {
        /// When.
        at_ms: i64,
    },
    /// It asked to be run again, and is at this time, milliseconds since 1970; the attempt is no failure.
    Postponed {
        /// When.
        at_ms: i64,
    },
    /// It is given up.
    Abandoned,
    /// It was cut short by us: it waits again, and the attempt is no failure.
    Interrupted,
}

/// A request on the listener that was not accepted.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The invoice it was for, if it is one of ours: it is nudged.
    pub invoice: Option<InvoiceKey>,
    /// A short hash of the path segment that stood for a ref; empty when none did. Never the segment: it may be a ref.
    pub ref_hash: String,
    /// The names of its headers, sorted, with a comma between. Never their values.
    pub header_names: String,
    /// Why, as a fixed word.
    pub reason: &'static str,
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// The peer's address; `unix` for a proxy that came by a Unix socket.
    pub peer: String,
    /// The body's length, bytes.
    pub body_bytes: usize,
    /// The body's SHA-256, in hex; empty when it was not read.
    pub body_sha256: String,
}

/// A poll that brought no answer about its invoice.
#[derive(Clone, Copy, Debug)]
pub struct PollFailed {
    /// The invoice.
    pub key: InvoiceKey,
    /// When it was asked, milliseconds since 1970.
    pub asked_ms: i64,
    /// Now, milliseconds since 1970. Before `asked_ms` when the clock was set back meanwhile.
    pub now_ms: i64,
    /// Why there was none.
    pub why: NoAnswer,
}

/// Why a poll brought no answer about its invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    /// The service gives nobody answers: it says nothing about this invoice.
    Outage,
    /// The service says that it has no such invoice, or keeps it from this login: its word about this invoice, if only
    /// about its end.
    NotFound {
        /// The service's clock when it said so, if that was dated: milliseconds since 1970.
        service_ms: Option<i64>,
    },
    /// The service answers others, and not about this one.
    Alone,
    /// All else.
    Other,
}

/// An invoice that the shop's own code opened, to be watched over from now on.
#[derive(Clone, Debug)]
pub struct Tracking {
    /// The merchant's order.
    pub order_id: OrderId,
    /// The service's id of the invoice.
    pub invoice_id: InvoiceId,
    /// What was asked for it.
    pub agreed: Sum,
    /// A fresh ref, as every invoice has one.
    pub reference: InvoiceRef,
    /// Its notify token, sealed for that ref.
    pub sealed: Sealed,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

/// Reported figures that a person takes as agreed.
#[derive(Clone, Debug)]
pub struct Acceptance {
    /// The invoice.
    pub key: InvoiceKey,
    /// The reported amount the person was shown.
    pub amount: Option<String>,
    /// The reported currency the person was shown.
    pub currency: Option<String>,
    /// The amount the person named: the reported one, or that of a payment the service names no amount of.
    pub named: Amount,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

/// What became of a person's wish.
#[derive(Clone, Debug)]
pub enum Operated {
    /// Done: the invoice as it stands now, and what was recorded.
    Done(Box<InvoiceRow>, Vec<Recorded>),
    /// It stands so already; nothing was recorded.
    Already(Box<InvoiceRow>),
    /// Nothing was done, because of this invoice.
    Refused(Box<InvoiceRow>, Objection),
}

/// Why a person's wish was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// The id belongs to this invoice of the ledger, which is another one.
    Taken,
    /// The ledger has it with another sum.
    OtherSum,
    /// The invoice has another id.
    OtherId,
    /// What became of its create is known, or somebody is waiting for the answer.
    NotLost,
    /// The service says that the id belongs to another order.
    OtherOrder,
    /// The service has reported no figures.
    NothingReported,
    /// The reported figures are no sum that can be agreed to.
    Unreadable,
    /// The service has reported other figures than those the person was shown.
    ReportedSince,
    /// It is paid with the sum that was agreed.
    Paid,
    /// Another invoice has paid its order.
    OrderPaid,
}

/// Deliveries that share places, and how many of them may begin. Claims and looks are told one for each hook: whose
/// places are full is not read past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The names, in the column `hook`, of the deliveries that run in these places.
    pub names: Vec<String>,
    /// At most this many.
    pub want: u32,
    /// Processes that wait for what they are to run: one claimed after the other has one of them as its child, as long as
    /// there are any. Those that are claimed beyond have none until it is named.
    pub children: Vec<ProcessMark>,
}

/// One change asked of the writer.
#[derive(Clone, Debug)]
pub(crate) enum Command {
    /// An observation of an invoice.
    Record(InvoiceKey, Box<Observation>),
    /// An invoice about to be opened.
    Begin(Box<Intent>),
    /// The end of an opening.
    Settle(InvoiceKey, Settled),
    /// The creator of this invoice is gone or too late.
    GiveUpOpening(InvoiceKey),
    /// Polls that brought nothing.
    PollFailed(PollFailed),
    /// Due times to be counted again, at most [`super::REDATE_AT_ONCE`].
    Redate(Vec<InvoiceKey>, i64),
    /// The horizon of this invoice has passed.
    Unresolve(InvoiceKey, i64),
    /// The clock was looked at.
    SeeClock {
        /// In what way it is wrong.
        wrong: Option<WrongClock>,
        /// Events behind this number were dated by a clock that may have been wrong.
        after: i64,
    },
    /// The clock was set: waits are corrected.
    Replan {
        /// What it shows now, milliseconds since 1970.
        now_ms: i64,
        /// By how much it was set forward; 0 for back, or for a time that is not known.
        forward_ms: i64,
    },
    /// Deliveries to be run.
    Claim {
        /// This process.
        claimant: ProcessMark,
        /// Now, milliseconds since 1970.
        now_ms: i64,
        /// Of whom, and how many of each.
        lanes: Vec<Lane>,
    },
    /// The process of a claimed delivery.
    NameChild(DeliveryKey, ProcessMark),
    /// A claimed delivery of which nothing was begun, and nothing will be.
    GiveBack(DeliveryKey),
    /// The end of a run.
    Finish(DeliveryKey, Box<AttemptRecord>, After),
    /// A person wants something done with deliveries.
    Act(Acting),
    /// A person wants the deliveries that events are without.
    Supply(Supplying),
    /// Refused requests, gathered.
    Refuse(Vec<Refusal>),
    /// Remember what a fact says.
    Note(Note),
    /// A person wants an invoice watched over that was opened elsewhere.
    Track(Box<Tracking>),
    /// A person named the id of this invoice; what the service said about it.
    Adopt(InvoiceKey, Box<Observation>),
    /// A person agrees to reported figures.
    Accept(Acceptance),
    /// The operator acknowledged these reasons at this invoice; now, milliseconds since 1970.
    Acknowledge(InvoiceKey, Vec<Attention>, i64),
    /// The next step of the pass after the lists changed; now, milliseconds since 1970.
    Reassess(i64),
    /// Outdated texts of these invoices to be emptied, at most [`super::retention::EMPTIED_AT_ONCE`].
    Empty(Vec<InvoiceKey>, Cutoffs),
}

impl Command {
    /// True of what ends or settles something that was begun: it is stored as long as there is any room.
    pub(super) const fn ends_something(&self) -> bool {
        match self {
            Self::Settle(..)
            | Self::GiveUpOpening(_)
            | Self::NameChild(..)
            | Self::GiveBack(_)
            | Self::Finish(..)
            | Self::Act(_)
            | Self::Supply(_) => true,
            Self::Record(..)
            | Self::Begin(_)
            | Self::PollFailed(_)
            | Self::Redate(..)
            | Self::Unresolve(..)
            | Self::Replan { .. }
            | Self::SeeClock { .. }
            | Self::Claim { .. }
            | Self::Refuse(_)
            | Self::Note(..)
            | Self::Track(_)
            | Self::Adopt(..)
            | Self::Accept(_)
            | Self::Acknowledge(..)
            | Self::Reassess(_)
            | Self::Empty(..) => false,
        }
    }
}

impl Command {
    /// True of what changes rows whatever the ledger holds: once it is stored, the ledger can store.
    pub(super) const fn surely_writes(&self) -> bool {
        match self {
            Self::Record(..)
            | Self::Begin(_)
            | Self::Settle(..)
            | Self::Finish(..)
            | Self::Refuse(_)
            | Self::Note(..)
            | Self::SeeClock { .. }
            | Self::Track(_) => true,
            Self::GiveUpOpening(_)
            | Self::NameChild(..)
            | Self::GiveBack(_)
            | Self::Act(_)
            | Self::Supply(_)
            | Self::PollFailed(_)
            | Self::Redate(..)
            | Self::Unresolve(..)
            | Self::Replan { .. }
            | Self::Claim { .. }
            | Self::Adopt(..)
            | Self::Accept(_)
            | Self::Acknowledge(..)
            | Self::Reassess(_)
            | Self::Empty(..) => false,
        }
    }
}

/// What the writer answers. Each command has its own kind; [`super::Writer`]'s methods unpack it.
#[derive(Debug)]
pub(crate) enum Reply {
    /// To [`Command::Record`].
    Recorded(Recorded),
    /// To [`Command::Begin`].
    Begun(Begun),
    /// To [`Command::Settle`]: the invoice, and what became of the answer.
    Settled(Box<InvoiceRow>, Option<Recorded>),
    /// To [`Command::Claim`].
    Claimed(Vec<Claimed>),
    /// To [`Command::Act`], [`Command::Supply`] and [`Command::Replan`]: how many deliveries it changed or made.
    Acted(usize),
    /// To [`Command::Reassess`].
    Reassessed(Reassessed),
    /// To [`Command::SeeClock`]: the newest event.
    Seen(i64),
    /// To [`Command::Empty`].
    Emptied(Emptied),
    /// To all else.
    Done,
    /// To [`Command::Track`], [`Command::Adopt`], [`Command::Accept`] and [`Command::Acknowledge`].
    Operated(Operated),
}
