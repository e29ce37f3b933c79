//! What is asked for one invoice's story, in one read transaction. Every statement goes by the invoice's key or by a row
//! that hangs on it, but for refusals, whose table is bounded and has no index on it.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::failure::from_sqlite;
use super::read::{self, invoice_by_key};
use super::read_store::ReadStore;
use super::rows;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Decision, Why};
use crate::ledger::row::{AttemptRow, DeliveryKey, DeliveryState, EventRow, InvoiceKey};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::StoreError;
use crate::ledger::story::{
    Asking, AttemptStory, DeliveryStory, EventStory, HistoryRow, Output, RefusedRow, Story,
};

/// Events of one invoice at most: an honest service makes a handful.
const EVENTS_MOST: i64 = 1_000;
/// Refusals of one invoice at most. Whoever knows its ref can make as many as the table holds.
const REFUSALS_MOST: i64 = 1_000;
/// Runs of one delivery at most: one that asks to be run again is never given up.
const ATTEMPTS_MOST: i64 = 200;

impl ReadStore {
    pub(in crate::ledger) fn story(
        &self,
        key: InvoiceKey,
        output: Output,
    ) -> Result<Option<Story>, StoreError> {
        story(&self.0, key, output).map_err(from_sqlite)
    }
}

fn story(
    connection: &Connection,
    key: InvoiceKey,
    output: Output,
) -> rusqlite::Result<Option<Story>> {
    // Ended by its drop: it only holds the moment.
    let _moment = connection.unchecked_transaction()?;
    let Some(invoice) = invoice_by_key(connection, key)? else {
        return Ok(None);
    };
    let history = history(connection, key)?;
    let dropped: i64 = connection
        .planned(
            "SELECT history_count - (SELECT count(*) FROM history WHERE invoice = ?1) FROM invoice WHERE id = ?1",
        )?
        .query_row([key.0], |row| row.get(0))?;
    let (refusals, more_refusals) = newest(refusals(connection, key)?, REFUSALS_MOST);
    let (events, more_events) = newest(events(connection, key)?, EVENTS_MOST);
    let mut told = Vec::with_capacity(events.len());
    for event in events {
        let deliveries = deliveries(connection, &event, output)?;
        told.push(EventStory { event, deliveries });
    }
    Ok(Some(Story {
        history_dropped: u64::try_from(dropped).unwrap_or_default(),
        history,
        refusals,
        more_refusals,
        events: told,
        more_events,
        asking: asking(connection, key)?,
        invoice,
    }))
}

/// Oldest first, without the one that only shows that there is more.
fn newest<T>(mut newest_first: Vec<T>, most: i64) -> (Vec<T>, bool) {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let more = newest_first.len() > most;
    newest_first.truncate(most);
    newest_first.reverse();
    (newest_first, more)
}

/// Bounded by `ledger.history_per_invoice`; events that are lines too by the bound of events.
fn history(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Vec<HistoryRow>> {
    let mut statement = connection.planned(
        "SELECT * FROM (SELECT seq AS place, 0 AS kind, 0 AS number, at_ms, source, cause_status AS status, \
           cause_ns AS claim_ns, cause_differs AS differs, amount_reported, currency_reported, decision, why \
         FROM event WHERE invoice = ?1 AND decision IS NOT NULL ORDER BY seq DESC LIMIT ?2) \
         UNION ALL SELECT h.after_event, 1, h.id, h.at_ms, h.source, h.status, h.claim_ns, h.differs, h.amount_reported, h.currency_reported, \
           h.decision, h.why FROM history h WHERE h.invoice = ?1 ORDER BY place, kind, number",
    )?;
    let read = |row: &Row<'_>| {
        let claim_ns: Option<i64> = row.get("claim_ns")?;
        Ok(HistoryRow {
            at_ms: row.get("at_ms")?,
            source: rows::word(row, "source", Source::parse)?,
            status: Some(row.get("status")?).filter(|status: &String| !status.is_empty()),
            claimed_at: claim_ns.map(Moment::from_ns),
            differs: row.get("differs")?,
            amount_reported: row.get("amount_reported")?,
            currency_reported: row.get("currency_reported")?,
            decision: rows::word(row, "decision", Decision::parse)?,
            why: rows::word(row, "why", Why::parse)?,
        })
    };
    statement.query_map([key.0, EVENTS_MOST], read)?.collect()
}

