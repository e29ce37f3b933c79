//! Between SQLite's rows and the ledger's types. A word that cannot be read back is an error, never a guess.

use rusqlite::types::Type;
use rusqlite::{Error, Row};

use super::failure::Unreadable;
use crate::invoice::amount::Amount;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::silence::Class;
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::{Sum, Verdict};
use crate::invoice::transition::{Claim, Invoice, Pending, Sorted};
use crate::ledger::row::{DeliveryRow, DeliveryState, EventRow, InvoiceKey, InvoiceRow};
use crate::ledger::store::Stored;
use crate::process_mark::ProcessMark;

/// The columns of an invoice, in the order [`invoice`] and [`stored`] read them by name.
pub(super) const INVOICE: &str = "i.id, i.ref, i.order_id, i.invoice_id, i.mode, i.method, i.opening, i.opening_note, \
  i.creator_boot, i.creator_pid, i.creator_start, i.creator_deadline_ms, i.amount_asked, i.currency_asked, \
  i.amount_agreed, i.currency_agreed, i.amount_reported, i.currency_reported, i.revision, i.status, i.claim_differs, \
  i.claim_ns, i.sorted_status, i.sorted_meaning, i.sorted_differs, i.sorted_ns, i.sorted_settled, i.outcome, \
  i.outcome_ms, i.found_by, i.doubt, i.doubted, i.pending, i.paid_counted, i.paid_fired, i.failed_fired, i.sorted_by, i.generation, i.attention, \
  i.unresolved, i.requisites, i.payment_url, i.raw, i.expire_ms, i.heard_ms, i.created_ms, i.updated_ms";

/// The columns of an event; needs `invoice i` joined for the order.
pub(super) const EVENT: &str = "e.seq, e.event_id, e.invoice, i.order_id, e.kind, e.rewound, e.status AS e_status, \
  e.previous_status, e.outcome AS e_outcome, e.previous_outcome, e.source, e.at_ms, \
  e.amount_reported AS e_amount, e.currency_reported AS e_currency, e.raw AS e_raw";

/// The columns of a delivery; needs `event e` and `invoice i` joined.
pub(super) const DELIVERY: &str = "d.id AS d_id, e.seq, e.event_id, e.at_ms, i.order_id, e.kind, d.hook, d.state, d.attempts, \
  d.replay, d.next_ms, CASE d.state WHEN 'held' THEN d.held_why END AS held_why, d.abandoned_by, CASE d.state WHEN 'waiting' THEN (SELECT min(o.event) FROM delivery o WHERE o.invoice = d.invoice \
  AND o.hook = d.hook AND o.event < d.event AND o.state IN ('waiting', 'running', 'held')) END AS behind";

fn unreadable(column: &'static str, found: String) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, Box::new(Unreadable { column, found }))
}

/// Reads a word of a closed list.
pub(super) fn word<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: fn(&str) -> Option<T>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| unreadable(column, text))
}

fn optional<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| parse(&text).ok_or_else(|| unreadable(column, text)))
        .transpose()
}

/// Reads the class a due time is filed under.
pub(super) fn class(row: &Row<'_>) -> rusqlite::Result<Class> {
    let number: i64 = row.get("class")?;
    Class::of_number(number).ok_or_else(|| unreadable("class", number.to_string()))
}

/// Reads an invoice as it is shown.
pub(super) fn invoice(row: &Row<'_>) -> rusqlite::Result<InvoiceRow> {
    let attention: String = row.get("attention")?;
    Ok(InvoiceRow {
        key: InvoiceKey(row.get("id")?),
        reference: word(row, "ref", InvoiceRef::parse)?,
        order_id: row.get("order_id")?,
        invoice_id: row.get("invoice_id")?,
        mode: word(row, "mode", Mode::parse)?,
        method: row.get("method")?,
        opening: word(row, "opening", Opening::parse)?,
        opening_note: row.get("opening_note")?,
        creator: mark(row, ["creator_boot", "creator_pid", "creator_start"])?,
        creator_deadline_ms: row.get("creator_deadline_ms")?,
        status: row.get("status")?,
        outcome: word(row, "outcome", Outcome::parse)?,
        outcome_ms: row.get("outcome_ms")?,
        found_by: optional(row, "found_by", Source::parse)?,
        amount_asked: row.get("amount_asked")?,
        currency_asked: row.get("currency_asked")?,
        amount_agreed: row.get("amount_agreed")?,
        currency_agreed: row.get("currency_agreed")?,
        amount_reported: row.get("amount_reported")?,
        currency_reported: row.get("currency_reported")?,
        doubt: row.get("doubt")?,
        attention: attention
            .split_ascii_whitespace()
            .map(str::to_owned)
            .collect(),
        unresolved: row.get("unresolved")?,
        requisites: row.get("requisites")?,
        payment_url: row.get("payment_url")?,
        raw: row.get("raw")?,
        expire_ms: row.get("expire_ms")?,
        created_ms: row.get("created_ms")?,
        updated_ms: row.get("updated_ms")?,
        revision: row.get("revision")?,
    })
}

