//! What the ledger gives back: rows as plain data, with nothing secret in them.

use serde::{Deserialize, Serialize};

use crate::hook::abandonment::GivenUp;
use crate::invoice::attention::Attention;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::silence::{Class, Heard};
use crate::invoice::status::Outcome;
use crate::process_mark::ProcessMark;

/// The ledger's own number of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InvoiceKey(pub i64);

/// The ledger's own number of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryKey(pub i64);

/// One invoice. Times are milliseconds since 1970, amounts plain decimal text.
#[derive(Clone, Debug)]
pub struct InvoiceRow {
    /// The ledger's number.
    pub key: InvoiceKey,
    /// The path segment of its notificationUrl.
    pub reference: InvoiceRef,
    /// The merchant's order.
    pub order_id: String,
    /// The service's id, once known.
    pub invoice_id: Option<String>,
    /// H2H or Redirect; unknown of an invoice opened elsewhere until an answer shows it.
    pub mode: Mode,
    /// `SBP` or `TO_CARD`, as asked; of an invoice opened elsewhere as reported, and empty until then.
    pub method: String,
    /// How far its opening came.
    pub opening: Opening,
    /// Why it was refused or is unknown, for people.
    pub opening_note: Option<String>,
    /// The process that opens it, while it does.
    pub creator: Option<ProcessMark>,
    /// When its opening is given up at the latest.
    pub creator_deadline_ms: i64,
    /// The service's word.
    pub status: Option<String>,
    /// What it amounts to.
    pub outcome: Outcome,
    /// Since when.
    pub outcome_ms: i64,
    /// Who brought the outcome.
    pub found_by: Option<Source>,
    /// What was asked for.
    pub amount_asked: String,
    /// The currency asked for.
    pub currency_asked: String,
    /// What was agreed.
    pub amount_agreed: String,
    /// The currency agreed.
    pub currency_agreed: String,
    /// What the service reported last.
    pub amount_reported: Option<String>,
    /// The currency reported last.
    pub currency_reported: Option<String>,
    /// A poll must tell.
    pub doubt: bool,
    /// Why an operator must look, in the order the reasons came.
    pub attention: Vec<Attention>,
    /// The event `unresolved` was written.
    pub unresolved: bool,
    /// The payment requisites as JSON text (H2H).
    pub requisites: Option<String>,
    /// The payment page (Redirect).
    pub payment_url: Option<String>,
    /// The service's newest document, secrets cut out.
    pub raw: Option<String>,
    /// The end of the payment window, when the service gave one.
    pub expire_ms: Option<i64>,
    /// When the row was written.
    pub created_ms: i64,
    /// When it changed last.
    pub updated_ms: i64,
    /// Counts changes.
    pub revision: i64,
    /// The invoice that stands for the order instead, if this one is superseded.
    pub superseded: Option<SupersededBy>,
}

/// The invoice that stands for the order in the place of a superseded one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersededBy {
    /// Its ref.
    pub r#ref: String,
    /// The service's id, once known.
    pub invoice_id: Option<String>,
    /// What it amounts to.
    pub outcome: String,
    /// What was agreed for it.
    pub amount: String,
    /// The currency agreed.
    pub currency: String,
}

/// Invoices that one answer may hold: so many, and no more than [`InvoicePage::BYTES`] of the service's texts.
#[derive(Debug, Default)]
pub struct InvoicePage {
    /// The invoices; one at least where there is any.
    pub rows: Vec<InvoiceRow>,
    /// There are more behind them.
    pub more: bool,
}

impl InvoicePage {
    /// The texts of a page, bytes: a thousand invoices of the usual size. One document may have a mebibyte.
    pub const BYTES: usize = 4 * 1024 * 1024;

    /// Of rows in their order, read one by one: what does not fit is never held.
    pub(super) fn read<E>(
        rows: impl Iterator<Item = Result<InvoiceRow, E>>,
        most: usize,
    ) -> Result<Self, E> {
        let (mut page, mut bytes) = (Self::default(), 0_usize);
        for row in rows {
            let row = row?;
            let texts = [&row.raw, &row.requisites, &row.payment_url];
            bytes += texts.into_iter().flatten().map(String::len).sum::<usize>();
            let fits = page.rows.len() < most && bytes <= Self::BYTES;
            if !fits && !page.rows.is_empty() {
                page.more = true;
                break;
            }
            page.rows.push(row);
        }
        Ok(page)
    }
}

