//! The questions behind the alert that events are not delivered. Relies on the index that files what is owed by its hook and by how
//! long daemons had served. Promises to read a few rows of each hook, however many are owed.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::hook::abandonment;
use crate::ledger::fact::SERVED_FOR_MS;
use crate::ledger::overview::{AttentionCount, LastAttempt, Owed, Tally, Undelivered};
use crate::ledger::sqlite::facts::fact;
use crate::ledger::sqlite::failure::from_sqlite;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::sqlite::read_store::ReadStore;
use crate::ledger::store::StoreError;

/// What is neither done, given up nor held, in the words of the index.
macro_rules! owed {
    () => {
        "delivery INDEXED BY delivery_owed WHERE state <> 'done' AND state <> 'abandoned' AND state <> 'held'"
    };
}

impl ReadStore {
    pub(in crate::ledger) fn is_owed(&self) -> Result<bool, StoreError> {
        is_owed(&self.0).map_err(from_sqlite)
    }
}

/// For each hook what has been owed to it longest.
pub(super) fn undelivered(connection: &Connection) -> rusqlite::Result<Vec<Undelivered>> {
    let served_ms = fact(connection, &SERVED_FOR_MS)?.unwrap_or_default();
    let mut all = Vec::new();
    for hook in hooks(connection)? {
        let owed = owed(connection, &hook, served_ms)?;
        let last = last_attempt(connection, &hook)?;
        all.push(Undelivered { hook, owed, last });
    }
    Ok(all)
}

/// True when something is owed to a hook.
fn is_owed(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = concat!("SELECT EXISTS (SELECT 1 FROM ", owed!(), ")");
    let mut ask = connection.planned(sql)?;
    ask.query_row([], |row| row.get(0))
}

/// From name to name: a million that are owed cost no more than one.
fn hooks(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        concat!(
            "WITH RECURSIVE name (hook) AS (SELECT min(hook) FROM ",
            owed!(),
            " UNION ALL SELECT (SELECT min(hook) FROM ",
            owed!(),
            " AND hook > name.hook) FROM name WHERE name.hook IS NOT NULL) \
             SELECT hook FROM name WHERE hook IS NOT NULL LIMIT {}"
        ),
        Tally::MOST
    );
    let mut found = connection.planned(&sql)?;
    let names = found.query_map([], |row| row.get(0))?;
    names.collect()
}

fn owed(connection: &Connection, hook: &str, served_ms: i64) -> rusqlite::Result<Vec<Owed>> {
    let sql = concat!(
        "SELECT i.order_id, ?3 - d.served_ms FROM (SELECT invoice, served_ms FROM ",
        owed!(),
        " AND hook = ?1 ORDER BY served_ms LIMIT ?2) d JOIN invoice i ON i.id = d.invoice ORDER BY d.served_ms"
    );
    let most = i64::try_from(AttentionCount::ORDERS_MOST).unwrap_or(i64::MAX);
    let mut ask = connection.planned(sql)?;
    let rows = ask.query_map(params![hook, most + 1, served_ms], |row| {
        Ok(Owed {
            order_id: row.get(0)?,
            for_ms: row.get(1)?,
        })
    })?;
    rows.collect()
}

/// Of the one that was tried, among those that have been owed longest.
fn last_attempt(connection: &Connection, hook: &str) -> rusqlite::Result<Option<LastAttempt>> {
    let sql = concat!(
        "SELECT a.result, a.stderr FROM (SELECT id, served_ms FROM ",
        owed!(),
        " AND hook = ?1 ORDER BY served_ms LIMIT 100) d JOIN attempt a ON a.delivery = d.id \
         ORDER BY d.served_ms, d.id, a.number DESC LIMIT 1"
    );
    let mut ask = connection.planned(sql)?;
    ask.query_row([hook], |row| {
        let stderr: Vec<u8> = row.get(1)?;
        let text = abandonment::tail(&stderr);
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        Ok(LastAttempt {
            result: row.get(0)?,
            line: line.map(|line| line.trim().to_owned()),
        })
    })
    .optional()
}
