//! `tilld invoice …`: opens invoices and shows them.
//!
//! To add a command: a file here as in [`super`], a variant of [`Action`] and an arm in [`run`].

mod attention;
mod create;
mod list;
mod show;
mod view;
mod wait;

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
    /// Open an invoice for an order
    Create(create::Args),
    /// Show an invoice with everything the service said about it
    Show(show::Args),
    /// List invoices, newest first
    List(list::Args),
    /// Wait until an order is paid, or until it is clear that it will not be
    Wait(wait::Args),
}

/// Runs `invoice`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Create(args) => create::run(args, context).await,
        Action::Wait(args) => wait::run(args, context).await,
        Action::Show(args) => show::run(args, context).await,
        Action::List(args) => list::run(args, context).await,
    }
}