impl InvoiceRow {
    /// True when an operator must look for this reason.
    pub fn needs(&self, reason: Attention) -> bool {
        self.attention.contains(&reason)
    }

    /// Adds a reason to look, or takes it away.
    pub fn set_attention(&mut self, reason: Attention, wanted: bool) {
        match (self.needs(reason), wanted) {
            (false, true) => self.attention.push(reason),
            (true, false) => self.attention.retain(|one| *one != reason),
            (false, false) | (true, true) => {}
        }
    }

    /// Drops the reasons that a final outcome settles: an answer came, and the sums were compared or are none of interest.
    pub fn drop_settled(&mut self) {
        if self.outcome.is_final() {
            self.set_attention(Attention::Unanswered, false);
            self.set_attention(Attention::Unresolved, false);
            self.set_attention(Attention::AmountDiffers, false);
        }
    }

    /// True when nobody knows whether its create reached the service, and nothing has named its id since.
    pub fn is_lost(&self, now_ms: i64) -> bool {
        let unknown = match self.opening {
            Opening::Unknown => true,
            Opening::Creating => self.is_given_up(now_ms),
            Opening::Answered | Opening::Refused | Opening::Tracked => false,
        };
        unknown && self.invoice_id.is_none()
    }

    /// True when nobody will record the answer to its create any more: the process that sent it is gone, or too late.
    pub fn is_given_up(&self, now_ms: i64) -> bool {
        now_ms >= self.creator_deadline_ms
            || !self.creator.as_ref().is_some_and(ProcessMark::is_running)
    }
}

/// One event.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// Its number; events are numbered without gaps.
    pub seq: i64,
    /// Its stable id, for deduplication by whoever acts on it.
    pub event_id: String,
    /// The invoice.
    pub invoice: InvoiceKey,
    /// The merchant's order.
    pub order_id: String,
    /// What kind of change.
    pub kind: EventKind,
    /// A poll, twice the same, went back to an older claim.
    pub rewound: bool,
    /// The status from then on.
    pub status: Option<String>,
    /// The status before.
    pub previous_status: Option<String>,
    /// The outcome from then on.
    pub outcome: Outcome,
    /// The outcome before.
    pub previous_outcome: Outcome,
    /// The outcome of the order from then on.
    pub order_outcome: Outcome,
    /// Who brought it; `None` for what tilld found itself.
    pub source: Option<Source>,
    /// When it was recorded.
    pub at_ms: i64,
    /// The reported amount.
    pub amount_reported: Option<String>,
    /// The reported currency.
    pub currency_reported: Option<String>,
    /// The service's document, secrets cut out.
    pub raw: Option<String>,
}

/// How far a delivery has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    /// To be run, now or later.
    Waiting,
    /// A run is under way, or was when its daemon died.
    Running,
    /// The hook said it is done.
    Done,
    /// Given up after its last attempt.
    Abandoned,
    /// A person must release it before it is run.
    Held,
}

impl DeliveryState {
    /// All of them, in the order they usually come.
    pub const ALL: [Self; 5] = [
        Self::Held,
        Self::Waiting,
        Self::Running,
        Self::Done,
        Self::Abandoned,
    ];

    /// The word used in the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Abandoned => "abandoned",
            Self::Held => "held",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }
}

/// One event owed to one hook.
#[derive(Clone, Debug)]
pub struct DeliveryRow {
    /// The ledger's number.
    pub key: DeliveryKey,
    /// The event's number.
    pub seq: i64,
    /// The event's id.
    pub event_id: String,
    /// The merchant's order.
    pub order_id: String,
    /// The kind of event.
    pub kind: EventKind,
    /// The hook.
    pub hook: String,
    /// When the event was recorded.
    pub at_ms: i64,
    /// How far it has come.
    pub state: DeliveryState,
    /// Attempts begun.
    pub attempts: u32,
    /// It was done once, and a person wanted it run again.
    pub replay: bool,
    /// When it runs next, while it waits.
    pub next_ms: Option<i64>,
    /// Why a person must release it, while it is held.
    pub held_why: Option<String>,
    /// Who gave it up, when that was a person: `operator`.
    pub abandoned_by: Option<String>,
    /// It was given up, and raises no alert any more.
    pub acknowledged: bool,
    /// The event, by its number, whose delivery to the same hook it waits for, while it waits.
    pub behind: Option<i64>,
}

