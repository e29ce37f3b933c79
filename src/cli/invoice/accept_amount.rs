//! `tilld invoice accept-amount`: takes the figures the service reported as what is agreed. What was paid in that sum is
//! paid from then on, and the hooks hear of it.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{escape, talk};
use super::super::owner;
use super::super::which::Which;
use super::create::parse_amount;
use super::view;
use crate::answer::find::find;
use crate::answer::name::Name;
use crate::clock::wall_ms;
use crate::invoice::amount::Amount;
use crate::ledger::{Acceptance, InvoiceRow, Objection, Operated, Reader, Recorded, is_served};

/// Flags of `invoice accept-amount`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// Only if this is the amount the service reported
    #[arg(long, value_parser = parse_amount)]
    amount: Option<Amount>,
    /// Only if this is the currency the service reported
    #[arg(long)]
    currency: Option<String>,
}

/// Runs `invoice accept-amount`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let row = choose(&ledger::open_reader(&context)?, &args.which.name()).await?;
    guard(&args, &row)?;
    let ledger = ledger::open_to_decide(&context)?;
    let wish = Acceptance {
        key: row.key,
        amount: row.amount_reported.clone(),
        currency: row.currency_reported.clone(),
        now_ms: wall_ms(),
    };
    let accepted = ledger.writer().accept(wish).await;
    ledger.close(ledger::CLOSE_WITHIN).await;
    match accepted? {
        Operated::Done(row, recorded) => {
            talk(&format!(
                "{} is agreed for order {} now; the outcome is {}",
                agreed(&row),
                escape(&row.order_id),
                row.outcome
            ));
            view::print(context.output, &row, wall_ms())?;
            tell_owed(&context, &recorded)?;
            Ok(Exit::Ok)
        }
        Operated::Already(row) => {
            talk(&format!(
                "{} is agreed for order {} already",
                agreed(&row),
                escape(&row.order_id)
            ));
            view::print(context.output, &row, wall_ms())?;
            Ok(Exit::Ok)
        }
        Operated::Refused(row, objection) => Err(refused(&row, objection)),
    }
}

fn agreed(row: &InvoiceRow) -> String {
    escape(&view::sum(&row.amount_agreed, &row.currency_agreed)).into_owned()
}

fn tell_owed(context: &Context, recorded: &[Recorded]) -> Result<(), Failure> {
    let owed = |one: &Recorded| one.event.as_ref().is_some_and(|event| event.deliveries > 0);
    if recorded.iter().any(owed) && !is_served(&context.state_dir()?) {
        talk("no daemon runs: `tilld serve` runs what is due");
    }
    Ok(())
}

/// The invoice that is meant: the only one of the order with other figures than agreed, else the newest.
async fn choose(reader: &Reader, name: &Name) -> Result<InvoiceRow, Failure> {
    let found = find(reader, name).await?;
    let differing: Vec<&InvoiceRow> = found.iter().filter(|row| differs(row)).collect();
    match (differing.as_slice(), found.first()) {
        ([row], _) => Ok((*row).clone()),
        ([], newest) => Ok(newest.expect("found are one at least").clone()),
        (several, _) => {
            let told: Vec<String> = several
                .iter()
                .map(|row| format!("`{}` ({})", view::name(row).flag(), view::reported(row)))
                .collect();
            let error = format!(
                "{name} has {} invoices with other figures than agreed",
                told.len()
            );
            Err(Failure::new(Exit::Error, error).hint(format!("name one: {}", told.join(", "))))
        }
    }
}

/// True when the service reported something else than is agreed.
fn differs(row: &InvoiceRow) -> bool {
    let other_amount = row.amount_reported.as_deref().is_some_and(|reported| {
        let (reported, agreed) = (Amount::parse(reported), Amount::parse(&row.amount_agreed));
        reported
            .ok()
            .zip(agreed.ok())
            .is_none_or(|(reported, agreed)| reported != agreed)
    });
    let currency = row.currency_reported.as_deref();
    other_amount || currency.is_some_and(|reported| reported != row.currency_agreed)
}

/// What a script believes to accept must be what was reported.
fn guard(args: &Args, row: &InvoiceRow) -> Result<(), Failure> {
    let reported = row.amount_reported.as_deref();
    let reported = reported.and_then(|text| Amount::parse(text).ok());
    let same_amount = args.amount.is_none() || args.amount == reported;
    let same_currency = args.currency.is_none() || args.currency == row.currency_reported;
    if same_amount && same_currency {
        return Ok(());
    }
    let error = format!(
        "the service reported {} for order `{}`; nothing was changed",
        view::reported(row),
        row.order_id
    );
    Err(Failure::new(Exit::Error, error)
        .hint("without `--amount` and `--currency` what it reported is accepted, whatever it is"))
}

fn refused(row: &InvoiceRow, objection: Objection) -> Failure {
    let (order, reported) = (&row.order_id, view::reported(row));
    let (error, hint) = match objection {
        Objection::NothingReported => (
            format!("the service has reported no amount and no currency for order `{order}`"),
            "what was asked stands as agreed",
        ),
        Objection::Unreadable => (
            format!(
                "what the service reported for order `{order}` is no sum that can be agreed to: `{reported}`"
            ),
            "settle it with the service; `tilld invoice show` shows its document",
        ),
        Objection::ReportedSince => (
            format!("the service has reported {reported} for order `{order}` meanwhile"),
            "look at it, then run the command again",
        ),
        Objection::Paid => (
            format!(
                "order `{order}` is paid with {}, as agreed; the service reports {reported} since",
                view::sum(&row.amount_agreed, &row.currency_agreed)
            ),
            "look the invoice up in the cabinet; nothing was changed",
        ),
        Objection::OrderPaid => (
            format!(
                "another invoice has paid order `{order}`; this payment of {reported} is a second one"
            ),
            "pay it back or settle it with the customer; nothing was changed",
        ),
        Objection::Taken
        | Objection::OtherSum
        | Objection::OtherId
        | Objection::NotLost
        | Objection::OtherOrder => (
            format!("the figures of order `{order}` cannot be accepted"),
            "`tilld invoice show` shows what is known of it",
        ),
    };
    Failure::new(Exit::Error, error).hint(hint)
}
