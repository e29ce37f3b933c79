//! `tilld invoice show`: an invoice as the ledger has it. Asks nobody and needs no secret, so the reader group may use it.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{escape, talk};
use super::view;
use crate::clock::wall_ms;
use crate::ledger::{InvoiceRow, Reader};

/// Flags of `invoice show`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The order id; or the service's id or the ref of one invoice
    #[arg(value_name = "ORDER-OR-ID")]
    name: String,
    /// All invoices of the order, newest first, instead of the newest alone
    #[arg(long)]
    all: bool,
}

/// Runs `invoice show`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(&context)?;
    let mut found = find(&reader, &args.name).await?;
    if found.is_empty() {
        return Err(not_found(&args.name));
    }
    let more = found.len() - 1;
    if !args.all && more > 0 {
        found.truncate(1);
        talk(&format!(
            "order {} has {more} older invoice{}; `--all` shows them",
            escape(&args.name),
            if more == 1 { "" } else { "s" }
        ));
    }
    let now_ms = wall_ms();
    for (place, row) in found.iter().enumerate() {
        if place > 0 && !context.output.json() {
            context.output.line("")?;
        }
        view::print(context.output, row, now_ms)?;
    }
    Ok(Exit::Ok)
}

/// The invoices a person means: those of the order with this id, newest first, or else the one with this id or ref.
pub(in crate::cli) async fn find(reader: &Reader, name: &str) -> Result<Vec<InvoiceRow>, Failure> {
    let of_order = reader.invoices_of_order(name).await?;
    if !of_order.is_empty() {
        return Ok(of_order);
    }
    Ok(reader.find_invoice(name).await?.into_iter().collect())
}

/// No invoice goes by this name.
pub(in crate::cli) fn not_found(name: &str) -> Failure {
    let error = format!("no invoice with the order id, invoice id or ref `{name}` in the ledger");
    Failure::new(Exit::NotFound, error).hint("`tilld invoice list` shows what is there")
}
