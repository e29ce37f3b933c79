//! `tilld invoice poll`: asks the service about one invoice now, whether it is due or not and however it stands, and shows
//! what the ledger says then. Works beside a running daemon: both write through the same code.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::talk;
use super::super::{ledger, owner, service};
use super::wait::meant;
use super::{show, view};
use crate::client::credentials::TokenSource;
use crate::client::error::Error as FetchError;
use crate::client::gate::Gate;
use crate::clock::wall_ms;
use crate::daemon::plain;
use crate::invoice::ids::{IdError, LONGEST_ID, OrderId};
use crate::invoice::opening::Opening;
use crate::invoice::transition::Decision;
use crate::ledger::InvoiceRow;
use crate::poller::now::{Error, Inquirer, Nothing};

/// Flags of `invoice poll`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The order id; or the service's id or the ref of one invoice
    #[arg(value_name = "ORDER-OR-ID", value_parser = parse_name)]
    name: String,
}

/// Refuses what can be neither an order id nor an invoice id.
fn parse_name(text: &str) -> Result<String, String> {
    let named = |error: IdError| {
        format!("{error}; an invoice id is 1 to {LONGEST_ID} of `A-Z a-z 0-9 - _ . ~ :`")
    };
    OrderId::new(text).map_err(named)?;
    Ok(text.to_owned())
}

/// Runs `invoice poll`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let found = show::find(&reader, &args.name).await?;
    let row = meant(found).ok_or_else(|| show::not_found(&args.name))?;
    if row.invoice_id.is_none() {
        view::print(context.output, &row, wall_ms())?;
        return Err(nothing_to_ask(&row));
    }
    let settings = context.settings()?;
    let client = service::client(&context)?;
    let found = service::token(&context, &client)?;
    let ledger = ledger::open(&context)?;
    let reader = ledger.reader();
    let inquirer = Inquirer::new(
        (ledger.writer(), reader.clone()),
        client,
        Gate::new(plain::gate_limits(settings)),
        found.token,
    );
    let asked = inquirer.ask(row.key).await;
    let now = reader.invoice(row.key).await;
    drop(inquirer);
    ledger.close(ledger::CLOSE_WITHIN).await;
    let row = now?.unwrap_or(row);
    view::print(context.output, &row, wall_ms())?;
    match asked {
        Ok(decision) => {
            told(decision);
            Ok(Exit::Ok)
        }
        Err(Error::NoId) => Err(nothing_to_ask(&row)),
        Err(error) => Err(failure(error, found.source)),
    }
}

/// What an answer that did not simply count is good for.
fn told(decision: Decision) {
    match decision {
        Decision::Pending | Decision::Doubt => {
            talk("the answer contradicts what stands: a second one must agree before it counts");
        }
        Decision::Overtaken => {
            talk("the invoice moved on while the answer was under way: ask again");
        }
        Decision::Advance
        | Decision::AdvanceAgreed
        | Decision::Repeat
        | Decision::Confirmed
        | Decision::Stale
        | Decision::NotThisInvoice
        | Decision::OtherId
        | Decision::Operator
        | Decision::Reassessed => {}
    }
}

/// Why an invoice without an id cannot be asked about.
fn nothing_to_ask(row: &InvoiceRow) -> Failure {
    let order = &row.order_id;
    if row.opening == Opening::Refused {
        let text =
            format!("the create of order `{order}` opened no invoice: there is nothing to ask");
        return Failure::new(Exit::NotPaid, text).hint("run `tilld invoice create` again");
    }
    if row.is_lost(wall_ms()) {
        let text = format!(
            "nobody knows whether the create of order `{order}` reached the service, and there is no id to ask for"
        );
        return Failure::new(Exit::Unknown, text).hint(
            "look the order up in the cabinet; `tilld invoice adopt ORDER --id ID` settles it",
        );
    }
    let text = format!("the create of order `{order}` is still under way");
    Failure::new(Exit::Unknown, text).hint("wait for its answer: `tilld invoice wait ORDER`")
}

fn failure(error: Error, source: TokenSource) -> Failure {
    match error {
        Error::Nothing(Nothing::Fetch { id, source: cause }) => {
            let hidden = matches!(
                cause,
                FetchError::NotFound { .. } | FetchError::Forbidden { .. }
            );
            let failure = service::failure(cause, Some(source))
                .context(format!("could not ask the service about invoice `{id}`"));
            if hidden {
                failure.hint(
                    "look for the id in the cabinet of the shop that `tilld whoami` names; nothing was changed, and \
                     other invoices are asked about as before",
                )
            } else {
                failure
            }
        }
        error @ Error::Gate(_) => Failure::new(Exit::Unreachable, error).hint("try again later"),
        error @ Error::Nothing(Nothing::OtherOrder { .. }) => Failure::new(Exit::Unreachable, error)
            .hint("something else may answer in the service's place; nothing was changed"),
        error @ (Error::NoId
        | Error::Read(_)
        | Error::Nothing(Nothing::Read { .. } | Nothing::Store { .. })) => {
            Failure::new(Exit::Ledger, error).hint(
                "another program holds the ledger, or the disk is full: mend that and run the command again",
            )
        }
    }
}
