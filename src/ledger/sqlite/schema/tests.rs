//! What the tables take, and that the triggers keep what they note.

use rusqlite::{Connection, ErrorCode};

use crate::ledger::sqlite::check::as_made;

#[test]
fn the_views_of_an_empty_ledger_are_empty() {
    let connection = as_made().expect("in memory");
    for view in ["invoices", "events", "deliveries", "attempts", "requisites"] {
        let count = connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(count, Ok(0), "{view}");
    }
}

/// A column as `PRAGMA table_xinfo` shows it.
struct Column {
    name: String,
    kind: String,
    takes_null: bool,
}

impl Column {
    /// A value of its type.
    fn right(&self) -> &'static str {
        match self.kind.as_str() {
            "INTEGER" => "1",
            "TEXT" => "'word'",
            "BLOB" => "x'00'",
            other => panic!("{}: no value of type {other}", self.name),
        }
    }

    /// What SQLite does not turn into its type.
    fn wrong(&self) -> &'static [&'static str] {
        match self.kind.as_str() {
            "INTEGER" => &["'word'", "1.5", "x'00'"],
            "TEXT" => &["x'00'"],
            _ => &["'word'", "1", "1.5"],
        }
    }
}

fn names(connection: &Connection) -> Vec<String> {
    let ask = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
    let mut statement = connection.prepare(ask).expect("prepared");
    let names = statement.query_map([], |row| row.get(0));
    names.and_then(Iterator::collect).expect("read")
}

fn columns(connection: &Connection, table: &str) -> Vec<Column> {
    let ask =
        "SELECT name, type, \"notnull\" = 0 AND pk = 0 AS takes_null FROM pragma_table_xinfo(?1)";
    let mut statement = connection.prepare(ask).expect("prepared");
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Column {
            name: row.get("name")?,
            kind: row.get("type")?,
            takes_null: row.get("takes_null")?,
        })
    };
    let columns = statement.query_map([table], read);
    columns.and_then(Iterator::collect).expect("read")
}

/// Readers in PHP and Python read what stands there without a look at its type.
#[test]
fn a_value_of_a_wrong_type_is_refused_in_every_column() {
    let connection = as_made().expect("in memory");
    connection
        .execute_batch("PRAGMA foreign_keys = OFF; DELETE FROM meta")
        .expect("set");
    let tables = names(&connection);
    assert_eq!(tables.len(), 9, "{tables:?}");
    for table in tables {
        let columns = columns(&connection, &table);
        let values: Vec<&str> = columns.iter().map(Column::right).collect();
        let row = format!("INSERT INTO {table} VALUES ({})", values.join(", "));
        assert_eq!(connection.execute(&row, []), Ok(1), "{row}");
        for column in &columns {
            let refused = |value: &str| {
                let set = format!("UPDATE {table} SET {} = {value}", column.name);
                let ran = connection.execute(&set, []);
                let code = ran
                    .as_ref()
                    .err()
                    .and_then(rusqlite::Error::sqlite_error_code);
                match code {
                    Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch) => true,
                    Some(other) => panic!("{set}: {other:?}"),
                    None => false,
                }
            };
            for wrong in column.wrong() {
                assert!(refused(wrong), "{table}.{} takes {wrong}", column.name);
            }
            assert_eq!(
                refused("NULL"),
                !column.takes_null,
                "{table}.{}",
                column.name
            );
            assert!(!refused(column.right()), "{table}.{}", column.name);
        }
    }
}

/// What is at stake: only the next one behind is looked at when one ends, and a replay puts one between two that know
/// nothing of it. None may be taken to be behind another for good.
#[test]
fn whoever_is_behind_one_that_is_replayed_has_its_turn_after_it() {
    let connection = as_made().expect("in memory");
    let do_all = |sql: &str| connection.execute_batch(sql).expect("stored");
    do_all(
        "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, \
           currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
         VALUES (1, 'r', 'a', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0); \
         WITH n(i) AS (VALUES (1), (2), (3), (4)) \
         INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
         SELECT i, 'e' || i, 1, 'status', 0, 'open', 'open', 0 FROM n",
    );
    let insert = |event: i64| {
        let made = connection.execute(
            crate::ledger::sqlite::deliveries::INSERT_WAITING,
            rusqlite::params![event, 1, "log", 5, 0],
        );
        assert_eq!(made, Ok(1));
    };
    let behind = || -> String {
        let ask = "SELECT group_concat(event, ' ') FROM (SELECT event FROM delivery \
                   WHERE state = 'waiting' AND blocked_by IS NOT NULL ORDER BY event)";
        let found: Option<String> = connection
            .query_row(ask, [], |row| row.get(0))
            .expect("read");
        found.unwrap_or_default()
    };
    let set = |event: i64, state: &str| {
        do_all(&format!(
            "UPDATE delivery SET state = '{state}' WHERE event = {event}"
        ));
    };
    insert(1);
    insert(2);
    set(2, "done");
    insert(3);
    insert(4);
    assert_eq!(behind(), "3 4");
    set(2, "waiting");
    assert_eq!(behind(), "2 3 4");
    set(1, "done");
    assert_eq!(behind(), "3 4");
    set(2, "running");
    set(2, "abandoned");
    assert_eq!(behind(), "4");
    do_all("DELETE FROM delivery WHERE event = 3");
    assert_eq!(behind(), "");
}

/// The documented question for what was given up is asked again and again by whoever watches, however much was ever delivered.
#[test]
fn what_was_given_up_is_found_without_reading_all() {
    let connection = as_made().expect("in memory");
    let asked =
        "EXPLAIN QUERY PLAN SELECT hook, order_id FROM deliveries WHERE state = 'abandoned'";
    let mut plan = connection.prepare(asked).expect("asked");
    let steps: Vec<String> = plan
        .query_map([], |row| row.get("detail"))
        .and_then(Iterator::collect)
        .expect("read");
    assert!(
        steps.iter().any(|step| step.contains("delivery_abandoned")),
        "{steps:?}"
    );
}
