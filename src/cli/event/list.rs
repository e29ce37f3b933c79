//! `tilld event list`: events after a number, oldest first. Asks nobody and needs no secret.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::remote::{self, Way};
use super::super::{ledger, page};
use super::view;
use crate::answer::event::{Shown, json};
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
            let order = args.order.as_deref();
            let after = (None, Some(args.after));
            let told = remote.events(after, order, (args.limit, 0)).await?;
            view::print_many(context.output, &told.told)?;
            // A daemon gives no more than it is asked for, and not always one more than that.
            if args.limit == u32::try_from(told.told.len()).unwrap_or(u32::MAX) {
                let after = (told.generation, Some(told.next_after));
                let more = remote.events(after, order, (1, 0)).await?;
                go_on(&told.told, !more.told.is_empty());
            }
        }
        Way::Direct(denied) => {
            let mut rows = denied.explain(look(&args, &context).await)?;
            let more = page::cut(&mut rows, args.limit);
            let shown: Vec<_> = rows.iter().map(json).collect();
            view::print_many(context.output, &shown)?;
            go_on(&shown, more);
        }
    }
    Ok(Exit::Ok)
}

fn go_on(shown: &[Shown<'_>], more: bool) {
    if let Some(last) = shown.last().filter(|_| more) {
        page::go_on(shown.len(), "--after", &last.seq.to_string());
    }
}

async fn look(args: &Args, context: &Context) -> Result<Vec<EventRow>, Failure> {
    let reader = ledger::open_reader(context)?;
    let order = args.order.as_deref();
    let most = page::one_more(args.limit);
    Ok(reader.events(order, args.after, most).await?)
}
