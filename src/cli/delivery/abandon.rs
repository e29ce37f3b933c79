//! `tilld delivery abandon`: what waits or is held is given up, and raises no alert. No hook is run for it, and a run under way
//! is never touched.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::change::{self, Wish};
use super::list::states;
use crate::ledger::{Act, DeliveryState};

/// Flags of `delivery abandon`.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("which").required(true).args(["event", "order", "all"]),
    group = clap::ArgGroup::new("narrowed").multiple(true).args(["hook", "state"]),
)]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// All that is not done of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// All there are, of one `--hook` or in one `--state`
    #[arg(long, requires = "narrowed")]
    all: bool,
    /// Only deliveries to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only those that have come this far
    #[arg(long, value_name = "STATE", value_parser = states(Act::Abandon.takes()))]
    state: Option<DeliveryState>,
    /// Show what would be given up, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `delivery abandon`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let Args {
        event,
        order,
        all: _,
        hook,
        state,
        dry_run,
    } = args;
    let wish = Wish {
        act: Act::Abandon,
        event,
        order,
        hook,
        state,
        dry_run,
    };
    change::run(wish, context).await
}
