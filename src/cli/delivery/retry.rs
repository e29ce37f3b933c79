//! `tilld delivery retry`: what waits or was given up is due now, with a fresh schedule. What is done stays done.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::change::{self, Wish};
use super::list::states;
use crate::ledger::{Act, DeliveryState};

/// Flags of `delivery retry`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["event", "order", "all"]))]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// All of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// All there are, but for what a person gave up; `--state abandoned` leaves out what waits
    #[arg(long)]
    all: bool,
    /// Only deliveries to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Only those that have come this far
    #[arg(long, value_name = "STATE", value_parser = states(Act::Retry.takes()))]
    state: Option<DeliveryState>,
    /// Show what would be due now, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `delivery retry`.
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
        act: Act::Retry,
        event,
        order,
        hook,
        state,
        dry_run,
    };
    change::run(wish, context).await
}
