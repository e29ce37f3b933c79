//! Statements are prepared here, so that none reads a table that grows from end to end.
//!
//! Relies on SQLite for its plan of each statement over an empty ledger, which it makes by the schema alone. Builds with debug
//! assertions judge each statement when it is first prepared, in every test; a release prepares and judges nothing.

use rusqlite::{CachedStatement, Connection};

/// Prepares statements whose plan is judged.
pub(super) trait Planned {
    /// Prepares it, or gives what was prepared before.
    fn planned(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>>;
}

impl Planned for Connection {
    fn planned(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        judge(sql);
        self.prepare_cached(sql)
    }
}

/// Panics where a statement reads more than it needs.
#[cfg(debug_assertions)]
pub(super) fn judge(sql: &str) {
    judged::judge(sql);
}

/// Nothing, in a release.
#[cfg(not(debug_assertions))]
pub(super) const fn judge(_sql: &str) {}

#[cfg(debug_assertions)]
mod judged {
    use std::collections::HashSet;
    use std::sync::{Mutex, PoisonError};

    use rusqlite::Connection;
    use rusqlite::types::Value;

    use super::super::check::as_made;

    /// Statements that read more of a table than an index names, by what stands in them, and why they may.
    const ALLOWED: [(&str, &str); 30] = [
        ("WHERE TRUE AND e.seq > ?1 ORDER BY e.seq LIMIT", PAGE),
        ("WHERE 1 AND i.id < ?2 ORDER BY i.id DESC LIMIT", PAGE),
        ("FROM event WHERE seq > ?1 ORDER BY seq LIMIT", PAGE),
        ("FROM event WHERE seq >= ?1 ORDER BY seq LIMIT", PAGE),
        ("FROM event ORDER BY seq LIMIT 1", PAGE),
        (
            "SELECT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_owed",
            "the first of what is owed, by its own index",
        ),
        (
            "SELECT (SELECT count(*) FROM delivery INDEXED BY delivery_due",
            "all that waits, counted to the last when a figure is asked for",
        ),
        (
            "WHERE time_unsure = 0 ORDER BY seq DESC LIMIT 1",
            "back over the events that a clock dated which may be wrong",
        ),
        ("FROM invoice WHERE id > ?1 ORDER BY id LIMIT", PAGE),
        ("FROM invoice WHERE id >= ?1 ORDER BY id LIMIT", PAGE),
        ("FROM invoice WHERE id < ?1 ORDER BY id DESC LIMIT", PAGE),
        ("FROM invoice WHERE id < ?2 ORDER BY id DESC LIMIT", PAGE),
        ("ORDER BY id DESC LIMIT 10001", PAGE),
        ("LIMIT 10000", PAGE),
        ("FROM event ORDER BY seq DESC LIMIT 2000", PAGE),
        ("LIMIT 10001)", PAGE),
        ("i.id > ?1 AND i.id <= ?2 GROUP BY", STRETCH),
        ("i.id BETWEEN ?1 AND ?2", STRETCH),
        ("i.id > :after AND i.id <= :last", STRETCH),
        ("e.seq > ?1 AND e.seq <= ?2", STRETCH),
        ("SELECT e.seq, e.invoice, e.kind, iif(", STRETCH),
        (
            "FROM delivery d JOIN event e ON e.seq = d.event",
            OF_A_COMMAND,
        ),
        ("DELETE FROM history WHERE id <= ?1", RING),
        ("FROM refusal", RING),
        ("INDEXED BY event_unvouched", FEW),
        (
            "SET state = 'held', held_why = ?1",
            "all that waits, once after a restore",
        ),
        (
            "next_ms > ?1 AND next_ms - wait_ms > ?1",
            "all that waits, once after a jump of our clock",
        ),
        (
            "next_ms > ?1 - ?2 AND ?2 > 0",
            "all that waits, once after a jump of our clock",
        ),
        (
            "i.opening = 'creating'",
            "openings under way, by their own index",
        ),
        (
            "UPDATE event SET time_unsure = 1 WHERE seq > ?1",
            "the events since a clock was known to be right",
        ),
    ];
    const PAGE: &str =
        "so many rows in the order they are asked for, with nothing else asked of them";
    const STRETCH: &str = "a stretch of numbers that whoever asks keeps short";
    const OF_A_COMMAND: &str = "a command of the ledger's owner, in a process of its own";
    const RING: &str = "a ring of bounded length";
    const FEW: &str = "what another program wrote, if any did";