/// One run of one delivery that has ended.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    /// 1-based.
    pub number: u32,
    /// When it began.
    pub started_ms: i64,
    /// When it ended.
    pub ended_ms: i64,
    /// How it ended, for example `exit 0`.
    pub result: String,
    /// First and last of what it wrote to stdout.
    pub stdout: Vec<u8>,
    /// First and last of what it wrote to stderr.
    pub stderr: Vec<u8>,
}

/// A delivery that was claimed and may be run once its child is named, if it is not named already.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The delivery.
    pub key: DeliveryKey,
    /// The hook to run.
    pub hook: String,
    /// 1-based, counted over the delivery's whole life.
    pub attempt: u32,
    /// 1-based, counted since a person last asked for a retry and without attempts that were no failures: how often it
    /// may still fail goes by this one.
    pub round_attempt: u32,
    /// It was done once already and is run again by a person's wish.
    pub replay: bool,
    /// The event.
    pub event: EventRow,
    /// The invoice as it stands now.
    pub invoice: InvoiceRow,
    /// The delivery of the same event that was given up, when this one is owed to tell that.
    pub given_up: Option<GivenUp>,
    /// The process that was named with the claim.
    pub child: Option<ProcessMark>,
}

/// What a claim would find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Something, now.
    pub now: bool,
    /// When the next delivery becomes due that is not due yet, milliseconds since 1970. It may still have to wait for
    /// another one then.
    pub next_ms: Option<i64>,
}

/// A delivery that is running, or was when its daemon died.
#[derive(Clone, Debug)]
pub struct Running {
    /// The delivery.
    pub key: DeliveryKey,
    /// The hook.
    pub hook: String,
    /// The attempt's number.
    pub attempt: u32,
    /// The daemon that claimed it.
    pub claimant: ProcessMark,
    /// The hook's process, once named. Unnamed means: it never ran.
    pub child: Option<ProcessMark>,
    /// When it was claimed.
    pub started_ms: i64,
}

/// What the listener needs to judge a notification.
#[derive(Debug)]
pub struct Watched {
    /// The invoice.
    pub key: InvoiceKey,
    /// Its token; `None` when the sealed one could not be opened: then nothing authenticates.
    pub token: Option<NotifyToken>,
}

/// An invoice whose time to be asked about has come.
#[derive(Clone, Debug)]
pub struct DueRow {
    /// The invoice.
    pub key: InvoiceKey,
    /// The merchant's order, for logs.
    pub order_id: String,
    /// The service's id.
    pub invoice_id: InvoiceId,
    /// Its revision now, to be sent along with the answer.
    pub revision: i64,
    /// What is known about its silence.
    pub heard: Heard,
    /// When it was due.
    pub due_ms: i64,
    /// What this due time is filed under.
    pub class: Class,
}

/// A place in the order in which due times are filed: by class, and within it by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The class.
    pub class: Class,
    /// The due time, milliseconds since 1970.
    pub due_ms: i64,
    /// The invoice.
    pub key: InvoiceKey,
}

/// One refused request.
#[derive(Clone, Debug)]
pub struct RefusalRow {
    /// The ledger's number: the newer, the higher.
    pub number: i64,
    /// When.
    pub at_ms: i64,
    /// The order it was for, if it is one of ours.
    pub order_id: Option<String>,
    /// The service's id of the invoice it was for, once that is known.
    pub invoice_id: Option<String>,
    /// A short hash of the path segment that stood for a ref; empty when none did.
    pub ref_hash: String,
    /// The names of its headers, sorted, with a comma between.
    pub header_names: String,
    /// Why, as a fixed word.
    pub reason: String,
    /// The peer's address.
    pub peer: String,
    /// The body's length, bytes; 0 when it was not read.
    pub body_bytes: i64,
    /// The body's SHA-256, in hex; empty when it was not read.
    pub body_sha256: String,
}

/// Which refused requests are listed.
#[derive(Clone, Debug, Default)]
pub struct RefusalFilter {
    /// Only those for this order.
    pub order_id: Option<String>,
    /// Only those with this reason.
    pub reason: Option<&'static str>,
    /// Only those from this time on, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Only those whose body has this SHA-256, in lower-case hex.
    pub body_sha256: Option<String>,
    /// Only those before the one with this number.
    pub before: Option<i64>,
}
