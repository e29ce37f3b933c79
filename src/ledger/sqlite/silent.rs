//! The part of the overview that tells who is silent. Every question is a search of the index of due times, which is named,
//! so that a question it does not fit is refused instead of slow; counts stop at their bound.

use rusqlite::{Connection, OptionalExtension as _};

use super::overview::tally;
use crate::invoice::silence::Class;
use crate::ledger::overview::{DueOf, Overdue, Silent};
use crate::ledger::sqlite::planned::Planned as _;

/// Runs within the read transaction of the overview.
pub(super) fn silent(connection: &Connection, now_ms: i64) -> rusqlite::Result<Silent> {
    let due = Class::ALL.map(|class| due_of(connection, class, now_ms));
    let due = due.into_iter().collect::<rusqlite::Result<Vec<_>>>()?;
    let longest = due
        .iter()
        .filter_map(|of| Some((of.oldest_ms?, of.class)))
        .min();
    let longest = longest.map(|(due_ms, class)| overdue(connection, class, due_ms));
    Ok(Silent {
        young: tally(connection, FILED, [Class::Young.number()])?,
        next_due_ms: next(connection, now_ms)?,
        longest: longest.transpose()?.flatten(),
        due,
    })
}

const FILED: &str = "poll INDEXED BY poll_due WHERE class = ?1 AND due_ms IS NOT NULL";
const DUE: &str = "poll INDEXED BY poll_due WHERE class = ?1 AND due_ms <= ?2";
const OLDEST: &str =
    "SELECT min(due_ms) FROM poll INDEXED BY poll_due WHERE class = ?1 AND due_ms <= ?2";
const NEXT: &str =
    "SELECT min(due_ms) FROM poll INDEXED BY poll_due WHERE class = ?1 AND due_ms > ?2";
const OVERDUE: &str = "SELECT i.order_id, p.due_ms, i.created_ms FROM poll p INDEXED BY poll_due \
  CROSS JOIN invoice i ON i.id = p.invoice WHERE p.class = ?1 AND p.due_ms = ?2 LIMIT 1";

fn due_of(connection: &Connection, class: Class, now_ms: i64) -> rusqlite::Result<DueOf> {
    let values = [class.number(), now_ms];
    Ok(DueOf {
        class,
        count: tally(connection, DUE, values)?,
        oldest_ms: connection
            .planned(OLDEST)?
            .query_row(values, |row| row.get(0))?,
    })
}

fn next(connection: &Connection, now_ms: i64) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.planned(NEXT)?;
    let mut earliest = None;
    for class in Class::ALL {
        let found: Option<i64> = statement.query_row([class.number(), now_ms], |row| row.get(0))?;
        earliest = earliest.into_iter().chain(found).min();
    }
    Ok(earliest)
}

fn overdue(
    connection: &Connection,
    class: Class,
    due_ms: i64,
) -> rusqlite::Result<Option<Overdue>> {
    let found = connection
        .planned(OVERDUE)?
        .query_row([class.number(), due_ms], |row| {
            Ok(Overdue {
                order_id: row.get(0)?,
                due_ms: row.get(1)?,
                created_ms: row.get(2)?,
            })
        });
    found.optional()
}

#[cfg(test)]
mod tests {
    use super::super::due::tests::{ledger, plan};
    use super::*;
    use crate::ledger::overview::Tally;

    #[test]
    fn who_is_silent_is_told_by_class() {
        let connection = ledger(10);
        for (key, class, due_ms) in [(5, 1, 4), (6, 0, 60), (7, 1, 70), (8, 2, 80)] {
            let filed = "UPDATE poll SET class = ?2, due_ms = ?3 WHERE invoice = ?1";
            connection
                .execute(filed, [key, class, due_ms])
                .expect("filed");
        }
        connection
            .execute_batch("UPDATE poll SET due_ms = NULL WHERE invoice < 4; UPDATE invoice SET created_ms = 3")
            .expect("stored");
        let told = silent(&connection, 65).expect("read");
        let few = |count| Tally { count, more: false };
        let of = |class, count, oldest_ms| DueOf {
            class,
            count: few(count),
            oldest_ms,
        };
        assert_eq!(
            told,
            Silent {
                due: vec![
                    of(Class::Urgent, 1, Some(60)),
                    of(Class::Young, 1, Some(4)),
                    of(Class::Old, 3, Some(4)),
                    of(Class::Restored, 0, None),
                ],
                young: few(2),
                next_due_ms: Some(70),
                longest: Some(Overdue {
                    order_id: "o5".to_owned(),
                    due_ms: 4,
                    created_ms: 3,
                }),
            }
        );
        let told = silent(&connection, 1).expect("read");
        assert_eq!((told.next_due_ms, told.longest), (Some(4), None));
    }

    #[test]
    fn every_question_searches_the_index() {
        let connection = ledger(10);
        let count = |rows: &str| format!("SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT 9)");
        let asked = [OLDEST.to_owned(), NEXT.into(), OVERDUE.into()];
        for sql in asked.into_iter().chain([count(FILED), count(DUE)]) {
            let steps = plan(&connection, &sql);
            let by_index = |step: &String| step.contains("poll_due (class=?");
            assert!(steps.iter().any(by_index), "{steps:?}");
            // What is counted is a result of the search, read to the bound.
            let scans = |step: &&String| step.starts_with("SCAN ") && !step.contains("subquery");
            assert_eq!(steps.iter().find(scans), None, "{steps:?}");
        }
    }
}
