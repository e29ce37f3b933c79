//! What readers ask. Each question is one statement; none counts or scans what may grow without bound.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::columns::{self, at};
use super::deliveries::aside;
use super::due;
use super::rows;
use crate::invoice::attention::{Attention, End};
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::ledger::row::{
    AttemptRow, DeliveryKey, DeliveryRow, EventRow, InvoiceKey, InvoicePage, InvoiceRow, Running,
};
use crate::ledger::seal::Sealed;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::Earlier;

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

/// Behind the one with the ref `after`, which `None` begins before.
pub(super) fn invoices_of_order(
    connection: &Connection,
    order: &str,
    after: Option<&str>,
    most: usize,
) -> rusqlite::Result<InvoicePage> {
    let sql = format!(
        concat!(
            "SELECT {} FROM ",
            "invoice i",
            " WHERE i.order_id = ?1 ORDER BY i.rank < 0, abs(i.rank) DESC LIMIT 1000"
        ),
        rows::INVOICE
    );
    let mut statement = connection.planned(&sql)?;
    let mut found = statement.query_map([order], rows::invoice)?;
    if let Some(after) = after {
        for row in found.by_ref() {
            if row?.reference.as_str() == after {
                break;
            }
        }
    }
    InvoicePage::read(found, most)
}

/// The money that came for an order.
pub(super) fn received(connection: &Connection, order: &str) -> rusqlite::Result<Option<String>> {
    let mut statement = connection.planned("SELECT received FROM orders WHERE order_id = ?1")?;
    let found = statement.query_row([order], |row| row.get(0)).optional()?;
    Ok(found.flatten())
}

/// What [`decides`](crate::invoice::opening::decides) in the words of SQL, and the tries: an order may have been refused
/// thousands of times.
pub(super) fn standing_of_order(
    connection: &Connection,
    order: &str,
    tries: [Option<&InvoiceRef>; 2],
) -> rusqlite::Result<Vec<Earlier>> {
    let sql = format!(
        concat!(
            "SELECT {}, {} FROM ",
            "invoice i LEFT JOIN poll p ON p.invoice = i.id",
            " WHERE i.order_id = ?1 AND (i.ref IN (?2, ?3) OR i.opening IN ('creating', 'unknown')",
            " OR i.outcome IN ('paid', 'mismatch', 'second_payment') OR i.opening IN ('answered', 'tracked') AND (i.outcome = 'open'",
            " OR i.doubt <> 0 OR i.pending IS NOT NULL OR p.nudged_ms IS NOT NULL",
            " AND (p.failures > 0 AND p.gone_ms IS NULL OR ifnull(p.asked_ms < p.nudged_ms, 1)))) ORDER BY i.rank DESC"
        ),
        rows::INVOICE,
        due::POLL_OR_NONE
    );
    let mut statement = connection.planned(&sql)?;
    let [own, earlier] = tries.map(|reference| reference.map(InvoiceRef::as_str));
    let found = statement.query_map((order, own, earlier), |row| {
        Ok(Earlier {
            row: rows::invoice(row)?,
            is_pending: row.get_ref(at::pending)? != ValueRef::Null,
            poll: due::poll_state(row)?,
        })
    })?;
    found.collect()
}

/// Whether an order has an invoice.
pub(super) fn has_order(connection: &Connection, order: &str) -> rusqlite::Result<bool> {
    let mut statement = connection.planned("SELECT 1 FROM invoice WHERE order_id = ?1")?;
    statement.exists([order])
}

/// By the service's id.
pub(super) fn invoice_by_id(
    connection: &Connection,
    id: &str,
) -> rusqlite::Result<Option<InvoiceRow>> {
    let sql = format!(
        concat!("SELECT {} FROM ", "invoice i", " WHERE i.invoice_id = ?1"),
        rows::INVOICE
    );
    connection
        .planned(&sql)?
        .query_row([id], rows::invoice)
        .optional()
}

/// By the ref.
pub(super) fn invoice_by_ref(
    connection: &Connection,
    reference: &str,
) -> rusqlite::Result<Option<InvoiceRow>> {
    let sql = format!(
        concat!("SELECT {} FROM ", "invoice i", " WHERE i.ref = ?1"),
        rows::INVOICE
    );
    connection
        .planned(&sql)?
        .query_row([reference], rows::invoice)
        .optional()
}

