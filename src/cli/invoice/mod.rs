//! `tilld invoice …`: opens invoices and shows them.
//!
//! To add a command: a file here as in [`super`], a variant of [`Action`] and an arm in [`run`].

mod attention;
mod list;
mod show;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};

/// The commands about invoices.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show an invoice with everything the service said about it
    Show(show::Args),
    /// List invoices, newest first
    List(list::Args),
}

/// Runs `invoice`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Show(args) => show::run(args, context).await,
        Action::List(args) => list::run(args, context).await,
    }
}
