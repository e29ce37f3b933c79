//! `tilld hook …`: the configured hooks, and a way to try one out before the first payment.

mod list;
mod sample;
mod test;
mod told;

use super::context::Context;
use super::failure::{Exit, Failure};

/// The commands about hooks.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the configured hooks: which events each gets, how many runs it may have at once, and whether it can be
    /// run or posted to now
    List(list::Args),
    /// Run a hook once, and show what it received and what it answered
    ///
    /// The program really runs, or its document is really posted, as the user of this command, with a sample of an
    /// event, or with the newest event it wants of the order or invoice that `--order`, `--id` or `--ref` names. It gets
    /// that one as a replay: `TILLD_REPLAY` is 1, and a script that must not do its work twice looks there or at `TILLD_EVENT_ID`. Nothing is
    /// recorded, and no delivery changes. `on_abandoned` is the hook for deliveries that were given up.
    Test(test::Args),
}

/// Runs `hook`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(&args, &context),
        Action::Test(args) => test::run(args, context).await,
    }
}
