//! The writer's statements on invoices and all that hangs on them: events, history, due times.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::Bounds;
use super::due;
use super::rows::{self, claim_columns, meaning_word, pack_claims, pack_pending};
use crate::invoice::event::EventKind;
use crate::invoice::ids::InvoiceId;
use crate::invoice::opening::Opening;
use crate::invoice::transition::Claim;
use crate::ledger::command::Intent;
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{NewEvent, NewHistory, PollState, Stored};

/// Earlier claims compared with a new one. An honest service makes a handful; beyond this a repeat may be taken for new.
const RECORDED_MOST: i64 = 256;

/// Lines of history an invoice may have beyond its bound before they are dropped.
const HISTORY_TRIM_EVERY: i64 = 16;

pub(super) fn insert(
    connection: &Connection,
    intent: &Intent,
    generation: i64,
) -> rusqlite::Result<InvoiceKey> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO invoice (ref, order_id, mode, method, opening, creator_boot, creator_pid, creator_start, \
         creator_deadline_ms, amount_asked, currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, \
         updated_ms, generation) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?10, ?11, ?12, ?12, ?12, ?13)",
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
    let mut seal =
        connection.prepare_cached("INSERT INTO secret (invoice, sealed) VALUES (?1, ?2)")?;
    seal.execute(params![key, intent.sealed.0])?;
    Ok(InvoiceKey(key))
}

pub(super) fn load(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Option<Stored>> {
    let sql = format!("SELECT {} FROM invoice i WHERE i.id = ?1", rows::INVOICE);
    connection
        .prepare_cached(&sql)?
        .query_row([key.0], rows::stored)
        .optional()
}

pub(super) fn owner_of(
    connection: &Connection,
    id: &InvoiceId,
) -> rusqlite::Result<Option<InvoiceKey>> {
    let mut statement =
        connection.prepare_cached("SELECT id FROM invoice WHERE invoice_id = ?1")?;
    let found = statement.query_row([id.as_str()], |row| Ok(InvoiceKey(row.get(0)?)));
    found.optional()
}

pub(super) fn save(connection: &Connection, stored: &Stored) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "UPDATE invoice SET invoice_id = ?2, opening = ?3, opening_note = ?4, creator_boot = ?5, creator_pid = ?6, \
         creator_start = ?7, amount_agreed = ?8, currency_agreed = ?9, amount_reported = ?10, currency_reported = ?11, \
         revision = ?12, status = ?13, claim_differs = ?14, claim_ns = ?15, sorted_status = ?16, sorted_meaning = ?17, \
         sorted_differs = ?18, sorted_ns = ?19, sorted_settled = ?20, outcome = ?21, outcome_ms = ?22, found_by = ?23, \
         doubt = ?24, doubted = ?25, pending = ?26, paid_counted = ?27, paid_fired = ?28, attention = ?29, \
         unresolved = ?30, requisites = ?31, payment_url = ?32, raw = ?33, expire_ms = ?34, heard_ms = ?35, \
         updated_ms = ?36, failed_fired = ?37, sorted_by = ?38, mode = ?39, method = ?40, creator_deadline_ms = ?41, \
         created_ms = ?42, generation = ?43 WHERE id = ?1",
    )?;
    let (row, invoice) = (&stored.row, &stored.invoice);
    let (status, differs, at) = claim_columns(invoice.claim.as_ref());
    let sorted = invoice.sorted.as_ref();
    let (sorted_status, sorted_differs, sorted_at) =
        claim_columns(sorted.map(|sorted| &sorted.claim));
    let creator = row.creator.as_ref();
    statement.execute(params![
        row.key.0,
        row.invoice_id,
        row.opening.as_str(),
        row.opening_note,
        creator.map(|mark| mark.boot_id.as_str()),
        creator.map(|mark| mark.pid),
        creator.map(|mark| mark.start_ticks),
        row.amount_agreed,
        row.currency_agreed,
        row.amount_reported,
        row.currency_reported,
        invoice.revision,
        status,
        differs,
        at,
        sorted_status,
        sorted.map(|sorted| meaning_word(sorted.meaning)),
        sorted_differs,
        sorted_at,
        sorted.is_some_and(|sorted| sorted.settled),
        row.outcome.as_str(),
        row.outcome_ms,
        row.found_by
            .map(crate::invoice::observation::Source::as_str),
        invoice.doubt,
        pack_claims(&invoice.doubted),
        invoice.pending.as_ref().map(pack_pending),
        invoice.paid_counted,
        invoice.paid_fired,
        row.attention.join(" "),
        row.unresolved,
        row.requisites,
        row.payment_url,
        row.raw,
        row.expire_ms,
        stored.heard_ms,
        row.updated_ms,
        invoice.failed_fired,
        stored.sorted_by,
        row.mode.as_str(),
        row.method,
        row.creator_deadline_ms,
        row.created_ms,
        stored.generation,
    ])?;
    Ok(())
}

