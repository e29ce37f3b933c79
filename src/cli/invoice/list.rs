//! `tilld invoice list`: invoices of the ledger, newest first. Asks nobody.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::remote::{self, MOST_INVOICES, Way};
use super::super::{ledger, page};
use super::view;
use crate::answer::find;
use crate::ledger::{Filter, InvoiceRow};

/// Flags of `invoice list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those still to be paid
    #[arg(long, conflicts_with = "attention")]
    open: bool,
    /// Only those that need attention
    #[arg(long)]
    attention: bool,
    /// Only those opened before the one with this ref: how a list that was cut goes on
    #[arg(long, value_name = "REF")]
    before: Option<String>,
    /// At most N
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

/// Runs `invoice list`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let filter = match (args.open, args.attention) {
        (true, _) => Filter::Open,
        (false, true) => Filter::Attention,
        (false, false) => Filter::All,
    };
    // What no daemon gives at once the ledger gives to whoever may read it.
    let is_much = args.limit > MOST_INVOICES && context.socket().is_none();
    let way = if is_much && ledger::open_reader(&context).is_ok() {
        Way::owners()
    } else {
        remote::way(&context).await?
    };
    let before = args.before.as_deref();
    let (rows, more) = match &way {
        Way::Socket(remote) => remote.list(filter, before, args.limit).await?,
        Way::Direct(denied) => denied.explain(look(&context, filter, before, args.limit).await)?,
    };
    view::print_many(context.output, &rows)?;
    if let Some(last) = rows.last().filter(|_| more) {
        page::go_on(rows.len(), "--before", last.reference.as_str());
    }
    Ok(Exit::Ok)
}

async fn look(
    context: &Context,
    filter: Filter,
    before: Option<&str>,
    limit: u32,
) -> Result<(Vec<InvoiceRow>, bool), Failure> {
    let reader = ledger::open_reader(context)?;
    let below = find::below(&reader, before).await?;
    let page = reader.list_invoices(filter, below, limit).await?;
    Ok((page.rows, page.more))
}
