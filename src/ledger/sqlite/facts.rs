//! The table of facts, and how far a ledger is by them. Relies on [`Fact`] for keys and forms; promises that nothing else reads
//! or writes the table by a key, but for the schema and the SQL of the history.

use rusqlite::{Connection, OptionalExtension as _};

use crate::ledger::fact::{DELIVERY_STEPS, Fact, GENERATION, GENERATION_BEGAN, LEDGER_ID, Note};
use crate::ledger::mark::Mark;
use crate::ledger::sqlite::planned::Planned as _;

pub(super) fn fact<T>(connection: &Connection, fact: &Fact<T>) -> rusqlite::Result<Option<T>> {
    let mut statement = connection.planned("SELECT value FROM meta WHERE key = ?1")?;
    let found = statement.query_row([&fact.key], |row| row.get(0));
    let text: Option<String> = found.optional()?;
    Ok(text.and_then(|text| fact.read(&text)))
}

pub(super) fn note(connection: &Connection, note: &Note) -> rusqlite::Result<()> {
    let mut statement = connection.planned(
        "INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2",
    )?;
    statement.execute([&note.key, &*note.text]).map(drop)
}

/// Those whose keys begin with this one's, which ends in `:`, by key: what follows it there, and what each says.
pub(super) fn of_family<T: Default>(
    connection: &Connection,
    family: &Fact<T>,
    limit: u32,
) -> rusqlite::Result<Vec<(String, T)>> {
    // By the table's own order: `;` is the character after `:`.
    let mut statement = connection.planned(
        "SELECT substr(key, length(?1) + 1), value FROM meta WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3",
    )?;
    let end = family.key.replace(':', ";");
    let found = statement.query_map((&family.key, end, limit), |row| {
        let text: String = row.get(1)?;
        Ok((row.get(0)?, family.read(&text).unwrap_or_default()))
    })?;
    found.collect()
}

/// The number of the newest event; 0 while there is none.
pub(super) fn newest_event(connection: &Connection) -> rusqlite::Result<i64> {
    let mut newest = connection.planned("SELECT coalesce(max(seq), 0) FROM event")?;
    newest.query_row([], |row| row.get(0))
}

/// Marks events behind this number as dated by a clock that may have been wrong.
pub(super) fn mark_unsure(connection: &Connection, after: i64) -> rusqlite::Result<()> {
    let mut mark = connection
        .planned("UPDATE event SET time_unsure = 1 WHERE seq > ?1 AND time_unsure = 0")?;
    mark.execute([after]).map(drop)
}

/// When the newest event was recorded that is not marked so, milliseconds since 1970.
pub(super) fn newest_sure(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let mut newest = connection
        .planned("SELECT at_ms FROM event WHERE time_unsure = 0 ORDER BY seq DESC LIMIT 1")?;
    newest.query_row([], |row| row.get(0)).optional()
}

/// How far the ledger is.
pub(super) fn position(connection: &Connection) -> rusqlite::Result<Mark> {
    Ok(Mark {
        event: newest_event(connection)?,
        ledger: fact(connection, &LEDGER_ID)?.unwrap_or_default(),
        generation: fact(connection, &GENERATION)?.unwrap_or_default(),
        step: fact(connection, &DELIVERY_STEPS)?.unwrap_or_default(),
        base: fact(connection, &GENERATION_BEGAN)?.map(|began| began.event),
        files: None,
    })
}
