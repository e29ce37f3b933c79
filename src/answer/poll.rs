//! How a question to the service, asked because somebody wants to know now, ends.

use super::failure::{Exit, Failure};
use super::service;
use crate::client::credentials::TokenSource;
use crate::client::error::Error as FetchError;
use crate::clock::wall_ms;
use crate::invoice::opening::Opening;
use crate::invoice::transition::Decision;
use crate::ledger::InvoiceRow;
use crate::poller::now::{Error, Nothing};

/// What an answer that did not simply count is good for.
pub(crate) fn remark(decision: Decision) -> Option<&'static str> {
    match decision {
        Decision::Pending => {
            Some("the answer contradicts what stands: a second one must agree before it counts")
        }
        Decision::Doubt => Some(
            "the service says paid and names no amount that can be read: a later poll must name it",
        ),
        Decision::Overtaken => {
            Some("the invoice moved on while the answer was under way: ask again")
        }
        Decision::Advance
        | Decision::AdvanceAgreed
        | Decision::Repeat
        | Decision::Confirmed
        | Decision::Stale
        | Decision::NotThisInvoice
        | Decision::OtherId
        | Decision::Operator
        | Decision::Reassessed => None,
    }
}

/// Why an invoice without an id cannot be asked about.
pub(crate) fn nothing_to_ask(row: &InvoiceRow) -> Failure {
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

/// Why a question brought nothing.
pub(crate) fn failure(error: Error, source: TokenSource) -> Failure {
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
        Error::Gate(closed) => Failure::new(Exit::Unreachable, error)
            .hint("try again later")
            .again_in(Some(closed.opens_in)),
        error @ Error::Stopping => {
            Failure::new(Exit::Unreachable, error).hint("ask again when it runs anew")
        }
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