pub(super) fn recorded_claims(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Vec<Claim>> {
    let mut statement = connection.prepare_cached(
        "SELECT cause_status, cause_differs, cause_ns FROM event \
         WHERE invoice = ?1 AND cause_status IS NOT NULL ORDER BY seq DESC LIMIT ?2",
    )?;
    let columns = ["cause_status", "cause_differs", "cause_ns"];
    let found = statement.query_map([key.0, RECORDED_MOST], |row| rows::claim(row, columns))?;
    found.filter_map(Result::transpose).collect()
}

pub(super) fn insert_event(connection: &Connection, event: &NewEvent<'_>) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO event (event_id, invoice, kind, rewound, cause_status, cause_differs, cause_ns, status, \
         previous_status, outcome, previous_outcome, source, at_ms, amount_reported, currency_reported, raw) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    let change = event.change;
    let (cause, differs, at) = claim_columns(change.cause.as_ref());
    statement.execute(params![
        event.event_id,
        event.invoice.0,
        change.kind.as_str(),
        change.rewound,
        cause,
        differs,
        at,
        change
            .status
            .as_ref()
            .map(crate::invoice::status::Status::as_str),
        change
            .previous_status
            .as_ref()
            .map(crate::invoice::status::Status::as_str),
        change.outcome.as_str(),
        change.previous_outcome.as_str(),
        event
            .source
            .map(crate::invoice::observation::Source::as_str),
        event.at_ms,
        event.reported.0,
        event.reported.1,
        event.raw,
    ])?;
    Ok(connection.last_insert_rowid())
}

pub(super) fn add_history(
    connection: &Connection,
    line: &NewHistory<'_>,
    bounds: &Bounds,
) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO history (invoice, at_ms, source, status, differs, claim_ns, decision, why, amount_reported, \
         currency_reported, updated_at_text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
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
    // Rows in all: ids rise without reuse at the end, so the oldest go by id alone.
    let mut trim = connection.prepare_cached("DELETE FROM history WHERE id <= ?1")?;
    trim.execute([newest - i64::from(bounds.history_rows)])?;
    let mut count = connection.prepare_cached(
        "UPDATE invoice SET history_count = history_count + 1 WHERE id = ?1 RETURNING history_count",
    )?;
    let lines: i64 = count.query_row([line.invoice.0], |row| row.get(0))?;
    let bound = i64::from(bounds.history_per_invoice);
    // Not with every line: finding the oldest one to keep reads as many entries of the index as are kept.
    if lines > bound && lines % HISTORY_TRIM_EVERY.min(bound.max(1)) == 0 {
        let mut trim = connection.prepare_cached(
            "DELETE FROM history WHERE invoice = ?1 AND id <= (SELECT id FROM history \
             WHERE invoice = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
        )?;
        trim.execute([line.invoice.0, bound])?;
    }
    Ok(())
}

pub(super) fn has_event(
    connection: &Connection,
    key: InvoiceKey,
    kind: EventKind,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM event WHERE invoice = ?1 AND kind = ?2)";
    connection
        .prepare_cached(sql)?
        .query_row(params![key.0, kind.as_str()], |row| row.get(0))
}

pub(super) fn poll_state(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<PollState> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {} FROM poll p WHERE p.invoice = ?1",
        due::POLL
    ))?;
    let found = statement.query_row([key.0], due::poll_state);
    Ok(found.optional()?.unwrap_or_default())
}

pub(super) fn save_poll(
    connection: &Connection,
    key: InvoiceKey,
    state: &PollState,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO poll (invoice, due_ms, class, asked_ms, nudged_ms, failures, service_ms, first_service_ms, \
         ended_answers, ended_since_ms, retired_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) \
         ON CONFLICT (invoice) DO UPDATE SET due_ms = ?2, class = ?3, asked_ms = ?4, nudged_ms = ?5, failures = ?6, \
         service_ms = ?7, first_service_ms = ?8, ended_answers = ?9, ended_since_ms = ?10, retired_ms = ?11",
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
            state.retired_ms
        ])
        .map(drop)
}

pub(super) fn set_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
    )?;
    statement.execute([key, value]).map(drop)
}
