//! Who is to be asked about, by the index in which due times are filed by class. Each question reads one class from one
//! place on: what is due is found as fast behind a million old invoices as behind none.

pub(super) mod ended;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::rows;
use crate::invoice::ids::InvoiceId;
use crate::invoice::polled::Polled;
use crate::invoice::silence::{CLOCK_IS_SET_MS, Class, Ended, Heard};
use crate::ledger::apply::heard;
use crate::ledger::row::{DueRow, InvoiceKey, Place};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::PollState;

macro_rules! poll {
    () => {
        "p.due_ms, p.class, p.asked_ms, p.nudged_ms, p.failures, p.service_ms, p.first_service_ms, p.ended_answers, \
         p.ended_since_ms, p.retired_ms, p.answered_ms, p.gone_since_ms, p.gone_ms, p.alerted_ms"
    };
}

/// Unreadable rows that a look passes over at most, of one class.
const PASSED_OVER: u32 = 1_000;

/// The columns of the polling side.
const POLL: &str = poll!();

/// The polling side of one invoice.
pub(super) const POLL_STATE: &str =
    concat!("SELECT ", poll!(), " FROM poll p WHERE p.invoice = ?1");

/// The same where the polling side may be missing.
pub(super) const POLL_OR_NONE: &str = "p.due_ms, coalesce(p.class, 2) AS class, p.asked_ms, \
  p.nudged_ms, coalesce(p.failures, 0) AS failures, p.service_ms, p.first_service_ms, \
  coalesce(p.ended_answers, 0) AS ended_answers, p.ended_since_ms, p.retired_ms, p.answered_ms, p.gone_since_ms, p.gone_ms, \
  p.alerted_ms";

/// From the index of due times to the invoices, never the other way round; the index is named, so that a question it does
/// not fit is refused instead of slow.
const FILED: &str = concat!(
    "FROM ",
    "poll p INDEXED BY poll_due CROSS JOIN invoice i ON i.id = p.invoice",
    " WHERE p.class = ?1 AND i.invoice_id IS NOT NULL"
);

/// Invoices that are due: up to so many of each class, the longest due first. By a clock that was never set, what was dated
/// by one that was is due as well: nobody would ask until it is set.
pub(super) fn due(
    connection: &Connection,
    now_ms: i64,
    per_class: u32,
) -> rusqlite::Result<Looked> {
    let mut statement = connection.planned(&due_sql())?;
    let mut found = Looked::default();
    for class in Class::ALL {
        let values = params![class.number(), now_ms, asked_for(per_class)];
        found.take(statement.query_map(values, due_row)?, per_class)?;
        if now_ms < CLOCK_IS_SET_MS {
            let dated = Place {
                class,
                due_ms: CLOCK_IS_SET_MS,
                key: InvoiceKey(0),
            };
            found.extend(due_after(connection, dated, per_class)?);
        }
    }
    Ok(found)
}

/// So many rows are asked for, that as many are found behind unreadable ones. Each is read when it is taken.
const fn asked_for(rows: u32) -> u32 {
    rows.saturating_add(PASSED_OVER)
}

/// What a look at due times found.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// The invoices.
    pub(super) rows: Vec<DueRow>,
    /// Why one of them could not be read.
    pub(super) unreadable: Option<String>,
}

