//! `tilld invoice create`: opens an invoice for an order, once however often it is repeated.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::{ledger, service};
use super::view;
use crate::client::gate::Gate;
use crate::clock::wall_ms;
use crate::daemon::{self, plain};
use crate::invoice::amount::{Amount, AmountError};
use crate::invoice::ids::{IdError, OrderId};
use crate::invoice::opening::{Mode, Opening, Wanted};
use crate::invoice::sum::Sum;
use crate::ledger::InvoiceRow;
use crate::opening::{self, Opened, Opener, Order};
use crate::wire::create::ReturnUrls;

/// Flags of `invoice create`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shop's own id of the order; repeating it does not open a second invoice
    #[arg(long, value_name = "ID", value_parser = parse_order)]
    order: OrderId,
    /// The amount as a plain decimal, for example 1500.00
    #[arg(long, value_parser = parse_amount)]
    amount: Amount,
    /// The currency, for example RUB
    #[arg(long)]
    currency: String,
    /// How the customer pays
    #[arg(long, value_enum)]
    method: Method,
    /// Send the customer to the service's payment page; needs the three addresses
    #[arg(long, requires_all = ["success_url", "cancel_url", "error_url"])]
    redirect: bool,
    /// Where the payment page sends the customer after paying
    #[arg(long, value_name = "URL", requires = "redirect")]
    success_url: Option<String>,
    /// Where the payment page sends the customer after giving up
    #[arg(long, value_name = "URL", requires = "redirect")]
    cancel_url: Option<String>,
    /// Where the payment page sends the customer after trouble
    #[arg(long, value_name = "URL", requires = "redirect")]
    error_url: Option<String>,
    /// Open another invoice although the order has one, is paid, or its last create was lost
    #[arg(long)]
    new: bool,
}

/// The payment methods of the contract (section 2.3).
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Method {
    /// By phone number
    #[value(name = "SBP")]
    Sbp,
    /// To a card
    #[value(name = "TO_CARD")]
    ToCard,
}

impl Method {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Sbp => "SBP",
            Self::ToCard => "TO_CARD",
        }
    }
}

pub(super) fn parse_order(text: &str) -> Result<OrderId, IdError> {
    OrderId::new(text)
}

pub(super) fn parse_amount(text: &str) -> Result<Amount, AmountError> {
    Amount::parse_payable(text)
}

/// Runs `invoice create`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let order = order(args)?;
    let settings = context.settings()?;
    let public_url = settings.require_public()?.to_string();
    let client = service::client(&context)?;
    let found = service::token(&context, &client)?;
    let ledger = ledger::open(&context)?;
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let opener = Opener {
        writer: &writer,
        reader: &reader,
        client: &client,
        token: &found.token,
        gate: &Gate::new(plain::gate_limits(settings)),
        settings: &plain::opening_settings(settings, &public_url),
    };
    let opened = opener.open(&order).await;
    drop(writer);
    ledger.close(ledger::CLOSE_WITHIN).await;
    match opened {
        Ok(opened) => show(&context, opened),
        Err(error) => Err(failure(error, found.source)),
    }
}

fn order(args: Args) -> Result<Order, Failure> {
    let sum =
        Sum::new(args.amount, &args.currency).map_err(|error| Failure::new(Exit::Usage, error))?;
    // clap lets the three addresses come together with `--redirect` only.
    let addresses = args.success_url.zip(args.cancel_url).zip(args.error_url);
    let return_urls = addresses.map(|((success, cancel), error)| ReturnUrls {
        success,
        cancel,
        error,
    });
    let mode = if args.redirect {
        Mode::Redirect
    } else {
        Mode::H2h
    };
    let wanted = Wanted {
        sum,
        method: args.method.as_str().to_owned(),
        mode,
        anew: args.new,
    };
    Ok(Order {
        order_id: args.order,
        wanted,
        return_urls,
    })
}

fn show(context: &Context, opened: Opened) -> Result<Exit, Failure> {
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
            Err(Failure::new(Exit::Error, text).hint("`--new` opens another invoice beside it"))
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
pub(super) fn doubtful(row: &InvoiceRow) -> Option<Failure> {
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

fn failure(error: opening::Error, source: crate::client::credentials::TokenSource) -> Failure {
    match error {
        opening::Error::Create { order_id, source: cause } => service::create_failure(cause, Some(source))
            .context(format!("could not open an invoice for order `{order_id}`")),
        error @ opening::Error::Gate(_) => Failure::new(Exit::Unreachable, error).hint("try again later"),
        error @ opening::Error::After { .. } => Failure::new(Exit::Unknown, error)
            .hint("the ledger shows it as unknown; a notification settles it, or `tilld invoice adopt ORDER --id ID`"),
        error @ (opening::Error::Before(_) | opening::Error::Late | opening::Error::Look { .. }) => Failure::new(Exit::Ledger, error)
            .hint("another program holds the ledger, or the disk is full: mend that and run the command again"),
    }
}
