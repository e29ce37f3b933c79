//! How `tilld invoice create` ends: what is shown of the invoice, what is said about it, and the exit code.

use super::super::super::context::Context;
use super::super::super::failure::{Exit, Failure};
use super::super::super::output::{escape, talk};
use super::super::super::service;
use super::super::view;
use crate::client::credentials::TokenSource;
use crate::client::error::CreateError;
use crate::clock::wall_ms;
use crate::daemon;
use crate::invoice::opening::{MODE_DIFFERS, Mode, Opening};
use crate::ledger::InvoiceRow;
use crate::opening::{self, Opened};

/// Shows the invoice there is, and says whether it may be handed to the customer.
pub(super) fn show(context: &Context, opened: Opened) -> Result<Exit, Failure> {
    let print = |row: &InvoiceRow| view::print(context.output, row, wall_ms());
    match opened {
        Opened::Fresh(row) => {
            print(&row)?;
            fresh(context, &row)
        }
        Opened::Standing(row) => {
            talk(&format!(
                "order {} has this open invoice already; nothing was sent",
                escape(&row.order_id)
            ));
            print(&row)?;
            // Showing it to the customer is no better the second time.
            doubtful(&row).map_or(Ok(Exit::Ok), Err)
        }
        Opened::Paid(row) => {
            print(&row)?;
            let text = format!(
                "order `{}` is {} already; nothing was sent",
                row.order_id, row.outcome
            );
            Err(Failure::new(Exit::Error, text)
                .hint("`--new` opens another invoice for it all the same"))
        }
        Opened::Differs(row, what) => {
            print(&row)?;
            let text = format!(
                "order `{}` has an open invoice with another {what}; nothing was sent",
                row.order_id
            );
            let hint = match what {
                MODE_DIFFERS if row.mode == Mode::Redirect => {
                    "`--redirect` or `--fallback redirect` gives it again; `--new` opens another invoice beside it"
                }
                MODE_DIFFERS => {
                    "without `--redirect` the command gives it again; `--new` opens another invoice beside it"
                }
                _ => "`--new` opens another invoice beside it",
            };
            Err(Failure::new(Exit::Error, text).hint(hint))
        }
        Opened::Unknown(row) => {
            print(&row)?;
            let text = format!(
                "nobody knows whether the last create of order `{}` reached the service",
                row.order_id
            );
            Err(Failure::new(Exit::Unknown, text).hint(
                "look for the order in the cabinet; a notification settles it by itself, or `tilld invoice adopt ORDER --id ID`; \
                 `--new` opens another invoice",
            ))
        }
    }
}

/// What is to be said about an invoice that was just opened.
fn fresh(context: &Context, row: &InvoiceRow) -> Result<Exit, Failure> {
    if row.opening == Opening::Unknown {
        let text = format!(
            "the service answered the create of order `{}` with another order",
            row.order_id
        );
        return Err(Failure::new(Exit::Unknown, text).hint("look for both orders in the cabinet"));
    }
    if row.opening == Opening::Refused {
        let text = "the service answered with the id of another invoice of this ledger";
        return Err(Failure::new(Exit::Error, text).hint(
            "look both orders up in the cabinet; `tilld invoice list` shows which has the id",
        ));
    }
    if let Some(failure) = doubtful(row) {
        return Err(failure);
    }
    if !daemon::is_served(&context.state_dir()?) {
        talk(
            "no `tilld serve` runs on this state directory: until one does, nobody hears of the payment",
        );
    }
    Ok(Exit::Ok)
}

/// Why an open invoice is not to be shown to the customer.
pub(in crate::cli::invoice) fn doubtful(row: &InvoiceRow) -> Option<Failure> {
    let marked = |word: &str| row.attention.iter().any(|attention| attention == word);
    if marked("amount_differs") {
        let (asked, reported) = (
            view::sum(&row.amount_asked, &row.currency_asked),
            view::reported(row),
        );
        let text =
            format!("{asked} was asked for and the service opened the invoice with {reported}");
        return Some(Failure::new(Exit::Error, text).hint(format!(
            "do not show it to the customer: a payment will stand as `mismatch`, unless \
             `tilld invoice accept-amount {}` takes the reported sum as agreed",
            view::named(row)
        )));
    }
    if row.mode == Mode::Unknown {
        let text = format!(
            "invoice `{}` was opened elsewhere and the service has said nothing about it yet",
            view::named(row)
        );
        return Some(Failure::new(Exit::Error, text).hint(
            "run the command again when `tilld serve` has asked about it; `--new` opens another invoice",
        ));
    }
    if marked("other_id") {
        let text = "a notification named another id for this invoice than the service's answer";
        return Some(Failure::new(Exit::Error, text).hint("look both ids up in the cabinet"));
    }
    None
}

/// What was tried already: a hint names only what was not.
#[derive(Clone, Copy)]
pub(super) struct Tried {
    /// With `--wait`.
    pub waited: bool,
    /// With `--redirect`, or in the end by `--fallback redirect`.
    pub page: bool,
}

impl Tried {
    /// What is left to do when no requisites are free.
    const fn when_full(self) -> &'static str {
        match (self.waited, self.page) {
            (false, false) => {
                "try again later or with another amount; `--wait 90s` goes on trying, `--fallback redirect` opens it \
                 on the payment page"
            }
            (false, true) => "try again later or with another amount; `--wait 90s` goes on trying",
            (true, false) => {
                "try again later or with another amount; `--fallback redirect` opens it on the payment page"
            }
            (true, true) => "try again later or with another amount",
        }
    }
}

/// Why there is no invoice.
pub(super) fn failure(error: opening::Error, source: TokenSource, tried: Tried) -> Failure {
    match error {
        opening::Error::Create { order_id, source: cause } => {
            let is_full = matches!(cause, CreateError::NoRequisites { .. });
            let failure = service::create_failure(cause, Some(source))
                .context(format!("could not open an invoice for order `{order_id}`"));
            if is_full {
                failure.hint(tried.when_full())
            } else {
                failure
            }
        }
        error @ opening::Error::Gate(_) => Failure::new(Exit::Unreachable, error).hint("try again later"),
        error @ opening::Error::After { .. } => Failure::new(Exit::Unknown, error)
            .hint("the ledger shows it as unknown; a notification settles it, or `tilld invoice adopt ORDER --id ID`"),
        error @ (opening::Error::Before(_) | opening::Error::Late | opening::Error::Look { .. }) => Failure::new(Exit::Ledger, error)
            .hint("another program holds the ledger, or the disk is full: mend that and run the command again"),
    }
}
