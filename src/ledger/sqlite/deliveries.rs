//! The writer's statements on deliveries and their attempts.

use std::ops::RangeInclusive;

use rusqlite::{Connection, params};

use super::often::{Often, Statements};
use super::runnable::{self, Chosen};
use super::{abandonment, rows};
use crate::ledger::command::{After, AttemptRecord, Lane};
use crate::ledger::row::{Claimed, DeliveryKey, DeliveryState, InvoiceKey};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::Next;
use crate::process_mark::ProcessMark;

/// The delivery a new one is behind, as the triggers of the schema keep it: the nearest earlier unfinished one of the same
/// invoice and hook. The states are those of the index
/// `delivery_unfinished`.
macro_rules! in_front {
    ($event:literal, $invoice:literal, $hook:literal) => {
        concat!(
            "(SELECT o.id FROM delivery o WHERE o.invoice = ",
            $invoice,
            " AND o.event < ",
            $event,
            " AND o.hook = ",
            $hook,
            " AND o.state <> 'done' AND o.state <> 'abandoned' ORDER BY o.event DESC LIMIT 1)"
        )
    };
}
pub(super) use in_front;

/// Those of one state that is neither `waiting` nor `done`, in the words of the indexes that file them: without these they
/// would not be used.
macro_rules! aside {
    ($state:literal) => {
        concat!(
            "state <> 'waiting' AND state <> 'done' AND state = '",
            $state,
            "'"
        )
    };
}
pub(super) use aside;

/// How long daemons have served with something owed, as the last look noted it.
macro_rules! served_for {
    () => {
        "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'served_for_ms'), 0)"
    };
}
pub(super) use served_for;

pub(super) const INSERT_WAITING: &str = concat!(
    "INSERT INTO delivery (event, invoice, hook, state, next_ms, wait_ms, blocked_by, served_ms) VALUES (?1, ?2, ?3, 'waiting', ?4, ?5, ",
    in_front!("?1", "?2", "?3"),
    ", ",
    served_for!(),
    ")"
);

const INSERT_HELD: &str =
    "INSERT INTO delivery (event, invoice, hook, state, held_why) VALUES (?1, ?2, ?3, 'held', ?4)";

pub(super) fn insert(
    connection: &mut impl Statements,
    seq: i64,
    invoice: InvoiceKey,
    hook: &str,
    next: Next,
) -> rusqlite::Result<DeliveryKey> {
    let made = match next {
        Next::At { at_ms, wait_ms } => connection.often(Often::InsertDelivery, |statement| {
            statement.insert(params![seq, invoice.0, hook, at_ms, wait_ms])
        }),
        Next::Held(why) => connection
            .planned(INSERT_HELD)?
            .insert(params![seq, invoice.0, hook, why]),
    };
    made.map(DeliveryKey)
}

pub(super) fn claim(
    connection: &Connection,
    claimant: &ProcessMark,
    ahead: &RangeInclusive<i64>,
    lanes: &[Lane],
) -> rusqlite::Result<Vec<Claimed>> {
    let now_ms = *ahead.start();
    let mut claimed = Vec::new();
    let mut children: Vec<_> = lanes.iter().map(|lane| lane.children.iter()).collect();
    for Chosen { key, lane } in runnable::choose(connection, ahead, lanes)? {
        let child = children.get_mut(lane).and_then(Iterator::next);
        let mut mark = connection.planned(
            "UPDATE delivery SET state = 'running', attempts = attempts + 1, started_ms = ?2, claimant_boot = ?3, \
             claimant_pid = ?4, claimant_start = ?5, child_boot = ?6, child_pid = ?7, child_start = ?8 \
             WHERE id = ?1",
        )?;
        mark.execute(params![
            key,
            now_ms,
            claimant.boot_id,
            claimant.pid,
            claimant.start_ticks,
            child.map(|child| &child.boot_id),
            child.map(|child| child.pid),
            child.map(|child| child.start_ticks),
        ])?;
        let one = load(connection, key)?;
        let child = child.cloned();
        claimed.push(Claimed { child, ..one });
    }
    Ok(claimed)
}

fn load(connection: &Connection, key: i64) -> rusqlite::Result<Claimed> {
    let sql = format!(
        concat!(
            "SELECT {}, {}, d.hook, d.attempts, d.round_start, d.replay FROM ",
            "delivery d JOIN event e ON e.seq = d.event JOIN invoice i ON i.id = d.invoice",
            " WHERE d.id = ?1"
        ),
        rows::INVOICE,
        rows::EVENT
    );
    let mut statement = connection.planned(&sql)?;
    let mut claimed = statement.query_row([key], |row| {
        let (attempt, round_start): (u32, u32) = (row.get("attempts")?, row.get("round_start")?);
        Ok(Claimed {
            key: DeliveryKey(key),
            hook: row.get("hook")?,
            attempt,
            round_attempt: attempt.saturating_sub(round_start),
            replay: row.get("replay")?,
            event: rows::event(row)?,
            invoice: rows::invoice(row)?,
            given_up: None,
            child: None,
        })
    })?;
    claimed.given_up = abandonment::given_up(connection, key, &claimed.hook, &claimed.event)?;
    Ok(claimed)
}

pub(super) fn name_child(
    connection: &Connection,
    key: DeliveryKey,
    child: &ProcessMark,
) -> rusqlite::Result<bool> {
    let mut statement = connection.planned(
        "UPDATE delivery SET child_boot = ?2, child_pid = ?3, child_start = ?4 WHERE id = ?1 AND state = 'running'",
    )?;
    Ok(statement.execute(params![key.0, child.boot_id, child.pid, child.start_ticks])? == 1)
}

