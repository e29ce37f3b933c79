//! `tilld delivery replay`: what is done is run once more, by a person's wish, with the same event id and the next attempt
//! number, and `TILLD_REPLAY=1`. There is no `--all`: to run everything that was ever done is never meant.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::change::{self, Wish};
use crate::ledger::Act;

/// Flags of `delivery replay`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["event", "order"]))]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// All that is done of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// Only deliveries to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Show what would run once more, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `delivery replay`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let Args {
        event,
        order,
        hook,
        dry_run,
    } = args;
    let wish = Wish {
        act: Act::Replay,
        event,
        order,
        hook,
        state: None,
        dry_run,
    };
    change::run(wish, context).await
}