impl Looked {
    /// Takes up to `most` rows. One that a foreign hand made unreadable must not stop all others: it is noted and left out, and
    /// takes the place of none.
    fn take(
        &mut self,
        rows: impl Iterator<Item = rusqlite::Result<Option<DueRow>>>,
        most: u32,
    ) -> rusqlite::Result<()> {
        let mut left = most;
        for row in rows {
            if left == 0 {
                break;
            }
            match row {
                Ok(Some(row)) => {
                    self.rows.push(row);
                    left = left.saturating_sub(1);
                }
                Ok(None) => {}
                Err(rusqlite::Error::FromSqlConversionFailure(_, _, cause)) => {
                    self.unreadable = Some(cause.to_string());
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.unreadable = self.unreadable.take().or(other.unreadable);
    }
}

fn due_sql() -> String {
    format!(
        "SELECT {}, {POLL} {FILED} AND p.due_ms <= ?2 ORDER BY p.due_ms, p.invoice LIMIT ?3",
        rows::INVOICE
    )
}

/// Invoices of one class whose due time lies after a place.
pub(super) fn due_after(
    connection: &Connection,
    place: Place,
    limit: u32,
) -> rusqlite::Result<Looked> {
    let mut statement = connection.planned(&due_after_sql())?;
    let most = asked_for(limit);
    let values = params![place.class.number(), place.due_ms, place.key.0, most];
    let mut found = Looked::default();
    found.take(statement.query_map(values, due_row)?, limit)?;
    Ok(found)
}

fn due_after_sql() -> String {
    format!(
        "SELECT {}, {POLL} {FILED} AND p.due_ms IS NOT NULL AND (p.due_ms, p.invoice) > (?2, ?3) ORDER BY p.due_ms, p.invoice LIMIT ?4",
        rows::INVOICE
    )
}

/// One invoice as it is asked about, whether it is due or not.
pub(super) fn pollable(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Option<DueRow>> {
    let sql = format!(
        concat!(
            "SELECT {}, {} FROM ",
            "invoice i LEFT JOIN poll p ON p.invoice = i.id",
            " WHERE i.id = ?1"
        ),
        rows::INVOICE,
        POLL_OR_NONE
    );
    Ok(connection
        .planned(&sql)?
        .query_row([key.0], due_row)
        .optional()?
        .flatten())
}

/// Reads the polling side of an invoice.
pub(super) fn poll_state(row: &Row<'_>) -> rusqlite::Result<PollState> {
    poll_state_from(row, row.as_ref().column_index("due_ms")?)
}

/// Reads the polling side from [`POLL_STATE`].
pub(super) fn poll_state_by_number(row: &Row<'_>) -> rusqlite::Result<PollState> {
    poll_state_from(row, 0)
}

/// The columns are those of [`POLL`], in its order, from a place on.
fn poll_state_from(row: &Row<'_>, from: usize) -> rusqlite::Result<PollState> {
    Ok(PollState {
        due_ms: row.get(from)?,
        class: rows::class(row, from + 1)?,
        asked_ms: row.get(from + 2)?,
        nudged_ms: row.get(from + 3)?,
        failures: row.get(from + 4)?,
        service_ms: row.get(from + 5)?,
        first_service_ms: row.get(from + 6)?,
        ended: Ended {
            answers: row.get(from + 7)?,
            since_ms: row.get(from + 8)?,
        },
        retired_ms: row.get(from + 9)?,
        polled: Polled {
            answered_ms: row.get(from + 10)?,
            gone_since_ms: row.get(from + 11)?,
            gone_ms: row.get(from + 12)?,
        },
        alerted_ms: row.get(from + 13)?,
    })
}

fn due_row(row: &Row<'_>) -> rusqlite::Result<Option<DueRow>> {
    let stored = rows::stored(row)?;
    let state = poll_state(row)?;
    let heard: Heard = heard(&stored, &state);
    let id: Option<InvoiceId> = stored.invoice.id;
    Ok(id.map(|invoice_id| DueRow {
        key: stored.row.key,
        order_id: stored.row.order_id,
        invoice_id,
        revision: stored.row.revision,
        heard,
        // None is planned where it is read by its key alone.
        due_ms: state.due_ms.unwrap_or(0),
        class: state.class,
    }))
}

/// Invoices that were retired later than at this time, by our clock as it was then, and beyond this place: the time and
/// the invoice.
pub(super) fn retired_after(
    connection: &Connection,
    (retired_ms, key): (i64, InvoiceKey),
    limit: u32,
) -> rusqlite::Result<Vec<(i64, InvoiceKey)>> {
    let mut statement = connection.planned(RETIRED)?;
    let found = statement.query_map(params![retired_ms, key.0, limit], |row| {
        Ok((row.get(0)?, InvoiceKey(row.get(1)?)))
    })?;
    found.collect()
}

const RETIRED: &str = "SELECT retired_ms, invoice FROM poll INDEXED BY poll_retired WHERE retired_ms IS NOT NULL \
  AND (retired_ms, invoice) > (?1, ?2) ORDER BY retired_ms, invoice LIMIT ?3";

/// The earliest due time that is stored.
pub(super) fn next_due_ms(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.planned(NEXT_DUE)?;
    let mut earliest = None;
    for class in Class::ALL {
        let found: Option<i64> = statement.query_row([class.number()], |row| row.get(0))?;
        earliest = earliest.into_iter().chain(found).min();
    }
    Ok(earliest)
}

const NEXT_DUE: &str =
    "SELECT min(due_ms) FROM poll INDEXED BY poll_due WHERE class = ?1 AND due_ms IS NOT NULL";

#[cfg(test)]
pub(super) mod tests {
    use super::super::check::as_made;
    use super::*;

    const OLD: i64 = 20_000;

    /// A ledger in which this many old invoices have been due for long.
    pub(in crate::ledger::sqlite) fn ledger(old: i64) -> Connection {
        let connection = as_made().expect("in memory");
        connection
            .execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {old}) \
                 INSERT INTO invoice (id, ref, order_id, invoice_id, mode, method, opening, creator_deadline_ms, \
                   amount_asked, currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
                 SELECT i, printf('%022x', i), 'o' || i, 'id-' || i, 'h2h', 'SBP', 'answered', 0, \
                   '1', 'RUB', '1', 'RUB', 0, 0, 0 FROM n; \
                 INSERT INTO poll (invoice, due_ms, class, ended_answers) SELECT id, id, 2, 0 FROM invoice"
            ))
            .expect("filled");
        connection
    }

    pub(in crate::ledger::sqlite) fn plan(connection: &Connection, sql: &str) -> Vec<String> {
        let mut statement = connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .expect("a plan");
        let mut values = vec![rusqlite::types::Value::Null; statement.parameter_count()];
        values.fill(rusqlite::types::Value::Integer(1));
        let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3));
        steps
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("read")
    }

