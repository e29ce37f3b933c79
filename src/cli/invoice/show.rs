//! `tilld invoice show`: an invoice as the ledger has it. Asks nobody and needs no secret, so the reader group may use it.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{escape, talk};
use super::super::remote::{self, Way};
use super::super::which::AnyName;
use super::view;
use crate::clock::wall_ms;
use crate::ledger::InvoiceRow;

/// Flags of `invoice show`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: AnyName,
    /// All invoices of the order, instead of the one that stands for it
    #[arg(long)]
    all: bool,
}

/// Runs `invoice show`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let mut found = match remote::way(&context).await? {
        Way::Socket(remote) => args.which.find(&remote).await?,
        Way::Direct(denied) => denied.explain(look(&context, &args.which).await)?,
    };
    let more = found.len() - 1;
    if !args.all && more > 0 {
        found.truncate(1);
        let order = found.first().map(|row| row.order_id.as_str());
        talk(&format!(
            "order {} has {more} other invoice{}; `--all` shows them",
            escape(order.unwrap_or_default()),
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

async fn look(context: &Context, which: &AnyName) -> Result<Vec<InvoiceRow>, Failure> {
    let reader = ledger::open_reader(context)?;
    which.find(&reader).await
}