fn refusals(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Vec<RefusedRow>> {
    let mut statement = connection.planned(
        "SELECT at_ms, reason, peer, body_bytes, body_sha256, header_names FROM refusal \
         WHERE invoice = ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let read = |row: &Row<'_>| {
        let hash: String = row.get("body_sha256")?;
        let bytes: i64 = row.get("body_bytes")?;
        Ok(RefusedRow {
            at_ms: row.get("at_ms")?,
            reason: row.get("reason")?,
            peer: row.get("peer")?,
            body_bytes: (!hash.is_empty()).then_some(bytes),
            header_names: row.get("header_names")?,
        })
    };
    statement
        .query_map([key.0, REFUSALS_MOST + 1], read)?
        .collect()
}

fn events(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Vec<EventRow>> {
    let sql = format!(
        "SELECT {} FROM event e JOIN invoice i ON i.id = e.invoice WHERE e.invoice = ?1 \
         ORDER BY e.seq DESC LIMIT ?2",
        rows::EVENT_LISTED
    );
    let mut statement = connection.planned(&sql)?;
    statement
        .query_map([key.0, EVENTS_MOST + 1], rows::event)?
        .collect()
}

fn deliveries(
    connection: &Connection,
    event: &EventRow,
    output: Output,
) -> rusqlite::Result<Vec<DeliveryStory>> {
    let mut told = Vec::new();
    for row in read::deliveries_of(connection, &event.event_id)? {
        let running = row.state == DeliveryState::Running;
        let started_ms: Option<i64> = connection
            .planned("SELECT started_ms FROM delivery WHERE id = ?1")?
            .query_row([row.key.0], |row| row.get(0))?;
        told.push(DeliveryStory {
            attempts: attempts(connection, row.key, output)?,
            running_since_ms: started_ms.filter(|_| running),
            row,
        });
    }
    Ok(told)
}

fn attempts(
    connection: &Connection,
    key: DeliveryKey,
    output: Output,
) -> rusqlite::Result<Vec<AttemptStory>> {
    // `substr` makes NULL of an empty blob.
    let mut statement = connection.planned(
        "SELECT number, started_ms, ended_ms, result, coalesce(substr(stdout, 1, ?2), x'') AS out, \
         coalesce(substr(stderr, 1, ?2), x'') AS err, \
         length(stdout) AS out_bytes, length(stderr) AS err_bytes FROM attempt WHERE delivery = ?1 \
         ORDER BY number DESC LIMIT ?3",
    )?;
    let most = match output {
        Output::Beginning => Output::BEGINNING_BYTES,
        // A stream is kept far shorter than this (`hook/capture`).
        Output::Full => u32::MAX,
    };
    let read = |row: &Row<'_>| {
        let bytes = |name: &str| -> rusqlite::Result<u64> {
            let length: i64 = row.get(name)?;
            Ok(u64::try_from(length).unwrap_or_default())
        };
        Ok(AttemptStory {
            stdout_bytes: bytes("out_bytes")?,
            stderr_bytes: bytes("err_bytes")?,
            row: AttemptRow {
                number: row.get("number")?,
                started_ms: row.get("started_ms")?,
                ended_ms: row.get("ended_ms")?,
                result: row.get("result")?,
                stdout: row.get("out")?,
                stderr: row.get("err")?,
            },
        })
    };
    let found = statement.query_map(params![key.0, most, ATTEMPTS_MOST], read)?;
    let mut found: Vec<AttemptStory> = found.collect::<rusqlite::Result<_>>()?;
    found.reverse();
    Ok(found)
}

fn asking(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Option<Asking>> {
    let mut statement =
        connection.planned("SELECT asked_ms, failures, due_ms FROM poll WHERE invoice = ?1")?;
    let found = statement.query_row([key.0], |row| {
        Ok(Asking {
            asked_ms: row.get(0)?,
            unanswered: row.get(1)?,
            due_ms: row.get(2)?,
        })
    });
    found.optional()
}
