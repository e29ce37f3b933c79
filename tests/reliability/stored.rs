//! What a ledger holds of what was acknowledged. Beside the harness the one place of these runs that speaks to SQLite.

use std::collections::HashSet;
use std::path::Path;

use rusqlite::Connection;

use crate::load::Ack;

/// The statuses that made an event, of a ledger whose every page is whole; else what is wrong with it. None of one that was not
/// made yet.
pub(crate) fn statuses(ledger: &Path) -> Result<HashSet<String>, String> {
    let read = || -> rusqlite::Result<Result<HashSet<String>, String>> {
        let connection = Connection::open(ledger)?;
        let whole: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
        if whole != "ok" {
            return Ok(Err(whole));
        }
        let made = "SELECT count(*) FROM sqlite_schema WHERE name = 'event'";
        if connection.query_row(made, [], |row| row.get::<_, i64>(0))? == 0 {
            return Ok(Ok(HashSet::new()));
        }
        let query = "SELECT cause_status FROM event WHERE cause_status IS NOT NULL";
        let mut statement = connection.prepare(query)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>().map(Ok)
    };
    read().unwrap_or_else(|error| Err(error.to_string()))
}

/// How many of the acknowledged are missing. All of them where the ledger is damaged.
pub(crate) fn lost(ledger: &Path, acks: &[Ack]) -> usize {
    let Ok(stored) = statuses(ledger) else {
        return acks.len();
    };
    let missing = acks.iter().filter(|ack| !stored.contains(&ack.status));
    missing.count()
}

/// Makes a database of another program.
#[track_caller]
pub(crate) fn foreign(file: &Path) {
    let connection = Connection::open(file).expect("a file");
    let made = "CREATE TABLE notes (id INTEGER PRIMARY KEY, note TEXT); INSERT INTO notes (note) VALUES ('milk')";
    connection.execute_batch(made).expect("a database");
}