    /// What was judged, and an empty ledger to judge by.
    static SEEN: Mutex<Option<(HashSet<String>, Connection)>> = Mutex::new(None);

    pub(super) fn judge(sql: &str) {
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut known = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (seen, empty) = known.get_or_insert_with(|| {
            let empty = as_made().expect("in memory");
            (HashSet::new(), empty)
        });
        if !seen.insert(sql.clone()) {
            return;
        }
        if ALLOWED.iter().any(|(part, _why)| sql.contains(part)) {
            return;
        }
        // What asks another file, or a table of a test, has no plan here.
        let steps = steps(empty, &sql).unwrap_or_default();
        drop(known);
        let wide: Vec<&String> = steps.iter().filter(|step| is_wide(step, &sql)).collect();
        // The line of a panic leaves out what is quoted.
        if !wide.is_empty() {
            tracing::error!("a statement reads more than it needs: {wide:?} in {sql}");
        }
        assert!(wide.is_empty(), "{wide:?} in {sql}");
    }

    /// Whether a step reads a whole table, a whole index, or all rows above or below a number.
    fn is_wide(step: &str, sql: &str) -> bool {
        let Some(behind) = step.strip_prefix("SCAN ") else {
            return step.contains("PRIMARY KEY (rowid>") || step.contains("PRIMARY KEY (rowid<");
        };
        let name = behind.split(' ').next().unwrap_or_default();
        // A list that was handed over, or rows that another step chose.
        let is_chosen = name.starts_with('(')
            || ["CONSTANT", "json_each", "name"].contains(&name)
            || sql.contains(&format!(") {name} "));
        !is_chosen
    }

    fn steps(empty: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
        let mut statement = empty.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
        let values = vec![Value::Integer(1); statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3))?;
        steps.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::super::Filter;
    use super::super::open::open_writer;
    use super::super::read;
    use super::*;
    use crate::ledger::InvoiceKey;

    #[test]
    fn a_statement_that_reads_a_table_from_end_to_end_is_found() {
        for wide in [
            "SELECT order_id FROM invoice WHERE currency_agreed = ?1",
            // How events were asked for by order, and open invoices.
            "SELECT e.seq FROM event e JOIN invoice i ON i.id = e.invoice \
             WHERE e.seq > ?1 AND (?2 IS NULL OR i.order_id = ?2) ORDER BY e.seq LIMIT ?3",
            "SELECT i.id FROM invoice i WHERE i.outcome = 'failed' AND i.id < ?2 ORDER BY i.id DESC LIMIT ?1",
        ] {
            let judged = catch_unwind(|| judge(wide));
            assert_eq!(judged.is_err(), cfg!(debug_assertions), "{wide}");
        }
        judge("SELECT order_id FROM invoice WHERE ref = ?1");
    }

    /// Each way to ask, whatever the other tests ask.
    #[test]
    fn every_list_is_read_by_an_index() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("ledger.db");
        let connection = open_writer(&path, std::time::Duration::from_secs(1)).expect("a ledger");
        for filter in [Filter::All, Filter::Open, Filter::Attention] {
            let page = read::list_invoices(&connection, filter, InvoiceKey(9), 1);
            assert!(page.expect("read").rows.is_empty());
        }
        for order in [None, Some("a")] {
            let found = read::events(&connection, order, 0, 1);
            assert!(found.expect("read").is_empty());
        }
        let found = read::to_acknowledge(&connection, InvoiceKey(9), 1);
        assert!(found.expect("read").rows.is_empty());
    }
}
