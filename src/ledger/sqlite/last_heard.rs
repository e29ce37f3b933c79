//! When a notification was last stored, and since when it is known that there was none. By the newest lines, up to a bound, and
//! by what the listener noted, since every answer to a question is a line too.

use rusqlite::{Connection, OptionalExtension as _};

use super::facts::fact;
use crate::invoice::transition::Decision;
use crate::ledger::fact::LAST_HEARD;
use crate::ledger::overview::{LastHeard, Tally};
use crate::ledger::sqlite::planned::Planned as _;

/// When, milliseconds since 1970, and of which order.
pub(super) fn last_notification(
    connection: &Connection,
) -> rusqlite::Result<Option<(i64, String)>> {
    // An event stays among the newest for weeks where little happens, while lines of later notifications are pushed out.
    let (found, noted) = (
        found_notification(connection)?,
        noted_notification(connection)?,
    );
    Ok(found
        .into_iter()
        .chain(noted)
        .max_by_key(|(at_ms, _)| *at_ms))
}

/// A line of changed lists carries the source of the claim that was judged again, at the time of the judging: nothing arrived.
/// Lines that are events too stand among the events, and a line notes which of them it comes after.
fn found_notification(connection: &Connection) -> rusqlite::Result<Option<(i64, String)>> {
    let sql = format!(
        "SELECT f.at_ms, i.order_id FROM (\
           SELECT * FROM (SELECT h.after_event AS place, 1 AS kind, h.at_ms, h.invoice FROM (\
               SELECT id, at_ms, invoice, source, decision, after_event FROM history ORDER BY id DESC LIMIT {most}) h \
             WHERE h.source = 'notification' AND h.decision <> '{reassessed}' ORDER BY h.id DESC LIMIT 1) \
           UNION ALL SELECT * FROM (SELECT e.seq AS place, 0 AS kind, e.at_ms, e.invoice FROM (\
               SELECT seq, at_ms, invoice, source, decision FROM event ORDER BY seq DESC LIMIT {most}) e \
             WHERE e.source = 'notification' AND e.decision IS NOT NULL ORDER BY e.seq DESC LIMIT 1)\
         ) f JOIN invoice i ON i.id = f.invoice ORDER BY f.place DESC, f.kind DESC LIMIT 1",
        most = Tally::MOST,
        reassessed = Decision::Reassessed.as_str()
    );
    connection
        .planned(&sql)?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// What the listener noted of it, for when everything else that was heard since fills the history.
fn noted_notification(connection: &Connection) -> rusqlite::Result<Option<(i64, String)>> {
    let Some(LastHeard { at_ms, invoice }) = fact(connection, &LAST_HEARD)? else {
        return Ok(None);
    };
    connection
        .planned("SELECT order_id FROM invoice WHERE id = ?1")?
        .query_row([invoice.0], |row| Ok((at_ms, row.get(0)?)))
        .optional()
}

/// Numbers of lines begin at 1 and rise: before another one there were some that are not looked at, or are dropped.
pub(super) fn unheard_since(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let sql = format!(
        "SELECT max(at_ms) FROM (\
           SELECT * FROM (SELECT at_ms FROM event ORDER BY seq LIMIT 1) UNION ALL \
           SELECT at_ms FROM (SELECT * FROM (SELECT id, at_ms FROM history ORDER BY id DESC LIMIT {}) ORDER BY id LIMIT 1) \
           WHERE id > 1)",
        Tally::MOST
    );
    let mut statement = connection.planned(&sql)?;
    statement.query_row([], |row| row.get(0))
}
