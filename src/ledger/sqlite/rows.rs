//! Between SQLite's rows and the ledger's types. A word that cannot be read back is an error, never a guess.

use rusqlite::types::Type;
use rusqlite::{Error, Row, RowIndex};

use super::columns::{self, at};
use super::failure::Unreadable;
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::silence::Class;
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::{Sum, Verdict};
use crate::invoice::transition::{Claim, Invoice, Pending, Sorted, Superseding};
use crate::ledger::row::{
    DeliveryRow, DeliveryState, EventRow, InvoiceKey, InvoiceRow, SupersededBy,
};
use crate::ledger::store::Stored;
use crate::process_mark::ProcessMark;

/// Where a value stands in a row: its number, or its name where speed does not matter.
pub(super) trait Place: RowIndex + Copy {
    /// The name, for whoever reads an error.
    fn name(self, row: &Row<'_>) -> String;
}

impl Place for usize {
    fn name(self, row: &Row<'_>) -> String {
        row.as_ref()
            .column_name(self)
            .map_or_else(|_none| self.to_string(), str::to_owned)
    }
}

impl Place for &'static str {
    fn name(self, _row: &Row<'_>) -> String {
        self.to_owned()
    }
}

/// The columns of an invoice. Whatever is selected beside them comes after them.
pub(super) const INVOICE: &str = columns::INVOICE;

/// The columns of an event; needs `invoice i` joined for the order.
pub(super) const EVENT: &str = "e.seq, e.event_id, e.invoice, i.order_id, e.kind, e.rewound, e.status AS e_status, \
  e.previous_status, e.outcome AS e_outcome, e.previous_outcome, e.source, e.at_ms, \
  e.amount_reported AS e_amount, e.currency_reported AS e_currency, e.raw AS e_raw, \
  e.order_outcome";

/// The same without the service's document, for lists: it may have a mebibyte.
pub(super) const EVENT_LISTED: &str = "e.seq, e.event_id, e.invoice, i.order_id, e.kind, e.rewound, e.status AS e_status, \
  e.previous_status, e.outcome AS e_outcome, e.previous_outcome, e.source, e.at_ms, \
  e.amount_reported AS e_amount, e.currency_reported AS e_currency, NULL AS e_raw, \
  e.order_outcome";

/// The columns of a delivery; needs `event e` and `invoice i` joined.
pub(super) const DELIVERY: &str = "d.id AS d_id, e.seq, e.event_id, e.at_ms, i.order_id, e.kind, d.hook, d.state, d.attempts, \
  d.replay, d.next_ms, CASE d.state WHEN 'held' THEN d.held_why END AS held_why, d.abandoned_by, d.acknowledged, CASE d.state WHEN 'waiting' THEN (SELECT min(o.event) FROM delivery o WHERE o.invoice = d.invoice \
  AND o.hook = d.hook AND o.event < d.event AND o.state <> 'done' AND o.state <> 'abandoned') END AS behind";

fn unreadable(column: String, found: String) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, Box::new(Unreadable { column, found }))
}

/// Reads a word of a closed list.
pub(super) fn word<T>(
    row: &Row<'_>,
    column: impl Place,
    parse: fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text = row.get_ref(column)?.as_str()?;
    parse(text).ok_or_else(|| unreadable(column.name(row), text.to_owned()))
}

/// Reads a word back that may be missing.
pub(super) fn optional<T>(
    row: &Row<'_>,
    column: impl Place,
    parse: impl Fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(None);
    };
    match parse(text) {
        Some(found) => Ok(Some(found)),
        None => Err(unreadable(column.name(row), text.to_owned())),
    }
}

/// Reads the class a due time is filed under.
pub(super) fn class(row: &Row<'_>, column: usize) -> rusqlite::Result<Class> {
    let number: i64 = row.get(column)?;
    Class::of_number(number).ok_or_else(|| unreadable("class".to_owned(), number.to_string()))
}

/// Reads an invoice as it is shown.
pub(super) fn invoice(row: &Row<'_>) -> rusqlite::Result<InvoiceRow> {
    Ok(InvoiceRow {
        key: InvoiceKey(row.get(at::id)?),
        reference: word(row, at::reference, InvoiceRef::parse)?,
        order_id: row.get(at::order_id)?,
        invoice_id: row.get(at::invoice_id)?,
        mode: word(row, at::mode, Mode::parse)?,
        method: row.get(at::method)?,
        opening: word(row, at::opening, Opening::parse)?,
        opening_note: row.get(at::opening_note)?,
        creator: mark(row, [at::creator_boot, at::creator_pid, at::creator_start])?,
        creator_deadline_ms: row.get(at::creator_deadline_ms)?,
        status: row.get(at::status)?,
        outcome: word(row, at::outcome, Outcome::parse)?,
        outcome_ms: row.get(at::outcome_ms)?,
        found_by: optional(row, at::found_by, Source::parse)?,
        amount_asked: row.get(at::amount_asked)?,
        currency_asked: row.get(at::currency_asked)?,
        amount_agreed: row.get(at::amount_agreed)?,
        currency_agreed: row.get(at::currency_agreed)?,
        amount_reported: row.get(at::amount_reported)?,
        currency_reported: row.get(at::currency_reported)?,
        doubt: row.get(at::doubt)?,
        attention: attention(row.get_ref(at::attention)?.as_str()?),
        unresolved: row.get(at::unresolved)?,
        requisites: row.get(at::requisites)?,
        payment_url: row.get(at::payment_url)?,
        raw: row.get(at::raw)?,
        expire_ms: row.get(at::expire_ms)?,
        created_ms: row.get(at::created_ms)?,
        updated_ms: row.get(at::updated_ms)?,
        revision: row.get(at::revision)?,
        superseded: optional(row, at::superseded, superseded_by)?,
    })
}

