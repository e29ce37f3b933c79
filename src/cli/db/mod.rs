//! `tilld db …`: the ledger as a file.

mod backup;

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
    /// Make a backup of the ledger, while `serve` runs or not: one complete file, looked over before it gets its name
    #[command(after_help = backup::ENDS)]
    Backup(backup::Args),
}

/// Runs `db`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Backup(args) => backup::run(args, context).await,
    }
}
