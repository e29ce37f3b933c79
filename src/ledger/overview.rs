//! How the whole ledger stands, told without reading what grows: only partial indexes, the newest rows of bounded tables,
//! and counts that stop at a bound.
//!
//! Relies on the indexes of the schema by name, so that a question which would scan fails instead. Promises one moment.

use serde::{Deserialize, Serialize};

use super::apply::Restore;
use super::choice::Missing;
use super::clock_note::WrongClock;
use super::error::ReadError;
use super::log_held::LogHeld;
use super::reader::Reader;
use super::repoll::Repolled;
use super::row::InvoiceKey;
use super::sqlite::ReadStore;
use super::starts::Lost;
use crate::invoice::attention::Attention;
use crate::invoice::silence::Class;
use crate::invoice::status::StatusLists;

/// Why a request is refused that this tilld made itself: no count includes it.
pub(crate) const OWN_REQUEST: &str = "doctor";

/// When a notification was last stored, and of which invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LastHeard {
    /// Milliseconds since 1970.
    pub(crate) at_ms: i64,
    /// The invoice.
    pub(crate) invoice: InvoiceKey,
}

/// A count that stops at [`Tally::MOST`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many, at most [`Tally::MOST`].
    pub count: u64,
    /// There are more than that.
    pub more: bool,
}

impl Tally {
    /// The highest count that is told: beyond it a person needs no number, and a million must cost no more.
    pub const MOST: u64 = 10_000;

    /// Out of a count that stopped one beyond the bound.
    pub(in crate::ledger) fn up_to_most(found: u64) -> Self {
        Self {
            count: found.min(Self::MOST),
            more: found > Self::MOST,
        }
    }
}

/// How the ledger stands.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Where the last notification carried its notify token, as the config names the place, if that is remembered.
    pub presentation: Option<String>,
    /// The newest accepted notification among the newest [`Tally::MOST`] observations, else the one that was noted: when,
    /// milliseconds since 1970, and of which order.
    pub last_notification: Option<(i64, String)>,
    /// Refused requests since the time asked for, as far as they are recorded: `more` where some were not, or are no more.
    pub refusals: Tally,
    /// The commonest reason among them, and how often it was.
    pub commonest_refusal: Option<(String, u64)>,
    /// Invoices whose time to be asked about has come.
    pub due: Tally,
    /// The earliest of these times, milliseconds since 1970.
    pub oldest_due_ms: Option<i64>,
    /// Who is silent, by class.
    pub silent: Silent,
    /// Deliveries to be run, now or later.
    pub waiting: Tally,
    /// The hooks these are owed to, in the order of the alphabet.
    pub awaited: Vec<String>,
    /// When the earliest event was recorded that is owed to a hook and not done, given up or held, milliseconds since 1970; of
    /// the first [`Tally::MOST`] that wait.
    pub oldest_owed_ms: Option<i64>,
    /// Deliveries under way.
    pub running: Tally,
    /// Deliveries a person must release.
    pub held: Tally,
    /// Deliveries given up.
    pub abandoned: Tally,
    /// The orders of the newest of them, at most [`AttentionCount::ORDERS_MOST`], each once.
    pub abandoned_orders: Vec<String>,
    /// For each hook that something is owed to, what has been owed to it longest.
    pub(crate) undelivered: Vec<Undelivered>,
    /// The newest events that are without a delivery they were to have, at most [`Overview::MISSING_MOST`].
    pub missing: Vec<Missing>,
    /// There are more of them.
    pub more_missing: bool,
    /// What the daemon serves by, or served by last; `None` where none ever did.
    pub served: Option<ServedBy>,
    /// The last restore of the ledger, if there was one.
    pub restore: Option<Restore>,
    /// How many final outcomes were polled again after it; `None` until a daemon has counted them.
    pub repolled: Option<Repolled>,
    /// What is known to be missing from the ledger, until somebody acknowledges it.
    pub lost: Option<Lost>,
    /// Deliveries held because of a restore.
    pub held_restored: Tally,
    /// The words invoices stand under attention for, in the order of the alphabet; of the newest [`Tally::MOST`] such
    /// invoices.
    pub attention: Vec<AttentionCount>,
    /// There are more such invoices.
    pub more_attention: bool,
    /// Status names that stood on no list when they came, with the number of events; the present lists may have them.
    pub unsorted: Vec<(String, u64)>,
    /// Events with further such names: a ledger notes so many names and no more.
    pub unsorted_others: u64,
    /// The log could not be moved into the file, when that was so the last time the daemon looked.
    pub log_held: Option<LogHeld>,
    /// In what way the clock cannot be right, by the daemon's last look.
    pub(crate) wrong_clock: Option<WrongClock>,
    /// The newest changes since a daemon serves, without a break, that asking found and no notification told, among the newest
    /// [`Overview::CHANGES_LOOKED_AT`] events; and when the last of them was recorded, milliseconds since 1970.
    pub polled_in_a_row: (u64, Option<i64>),
    /// Without a last notification: since when it is known that there was none, milliseconds since 1970. The first event, or
    /// the oldest observation that was looked at where there are older ones.
    pub unheard_since_ms: Option<i64>,
}

