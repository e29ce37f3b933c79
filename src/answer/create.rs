//! How the opening of an invoice ends: whether there is one to hand to the customer, and if not, why.

use super::failure::{Exit, Failure};
use super::invoice::{accepting, name, other, reported, sum};
use super::problem::Problem;
use super::service;
use crate::client::credentials::TokenSource;
use crate::client::error::CreateError;
use crate::invoice::attention::{Attention, in_toml};
use crate::invoice::opening::{Difference, Mode, Opening};
use crate::invoice::status::Outcome;
use crate::ledger::InvoiceRow;
use crate::opening::{self, Opened, Why};

/// The end of an opening that the ledger has an invoice of.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The invoice.
    pub(crate) row: Box<InvoiceRow>,
    /// The service opened it just now; else nothing was sent.
    pub(crate) is_fresh: bool,
    /// Why it is not to be handed to the customer, if it is not.
    pub(crate) failure: Option<Failure>,
}

impl From<Opened> for Ended {
    fn from(opened: Opened) -> Self {
        let stands = |row, failure| Self {
            row,
            is_fresh: false,
            failure,
        };
        match opened {
            Opened::Fresh(row) => Self {
                failure: fresh(&row),
                is_fresh: true,
                row,
            },
            Opened::Overtaken(row) => Self {
                failure: Some(overtaken(&row)),
                is_fresh: true,
                row,
            },
            // Showing it to the customer is no better the second time.
            Opened::Standing(row) => {
                let failure = not_to_be_shown(&row);
                stands(row, failure)
            }
            Opened::Paid(row) => {
                let failure = paid(&row);
                stands(row, Some(failure))
            }
            Opened::Superseded(row) => {
                let failure = superseded(&row);
                stands(row, Some(failure))
            }
            Opened::Differs(row, what) => {
                let failure = differs(&row, what);
                stands(row, Some(failure))
            }
            Opened::Unknown(row) => {
                let failure = unknown(&row);
                stands(row, Some(failure))
            }
        }
    }
}

fn paid(row: &InvoiceRow) -> Failure {
    let text = format!(
        "order `{}` is {} already; nothing was sent",
        row.order_id, row.outcome
    );
    Failure::new(Exit::Error, text)
        .hint("`--new` opens another invoice for it all the same")
        .problem(if row.outcome == Outcome::Mismatch {
            Problem::PaidOtherAmount
        } else {
            Problem::AlreadyPaid
        })
}

/// The order was paid while the request was under way.
fn overtaken(row: &InvoiceRow) -> Failure {
    let text = format!(
        "another invoice paid order `{}` while this one was opened",
        row.order_id
    );
    Failure::new(Exit::Error, text)
        .hint("do not show it to the customer: a payment of it would be a second one")
        .problem(Problem::AlreadyPaid)
}

/// An older invoice of the order is in the way.
fn superseded(row: &InvoiceRow) -> Failure {
    let (order, name) = (&row.order_id, name(row));
    let newer = row.superseded.as_ref().map_or_else(String::new, |by| {
        format!(" by {} over {}", other(by), sum(&by.amount, &by.currency))
    });
    let (text, hint) = if row.outcome.has_money() {
        (
            format!(
                "the customer paid {} on {name} of order `{order}`, which is superseded{newer}; nothing was sent",
                reported(row)
            ),
            format!(
                "`{}` takes this payment for the order, or pay it back; `--new` opens another invoice all the same",
                accepting(row)
            ),
        )
    } else {
        (
            format!(
                "the customer can still pay {name} of order `{order}`, which is superseded{newer}; nothing was sent"
            ),
            "try again after its end; `--new` opens another invoice beside it".to_owned(),
        )
    };
    Failure::new(Exit::Error, text)
        .hint(hint)
        .problem(Problem::Superseded)
}

fn differs(row: &InvoiceRow, what: Difference) -> Failure {
    let text = format!(
        "order `{}` has an open invoice with another {}; nothing was sent",
        row.order_id,
        what.as_str()
    );
    let beside = "`--new` opens another invoice beside it";
    let (problem, again) = match what {
        Difference::Amount => (Problem::OtherAmount, None),
        Difference::Currency => (Problem::OtherCurrency, None),
        Difference::Method => (Problem::OtherMethod, None),
        Difference::Mode if row.mode == Mode::Redirect => (
            Problem::OtherMode,
            Some("`--redirect` or `--fallback redirect` gives it again"),
        ),
        Difference::Mode => (
            Problem::OtherMode,
            Some("without `--redirect` the command gives it again"),
        ),
    };
    let hint = again.map_or_else(|| beside.to_owned(), |again| format!("{again}; {beside}"));
    Failure::new(Exit::Error, text).hint(hint).problem(problem)
}

