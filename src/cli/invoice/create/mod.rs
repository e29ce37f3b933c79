//! `tilld invoice create`: opens an invoice for an order, once however often it is repeated.

mod ends;
mod over;

use std::time::Duration;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::remote::{self, Way};
use super::super::which::parse_order;
use super::super::{ledger, service};
use super::wait::parse_time;
use crate::answer::create::{Tried, failure};
use crate::client::gate::Gate;
use crate::invoice::amount::{Amount, AmountError};
use crate::invoice::ids::OrderId;
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::sum::Sum;
use crate::opening::patient::{Patience, Told};
use crate::opening::{Opener, Order};
use crate::parts;
use crate::telemetry::chain;
use crate::wire::address::is_for_browsers;
use crate::wire::create::ReturnUrls;

/// Longest `--wait`. A customer is gone by then, and a job that may take longer is better run again.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Flags of `invoice create`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("page").args(["redirect", "fallback"])))]
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
    #[arg(long, value_name = "URL", requires = "page", value_parser = parse_return)]
    success_url: Option<String>,
    /// Where the payment page sends the customer after giving up
    #[arg(long, value_name = "URL", requires = "page", value_parser = parse_return)]
    cancel_url: Option<String>,
    /// Where the payment page sends the customer after trouble
    #[arg(long, value_name = "URL", requires = "page", value_parser = parse_return)]
    error_url: Option<String>,
    /// Go on trying for this long while no requisites are free, for example 90s or 5m, at most 60m
    #[arg(long, value_name = "TIME", default_value = "0", hide_default_value = true, value_parser = parse_wait)]
    wait: Duration,
    /// Open it on the payment page when no requisites are free, after `--wait` if given; needs the three addresses
    #[arg(long, value_enum, value_name = "MODE", requires_all = ["success_url", "cancel_url", "error_url"])]
    fallback: Option<Fallback>,
    /// Open another invoice although the order has one, is paid, or its last create was lost
    #[arg(long)]
    new: bool,
}

/// Where a browser is sent to from the payment page.
fn parse_return(text: &str) -> Result<String, String> {
    if is_for_browsers(text) {
        Ok(text.to_owned())
    } else {
        Err("not an address that begins with http:// or https://".to_owned())
    }
}

/// The mode changes.
const FALLS_BACK: &str =
    "no requisites are free: opening it on the payment page, in the Redirect mode";

/// Where an invoice is opened that finds no requisites.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Fallback {
    /// On the service's payment page
    Redirect,
}

/// The payment methods of contract 2.3.
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

pub(super) fn parse_amount(text: &str) -> Result<Amount, AmountError> {
    Amount::parse_payable(text)
}

fn parse_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_time(text)?;
    if wait > LONGEST_WAIT {
        return Err(format!("`{text}` is longer than an hour"));
    }
    Ok(wait)
}

/// Runs `invoice create`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let (order, patience) = order(args)?;
    match remote::way_with_token(&context).await? {
        Way::Socket(remote) => over::run(&remote, &order, &patience, &context).await,
        Way::Direct(denied) => denied.explain(directly(&order, patience, &context).await),
    }
}

async fn directly(order: &Order, patience: Patience, context: &Context) -> Result<Exit, Failure> {
    let settings = context.settings()?;
    let public_url = settings.require_public()?.to_string();
    let client = service::client(context)?;
    let found = service::token(context, &client)?;
    let ledger = ledger::open_to_decide(context)?;
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let opener = Opener {
        writer: &writer,
        reader: &reader,
        client: &client,
        token: &found.token,
        gate: &Gate::new(parts::gate_limits(settings)),
        settings: &parts::opening_settings(settings, &public_url),
    };
    let wait = patience.wait;
    let tried = Tried {
        waited: !wait.is_zero(),
        page: order.wanted.mode == Mode::Redirect || patience.fallback.is_some(),
    };
    let mut tell = |told: Told<'_>| say(&told, wait);
    let opened = opener.open_patiently(order, patience, &mut tell).await;
    drop(writer);
    ledger.close(ledger::CLOSE_WITHIN).await;
    match opened {
        Ok(opened) => ends::show(context, opened),
        Err(error) => Err(failure(error, found.source, tried)),
    }
}

/// One line when the waiting begins, and one when the mode changes.
fn say(told: &Told<'_>, wait: Duration) {
    match told {
        Told::Waits(error) => talk(&format!(
            "{}; trying again for up to {} s",
            escape(&chain(error)),
            wait.as_secs()
        )),
        Told::FallsBack => talk(FALLS_BACK),
    }
}

fn order(args: Args) -> Result<(Order, Patience), Failure> {
    let sum =
        Sum::new(args.amount, &args.currency).map_err(|error| Failure::new(Exit::Usage, error))?;
    sum.check_digits()
        .map_err(|error| Failure::new(Exit::Usage, error))?;
    // clap lets the three addresses come together and with `--redirect` or `--fallback` only.
    let addresses = args.success_url.zip(args.cancel_url).zip(args.error_url);
    let addresses = addresses.map(|((success, cancel), error)| ReturnUrls {
        success,
        cancel,
        error,
    });
    let (mode, return_urls, fallback) = match (args.redirect, args.fallback) {
        (true, _) => (Mode::Redirect, addresses, None),
        (false, Some(Fallback::Redirect)) => (Mode::H2h, None, addresses),
        (false, None) => (Mode::H2h, None, None),
    };
    let order = Order {
        order_id: args.order,
        wanted: Wanted {
            sum,
            method: args.method.as_str().to_owned(),
            mode,
            anew: args.new,
        },
        return_urls,
    };
    let patience = Patience {
        wait: args.wait,
        fallback,
        ..Patience::default()
    };
    Ok((order, patience))
}
