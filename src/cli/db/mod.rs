//! `tilld db …`: the ledger as a file.

mod backup;
mod check;
mod prune;
mod restore;
mod schema;

use super::context::Context;
use super::failure::{Exit, Failure};

/// The commands about the ledger's file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a backup of the ledger, while `serve` runs or not: one complete file, verified before it gets its name
    #[command(after_help = backup::ENDS)]
    Backup(backup::Args),
    /// Verify the whole ledger, while `serve` runs or not
    #[command(after_help = check::ENDS)]
    Check(check::Args),
    /// Empty requisites and raw documents of invoices that were over long ago
    #[command(after_help = prune::ENDS)]
    Prune(prune::Args),
    /// Put a backup in the place of the ledger, while no `serve` runs
    #[command(after_help = restore::ENDS)]
    Restore(restore::Args),
    /// Print the views that readers of the ledger rely on, with their columns. Needs no ledger
    #[command(after_help = schema::ENDS)]
    Schema(schema::Args),
}

/// Runs `db`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Backup(args) => backup::run(args, context).await,
        Action::Check(args) => check::run(args, context).await,
        Action::Prune(args) => prune::run(args, context).await,
        Action::Restore(args) => restore::run(args, context).await,
        Action::Schema(args) => schema::run(args, context).await,
    }
}
