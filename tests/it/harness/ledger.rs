//! The ledger as a reader of the shop sees it, as another program that writes there meets it, and the invariants that
//! hold after every scenario. The one place of the tests that speaks to SQLite.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::setup::Hook;

/// How long a reader waits where SQLite makes readers wait at all (recovery, schema changes).
const BUSY: Duration = Duration::from_secs(10);

/// Every word an invoice's outcome may be.
const OUTCOMES: [&str; 6] = [
    "open",
    "paid",
    "failed",
    "reversed",
    "mismatch",
    "second_payment",
];
/// Every word a delivery's state may be.
const STATES: [&str; 5] = ["waiting", "running", "done", "abandoned", "held"];
/// Every word an event's kind may be.
pub(crate) const KINDS: [&str; 11] = [
    "opened",
    "status",
    "paid",
    "paid_again",
    "late",
    "failed",
    "reversed",
    "mismatch",
    "second_payment",
    "unresolved",
    "operator",
];

/// What was heard, in its order: an event is its own line, what made none stands in the history.
const HEARD: &str = "CREATE TEMP VIEW heard AS \
  SELECT row_number() OVER (ORDER BY place, kind, number) AS id, * FROM ( \
    SELECT seq AS place, 0 AS kind, 0 AS number, invoice, at_ms, source, cause_status AS status, cause_differs AS differs, \
      cause_ns AS claim_ns, decision, why, amount_reported, currency_reported, NULL AS updated_at_text \
    FROM event WHERE decision IS NOT NULL \
    UNION ALL SELECT after_event, 1, id, invoice, at_ms, source, status, differs, claim_ns, decision, why, \
      amount_reported, currency_reported, updated_at_text FROM history)";

/// Rows of a query, every value as text; `NULL` is empty. What was heard can be asked for as `heard`.
#[track_caller]
pub(crate) fn sql(file: &Path, query: &str) -> Vec<Vec<String>> {
    try_sql(file, query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The same of a ledger that may be damaged.
pub(crate) fn try_sql(file: &Path, query: &str) -> rusqlite::Result<Vec<Vec<String>>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.execute_batch(HEARD)?;
    let mut statement = connection.prepare(query)?;
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..width).map(|at| row.get_ref(at).map(text)).collect()
    })?;
    rows.collect()
}

/// Makes a file that holds what these statements make, with a ledger's mode.
#[track_caller]
pub(crate) fn load_sql(file: &Path, statements: &str) {
    let connection = Connection::open(file).expect("made");
    connection.execute_batch(statements).expect("statements");
    drop(connection);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o640);
    std::fs::set_permissions(file, mode).expect("own file");
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            String::from_utf8_lossy(bytes).into_owned()
        }
    }
}

/// Another program on the ledger's file, with a table of its own.
#[derive(Debug)]
pub(crate) struct Neighbour(Connection);

impl Neighbour {
    /// Opens the file for writing and makes the table.
    #[track_caller]
    pub(super) fn open(file: &Path) -> Self {
        let connection = Connection::open(file).expect("the ledger opens");
        connection.busy_timeout(BUSY).expect("a timeout");
        connection
            .execute_batch(
                "CREATE TABLE IF NOT EXISTS shop_notes (id INTEGER PRIMARY KEY, note TEXT)",
            )
            .expect("a table of its own");
        Self(connection)
    }

    /// Takes the write lock and keeps it until [`Neighbour::let_go`] or the end.
    #[track_caller]
    pub(crate) fn hold(&self) {
        self.0.execute_batch("BEGIN IMMEDIATE").expect("the lock");
    }

    /// Gives the write lock back.
    #[track_caller]
    pub(crate) fn let_go(&self) {
        self.0.execute_batch("ROLLBACK").expect("the lock was held");
    }

    /// Begins to read and does not end.
    #[track_caller]
    pub(crate) fn keep_reading(&self) {
        let read = "BEGIN; SELECT count(*) FROM invoices";
        self.0.execute_batch(read).expect("a moment of the ledger");
    }

    /// One commit that makes the log so many pages longer, which this program leaves to others to move.
    #[track_caller]
    pub(crate) fn lengthen_log(&self, pages: u32) {
        let long = format!(
            "PRAGMA wal_autocheckpoint = 0; INSERT INTO shop_notes (note) VALUES (zeroblob({pages} * 4096))"
        );
        self.0.execute_batch(&long).expect("its turn came");
    }

