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

pub(super) use attention::{advice, sentences};
pub(super) use show::{find, not_found};

/// The ends of `create` a script must tell apart.
const CREATE_ENDS: &str = "Exit codes: 0 there is an open invoice, 1 refused, or paid already, or it differs, 4 login needed,
7 no requisites free, 8 service unreachable, 9 nobody knows whether it was opened: look in the cabinet";

/// The ends of `wait`.
const WAIT_ENDS: &str = "Exit codes: 0 paid, 5 failed, reversed or paid with another amount, 6 still open when the time was over,
9 nobody can tell: look in the cabinet";

/// The commands about invoices.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Open an invoice for an order
    #[command(after_help = CREATE_ENDS)]
    Create(create::Args),
    /// Show an invoice with everything the service said about it
    Show(show::Args),
    /// List invoices, newest first
    List(list::Args),
    /// Wait until an order is paid, or until it is clear that it will not be
    #[command(after_help = WAIT_ENDS)]
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