impl Overview {
    /// Events looked at for changes in a row: a setting may ask for a thousand.
    pub const CHANGES_LOOKED_AT: u32 = 2_000;
    /// Missing deliveries that are named.
    pub const MISSING_MOST: u32 = 5;
}

/// What is owed to a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Undelivered {
    /// The name in the column `hook`.
    pub(crate) hook: String,
    /// The longest first, one beyond [`AttentionCount::ORDERS_MOST`] at most.
    pub(crate) owed: Vec<Owed>,
    /// The last attempt at the one that was owed longest of those that were tried.
    pub(crate) last: Option<LastAttempt>,
}

/// A delivery that is owed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owed {
    /// The order of its event.
    pub(crate) order_id: String,
    /// For so long, milliseconds in which a daemon served.
    pub(crate) for_ms: i64,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastAttempt {
    /// In one word or two, such as `exit 1`.
    pub(crate) result: String,
    /// The last line on its standard error.
    pub(crate) line: Option<String>,
}

/// What the daemon serves by.
#[derive(Clone, Debug)]
pub struct ServedBy {
    /// The names, in the column `hook`, of the deliveries that it runs.
    pub names: Vec<String>,
    /// The lists that sort statuses.
    pub lists: StatusLists,
}

/// How many invoices are to be asked about, and for how long they have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silent {
    /// Those whose time has come, one entry for each class, the most pressing first.
    pub due: Vec<DueOf>,
    /// Young ones that have a due time, come or not.
    pub young: Tally,
    /// The earliest due time that has not come yet, milliseconds since 1970.
    pub next_due_ms: Option<i64>,
    /// The one that is due for the longest (A06).
    pub longest: Option<Overdue>,
}

/// The invoices of one class whose time to be asked about has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueOf {
    /// The class.
    pub class: Class,
    /// How many.
    pub count: Tally,
    /// The earliest of their due times, milliseconds since 1970.
    pub oldest_ms: Option<i64>,
}

/// An invoice that waits to be asked about. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue {
    /// The merchant's order.
    pub order_id: String,
    /// When it was due.
    pub due_ms: i64,
    /// When it was opened here.
    pub created_ms: i64,
}

/// The invoices that need an operator for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionCount {
    /// The reason.
    pub reason: Attention,
    /// How many invoices.
    pub count: u64,
    /// The newest of their orders, at most [`AttentionCount::ORDERS_MOST`], each once.
    pub orders: Vec<String>,
}

impl AttentionCount {
    /// Orders that are named.
    pub const ORDERS_MOST: usize = 5;
}

impl Reader {
    /// How the ledger stands at `now_ms`; refusals are counted from `since_ms` on. Both milliseconds since 1970.
    pub async fn overview(&self, now_ms: i64, since_ms: i64) -> Result<Overview, ReadError> {
        self.ask(move |store| store.overview(now_ms, since_ms))
            .await
    }

    /// Whether something is owed to a hook: neither done, given up nor held.
    pub(crate) async fn is_owed(&self) -> Result<bool, ReadError> {
        self.ask(ReadStore::is_owed).await
    }
}
