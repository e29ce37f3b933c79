//! `tilld invoice …`: opens invoices, shows them, and takes what a person knows about them.
//!
//! To add a command: a file here as in [`super`], a variant of [`Action`] and an arm in [`run`].

mod accept_amount;
mod adopt;
mod create;
mod list;
mod poll;
mod show;
mod track;
mod view;
mod wait;

use super::context::Context;
use super::failure::{Exit, Failure};

pub(super) use crate::answer::attention::sentences;

/// The ends of `create` a script must tell apart.
const CREATE_ENDS: &str = "Exit codes: 0 there is an open invoice, 1 refused, or paid already, or it differs, 4 login needed,
7 no requisites free, 8 service unreachable, 9 it is unknown whether it was opened: look in the cabinet";

/// The ends of `wait`.
const WAIT_ENDS: &str = "A daemon that restarts or cannot read its ledger for a while is waited for, as long as `--timeout` allows.
Exit codes: 0 paid, 5 failed, reversed, paid with another amount, or its create was refused, 6 still open when the time was
over, 8 no daemon answered, 9 outcome unknown: look in the cabinet";

/// The ends of `adopt`.
const ADOPT_ENDS: &str = "Exit codes: 0 the order has that invoice now, 1 refused, or its amount differs, 3 no such order or no such
invoice, 4 login needed, 8 service unreachable";

/// The ends of `poll`.
const POLL_ENDS: &str = "Exit codes: 0 the service answered, 1 it does not let this shop see the invoice, 3 no such order or invoice, here or
there, 4 login needed, 5 its create opened nothing, 8 service unreachable or no answer of its own, 9 no id to poll yet";

/// What the ids of the service look like.
const IDS: &str = "An invoice id is the service's, to the letter: 1 to 255 bytes without control characters, and not `.` or `..`. An order id
is 1 to 128 bytes without control characters. One that begins with a hyphen stands behind `--`, or behind `=` in a flag.";

/// The commands about invoices.
#[derive(Debug, clap::Args)]
#[command(after_help = IDS)]
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
    /// Poll the service about an invoice now, whatever its status, and show it
    #[command(after_help = POLL_ENDS)]
    Poll(poll::Args),
    /// Watch over an invoice that the shop's own code opened
    Track(track::Args),
    /// Settle a create whose answer was lost, by the id found in the cabinet
    #[command(after_help = ADOPT_ENDS)]
    Adopt(adopt::Args),
    /// Take the amount and currency that the service reported as agreed
    AcceptAmount(accept_amount::Args),
}

/// Runs `invoice`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    match args.action {
        Action::Create(args) => create::run(args, context).await,
        Action::Wait(args) => wait::run(args, context).await,
        Action::Show(args) => show::run(args, context).await,
        Action::List(args) => list::run(args, context).await,
        Action::Poll(args) => poll::run(args, context).await,
        Action::Track(args) => {
            context.refuse_socket("invoice track")?;
            track::run(args, context).await
        }
        Action::Adopt(args) => {
            context.refuse_socket("invoice adopt")?;
            adopt::run(args, context).await
        }
        Action::AcceptAmount(args) => {
            context.refuse_socket("invoice accept-amount")?;
            accept_amount::run(args, context).await
        }
    }
}
