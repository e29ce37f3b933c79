//! `tilld event …`: what happened to invoices, one event a line. To add a command: as in [`super::invoice`].

mod follow;
mod list;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};

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
    /// Tell events as they happen, until it is ended
    Follow(follow::Args),
}

/// Runs `event`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Follow(args) => follow::run(args, context).await,
    }
}
