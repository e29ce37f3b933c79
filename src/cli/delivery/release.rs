//! `tilld delivery release`: what is held is due now. A person has looked: the hooks run as if the event had just come.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::change::{self, Wish};
use crate::ledger::Act;

/// Flags of `delivery release`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["event", "order", "all"]))]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// All that is held of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// All that is held
    #[arg(long)]
    all: bool,
    /// Only deliveries to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Show what would run, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `delivery release`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let Args {
        event,
        order,
        all: _,
        hook,
        dry_run,
    } = args;
    let wish = Wish {
        act: Act::Release,
        event,
        order,
        hook,
        state: None,
        dry_run,
    };
    change::run(wish, context).await
}