    #[test]
    fn every_question_about_due_times_searches_the_index_and_sorts_nothing() {
        let connection = ledger(10);
        let asked = [due_sql(), due_after_sql(), NEXT_DUE.into(), RETIRED.into()];
        for sql in asked {
            let steps = plan(&connection, &sql);
            // An invoice's document may stand with an event, which is found by its number.
            let searches = |step: &String| {
                step.starts_with("SEARCH ") || step.starts_with("CORRELATED SCALAR SUBQUERY")
            };
            assert!(!steps.is_empty() && steps.iter().all(searches), "{steps:?}");
            let by_index = |step: &String| {
                step.contains("poll_due (class=?") || step.contains("poll_retired (retired_ms>")
            };
            assert!(steps.iter().any(by_index), "{steps:?}");
        }
    }

    /// The urgent one became due last of all, behind a queue that no pass would come through.
    #[test]
    fn no_queue_of_one_class_hides_another() {
        let connection = ledger(OLD);
        for (key, class) in [(5, 1), (6, 0), (7, 1)] {
            let late = OLD + key;
            let filed = "UPDATE poll SET class = ?2, due_ms = ?3 WHERE invoice = ?1";
            connection
                .execute(filed, [key, class, late])
                .expect("filed");
        }
        let keys = |found: Looked| {
            let keys = found.rows.iter().map(|row| row.key.0);
            keys.collect::<Vec<_>>()
        };
        let found = due(&connection, OLD + 100, 3).expect("read");
        assert_eq!(keys(found), [6, 5, 7, 1, 2, 3]);
        let found = due(&connection, OLD + 5, 2).expect("read");
        assert_eq!(keys(found), [5, 1, 2]);
        assert_eq!(next_due_ms(&connection).expect("read"), Some(1));
        let place = Place {
            class: Class::Young,
            due_ms: OLD + 5,
            key: InvoiceKey(5),
        };
        assert_eq!(keys(due_after(&connection, place, 9).expect("read")), [7]);
    }

    /// Whoever looks for one only would find none, and think that nothing is due.
    #[test]
    fn what_cannot_be_read_takes_the_place_of_none() {
        let connection = ledger(5);
        let spoil = "UPDATE invoice SET amount_agreed = 'much' WHERE id IN (1, 2, 4)";
        connection.execute_batch(spoil).expect("spoilt");
        let keys = |found: &Looked| found.rows.iter().map(|row| row.key.0).collect::<Vec<_>>();
        for (most, wanted) in [(1, &[3][..]), (2, &[3, 5]), (9, &[3, 5])] {
            let found = due(&connection, 9, most).expect("read");
            assert_eq!(keys(&found), wanted);
            assert!(found.unreadable.is_some());
            let place = Place {
                class: Class::Old,
                due_ms: 0,
                key: InvoiceKey(0),
            };
            let found = due_after(&connection, place, most).expect("read");
            assert_eq!(keys(&found), wanted);
        }
    }
}
