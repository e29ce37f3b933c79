//! `tilld db schema`: the views that readers of the ledger rely on. Needs no ledger.

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::print_json;
use crate::ledger;

/// What `--help` says below the flags.
pub(super) const ENDS: &str = "Columns are only ever added to these views. All else in the file is tilld's own and changes \
  from version to version.";

/// Flags of `db schema`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Runs `db schema`.
#[expect(clippy::unused_async, reason = "as every command is run")]
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    let contract = ledger::contract().map_err(|error| Failure::new(Exit::Ledger, error))?;
    if context.output.json() {
        let views: Vec<_> = contract
            .views
            .iter()
            .map(|view| json!({ "name": view.name, "columns": view.columns, "sql": view.sql }))
            .collect();
        print_json(&json!({ "schema": contract.schema, "views": views }))?;
        return Ok(Exit::Ok);
    }
    let schema = contract.schema;
    context.output.line(&format!("-- schema {schema}"))?;
    for view in &contract.views {
        let columns = view.columns.join(", ");
        context
            .output
            .line(&format!("\n-- {}: {columns}\n{};", view.name, view.sql))?;
    }
    Ok(Exit::Ok)
}