    /// Moves the log into the file as far as reads let it; true when that was all.
    #[track_caller]
    pub(crate) fn moves_all(&self) -> bool {
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        let moved = self
            .0
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], counts);
        let (log, moved) = moved.expect("it moves");
        log == moved
    }

    /// Runs statements in tilld's own tables, to bring about what no command can.
    #[track_caller]
    pub(crate) fn tamper(&self, statements: &str) {
        self.0.execute_batch(statements).expect("statements");
    }

    /// One short transaction of its own.
    #[track_caller]
    pub(crate) fn write(&self) {
        let note = "BEGIN IMMEDIATE; INSERT INTO shop_notes (note) VALUES ('x'); COMMIT";
        self.0.execute_batch(note).expect("its turn came");
    }
}

/// What must hold whenever nobody writes: the file is whole, events are gapless, words are legal, no event is owed twice
/// to one hook, and every event that a hook asked for is owed.
pub(super) fn invariants(file: &Path, hooks: &[Hook]) {
    let one = |query: &str| -> Vec<String> { sql(file, query).into_iter().flatten().collect() };
    assert_eq!(one("PRAGMA integrity_check"), ["ok"]);
    assert_eq!(one("PRAGMA foreign_key_check"), Vec::<String>::new());

    // SQLite checks no types where it only reads, and the daemon leaves them out where it writes.
    let columns = "SELECT t.name, c.name, lower(c.type) FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
                   WHERE t.type = 'table' AND t.sql LIKE '%CHECK (typeof(%'";
    let wrong = |column: Vec<String>| {
        let [table, name, kind] = column.as_slice() else {
            panic!("three columns: {column:?}");
        };
        format!(
            "SELECT '{table}.{name}' WHERE EXISTS (SELECT 1 FROM {table} WHERE typeof({name}) NOT IN ('{kind}', 'null'))"
        )
    };
    let wrong: Vec<String> = sql(file, columns).into_iter().map(wrong).collect();
    assert_eq!(
        one(&wrong.join(" UNION ALL ")),
        Vec::<String>::new(),
        "of another type"
    );

    let seqs = one("SELECT seq FROM events ORDER BY seq");
    let gapless: Vec<String> = (1..=seqs.len()).map(|seq| seq.to_string()).collect();
    assert_eq!(seqs, gapless, "events are numbered without gaps");

    let standing = "SELECT order_id FROM invoices WHERE opening <> 'refused' GROUP BY order_id \
                    HAVING count(iif(superseded_by IS NULL, 1, NULL)) <> 1 OR count(iif(outcome = 'paid', 1, NULL)) > 1";
    assert_eq!(
        one(standing),
        Vec::<String>::new(),
        "one invoice stands for an order, and one may have paid it"
    );
    legal(&one("SELECT DISTINCT outcome FROM invoices"), &OUTCOMES);
    legal(&one("SELECT DISTINCT outcome FROM orders"), &OUTCOMES);
    legal(&one("SELECT DISTINCT order_outcome FROM events"), &OUTCOMES);
    legal(&one("SELECT DISTINCT outcome FROM events"), &OUTCOMES);
    legal(&one("SELECT DISTINCT state FROM deliveries"), &STATES);
    legal(&one("SELECT DISTINCT kind FROM events"), &KINDS);

    let twice = "SELECT event_id, hook FROM deliveries GROUP BY event_id, hook HAVING count(*) > 1";
    assert_eq!(one(twice), Vec::<String>::new(), "owed twice");
    let paid = "SELECT order_id FROM events WHERE kind IN ('paid', 'late') \
                GROUP BY invoice_id HAVING count(*) > 1";
    assert_eq!(
        one(paid),
        Vec::<String>::new(),
        "paid for the first time twice"
    );
    for hook in hooks {
        let wanted = match hook.on.as_slice() {
            [all] if all == "*" => "1",
            [paid] if paid == "paid" => "kind IN ('paid', 'late')",
            _ => continue,
        };
        let missing = format!(
            "SELECT seq FROM events WHERE {wanted} AND event_id NOT IN \
             (SELECT event_id FROM deliveries WHERE hook = '{}')",
            hook.name
        );
        assert_eq!(
            one(&missing),
            Vec::<String>::new(),
            "not owed to `{}`",
            hook.name
        );
    }
}

fn legal(found: &[String], words: &[&str]) {
    let strange: Vec<_> = found
        .iter()
        .filter(|word| !words.contains(&word.as_str()))
        .collect();
    assert!(strange.is_empty(), "not a word of ours: {strange:?}");
}
