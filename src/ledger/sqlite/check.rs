//! Looks a whole ledger over while others write it: every page, every reference, the schema as this tilld makes it, and what
//! the writer promises of rows that belong together. Reads only, and holds no moment of the ledger for longer than one
//! question takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Error};

use super::facts::position;
use super::failure::from_sqlite;
use super::open;
use super::schema::STEPS;
use crate::invoice::attention::Attention;
use crate::invoice::event::EventKind;
use crate::invoice::status::Outcome;
use crate::ledger::check::Looked;
use crate::ledger::error::OpenError;
use crate::ledger::mark::Mark;
use crate::ledger::row::DeliveryState;
use crate::ledger::store::StoreError;

/// How long a question waits for a lock, which only a recovery after a crash holds.
const BUSY: Duration = Duration::from_secs(15);
/// Findings of one question that are told at most: a damaged file has thousands.
const TOLD_MOST: usize = 20;

/// What must hold whenever it is asked, each with how many rows break it. One statement each: one moment.
const INVARIANTS: [(&str, &str); 7] = [
    (
        "events are missing: their numbers have gaps",
        "SELECT coalesce(max(seq), 0) - count(*) FROM event",
    ),
    (
        "deliveries stand at another invoice than their event",
        "SELECT count(*) FROM delivery d JOIN event e ON e.seq = d.event WHERE e.invoice <> d.invoice",
    ),
    (
        "invoices were paid for the first time twice",
        "SELECT count(*) FROM (SELECT 1 FROM event WHERE kind IN ('paid', 'late') GROUP BY invoice HAVING count(*) > 1)",
    ),
    (
        "invoices have two runs at once",
        "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE state = 'running' GROUP BY invoice HAVING count(*) > 1)",
    ),
    (
        "deliveries wait for no time and would never be run",
        "SELECT count(*) FROM delivery WHERE state = 'waiting' AND next_ms IS NULL",
    ),
    (
        "deliveries wait for another one that is over and would never be run",
        "SELECT count(*) FROM delivery d WHERE d.state = 'waiting' AND d.blocked_by IS NOT NULL AND NOT EXISTS \
           (SELECT 1 FROM delivery o WHERE o.invoice = d.invoice AND o.hook = d.hook AND o.event < d.event \
            AND o.state <> 'done' AND o.state <> 'abandoned')",
    ),
    (
        "invoices have no sealed notify token: nothing authenticates for them",
        "SELECT count(*) FROM invoice i WHERE NOT EXISTS (SELECT 1 FROM secret s WHERE s.invoice = i.id)",
    ),
];

/// Looks. What is damaged is a finding; only what cannot be asked at all is an error.
pub(in crate::ledger) fn check(path: &Path) -> Result<(Looked, Mark), OpenError> {
    let connection = open::open_reader(path, BUSY)?;
    let failed = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let mut looked = Looked {
        schema: STEPS.len(),
        ..Looked::default()
    };
    let questions: [fn(&Connection, &mut Looked) -> rusqlite::Result<()>; 7] =
        [pages, types, references, schema, words, invariants, counts];
    for ask in questions {
        if let Err(error) = ask(&connection, &mut looked) {
            damage(error, &mut looked).map_err(failed)?;
        }
    }
    // Where even that cannot be read, the damage stands among the findings already.
    let now = position(&connection).unwrap_or_else(|_told| Mark::nowhere());
    Ok((looked, now))
}

/// What is wrong with a ledger that may be a mix of files: its pages, what refers to what, and what the writer promises.
pub(in crate::ledger) fn findings(path: &Path) -> Result<Vec<String>, OpenError> {
    found(path, &[pages, references, invariants])
}

/// What SQLite itself finds wrong with the file's pages: what another program wrote into the rows is no damage.
pub(super) fn damaged_pages(path: &Path) -> Result<Vec<String>, OpenError> {
    found(path, &[pages])
}

type Question = fn(&Connection, &mut Looked) -> rusqlite::Result<()>;

fn found(path: &Path, questions: &[Question]) -> Result<Vec<String>, OpenError> {
    let connection = open::open_reader(path, BUSY)?;
    let mut looked = Looked::default();
    for ask in questions {
        if let Err(error) = ask(&connection, &mut looked) {
            damage(error, &mut looked).map_err(|source| OpenError::File {
                path: path.to_owned(),
                source,
            })?;
        }
    }
    Ok(looked.findings)
}

/// How far a ledger is that nobody serves.
pub(in crate::ledger) fn position_of(path: &Path) -> Result<Mark, OpenError> {
    let connection = open::open_reader(path, BUSY)?;
    position(&connection).map_err(|error| OpenError::File {
        path: path.to_owned(),
        source: from_sqlite(error),
    })
}

/// A question that met damage is a finding, and the next one is asked.
fn damage(error: Error, looked: &mut Looked) -> Result<(), StoreError> {
    let text = error.to_string();
    match from_sqlite(error) {
        StoreError::Corrupt(_) => {
            looked
                .findings
                .push(format!("pages cannot be read: {text}"));
            Ok(())
        }
        other => Err(other),
    }
}

