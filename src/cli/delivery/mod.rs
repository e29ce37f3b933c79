//! `tilld delivery …`: what hooks were told, what they answered, and how they are told again.

mod list;
mod release;
mod retry;
mod show;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};
use crate::ledger::{EventRow, Reader};

pub(super) use view::{Written, print_body, print_written};

/// The commands about deliveries.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List deliveries, newest first
    List(list::Args),
    /// Show the deliveries of an event, with every attempt and what it wrote
    Show(show::Args),
    /// Make deliveries of an event that wait or were given up due now, with a fresh schedule
    Retry(retry::Args),
    /// Make held deliveries due now: of one event, of an order, or all
    ///
    /// Deliveries are held when a change of the lists under `[statuses]` makes an old order paid, failed or reversed: what
    /// a hook would do is as old as the order, so a person looks first. `--dry-run` shows what would run.
    Release(release::Args),
}

/// Runs `delivery`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Show(args) => show::run(args, context).await,
        Action::Retry(args) => retry::run(args, context).await,
        Action::Release(args) => release::run(args, context).await,
    }
}

/// The event a person means, by its id or its number.
async fn find_event(reader: &Reader, name: &str) -> Result<EventRow, Failure> {
    reader.find_event(name).await?.ok_or_else(|| {
        let error = format!("no event with the id or number `{name}` in the ledger");
        Failure::new(Exit::NotFound, error).hint("`tilld delivery list` names events")
    })
}
