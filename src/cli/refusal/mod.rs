//! `tilld refusal …`: what was sent to the listener and not accepted, and why.

mod list;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};

pub(super) use view::headers;

/// The commands about refusals.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List rejected notifications, newest first, with the names of their headers
    #[command(after_help = list::reasons_help())]
    List(list::Args),
}

/// Runs `refusal`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, context).await,
    }
}
