//! For the benches alone: a ledger with as many open invoices as wanted, made by copying one that came in by the front
//! door. Nothing of the service's work comes through here, and no file that anybody serves may: it is written without a
//! sync.

use std::path::Path;

use rusqlite::{Connection, params};

/// How many invoices there are to be, and how old they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// Invoices in all, the one that is copied among them.
    pub count: u32,
    /// The newest of them that are young.
    pub young: u32,
    /// When the young ones were opened, milliseconds since 1970.
    pub young_ms: i64,
    /// When the others were.
    pub old_ms: i64,
    /// Due times lie from here on, milliseconds since 1970...
    pub due_from_ms: i64,
    /// ...within this time, milliseconds.
    pub due_within_ms: i64,
}

/// Copies invoice 1 of a closed ledger, and its polling side.
pub(crate) fn fill(path: &Path, crowd: &Crowd) -> rusqlite::Result<()> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cache_size = -262144; BEGIN;",
    )?;
    connection.execute(
        "UPDATE poll SET class = 2, due_ms = ?1 WHERE invoice = 1",
        [crowd.due_from_ms],
    )?;
    let columns = |table: &str, own: &dyn Fn(&str) -> Option<&'static str>| {
        let mut statement = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let names = statement.query_map([table], |row| row.get::<_, String>(0))?;
        let names = names.collect::<rusqlite::Result<Vec<_>>>()?;
        let values: Vec<String> = names
            .iter()
            .map(|name| own(name).map_or_else(|| format!("o.{name}"), str::to_owned))
            .collect();
        Ok::<_, rusqlite::Error>((names.join(", "), values.join(", ")))
    };
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)";
    let (names, values) = columns("invoice", &|name| match name {
        "id" => Some("n.i"),
        "ref" => Some("printf('r%021d', n.i)"),
        "order_id" => Some("printf('order-%09d', n.i)"),
        "invoice_id" => Some("printf('id-%09d', n.i)"),
        "created_ms" | "outcome_ms" | "heard_ms" | "updated_ms" => {
            Some("iif(n.i > ?1 - ?2, ?3, ?4)")
        }
        _ => None,
    })?;
    connection.execute(
        &format!(
            "{numbers} INSERT INTO invoice ({names}) SELECT {values} FROM n CROSS JOIN invoice o ON o.id = 1"
        ),
        params![crowd.count, crowd.young, crowd.young_ms, crowd.old_ms],
    )?;
    let (names, values) = columns("poll", &|name| match name {
        "invoice" => Some("n.i"),
        "class" => Some("iif(n.i > ?1 - ?2, 1, 2)"),
        // By the service's clock too they are as old as they are said to be.
        "service_ms" | "first_service_ms" => Some("iif(n.i > ?1 - ?2, ?5, ?6)"),
        // A multiplication that scatters the numbers: invoices are not due in the order in which they were opened.
        "due_ms" => Some("?3 + (n.i * 7919) % ?4"),
        _ => None,
    })?;
    connection.execute(
        &format!(
            "{numbers} INSERT INTO poll ({names}) SELECT {values} FROM n CROSS JOIN poll o ON o.invoice = 1"
        ),
        params![
            crowd.count,
            crowd.young,
            crowd.due_from_ms,
            crowd.due_within_ms,
            crowd.young_ms,
            crowd.old_ms
        ],
    )?;
    connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL;")
}

/// Makes invoices due at this time: every so manieth of the first `among`, as if nobody had spoken of it since it was opened.
pub(crate) fn make_due(
    path: &Path,
    (every, among): (u32, u32),
    due_ms: i64,
) -> rusqlite::Result<usize> {
    let mut connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    let numbers =
        "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + ?1 FROM n WHERE i + ?1 <= ?2)";
    let transaction = connection.transaction()?;
    transaction.execute(
        &format!(
            "{numbers} UPDATE invoice SET heard_ms = created_ms FROM n WHERE invoice.id = n.i"
        ),
        [every, among],
    )?;
    let due = transaction.execute(
        &format!(
            "{numbers} UPDATE poll SET due_ms = ?3, asked_ms = NULL FROM n WHERE poll.invoice = n.i"
        ),
        params![every, among, due_ms],
    )?;
    transaction.commit()?;
    Ok(due)
}

/// Makes nothing due before this time.
pub(crate) fn put_off(path: &Path, due_ms: i64) -> rusqlite::Result<usize> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(std::time::Duration::from_secs(30))?;
    let statement =
        "UPDATE poll INDEXED BY poll_due SET due_ms = ?1 WHERE class = ?2 AND due_ms < ?1";
    let mut changed = 0;
    for class in 0..=2 {
        changed += connection.execute(statement, params![due_ms, class])?;
    }
    Ok(changed)
}