/// What `superseded` in [`columns`] packs into one text.
fn superseded_by(packed: &str) -> Option<SupersededBy> {
    let mut parts = packed.splitn(5, ' ');
    let mut next = || parts.next().map(str::to_owned);
    Some(SupersededBy {
        r#ref: next()?,
        outcome: next()?,
        amount: next()?,
        currency: next()?,
        invoice_id: next().filter(|id| !id.is_empty()),
    })
}

/// The same for what decides.
fn superseding(by: &SupersededBy) -> rusqlite::Result<Superseding> {
    let outcome = Outcome::parse(&by.outcome)
        .ok_or_else(|| unreadable("outcome".to_owned(), by.outcome.clone()))?;
    Ok(Superseding {
        sum: sum(&by.amount, &by.currency)?,
        outcome,
    })
}

/// Reasons as they are stored: words with a blank between. One of another version or hand hides no invoice; `db check` names it.
pub(super) fn attention(text: &str) -> Vec<Attention> {
    let words = text.split_ascii_whitespace();
    words.filter_map(Attention::parse).collect()
}

/// The form that [`attention`] reads.
pub(super) fn pack_attention(reasons: &[Attention]) -> String {
    let words: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
    words.join(" ")
}

/// What was agreed.
pub(super) fn sum(amount: &str, currency: &str) -> rusqlite::Result<Sum> {
    let read = Amount::parse(amount)
        .map_err(|_e| unreadable("amount_agreed".to_owned(), amount.to_owned()))?;
    Sum::new(read, currency)
        .map_err(|_e| unreadable("currency_agreed".to_owned(), currency.to_owned()))
}

/// The merchant's order.
pub(super) fn order(text: &str) -> rusqlite::Result<OrderId> {
    OrderId::new(text).map_err(|_e| unreadable("order_id".to_owned(), String::new()))
}

/// The service's id, once known.
pub(super) fn id(text: Option<&str>) -> rusqlite::Result<Option<InvoiceId>> {
    let id = text.map(InvoiceId::new).transpose();
    id.map_err(|_e| unreadable("invoice_id".to_owned(), String::new()))
}

/// Reads an invoice as the writer changes it; its recorded claims are not loaded here.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let shown = invoice(row)?;
    let decides = Invoice {
        order_id: order(&shown.order_id)?,
        id: id(shown.invoice_id.as_deref())?,
        agreed: sum(&shown.amount_agreed, &shown.currency_agreed)?,
        revision: shown.revision,
        claim: claim(row, [at::status, at::claim_differs, at::claim_ns])?,
        sorted: sorted(row)?,
        outcome: shown.outcome,
        superseded: shown.superseded.as_ref().map(superseding).transpose()?,
        doubt: shown.doubt,
        doubted: packed(row, at::doubted, unpack_claims)?.unwrap_or_default(),
        pending: packed(row, at::pending, unpack_pending)?,
        paid_counted: row.get(at::paid_counted)?,
        paid_fired: row.get(at::paid_fired)?,
        failed_fired: row.get(at::failed_fired)?,
        recorded: Vec::new(),
    };
    Ok(Stored {
        invoice: decides,
        row: shown,
        heard_ms: row.get(at::heard_ms)?,
        sorted_by: row.get(at::sorted_by)?,
        generation: row.get(at::generation)?,
        newest: Moment::from_ns(row.get(at::newest_ns)?),
    })
}

/// Reads a claim from three columns; `None` when there is no status.
pub(super) fn claim(row: &Row<'_>, columns: [impl Place; 3]) -> rusqlite::Result<Option<Claim>> {
    let [status_column, differs, at] = columns;
    let Some(status) = optional(row, status_column, |text| Status::new(text))? else {
        return Ok(None);
    };
    let verdict = Verdict::of_stored(row.get(differs)?);
    let at = row.get::<_, Option<i64>>(at)?.map(Moment::from_ns);
    Ok(Some(Claim {
        status,
        verdict,
        at,
    }))
}

fn sorted(row: &Row<'_>) -> rusqlite::Result<Option<Sorted>> {
    let meaning = optional(row, at::sorted_meaning, parse_meaning)?;
    let claim = claim(row, [at::sorted_status, at::sorted_differs, at::sorted_ns])?;
    let settled = row.get(at::sorted_settled)?;
    Ok(claim.zip(meaning).map(|(claim, meaning)| Sorted {
        claim,
        meaning,
        settled,
    }))
}

