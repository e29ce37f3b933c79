//! `tilld event …`: what happened to invoices, one event a line. To add a command: as in [`super::invoice`].

mod follow;
mod list;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};

/// How `follow` lives, and ends.
const FOLLOW_ENDS: &str = "A daemon that restarts or cannot read its ledger for a while is waited for: one line on stderr says that it is lost, one that
it answers again, and the events go on after the last one printed.
Exit codes: 0 the reader is gone, 1 another program answers, 8 there is no daemon on `--socket` to begin with, 15 this user may
not connect, or not read the ledger";

/// The commands about events.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List events, oldest first
    List(list::Args),
    /// Print events as they happen, one line or JSON object each, until it is stopped
    #[command(after_help = FOLLOW_ENDS)]
    Follow(follow::Args),
}

/// Runs `event`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Follow(args) => follow::run(args, context).await,
    }
}
