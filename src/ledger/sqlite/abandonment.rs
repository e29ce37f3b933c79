//! Statements on the deliveries that tell of others which were given up.

use rusqlite::{Connection, params};

use super::deliveries::{in_front, served_for};
use crate::hook::abandonment::{self, GivenUp};
use crate::ledger::row::{DeliveryKey, EventRow};
use crate::ledger::sqlite::planned::Planned as _;

pub(super) fn owe(connection: &Connection, key: DeliveryKey, at_ms: i64) -> rusqlite::Result<()> {
    let mut of = connection.planned("SELECT hook FROM delivery WHERE id = ?1")?;
    let hook: String = of.query_row([key.0], |row| row.get(0))?;
    let Some(teller) = abandonment::teller_of(&hook) else {
        return Ok(());
    };
    let mut owe = connection.planned(concat!(
        "INSERT INTO delivery (event, invoice, hook, state, next_ms, gave_up_after, blocked_by, served_ms) \
         SELECT event, invoice, ?2, 'waiting', ?3, attempts, ",
        in_front!("d.event", "d.invoice", "?2"),
        ", ",
        served_for!(),
        " FROM delivery d WHERE d.id = ?1 \
         ON CONFLICT (event, hook) DO UPDATE SET gave_up_after = excluded.gave_up_after, \
           next_ms = iif(state IN ('done', 'abandoned'), excluded.next_ms, next_ms), \
           served_ms = iif(state IN ('done', 'abandoned'), excluded.served_ms, served_ms), \
           wait_ms = iif(state IN ('done', 'abandoned'), 0, wait_ms), \
           round_start = iif(state IN ('done', 'abandoned'), attempts, round_start), \
           abandoned_by = iif(state IN ('done', 'abandoned'), NULL, abandoned_by), \
           acknowledged = iif(state IN ('done', 'abandoned'), 0, acknowledged), \
           replay = iif(state IN ('done', 'abandoned'), 0, replay), \
           state = iif(state IN ('done', 'abandoned'), 'waiting', state)",
    ))?;
    owe.execute(params![key.0, teller, at_ms]).map(drop)
}

/// What a delivery tells that tells of another one.
pub(super) fn given_up(
    connection: &Connection,
    key: i64,
    hook: &str,
    event: &EventRow,
) -> rusqlite::Result<Option<GivenUp>> {
    let Some(gave_up) = abandonment::told_of(hook) else {
        return Ok(None);
    };
    let mut statement = connection.planned(
        "SELECT coalesce(d.gave_up_after, 0), coalesce(a.ended_ms, 0), coalesce(a.result, ''), coalesce(a.stderr, x'') \
         FROM delivery d LEFT JOIN delivery g ON g.event = d.event AND g.hook = ?2 \
         LEFT JOIN attempt a ON a.delivery = g.id AND a.number = d.gave_up_after WHERE d.id = ?1",
    )?;
    let found = statement.query_row(params![key, gave_up], |row| {
        let stderr: Vec<u8> = row.get(3)?;
        Ok(GivenUp {
            hook: gave_up.to_owned(),
            event_id: event.event_id.clone(),
            attempts: row.get(0)?,
            at_ms: row.get(1)?,
            result: row.get(2)?,
            stderr: abandonment::tail(&stderr),
        })
    });
    found.map(Some)
}
