//! Deliveries that wait for a person: how many, how those of a mistake are taken back, and how all become such.

use rusqlite::Connection;

use super::SqliteStore;
use super::deliveries::aside;
use super::failure::from_sqlite;
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::{StoreError, Withdrawn};

/// How far apart the numbers of two generations begin. What a lost ledger gave out is not known, and it never came so far.
const PER_GENERATION: i64 = 1_000_000_000;

impl SqliteStore {
    /// Numbers deliveries from now on as no generation before did.
    pub(in crate::ledger) fn number_deliveries_anew(
        &mut self,
        generation: i64,
    ) -> Result<(), StoreError> {
        let begin = generation.saturating_mul(PER_GENERATION);
        // Beside a ledger without any there is no row yet.
        let begun = self.connection.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'delivery'",
            [begin],
        );
        let insert = "INSERT INTO sqlite_sequence (name, seq) VALUES ('delivery', ?1)";
        let numbered = match begun {
            Ok(0) => self.connection.execute(insert, [begin]),
            other => other,
        };
        numbered.map(drop).map_err(from_sqlite)
    }
}

pub(super) fn hold_unfinished(connection: &Connection, why: &str) -> rusqlite::Result<usize> {
    let mut running = connection.planned(concat!(
        "UPDATE delivery INDEXED BY delivery_aside SET held_why = ?1 WHERE ",
        aside!("running")
    ))?;
    let mut waiting = connection.planned(
        "UPDATE delivery INDEXED BY delivery_due SET state = 'held', held_why = ?1, next_ms = NULL WHERE state = 'waiting'",
    )?;
    Ok(running.execute([why])? + waiting.execute([why])?)
}

pub(super) fn withdraw(connection: &Connection, key: InvoiceKey) -> rusqlite::Result<Withdrawn> {
    // The invoice and the states are those of the index `delivery_unfinished`.
    let mut withdraw = connection.planned(
        "DELETE FROM delivery WHERE invoice = ?1 AND state <> 'done' AND state <> 'abandoned' AND state = 'held' \
         AND attempts = 0 AND event IN (SELECT seq FROM event WHERE invoice = ?1 \
           AND kind IN ('paid', 'paid_again', 'late', 'failed', 'reversed', 'mismatch', \
           'second_payment')) RETURNING event",
    )?;
    let events = withdraw.query_map([key.0], |row| row.get(0))?;
    let events: Vec<i64> = events.collect::<rusqlite::Result<_>>()?;
    // The schema took the word for them back; they are without it by right.
    let mut vouch = connection.planned("UPDATE event SET vouched = 1 WHERE seq = ?1")?;
    for event in &events {
        vouch.execute([event])?;
    }
    let count = events.len();
    let mut left = connection.planned(
        "SELECT EXISTS (SELECT 1 FROM event e JOIN delivery d ON d.event = e.seq WHERE e.invoice = ?1 \
         AND e.kind IN ('paid', 'late'))",
    )?;
    let payment_left = left.query_row([key.0], |row| row.get(0))?;
    Ok(Withdrawn {
        count,
        payment_left,
    })
}

/// Deliveries a person must release.
pub(super) fn held_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .planned(concat!(
            "SELECT count(*) FROM delivery INDEXED BY delivery_aside WHERE ",
            aside!("held")
        ))?
        .query_row([], |row| row.get(0).map(i64::unsigned_abs))
}

/// Deliveries that wait or run, counted in their indexes.
pub(super) fn owed_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .planned(concat!(
            "SELECT (SELECT count(*) FROM delivery INDEXED BY delivery_due WHERE state = 'waiting') \
               + (SELECT count(*) FROM delivery INDEXED BY delivery_aside WHERE ",
            aside!("running"),
            ")"
        ))?
        .query_row([], |row| row.get(0).map(i64::unsigned_abs))
}

/// Deliveries that were given up and are not acknowledged.
pub(super) fn abandoned_count(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .planned(concat!(
            "SELECT count(*) FROM delivery INDEXED BY delivery_aside_why WHERE ",
            aside!("abandoned"),
            " AND acknowledged = 0"
        ))?
        .query_row([], |row| row.get(0).map(i64::unsigned_abs))
}