/// The time it was due at was left as it was by the claim.
pub(super) fn give_back(connection: &Connection, key: DeliveryKey) -> rusqlite::Result<bool> {
    let mut update = connection.planned(
        "UPDATE delivery SET state = iif(held_why IS NULL, 'waiting', 'held'), next_ms = iif(held_why IS NULL, next_ms, NULL), \
         attempts = attempts - 1, claimant_boot = NULL, claimant_pid = NULL, claimant_start = NULL, child_boot = NULL, \
         child_pid = NULL, child_start = NULL WHERE id = ?1 AND state = 'running'",
    )?;
    Ok(update.execute([key.0])? == 1)
}

pub(super) fn finish(
    connection: &Connection,
    key: DeliveryKey,
    record: &AttemptRecord,
    after: After,
) -> rusqlite::Result<bool> {
    let (state, next_ms) = match after {
        After::Done => (DeliveryState::Done, None),
        After::Retry { at_ms } | After::Postponed { at_ms } => {
            (DeliveryState::Waiting, Some(at_ms))
        }
        After::Abandoned => (DeliveryState::Abandoned, None),
        After::Interrupted => (DeliveryState::Waiting, Some(record.ended_ms)),
    };
    let wait_ms = next_ms.map_or(0, |at_ms| at_ms.saturating_sub(record.ended_ms));
    // What is no failure does not use up the schedule: its round begins one attempt later.
    let uncounted = i64::from(matches!(
        after,
        After::Interrupted | After::Postponed { .. }
    ));
    let mut update = connection.planned(
        "UPDATE delivery SET state = iif(held_why IS NOT NULL AND ?2 = 'waiting', 'held', ?2), \
         next_ms = iif(held_why IS NULL, ?3, NULL), wait_ms = ?5, held_why = iif(?2 = 'waiting', held_why, NULL), \
         round_start = round_start + ?4, claimant_boot = NULL, claimant_pid = NULL, claimant_start = NULL, child_boot = NULL, child_pid = NULL, child_start = NULL \
         WHERE id = ?1 AND state = 'running'",
    )?;
    if update.execute(params![key.0, state.as_str(), next_ms, uncounted, wait_ms])? == 0 {
        // Stored before, and the answer was lost: the first word stands.
        return Ok(false);
    }
    let mut insert = connection.planned(
        "INSERT INTO attempt (delivery, number, started_ms, ended_ms, result, stdout, stderr) \
         SELECT id, attempts, ?2, ?3, ?4, ?5, ?6 FROM delivery WHERE id = ?1",
    )?;
    let AttemptRecord {
        started_ms,
        ended_ms,
        result,
        stdout,
        stderr,
    } = record;
    insert.execute(params![key.0, started_ms, ended_ms, result, stdout, stderr])?;
    Ok(true)
}

/// Of those that wait: planned later than this time.
const PLANNED_AHEAD: &str = "SELECT EXISTS (SELECT 1 FROM delivery INDEXED BY delivery_due \
  WHERE state = 'waiting' AND next_ms > ?1 AND next_ms - wait_ms > ?1)";

/// True when a delivery waits that was planned later than at this time.
pub(super) fn planned_after(connection: &Connection, at_ms: i64) -> rusqlite::Result<bool> {
    let mut ask = connection.planned(PLANNED_AHEAD)?;
    ask.query_row([at_ms], |row| row.get(0))
}

/// See [`Store::replan`](crate::ledger::store::Store::replan).
pub(super) fn replan(
    connection: &Connection,
    now_ms: i64,
    forward_ms: i64,
) -> rusqlite::Result<usize> {
    let mut shift = connection.planned(
        "UPDATE delivery INDEXED BY delivery_due SET next_ms = next_ms + ?2 \
         WHERE state = 'waiting' AND wait_ms > 0 AND next_ms > ?1 - ?2 AND ?2 > 0",
    )?;
    let shifted = shift.execute([now_ms, forward_ms])?;
    let mut shorten = connection.planned(
        "UPDATE delivery INDEXED BY delivery_due SET next_ms = ?1 + wait_ms \
         WHERE state = 'waiting' AND next_ms > ?1 AND next_ms - wait_ms > ?1",
    )?;
    Ok(shifted.max(shorten.execute([now_ms])?))
}

#[cfg(test)]
mod tests {
    use super::super::check::as_made;
    use super::super::due::tests::plan;
    use super::*;

    /// It is asked for every delivery that is made: without a table of its own, and however many are done.
    #[test]
    fn what_a_new_one_is_behind_is_read_from_the_index_of_the_unfinished() {
        let connection = as_made().expect("in memory");
        let steps = plan(&connection, INSERT_WAITING);
        let by_index = "delivery_unfinished (invoice=? AND hook=? AND event<?)";
        assert!(
            steps.iter().any(|step| step.contains(by_index)),
            "{steps:?}"
        );
        let mut program = connection
            .prepare(&format!("EXPLAIN {INSERT_WAITING}"))
            .expect("a program");
        let values = [1; 5];
        let steps = program.query_map(values, |row| row.get::<_, String>("opcode"));
        let steps: Vec<String> = steps
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("read");
        assert!(
            !steps.iter().any(|step| step.contains("Ephemeral")),
            "{steps:?}"
        );
    }
}