pub(super) fn invoice_by_key(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Option<InvoiceRow>> {
    connection
        .planned(columns::BY_KEY)?
        .query_row([key.0], rows::invoice)
        .optional()
}

pub(super) fn list_invoices(
    connection: &Connection,
    filter: Filter,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<InvoicePage> {
    let wish = match filter {
        Filter::All => "1",
        Filter::Open => "i.outcome = 'open' AND i.opening <> 'refused'",
        Filter::Attention => "i.attention <> ''",
    };
    newest(connection, wish, below, limit)
}

/// The newest below a key with a reason that ends with `tilld ack`.
pub(super) fn to_acknowledge(
    connection: &Connection,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<InvoicePage> {
    let reasons = Attention::ALL.iter();
    let reasons = reasons.filter(|reason| reason.end() == End::Ack);
    let has = reasons.map(|reason| format!("instr(' ' || i.attention || ' ', ' {reason} ') > 0"));
    let has: Vec<String> = has.collect();
    let wish = format!("i.attention <> '' AND ({})", has.join(" OR "));
    newest(connection, &wish, below, limit)
}

fn newest(
    connection: &Connection,
    wish: &str,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<InvoicePage> {
    let sql = format!(
        concat!(
            "SELECT {} FROM ",
            "invoice i",
            " WHERE {} AND i.id < ?2 ORDER BY i.id DESC LIMIT ?1"
        ),
        rows::INVOICE,
        wish
    );
    let mut statement = connection.planned(&sql)?;
    let asked = params![limit.saturating_add(1), below.0];
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    InvoicePage::read(statement.query_map(asked, rows::invoice)?, most)
}

/// With the token by a query of its own: for a join SQLite would weigh the ref anew at every binding, which takes ten times
/// as long as the look-up. Where nobody has the ref a token is read all the same, any one: it must cost as much.
const SEALED_BY_REF: &str = "SELECT i.id, (SELECT s.sealed FROM secret s \
    WHERE s.invoice = ifnull(i.id, (SELECT min(invoice) FROM secret))) \
  FROM (SELECT 1) LEFT JOIN invoice i ON i.ref = ?1";

/// The key, and the sealed token, of the invoice with this ref.
pub(super) fn sealed_by_ref(
    connection: &Connection,
    reference: &InvoiceRef,
) -> rusqlite::Result<Option<(InvoiceKey, Option<Sealed>)>> {
    let mut statement = connection.planned(SEALED_BY_REF)?;
    statement.query_row([reference.as_str()], |row| {
        let key: Option<i64> = row.get(0)?;
        let sealed: Option<Vec<u8>> = row.get(1)?;
        Ok(key.map(|key| (InvoiceKey(key), sealed.map(Sealed))))
    })
}

/// An invoice with its ref and its sealed token.
pub(in crate::ledger) type Found = (InvoiceKey, InvoiceRef, Option<Sealed>);

/// The invoice with this id of the service.
pub(super) fn sealed_by_id(
    connection: &Connection,
    id: &InvoiceId,
) -> rusqlite::Result<Option<Found>> {
    let mut statement = connection.planned(
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
    let mut statement = connection.planned(
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
    let mut statement = connection.planned(
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

/// Openings under way.
pub(super) fn creating(connection: &Connection) -> rusqlite::Result<Vec<InvoiceRow>> {
    let sql = format!(
        concat!(
            "SELECT {} FROM ",
            "invoice i",
            " WHERE i.opening = 'creating' LIMIT 1000"
        ),
        rows::INVOICE
    );
    let mut statement = connection.planned(&sql)?;
    statement.query_map([], rows::invoice)?.collect()
}

pub(super) fn events(
    connection: &Connection,
    order: Option<&str>,
    after: i64,
    limit: u32,
) -> rusqlite::Result<Vec<EventRow>> {
    // Two questions: in one, the events of all orders would be read for those of one.
    let sql = format!(
        "SELECT {} FROM {} AND e.seq > ?1 ORDER BY e.seq LIMIT ?2",
        rows::EVENT_LISTED,
        match order {
            Some(_) => "invoice i JOIN event e ON e.invoice = i.id WHERE i.order_id = ?3",
            None => "event e JOIN invoice i ON i.id = e.invoice WHERE TRUE",
        }
    );
    let mut statement = connection.planned(&sql)?;
    let found = match order {
        Some(order) => statement.query_map(params![after, limit, order], rows::event)?,
        None => statement.query_map(params![after, limit], rows::event)?,
    };
    found.collect()
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
        .planned(&sql("e.event_id"))?
        .query_row([name], rows::event)
        .optional()?;
    match (by_id, name.parse::<i64>()) {
        (None, Ok(seq)) => connection
            .planned(&sql("e.seq"))?
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
        rows::EVENT_LISTED
    );
    let mut statement = connection.planned(&sql)?;
    statement
        .query_map(params![order, limit], rows::event)?
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
    let mut statement = connection.planned(&sql)?;
    statement.query_map([event_id], rows::delivery)?.collect()
}

pub(super) fn attempts(
    connection: &Connection,
    key: DeliveryKey,
) -> rusqlite::Result<Vec<AttemptRow>> {
    let mut statement = connection.planned(
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
    let mut statement = connection.planned(concat!(
        "SELECT id, hook, attempts, started_ms, claimant_boot, claimant_pid, claimant_start, child_boot, child_pid, \
         child_start FROM delivery INDEXED BY delivery_aside WHERE ",
        aside!("running")
    ))?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rusqlite::StatementStatus;

    use super::super::open::{open_reader, open_writer};
    use super::*;

    /// What a notification waits for is planned once: SQLite plans a statement anew at each binding when the values
    /// could change its mind.
    #[test]
    fn the_look_up_of_a_ref_is_prepared_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, busy) = (directory.path().join("ledger.db"), Duration::from_secs(1));
        let _writer = open_writer(&path, busy).expect("a ledger");
        let reader = open_reader(&path, busy).expect("a ledger");
        for number in 0..3 {
            let reference = InvoiceRef::from_entropy([number; 16]);
            assert!(sealed_by_ref(&reader, &reference).expect("read").is_none());
        }
        let statement = reader.prepare_cached(SEALED_BY_REF).expect("prepared");
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        assert_eq!(statement.get_status(StatementStatus::Run), 3);
    }
}