/// Reads an invoice as the writer changes it; its recorded claims are not loaded here.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let shown = invoice(row)?;
    let amount = Amount::parse(&shown.amount_agreed)
        .map_err(|_e| unreadable("amount_agreed", shown.amount_agreed.clone()))?;
    let agreed = Sum::new(amount, &shown.currency_agreed)
        .map_err(|_e| unreadable("currency_agreed", shown.currency_agreed.clone()))?;
    let id = shown.invoice_id.clone().map(InvoiceId::new).transpose();
    let decides = Invoice {
        order_id: OrderId::new(shown.order_id.as_str())
            .map_err(|_e| unreadable("order_id", String::new()))?,
        id: id.map_err(|_e| unreadable("invoice_id", String::new()))?,
        agreed,
        revision: shown.revision,
        claim: claim(row, ["status", "claim_differs", "claim_ns"])?,
        sorted: sorted(row)?,
        outcome: shown.outcome,
        doubt: shown.doubt,
        doubted: packed(row, "doubted", unpack_claims)?.unwrap_or_default(),
        pending: packed(row, "pending", unpack_pending)?,
        paid_counted: row.get("paid_counted")?,
        paid_fired: row.get("paid_fired")?,
        failed_fired: row.get("failed_fired")?,
        recorded: Vec::new(),
    };
    Ok(Stored {
        invoice: decides,
        row: shown,
        heard_ms: row.get("heard_ms")?,
        sorted_by: row.get("sorted_by")?,
        generation: row.get("generation")?,
    })
}

/// Reads a claim from three columns; `None` when there is no status.
pub(super) fn claim(row: &Row<'_>, columns: [&'static str; 3]) -> rusqlite::Result<Option<Claim>> {
    let [status_column, differs, at] = columns;
    let Some(status) = optional(row, status_column, |text| Status::new(text))? else {
        return Ok(None);
    };
    let verdict = row
        .get::<_, Option<String>>(differs)?
        .map_or(Verdict::Agrees, Verdict::Differs);
    let at = row.get::<_, Option<i64>>(at)?.map(Moment::from_ns);
    Ok(Some(Claim {
        status,
        verdict,
        at,
    }))
}

fn sorted(row: &Row<'_>) -> rusqlite::Result<Option<Sorted>> {
    let meaning = optional(row, "sorted_meaning", parse_meaning)?;
    let claim = claim(row, ["sorted_status", "sorted_differs", "sorted_ns"])?;
    let settled = row.get("sorted_settled")?;
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
    let differs = claim.and_then(|claim| match &claim.verdict {
        Verdict::Agrees => None,
        Verdict::Differs(what) => Some(what.as_str()),
    });
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
    let verdict = differs.map_or(Verdict::Agrees, Verdict::Differs);
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
    column: &'static str,
    unpack: fn(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    optional(row, column, unpack)
}

/// Reads a process mark from three columns.
pub(super) fn mark(
    row: &Row<'_>,
    columns: [&'static str; 3],
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

/// Reads an event.
pub(super) fn event(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        seq: row.get("seq")?,
        event_id: row.get("event_id")?,
        invoice: InvoiceKey(row.get("invoice")?),
        order_id: row.get("order_id")?,
        kind: word(row, "kind", EventKind::parse)?,
        rewound: row.get("rewound")?,
        status: row.get("e_status")?,
        previous_status: row.get("previous_status")?,
        outcome: word(row, "e_outcome", Outcome::parse)?,
        previous_outcome: word(row, "previous_outcome", Outcome::parse)?,
        source: optional(row, "source", Source::parse)?,
        at_ms: row.get("at_ms")?,
        amount_reported: row.get("e_amount")?,
        currency_reported: row.get("e_currency")?,
        raw: row.get("e_raw")?,
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
        behind: row.get("behind")?,
    })
}
