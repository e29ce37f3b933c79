//! Invoices that the plan polls no more, for the polls after a restore.
//! Relies on their number being the table's own key.
//! Promises that a look reads no more rows than it is allowed; only their count reads the table, once after a restore.

use rusqlite::{Connection, params};

use crate::ledger::repoll::Passed;
use crate::ledger::row::InvoiceKey;

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

const ENDED: &str = concat!(
    "SELECT coalesce(max(id), 0), count(*) FROM invoice WHERE generation < ?1 AND ",
    is_ended!()
);

/// Invoices below this one, newest first.
pub(super) fn passed(
    connection: &Connection,
    below: InvoiceKey,
    limit: u32,
) -> rusqlite::Result<Vec<Passed>> {
    let mut statement = connection.prepare_cached(PASSED)?;
    let found = statement.query_map(params![below.0, limit], |row| {
        Ok(Passed {
            key: InvoiceKey(row.get(0)?),
            is_ended: row.get(1)?,
            generation: row.get(2)?,
        })
    })?;
    found.collect()
}

/// The newest of those that were not polled since this generation began, and how many they are.
pub(super) fn ended(
    connection: &Connection,
    generation: i64,
) -> rusqlite::Result<(InvoiceKey, u64)> {
    let found: (i64, i64) =
        connection.query_row(ENDED, [generation], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok((
        InvoiceKey(found.0),
        u64::try_from(found.1).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::due::tests::{ledger, plan};
    use super::*;

    #[test]
    fn a_look_searches_from_its_place_and_sorts_nothing() {
        let steps = plan(&ledger(10), PASSED);
        let wanted = "SEARCH invoice USING INTEGER PRIMARY KEY (rowid<?)";
        assert_eq!(steps, [wanted]);
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
        assert_eq!(ended(&connection, 1).expect("read"), (InvoiceKey(5), 3));
        assert_eq!(ended(&connection, 0).expect("read"), (InvoiceKey(0), 0));
    }
}
