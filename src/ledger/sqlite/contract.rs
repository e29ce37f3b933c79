//! The views, which are the ledger's public contract, as this tilld makes them. Asked of an empty ledger in memory, so that
//! it can be told where there is no ledger yet.

use rusqlite::Connection;

use super::check::as_made;
use super::failure::from_sqlite;
use super::schema::STEPS;
use crate::ledger::check::{Contract, View};
use crate::ledger::store::StoreError;

/// The views with their columns, in the order of the alphabet.
pub(in crate::ledger) fn contract() -> Result<Contract, StoreError> {
    let views = as_made().and_then(|made| views(&made));
    Ok(Contract {
        schema: STEPS.len(),
        views: views.map_err(from_sqlite)?,
    })
}

fn views(connection: &Connection) -> rusqlite::Result<Vec<View>> {
    let ask = "SELECT name, sql FROM sqlite_schema WHERE type = 'view' ORDER BY name";
    let mut statement = connection.prepare(ask)?;
    let named = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let named: Vec<(String, String)> = named.collect::<rusqlite::Result<_>>()?;
    named
        .into_iter()
        .map(|(name, sql)| {
            let mut columns = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
            let columns = columns.query_map([&name], |row| row.get(0))?;
            let columns = columns.collect::<rusqlite::Result<_>>()?;
            Ok(View { name, columns, sql })
        })
        .collect()
}
