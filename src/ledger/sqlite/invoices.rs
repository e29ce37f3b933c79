//! The writer's statements on invoices and all that hangs on them: events, history, due times.

use rusqlite::{Connection, OptionalExtension as _, Statement, params};

use super::Bounds;
use super::due;
use super::often::{Often, Statements};
use super::rows::{self, claim_columns};
use crate::invoice::event::EventKind;
use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Source;
use crate::invoice::opening::Opening;
use crate::invoice::status::{Outcome, Status};
use crate::invoice::transition::Claim;
use crate::ledger::command::Intent;
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::{NewEvent, NewHistory, PollState, Rank, Stored, trim_every};

/// Earlier claims compared with a new one. An honest service makes a handful; beyond this a repeat may be taken for new.
const RECORDED_MOST: i64 = 256;

pub(super) fn insert(
    connection: &Connection,
    intent: &Intent,
    generation: i64,
) -> rusqlite::Result<InvoiceKey> {
    let mut statement = connection.planned(
        "INSERT INTO invoice (ref, order_id, mode, method, opening, creator_boot, creator_pid, creator_start, \
         creator_deadline_ms, amount_asked, currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, \
         updated_ms, generation) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?10, ?11, ?12, ?12, ?12, ?13)",
    )?;
    let (wanted, creator) = (&intent.wanted, &intent.creator);
    statement.execute(params![
        intent.reference.as_str(),
        intent.order_id.as_str(),
        wanted.mode.as_str(),
        wanted.method,
        Opening::Creating.as_str(),
        creator.boot_id,
        creator.pid,
        creator.start_ticks,
        intent.deadline_ms,
        wanted.sum.amount.as_str(),
        wanted.sum.currency,
        intent.now_ms,
        generation,
    ])?;
    let key = connection.last_insert_rowid();
    let mut seal = connection.planned("INSERT INTO secret (invoice, sealed) VALUES (?1, ?2)")?;
    seal.execute(params![key, intent.sealed.0])?;
    Ok(InvoiceKey(key))
}

/// Reads an invoice to change it.
pub(super) fn load(
    connection: &mut impl Statements,
    key: InvoiceKey,
) -> rusqlite::Result<Option<Stored>> {
    connection.often(Often::Load, |statement| {
        statement.query_row([key.0], rows::stored).optional()
    })
}

/// The invoice that stands for an order, another one than this.
pub(super) fn standing_beside(
    connection: &Connection,
    key: InvoiceKey,
    order_id: &str,
) -> rusqlite::Result<Option<(InvoiceKey, Outcome)>> {
    let mut statement = connection.planned(
        "SELECT id, outcome FROM invoice WHERE order_id = ?2 AND rank > 0 AND id <> ?1 ORDER BY rank DESC LIMIT 1",
    )?;
    let found = statement.query_row(params![key.0, order_id], |row| {
        Ok((InvoiceKey(row.get(0)?), rows::word(row, 1, Outcome::parse)?))
    });
    found.optional()
}

/// Ranks an invoice among those of its order. Gives those of them that exist.
pub(super) fn rank(
    connection: &Connection,
    key: InvoiceKey,
    order_id: &str,
    rank: Rank,
) -> rusqlite::Result<Vec<InvoiceKey>> {
    let new = match rank {
        Rank::First => {
            "(SELECT max(ifnull(max(o.rank), 0), -ifnull(min(o.rank), 0)) + 1 FROM invoice o WHERE o.order_id = ?2)"
        }
        Rank::Refused => "-abs(rank)",
        Rank::Known => "abs(rank)",
    };
    let sql = format!("UPDATE invoice SET rank = {new} WHERE id = ?1 AND order_id = ?2");
    connection
        .planned(&sql)?
        .execute(params![key.0, order_id])?;
    let mut others =
        connection.planned("SELECT id FROM invoice WHERE order_id = ?1 AND rank > 0")?;
    let others = others.query_map([order_id], |row| Ok(InvoiceKey(row.get(0)?)))?;
    others.collect()
}

pub(super) fn owner_of(
    connection: &Connection,
    id: &InvoiceId,
) -> rusqlite::Result<Option<InvoiceKey>> {
    let mut statement = connection.planned("SELECT id FROM invoice WHERE invoice_id = ?1")?;
    let found = statement.query_row([id.as_str()], |row| Ok(InvoiceKey(row.get(0)?)));
    found.optional()
}

