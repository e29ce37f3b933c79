//! `tilld event list`: events after a number, oldest first. Asks nobody and needs no secret.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::remote::{self, Way};
use super::view;
use crate::answer::event::json;
use crate::ledger::EventRow;

/// As many as a daemon gives at once.
const MOST: i64 = 1_000;

/// Flags of `event list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only those after the one with this number; 0 is before the first
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    after: i64,
    /// Only those of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// At most N, 1000 at once
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=MOST))]
    limit: u32,
}

/// Runs `event list`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match remote::way(&context).await? {
        Way::Socket(remote) => {
            let told = remote
                .events(
                    (None, Some(args.after)),
                    args.order.as_deref(),
                    (args.limit, 0),
                )
                .await?;
            view::print_many(context.output, &told.told)?;
        }
        Way::Direct(denied) => {
            let rows = denied.explain(look(&args, &context).await)?;
            let shown: Vec<_> = rows.iter().map(json).collect();
            view::print_many(context.output, &shown)?;
        }
    }
    Ok(Exit::Ok)
}

async fn look(args: &Args, context: &Context) -> Result<Vec<EventRow>, Failure> {
    let reader = ledger::open_reader(context)?;
    let order = args.order.as_deref();
    Ok(reader.events(order, args.after, args.limit).await?)
}
