//! What readers ask. Each question is one statement; none counts or scans what may grow without bound.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::rows;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::silence::Heard;
use crate::ledger::apply::heard;
use crate::ledger::row::{
    AttemptRow, DeliveryKey, DeliveryRow, DueRow, EventRow, InvoiceKey, InvoiceRow, Running,
};
use crate::ledger::seal::Sealed;
use crate::ledger::store::PollState;

/// Which invoices are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All of them.
    All,
    /// Those with the outcome `open`, but for those whose create was refused: nobody can pay them.
    Open,
    /// Those a person must look at.
    Attention,
}

pub(super) fn invoices_of_order(
    connection: &Connection,
    order: &str,
) -> rusqlite::Result<Vec<InvoiceRow>> {
    let sql = format!(
        "SELECT {} FROM invoice i WHERE i.order_id = ?1 ORDER BY i.id DESC LIMIT 1000",
        rows::INVOICE
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([order], rows::invoice)?.collect()
}

/// By the service's id, or by the ref.
pub(super) fn invoice_by_id(
    connection: &Connection,
    id: &str,
) -> rusqlite::Result<Option<InvoiceRow>> {
    let sql = format!(
        "SELECT {} FROM invoice i WHERE i.invoice_id = ?1 OR i.ref = ?1 LIMIT 1",
        rows::INVOICE
    );
    connection
        .prepare_cached(&sql)?
        .query_row([id], rows::invoice)
        .optional()
}

pub(super) fn invoice_by_key(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Option<InvoiceRow>> {
    let sql = format!("SELECT {} FROM invoice i WHERE i.id = ?1", rows::INVOICE);
    connection
        .prepare_cached(&sql)?
        .query_row([key.0], rows::invoice)
        .optional()
}

pub(super) fn list_invoices(
    connection: &Connection,
    filter: Filter,
    limit: u32,
) -> rusqlite::Result<Vec<InvoiceRow>> {
    let wish = match filter {
        Filter::All => "1",
        Filter::Open => "i.outcome = 'open' AND i.opening <> 'refused'",
        Filter::Attention => "i.attention <> ''",
    };
    let sql = format!(
        "SELECT {} FROM invoice i WHERE {wish} ORDER BY i.id DESC LIMIT ?1",
        rows::INVOICE
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([limit], rows::invoice)?.collect()
}

/// The key, and the sealed token, of the invoice with this ref.
pub(super) fn sealed_by_ref(
    connection: &Connection,
    reference: &InvoiceRef,
) -> rusqlite::Result<Option<(InvoiceKey, Option<Sealed>)>> {
    let mut statement = connection
        .prepare_cached("SELECT i.id, s.sealed FROM invoice i LEFT JOIN secret s ON s.invoice = i.id WHERE i.ref = ?1")?;
    let found = statement.query_row([reference.as_str()], |row| {
        Ok((
            InvoiceKey(row.get(0)?),
            row.get::<_, Option<Vec<u8>>>(1)?.map(Sealed),
        ))
    });
    found.optional()
}

/// An invoice with its ref and its sealed token.
pub(in crate::ledger) type Found = (InvoiceKey, InvoiceRef, Option<Sealed>);

/// The invoice with this id of the service.
pub(super) fn sealed_by_id(
    connection: &Connection,
    id: &InvoiceId,
) -> rusqlite::Result<Option<Found>> {
    let mut statement = connection.prepare_cached(
        "SELECT i.id, i.ref, s.sealed FROM invoice i LEFT JOIN secret s ON s.invoice = i.id WHERE i.invoice_id = ?1",
    )?;
    statement.query_row([id.as_str()], found).optional()
}

/// The one invoice of this order whose id of the service is not known yet; none when there are several. One whose create
/// was refused is none the service knows.
pub(super) fn sealed_by_order(
    connection: &Connection,
    order: &str,
) -> rusqlite::Result<Option<Found>> {
    let mut statement = connection.prepare_cached(
        "SELECT i.id, i.ref, s.sealed FROM invoice i LEFT JOIN secret s ON s.invoice = i.id WHERE i.order_id = ?1 \
         AND i.invoice_id IS NULL AND i.opening <> 'refused' ORDER BY i.id DESC LIMIT 2",
    )?;
    let mut rows: Vec<Found> = statement
        .query_map([order], found)?
        .collect::<rusqlite::Result<_>>()?;
    let first = rows.pop();
    Ok(first.filter(|_| rows.is_empty()))
}

fn found(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    Ok((
        InvoiceKey(row.get("id")?),
        rows::word(row, "ref", InvoiceRef::parse)?,
        row.get::<_, Option<Vec<u8>>>("sealed")?.map(Sealed),
    ))
}

/// The ref and the sealed token of an invoice.
pub(super) fn sealed_by_key(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Option<(InvoiceRef, Sealed)>> {
    let mut statement = connection.prepare_cached(
        "SELECT i.ref, s.sealed FROM invoice i JOIN secret s ON s.invoice = i.id WHERE i.id = ?1",
    )?;
    let found = statement.query_row([key.0], |row| {
        Ok((
            rows::word(row, "ref", InvoiceRef::parse)?,
            Sealed(row.get(1)?),
        ))
    });
    found.optional()
}

/// The columns of a due row; needs `poll p` and `invoice i` joined.
const DUE: &str =
    "p.due_ms, p.asked_ms, p.nudged_ms, p.failures FROM poll p JOIN invoice i ON i.id = p.invoice";

/// Invoices that are due: those that are due for the longest, and those that became due last, which are the young ones
/// and those in doubt. A long queue of old ones so never hides them.
pub(super) fn due(
    connection: &Connection,
    now_ms: i64,
    limit: u32,
) -> rusqlite::Result<Vec<DueRow>> {
    let mut found: Vec<DueRow> = Vec::new();
    for order in ["", "DESC"] {
        let sql = format!(
            "SELECT {}, {DUE} WHERE p.due_ms <= ?1 AND i.invoice_id IS NOT NULL ORDER BY p.due_ms {order} LIMIT ?2",
            rows::INVOICE
        );
        let mut statement = connection.prepare_cached(&sql)?;
        for row in statement.query_map(params![now_ms, limit / 2], due_row)? {
            if let Some(row) = readable(row)?.flatten()
                && found.iter().all(|known| known.key != row.key)
            {
                found.push(row);
            }
        }
    }
    found.sort_by_key(|row| row.due_ms);
    Ok(found)
}

/// Invoices whose due time lies after a place in the order of due times.
pub(super) fn due_after(
    connection: &Connection,
    (due_ms, key): (i64, InvoiceKey),
    limit: u32,
) -> rusqlite::Result<Vec<DueRow>> {
    let sql = format!(
        "SELECT {}, {DUE} WHERE (p.due_ms, p.invoice) > (?1, ?2) AND p.due_ms IS NOT NULL \
         AND i.invoice_id IS NOT NULL ORDER BY p.due_ms, p.invoice LIMIT ?3",
        rows::INVOICE
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    for row in statement.query_map(params![due_ms, key.0, limit], due_row)? {
        found.extend(readable(row)?.flatten());
    }
    Ok(found)
}

/// A row that a foreign hand made unreadable must not stop all others: it is told and left out.
fn readable<T>(row: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(rusqlite::Error::FromSqlConversionFailure(_, _, cause)) => {
            tracing::error!(reason = %cause, "an invoice of the ledger cannot be read and is not asked about");
            Ok(None)
        }
        Err(other) => Err(other),
    }
}

/// One invoice as it is asked about, whether it is due or not.
pub(super) fn pollable(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Option<DueRow>> {
    let sql = format!(
        "SELECT {}, coalesce(p.due_ms, 0) AS due_ms, p.asked_ms, p.nudged_ms, coalesce(p.failures, 0) AS failures \
         FROM invoice i LEFT JOIN poll p ON p.invoice = i.id WHERE i.id = ?1",
        rows::INVOICE
    );
    Ok(connection
        .prepare_cached(&sql)?
        .query_row([key.0], due_row)
        .optional()?
        .flatten())
}

fn due_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<DueRow>> {
    let stored = rows::stored(row)?;
    let due_ms: Option<i64> = row.get("due_ms")?;
    let failures = row.get("failures")?;
    let state = PollState {
        due_ms,
        asked_ms: row.get("asked_ms")?,
        nudged_ms: row.get("nudged_ms")?,
        failures,
    };
    let heard: Heard = heard(&stored, &state);
    let id: Option<InvoiceId> = stored.invoice.id;
    Ok(id.zip(due_ms).map(|(invoice_id, due_ms)| DueRow {
        key: stored.row.key,
        order_id: stored.row.order_id,
        invoice_id,
        revision: stored.row.revision,
        heard,
        due_ms,
    }))
}

/// The earliest due time that is stored.
pub(super) fn next_due_ms(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT min(due_ms) FROM poll WHERE due_ms IS NOT NULL")?
        .query_row([], |row| row.get(0))
}

/// Openings under way.
pub(super) fn creating(connection: &Connection) -> rusqlite::Result<Vec<InvoiceRow>> {
    let sql = format!(
        "SELECT {} FROM invoice i WHERE i.opening = 'creating' LIMIT 1000",
        rows::INVOICE
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([], rows::invoice)?.collect()
}

pub(super) fn events(
    connection: &Connection,
    order: Option<&str>,
    after: i64,
    limit: u32,
) -> rusqlite::Result<Vec<EventRow>> {
    let sql = format!(
        "SELECT {} FROM event e JOIN invoice i ON i.id = e.invoice \
         WHERE e.seq > ?1 AND (?2 IS NULL OR i.order_id = ?2) ORDER BY e.seq LIMIT ?3",
        rows::EVENT
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map(params![after, order, limit], rows::event)?
        .collect()
}

/// The event with this id, or else with this number.
pub(super) fn find_event(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<EventRow>> {
    let sql = |wish: &str| {
        format!(
            "SELECT {} FROM event e JOIN invoice i ON i.id = e.invoice WHERE {wish} = ?1",
            rows::EVENT
        )
    };
    let by_id = connection
        .prepare_cached(&sql("e.event_id"))?
        .query_row([name], rows::event)
        .optional()?;
    match (by_id, name.parse::<i64>()) {
        (None, Ok(seq)) => connection
            .prepare_cached(&sql("e.seq"))?
            .query_row([seq], rows::event)
            .optional(),
        (found, _) => Ok(found),
    }
}

/// The events of an order, newest first.
pub(super) fn events_of_order(
    connection: &Connection,
    order: &str,
    limit: u32,
) -> rusqlite::Result<Vec<EventRow>> {
    let sql = format!(
        "SELECT {} FROM invoice i JOIN event e ON e.invoice = i.id WHERE i.order_id = ?1 \
         ORDER BY e.seq DESC LIMIT ?2",
        rows::EVENT
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map(params![order, limit], rows::event)?
        .collect()
}

pub(super) fn list_deliveries(
    connection: &Connection,
    state: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {} FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice \
         WHERE ?1 IS NULL OR d.state = ?1 ORDER BY d.id DESC LIMIT ?2",
        rows::DELIVERY
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map(params![state, limit], rows::delivery)?
        .collect()
}

pub(super) fn deliveries_of(
    connection: &Connection,
    event_id: &str,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {} FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice \
         WHERE e.event_id = ?1 ORDER BY d.id",
        rows::DELIVERY
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_map([event_id], rows::delivery)?.collect()
}

pub(super) fn attempts(
    connection: &Connection,
    key: DeliveryKey,
) -> rusqlite::Result<Vec<AttemptRow>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, started_ms, ended_ms, result, stdout, stderr FROM attempt WHERE delivery = ?1 ORDER BY number",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(AttemptRow {
            number: row.get(0)?,
            started_ms: row.get(1)?,
            ended_ms: row.get(2)?,
            result: row.get(3)?,
            stdout: row.get(4)?,
            stderr: row.get(5)?,
        })
    };
    statement.query_map([key.0], read)?.collect()
}

pub(super) fn running(connection: &Connection) -> rusqlite::Result<Vec<Running>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, hook, attempts, started_ms, claimant_boot, claimant_pid, claimant_start, child_boot, child_pid, \
         child_start FROM delivery WHERE state = 'running'",
    )?;
    let found = statement.query_map([], |row| {
        let claimant = rows::mark(row, ["claimant_boot", "claimant_pid", "claimant_start"])?;
        let child = rows::mark(row, ["child_boot", "child_pid", "child_start"])?;
        let started_ms: Option<i64> = row.get("started_ms")?;
        let (key, hook, attempt) = (
            DeliveryKey(row.get("id")?),
            row.get("hook")?,
            row.get("attempts")?,
        );
        Ok(claimant.map(|claimant| Running {
            key,
            hook,
            attempt,
            claimant,
            child,
            started_ms: started_ms.unwrap_or_default(),
        }))
    })?;
    found.filter_map(Result::transpose).collect()
}

/// The earliest time after now at which a waiting delivery is due. What is due already waits for something else.
pub(super) fn next_delivery_ms(
    connection: &Connection,
    now_ms: i64,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached(
            "SELECT min(next_ms) FROM delivery WHERE state = 'waiting' AND next_ms > ?1",
        )?
        .query_row([now_ms], |row| row.get(0))
}

/// The small facts whose key begins with `prefix`, which ends in `:`, by key; what follows it, and the value.
pub(super) fn metas(
    connection: &Connection,
    prefix: &str,
    limit: u32,
) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT substr(key, length(?1) + 1), value FROM meta WHERE key >= ?1 AND substr(key, 1, length(?1)) = ?1 \
         ORDER BY key LIMIT ?2",
    )?;
    statement
        .query_map(params![prefix, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect()
}

pub(super) fn meta(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM meta WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
}