pub(super) fn recorded_claims(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Vec<Claim>> {
    let mut statement = connection.planned(
        "SELECT cause_status, cause_differs, cause_ns FROM event \
         WHERE invoice = ?1 AND cause_status IS NOT NULL ORDER BY seq DESC LIMIT ?2",
    )?;
    let columns = ["cause_status", "cause_differs", "cause_ns"];
    let found = statement.query_map([key.0, RECORDED_MOST], |row| rows::claim(row, columns))?;
    found.filter_map(Result::transpose).collect()
}

pub(super) const INSERT_EVENT: &str = "INSERT INTO event (event_id, invoice, kind, rewound, cause_status, \
  cause_differs, cause_ns, status, previous_status, outcome, previous_outcome, source, at_ms, amount_reported, \
  currency_reported, raw, decision, why, vouched, order_outcome) \
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, 1, ?19)";

/// Writes an event.
pub(super) fn insert_event(
    connection: &mut impl Statements,
    event: &NewEvent<'_>,
) -> rusqlite::Result<i64> {
    let change = event.change;
    let (cause, differs, at) = claim_columns(change.cause.as_ref());
    let values = params![
        event.event_id,
        event.invoice.0,
        change.kind.as_str(),
        change.rewound,
        cause,
        differs,
        at,
        change.status.as_ref().map(Status::as_str),
        change.previous_status.as_ref().map(Status::as_str),
        change.outcome.as_str(),
        change.previous_outcome.as_str(),
        event.source.map(Source::as_str),
        event.at_ms,
        event.reported.0,
        event.reported.1,
        event.raw,
        event.judged.map(|(decision, _)| decision.as_str()),
        event.judged.map(|(_, why)| why.as_str()),
        change.order_outcome.as_str(),
    ];
    connection.often(Often::InsertEvent, |statement| statement.insert(values))
}

/// Lines that are no event. Those that are beyond a bound are dropped now and then and not with every line.
pub(super) fn add_history(
    connection: &Connection,
    line: &NewHistory<'_>,
    bounds: &Bounds,
) -> rusqlite::Result<()> {
    let mut insert = connection.planned(
        "INSERT INTO history (invoice, at_ms, source, status, differs, claim_ns, decision, why, amount_reported, \
         currency_reported, updated_at_text, after_event) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, (SELECT coalesce(max(seq), 0) FROM event))",
    )?;
    let (status, differs, at) = claim_columns(line.claim);
    let (source, decision) = (line.source.as_str(), line.decision.as_str());
    insert.execute(params![
        line.invoice.0,
        line.at_ms,
        source,
        // No status is empty: it stands for a line without a claim.
        status.unwrap_or_default(),
        differs,
        at,
        decision,
        line.why.as_str(),
        line.reported.0,
        line.reported.1,
        line.updated_at_text,
    ])?;
    let newest = connection.last_insert_rowid();
    let rows = i64::from(bounds.history_rows);
    if newest % trim_every(rows) == 0 {
        // Rows in all: ids rise without reuse at the end, so the oldest go by id alone.
        let mut trim = connection.planned("DELETE FROM history WHERE id <= ?1")?;
        trim.execute([newest - rows])?;
    }
    let mut count = connection.planned(
        "UPDATE invoice SET history_count = history_count + 1 WHERE id = ?1 RETURNING history_count",
    )?;
    let lines: i64 = count.query_row([line.invoice.0], |row| row.get(0))?;
    let bound = i64::from(bounds.history_per_invoice);
    // Finding the oldest one to keep reads as many entries of the index as are kept.
    if lines > bound && lines % trim_every(bound) == 0 {
        let mut trim = connection.planned(
            "DELETE FROM history WHERE invoice = ?1 AND id <= (SELECT id FROM history \
             WHERE invoice = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        )?;
        trim.execute([line.invoice.0, bound])?;
    }
    Ok(())
}

pub(super) fn was_undated(
    connection: &Connection,
    key: InvoiceKey,
    text: &str,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM history WHERE invoice = ?1 AND updated_at_text = ?2)";
    connection
        .planned(sql)?
        .query_row(params![key.0, text], |row| row.get(0))
}

pub(super) fn has_event(
    connection: &Connection,
    key: InvoiceKey,
    kind: EventKind,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM event WHERE invoice = ?1 AND kind = ?2)";
    connection
        .planned(sql)?
        .query_row(params![key.0, kind.as_str()], |row| row.get(0))
}

pub(super) fn poll_state(
    statement: &mut Statement<'_>,
    key: InvoiceKey,
) -> rusqlite::Result<PollState> {
    let found = statement.query_row([key.0], due::poll_state_by_number);
    Ok(found.optional()?.unwrap_or_default())
}

pub(super) fn save_poll(
    connection: &Connection,
    key: InvoiceKey,
    state: &PollState,
) -> rusqlite::Result<()> {
    let mut statement = connection.planned(
        "INSERT INTO poll (invoice, due_ms, class, asked_ms, nudged_ms, failures, service_ms, first_service_ms, \
         ended_answers, ended_since_ms, retired_ms, answered_ms, gone_since_ms, gone_ms, alerted_ms) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15) \
         ON CONFLICT (invoice) DO UPDATE SET due_ms = ?2, class = ?3, asked_ms = ?4, nudged_ms = ?5, failures = ?6, \
         service_ms = ?7, first_service_ms = ?8, ended_answers = ?9, ended_since_ms = ?10, retired_ms = ?11, \
         answered_ms = ?12, gone_since_ms = ?13, gone_ms = ?14, alerted_ms = ?15",
    )?;
    statement
        .execute(params![
            key.0,
            state.due_ms,
            state.class.number(),
            state.asked_ms,
            state.nudged_ms,
            state.failures,
            state.service_ms,
            state.first_service_ms,
            state.ended.answers,
            state.ended.since_ms,
            state.retired_ms,
            state.polled.answered_ms,
            state.polled.gone_since_ms,
            state.polled.gone_ms,
            state.alerted_ms
        ])
        .map(drop)
}
