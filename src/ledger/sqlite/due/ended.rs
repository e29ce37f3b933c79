//! Invoices that the plan polls no more, for the polls after a restore.
//! Relies on their number being the table's own key.
//! Promises that a look reads no more rows than it is allowed.

use rusqlite::{Connection, params};

use crate::ledger::repoll::{Counted, Passed};
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;

macro_rules! is_ended {
    () => {
        "(invoice_id IS NOT NULL AND (outcome <> 'open' OR unresolved <> 0))"
    };
}

const PASSED: &str = concat!(
    "SELECT id, ",
    is_ended!(),
    ", generation FROM invoice WHERE id < ?1 ORDER BY id DESC LIMIT ?2"
);

const COUNT: &str = concat!(
    "SELECT min(id), max(iif(owed, id, NULL)), count(iif(owed, 1, NULL)) FROM (SELECT id, generation < ?1 AND ",
    is_ended!(),
    " AS owed FROM invoice WHERE id < ?2 ORDER BY id DESC LIMIT ?3)"
);

/// Invoices below this one, newest first.
pub(in crate::ledger::sqlite) fn passed(
    connection: &Connection,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<Vec<Passed>> {
    let mut statement = connection.planned(PASSED)?;
    let found = statement.query_map(params![below.0, limit], |row| {
        Ok(Passed {
            key: InvoiceKey(row.get(0)?),
            is_ended: row.get(1)?,
            generation: row.get(2)?,
        })
    })?;
    found.collect()
}

/// Counts among so many below this one those that were not polled since this generation began.
pub(in crate::ledger::sqlite) fn count(
    connection: &Connection,
    generation: i64,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<Counted> {
    let mut statement = connection.planned(COUNT)?;
    statement.query_row(params![generation, below.0, limit], |row| {
        let key = |found: Option<i64>| found.map(InvoiceKey);
        let count: i64 = row.get(2)?;
        Ok(Counted {
            upto: key(row.get(0)?),
            newest: key(row.get(1)?),
            count: u64::try_from(count).unwrap_or_default(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ledger, plan};
    use super::*;

    #[test]
    fn a_look_searches_from_its_place_and_sorts_nothing() {
        let wanted = "SEARCH invoice USING INTEGER PRIMARY KEY (rowid<?)";
        assert_eq!(plan(&ledger(10), PASSED), [wanted]);
        let steps = plan(&ledger(10), COUNT);
        assert!(steps.contains(&wanted.to_owned()), "{steps:?}");
        assert!(
            !steps.iter().any(|step| step.contains("TEMP B-TREE")),
            "{steps:?}"
        );
    }

    #[test]
    fn open_ones_and_those_without_an_id_are_passed() {
        let connection = ledger(6);
        connection
            .execute_batch(
                "UPDATE invoice SET outcome = 'paid' WHERE id IN (2, 3, 4, 6);
                 UPDATE invoice SET unresolved = 1 WHERE id = 5;
                 UPDATE invoice SET invoice_id = NULL WHERE id = 4;
                 UPDATE invoice SET generation = 1 WHERE id = 6",
            )
            .expect("stored");
        let found = passed(&connection, InvoiceKey(6), 4).expect("read");
        let found: Vec<(i64, bool)> = found
            .iter()
            .map(|passed| (passed.key.0, passed.is_ended))
            .collect();
        assert_eq!(found, [(5, true), (4, false), (3, true), (2, true)]);
        for (generation, below, limit, upto, newest, counted) in [
            (1, 9, 9, Some(1), Some(5), 3),
            (1, 9, 2, Some(5), Some(5), 1),
            (1, 5, 2, Some(3), Some(3), 1),
            (0, 9, 9, Some(1), None, 0),
            (1, 1, 9, None, None, 0),
        ] {
            let found = count(&connection, generation, InvoiceKey(below), limit);
            let wanted = Counted {
                upto: upto.map(InvoiceKey),
                newest: newest.map(InvoiceKey),
                count: counted,
            };
            assert_eq!(found.expect("read"), wanted);
        }
    }
}
