//! Deliveries that wait for a person: how many, which, and their release. All by the index of held deliveries alone.

use rusqlite::{Connection, params};

use super::rows;
use crate::ledger::command::{Held, ReleaseWish};
use crate::ledger::row::{DeliveryRow, InvoiceKey};
use crate::ledger::store::{INTERRUPTED, Withdrawn};

/// Picks held deliveries: event id, order and hook, each `NULL` for any, and how many at most.
const PICKED: &str = "SELECT d.id FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice \
  WHERE d.state = 'held' AND (?1 IS NULL OR e.event_id = ?1) AND (?2 IS NULL OR i.order_id = ?2) \
  AND (?3 IS NULL OR d.hook = ?3) ORDER BY d.id LIMIT ?4";

fn wanted(held: &Held) -> (Option<&str>, Option<&str>) {
    match held {
        Held::Event(event_id) => (Some(event_id), None),
        Held::Order(order_id) => (None, Some(order_id)),
        Held::All => (None, None),
    }
}

pub(super) fn release(connection: &Connection, wish: &ReleaseWish) -> rusqlite::Result<usize> {
    let (event_id, order_id) = wanted(&wish.held);
    let sql = format!(
        "UPDATE delivery SET state = 'waiting', next_ms = ?5, held_why = NULL WHERE id IN ({PICKED})"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.execute(params![
        event_id,
        order_id,
        wish.hook,
        wish.most,
        wish.now_ms
    ])
}

pub(super) fn hold_unfinished(
    connection: &Connection,
    why: &str,
    now_ms: i64,
) -> rusqlite::Result<usize> {
    // By the index of running deliveries, then by those of waiting ones.
    connection.execute(
        "INSERT INTO attempt (delivery, number, started_ms, ended_ms, result, stdout, stderr) \
         SELECT id, attempts, coalesce(started_ms, 0), ?1, ?2, x'', x'' FROM delivery WHERE state = 'running'",
        params![now_ms, INTERRUPTED],
    )?;
    connection.execute(
        "UPDATE delivery SET state = 'held', held_why = ?1, next_ms = NULL, \
         round_start = round_start + (state = 'running'), claimant_boot = NULL, claimant_pid = NULL, \
         claimant_start = NULL, child_boot = NULL, child_pid = NULL, child_start = NULL \
         WHERE id IN (SELECT id FROM delivery WHERE state = 'running' \
           UNION ALL SELECT id FROM delivery WHERE state = 'waiting')",
        [why],
    )
}

pub(super) fn withdraw(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Withdrawn> {
    // The invoice and the states are those of the index `delivery_invoice`.
    let mut withdraw = connection.prepare_cached(
        "DELETE FROM delivery WHERE invoice = ?1 AND state IN ('waiting', 'running', 'held') AND state = 'held' \
         AND attempts = 0 AND event IN (SELECT seq FROM event WHERE invoice = ?1 \
           AND kind IN ('paid', 'paid_again', 'late', 'failed', 'reversed', 'mismatch'))",
    )?;
    let count = withdraw.execute([key.0])?;
    let mut left = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM event e JOIN delivery d ON d.event = e.seq WHERE e.invoice = ?1 \
         AND e.kind IN ('paid', 'late'))",
    )?;
    let payment_left = left.query_row([key.0], |row| row.get(0))?;
    Ok(Withdrawn {
        count,
        payment_left,
    })
}

/// The deliveries a release would run, in the order they were made.
pub(super) fn list(
    connection: &Connection,
    held: &Held,
    hook: Option<&str>,
    limit: u32,
) -> rusqlite::Result<Vec<DeliveryRow>> {
    let (event_id, order_id) = wanted(held);
    let sql = format!(
        "SELECT {} FROM delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice \
         WHERE d.id IN ({PICKED}) ORDER BY d.id",
        rows::DELIVERY
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map(params![event_id, order_id, hook, limit], rows::delivery)?
        .collect()
}

/// Deliveries a person must release.
pub(super) fn held_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM delivery WHERE state = 'held'")?
        .query_row([], |row| row.get(0).map(i64::unsigned_abs))
}

/// Deliveries that were given up.
pub(super) fn abandoned_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM delivery WHERE state = 'abandoned'")?
        .query_row([], |row| row.get(0).map(i64::unsigned_abs))
}