/// Its answer was lost, just now or before.
pub(crate) fn unknown(row: &InvoiceRow) -> Failure {
    let text = format!(
        "nobody knows whether the last create of order `{}` reached the service",
        row.order_id
    );
    Failure::new(Exit::Unknown, text).hint(
        "look for the order in the cabinet; a notification settles it by itself, or `tilld invoice adopt ORDER --id ID`; \
         `--new` opens another invoice",
    )
}

/// What is wrong with an invoice that was just opened.
fn fresh(row: &InvoiceRow) -> Option<Failure> {
    if row.opening == Opening::Unknown {
        let text = format!(
            "the service answered the create of order `{}` with another order",
            row.order_id
        );
        return Some(Failure::new(Exit::Unknown, text).hint("look for both orders in the cabinet"));
    }
    if row.opening == Opening::Refused {
        let text = "the service answered with the id of another invoice of this ledger";
        return Some(Failure::new(Exit::Error, text).hint(
            "look both orders up in the cabinet; `tilld invoice list` shows which has the id",
        ));
    }
    not_to_be_shown(row)
}

/// [`doubtful`], for who wanted it opened.
fn not_to_be_shown(row: &InvoiceRow) -> Option<Failure> {
    doubtful(row).map(|failure| failure.problem(Problem::NotToBeShown))
}

/// Why an open invoice is not to be shown to the customer.
pub(crate) fn doubtful(row: &InvoiceRow) -> Option<Failure> {
    if row.needs(Attention::AmountDiffers) {
        let (asked, reported) = (sum(&row.amount_asked, &row.currency_asked), reported(row));
        let text =
            format!("{asked} was asked for and the service opened the invoice with {reported}");
        return Some(Failure::new(Exit::Error, text).hint(format!(
            "do not show it to the customer: a payment will stand as `mismatch`, unless \
             `{}` takes the reported sum as agreed",
            accepting(row)
        )));
    }
    if row.mode == Mode::Unknown {
        let text = format!(
            "the open invoice ({}) was opened elsewhere and the service has said nothing about it yet",
            name(row)
        );
        return Some(Failure::new(Exit::Error, text).hint(
            "run the command again when `tilld serve` has asked about it; `--new` opens another invoice",
        ));
    }
    if row.needs(Attention::OtherId) {
        let text = "a notification named another id for this invoice than the service's answer";
        return Some(Failure::new(Exit::Error, text).hint("look both ids up in the cabinet"));
    }
    None
}

/// An earlier invoice may have been paid.
fn unsettled(row: &InvoiceRow, why: &Why) -> Failure {
    let text = format!(
        "order `{}` has an earlier invoice that may have been paid ({}): {why}; nothing was opened",
        row.order_id,
        name(row)
    );
    let hint = match why {
        Why::Status(status) => {
            let quoted = in_toml(status);
            format!(
                "map it to what it means under `[statuses]` in the config, for example `paid = [{quoted}]` or \
                 `failed = [{quoted}]`; or look at the invoice in the cabinet, and `--new` opens another one all the same"
            )
        }
        Why::NoAnswer { .. } | Why::Gone | Why::Early | Why::Doubt => {
            "try again later; `--new` opens another invoice all the same".to_owned()
        }
    };
    Failure::new(Exit::Unknown, text)
        .hint(hint)
        .again_in(why.again_in())
        .problem(Problem::Unsettled)
}

/// What was tried already: a hint names only what was not.
#[derive(Clone, Copy)]
pub(crate) struct Tried {
    /// With `--wait`.
    pub(crate) waited: bool,
    /// With `--redirect`, or in the end by `--fallback redirect`.
    pub(crate) page: bool,
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
pub(crate) fn failure(error: opening::Error, source: TokenSource, tried: Tried) -> Failure {
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
        opening::Error::Gate(closed) => {
            Failure::new(Exit::Unreachable, error).hint("try again later").again_in(Some(closed.opens_in))
        }
        error @ opening::Error::After { .. } => Failure::new(Exit::Unknown, error)
            .hint("the ledger shows it as unknown; a notification settles it, or `tilld invoice adopt ORDER --id ID`"),
        opening::Error::Unsettled { row, why } => unsettled(&row, &why),
        error @ opening::Error::Stopping => Failure::new(Exit::Unreachable, error).hint("ask again when it runs anew"),
        error @ (opening::Error::Before(_) | opening::Error::Late | opening::Error::Look { .. }) => Failure::new(Exit::Ledger, error)
            .hint("another program holds the ledger, or the disk is full: mend that and run the command again"),
    }
}