/// The word a meaning is stored as.
pub(super) const fn meaning_word(meaning: Meaning) -> &'static str {
    match meaning {
        Meaning::Open => "open",
        Meaning::Failed => "failed",
        Meaning::Paid => "paid",
        Meaning::Reversed => "reversed",
    }
}

fn parse_meaning(text: &str) -> Option<Meaning> {
    [
        Meaning::Open,
        Meaning::Failed,
        Meaning::Paid,
        Meaning::Reversed,
    ]
    .into_iter()
    .find(|m| meaning_word(*m) == text)
}

/// The three columns of a claim.
pub(super) fn claim_columns(claim: Option<&Claim>) -> (Option<&str>, Option<&str>, Option<i64>) {
    let differs = claim.and_then(|claim| claim.verdict.as_stored());
    (
        claim.map(|claim| claim.status.as_str()),
        differs,
        claim.and_then(|claim| claim.at).map(Moment::as_ns),
    )
}

/// Claims as one text: JSON, `[[status, differs, ns], …]`.
pub(super) fn pack_claims(claims: &[Claim]) -> Option<String> {
    let packed: Vec<_> = claims
        .iter()
        .map(|claim| claim_columns(Some(claim)))
        .collect();
    (!packed.is_empty())
        .then(|| serde_json::to_string(&packed).expect("texts and numbers are JSON"))
}

/// A pending claim as one text: JSON, `[[status, differs, ns], since_ms]`.
pub(super) fn pack_pending(pending: &Pending) -> String {
    serde_json::to_string(&(claim_columns(Some(&pending.claim)), pending.since_ms))
        .expect("texts and numbers are JSON")
}

type Packed = (String, Option<String>, Option<i64>);

fn unpack_claim((status, differs, at): Packed) -> Option<Claim> {
    let verdict = Verdict::of_stored(differs);
    Some(Claim {
        status: Status::new(status)?,
        verdict,
        at: at.map(Moment::from_ns),
    })
}

fn unpack_claims(text: &str) -> Option<Vec<Claim>> {
    serde_json::from_str::<Vec<Packed>>(text)
        .ok()?
        .into_iter()
        .map(unpack_claim)
        .collect()
}

fn unpack_pending(text: &str) -> Option<Pending> {
    let (claim, since_ms) = serde_json::from_str::<(Packed, i64)>(text).ok()?;
    Some(Pending {
        claim: unpack_claim(claim)?,
        since_ms,
    })
}

fn packed<T>(
    row: &Row<'_>,
    column: impl Place,
    unpack: fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    optional(row, column, unpack)
}

/// Reads a process mark from three columns.
pub(super) fn mark(
    row: &Row<'_>,
    columns: [impl Place; 3],
) -> rusqlite::Result<Option<ProcessMark>> {
    let [boot, pid, start] = columns;
    let boot_id: Option<String> = row.get(boot)?;
    let (pid, start) = (
        row.get::<_, Option<i32>>(pid)?,
        row.get::<_, Option<i64>>(start)?,
    );
    Ok(boot_id
        .zip(pid.zip(start))
        .map(|(boot_id, (pid, start_ticks))| ProcessMark {
            boot_id,
            pid,
            start_ticks,
        }))
}

/// Reads an event. One name is looked up: from there on the columns are those of [`EVENT`], in its order.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    let from = row.as_ref().column_index("seq")?;
    Ok(EventRow {
        seq: row.get(from)?,
        event_id: row.get(from + 1)?,
        invoice: InvoiceKey(row.get(from + 2)?),
        order_id: row.get(from + 3)?,
        kind: word(row, from + 4, EventKind::parse)?,
        rewound: row.get(from + 5)?,
        status: row.get(from + 6)?,
        previous_status: row.get(from + 7)?,
        outcome: word(row, from + 8, Outcome::parse)?,
        previous_outcome: word(row, from + 9, Outcome::parse)?,
        source: optional(row, from + 10, Source::parse)?,
        at_ms: row.get(from + 11)?,
        amount_reported: row.get(from + 12)?,
        currency_reported: row.get(from + 13)?,
        raw: row.get(from + 14)?,
        order_outcome: word(row, from + 15, Outcome::parse)?,
    })
}

/// Reads a delivery.
pub(super) fn delivery(row: &Row<'_>) -> rusqlite::Result<DeliveryRow> {
    Ok(DeliveryRow {
        key: crate::ledger::row::DeliveryKey(row.get("d_id")?),
        seq: row.get("seq")?,
        event_id: row.get("event_id")?,
        order_id: row.get("order_id")?,
        kind: word(row, "kind", EventKind::parse)?,
        hook: row.get("hook")?,
        state: word(row, "state", DeliveryState::parse)?,
        at_ms: row.get("at_ms")?,
        attempts: row.get("attempts")?,
        replay: row.get("replay")?,
        next_ms: row.get("next_ms")?,
        held_why: row.get("held_why")?,
        abandoned_by: row.get("abandoned_by")?,
        acknowledged: row.get("acknowledged")?,
        behind: row.get("behind")?,
    })
}
