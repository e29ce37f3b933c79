//! `tilld delivery …`: what hooks were told, what they answered, and how they are told again.

mod acts;
pub(super) mod change;
mod list;
mod missing;
mod show;
mod view;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::when;
use crate::ledger::{EventRow, Reader};

pub(super) use view::{Written, held_for, print_body, print_written};

/// The commands about deliveries.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List deliveries: which events are owed to which hooks, newest first
    #[command(after_long_help = when::FORMS)]
    List(list::Args),
    /// Show the deliveries of an event, with every attempt and what it wrote
    Show(show::Args),
    /// Make deliveries that wait or were given up due now, with a fresh schedule
    ///
    /// Of one event, of an order, or all. A run under way is left alone, and so is what is done (`replay`) or held
    /// (`release`). `--dry-run` shows what would be changed.
    Retry(acts::Retry),
    /// Run hooks once more for what is done
    ///
    /// For one event, or all of an order. The hook gets the same event id, the next attempt number, and `TILLD_REPLAY=1`;
    /// when it fails it is tried again by a fresh schedule. Later events of the invoice wait for it. A missing delivery is
    /// made, and runs for the first time. `--dry-run` shows what would be run.
    #[command(alias = "resend")]
    Replay(acts::Replay),
    /// Make held deliveries due now: of one event, of an order, or all
    ///
    /// Deliveries are held when what a hook would do may be out of date, so you decide first: when the ledger was put
    /// back from a copy, since the hook may have run before, and when a change of the lists under `[statuses]` makes an old
    /// order paid, failed or reversed. What was done already is better given up (`abandon`). `--dry-run` shows what would run.
    Release(acts::Release),
    /// Give up deliveries that wait, are held or are missing
    ///
    /// Of one event, of an order, or all of one hook or state. No hook runs for it. A run under way is left alone. `retry`
    /// takes it back. `--dry-run` shows what would be given up.
    Abandon(acts::Abandon),
}

/// Runs `delivery`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::List(args) => list::run(args, context).await,
        Action::Show(args) => show::run(args, context).await,
        Action::Retry(args) => args.run(context).await,
        Action::Replay(args) => args.run(context).await,
        Action::Release(args) => args.run(context).await,
        Action::Abandon(args) => args.run(context).await,
    }
}

/// The event a person means, by its id or its number.
async fn find_event(reader: &Reader, name: &str) -> Result<EventRow, Failure> {
    reader.find_event(name).await?.ok_or_else(|| {
        let error = format!("no event with the id or number `{name}` in the ledger");
        Failure::new(Exit::NotFound, error).hint("`tilld delivery list` names events")
    })
}