fn pages(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    let ask = format!("PRAGMA integrity_check({})", TOLD_MOST + 1);
    let mut statement = connection.prepare(&ask)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    for (place, told) in rows.enumerate() {
        let told = told?;
        if place == TOLD_MOST {
            let more = format!("more is damaged than these {TOLD_MOST} findings about pages say");
            looked.findings.push(more);
        } else if told != "ok" {
            looked.findings.push(told.replace('\n', " "));
        }
    }
    Ok(())
}

fn types(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    looked.findings.extend(wrong_types(connection)?);
    Ok(())
}

/// Columns with values that their CHECK refuses. Counted here, since SQLite checks none where it only reads.
pub(super) fn wrong_types(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let made = as_made()?;
    let mut columns = made.prepare(
        "SELECT t.name, c.name, lower(c.type) FROM sqlite_schema t, pragma_table_xinfo(t.name) c \
         WHERE t.type = 'table' AND t.name NOT GLOB 'sqlite_*'",
    )?;
    let columns = columns.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let mut tables: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for column in columns {
        let (table, column, kind) = column?;
        tables.entry(table).or_default().push((column, kind));
    }
    let mut wrong = Vec::new();
    for (table, mut columns) in tables {
        // What the schema lacks is found there.
        let mut there = connection.prepare("SELECT name FROM pragma_table_xinfo(?1)")?;
        let there = there.query_map([&table], |row| row.get(0))?;
        let there: Vec<String> = there.collect::<rusqlite::Result<_>>()?;
        columns.retain(|(column, _)| there.contains(column));
        if columns.is_empty() {
            continue;
        }
        let sums = columns.iter().map(|(column, kind)| {
            format!("ifnull(sum(typeof({column}) NOT IN ('{kind}', 'null')), 0)")
        });
        let ask = format!(
            "SELECT {} FROM {table}",
            sums.collect::<Vec<_>>().join(", ")
        );
        let mut statement = connection.prepare(&ask)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for (place, (column, kind)) in columns.iter().enumerate() {
                let count: i64 = row.get(place)?;
                if count > 0 {
                    wrong.push(format!(
                        "values in `{column}` of `{table}` that are not of type {kind}: {count}"
                    ));
                }
            }
        }
    }
    Ok(wrong)
}

fn references(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    let mut dangling = 0_u64;
    let mut first = None;
    connection.pragma_query(None, "foreign_key_check", |row| {
        dangling += 1;
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        first.get_or_insert((table, parent));
        Ok(())
    })?;
    if let Some((table, parent)) = first {
        looked.findings.push(format!(
            "{dangling} rows refer to nothing, first of `{table}` to `{parent}`"
        ));
    }
    Ok(())
}

/// All of the schema, as name and statement.
type Objects = BTreeMap<String, String>;

fn objects(connection: &Connection) -> rusqlite::Result<Objects> {
    let ask = "SELECT type || ' ' || name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
    let mut statement = connection.prepare(ask)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Tables of others in the same file are nobody's business here.
fn schema(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    let found = objects(connection)?;
    for (name, sql) in objects(&as_made()?)? {
        match found.get(&name) {
            Some(there) if *there == sql => {}
            Some(_) => looked
                .findings
                .push(format!("{name} is not as this tilld makes it")),
            None => looked.findings.push(format!("{name} is missing")),
        }
    }
    Ok(())
}

/// An empty ledger in memory.
pub(super) fn as_made() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    for step in STEPS {
        connection.execute_batch(step)?;
    }
    Ok(connection)
}

fn words(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    let outcomes = Outcome::ALL.map(Outcome::as_str);
    let kinds = EventKind::ALL.map(EventKind::as_str);
    let states = DeliveryState::ALL.map(DeliveryState::as_str);
    let reasons = Attention::ALL.map(Attention::as_str);
    for (table, column, known) in [
        ("invoice", "outcome", outcomes.as_slice()),
        ("invoice", "attention", &reasons),
        ("event", "outcome", &outcomes),
        ("event", "kind", &kinds),
        ("delivery", "state", &states),
    ] {
        // A value of another type is no word either.
        let mut statement = connection.prepare(&format!(
            "SELECT DISTINCT iif(typeof({column}) = 'text', {column}, quote({column})) FROM {table}"
        ))?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut unknown = BTreeSet::new();
        for words in rows {
            let words = words?;
            let words = words.split_ascii_whitespace();
            let words = words.filter(|word| !known.contains(word));
            unknown.extend(words.map(str::to_owned));
        }
        let unknown = unknown.into_iter();
        looked.findings.extend(
            unknown.map(|word| format!("the {column} `{word}` in `{table}` is no word of tilld")),
        );
    }
    Ok(())
}

fn invariants(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    for (what, count) in INVARIANTS {
        let broken: i64 = connection.query_row(count, [], |row| row.get(0))?;
        if broken != 0 {
            looked.findings.push(format!("{what} ({broken})"));
        }
    }
    Ok(())
}

fn counts(connection: &Connection, looked: &mut Looked) -> rusqlite::Result<()> {
    let counts = super::backup::count(connection)?;
    looked.counts = Some(counts);
    Ok(())
}
