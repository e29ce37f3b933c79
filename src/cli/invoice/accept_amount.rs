//! `tilld invoice accept-amount`: takes the figures the service reported as what is agreed. What was paid in that sum is
//! paid from then on, and the hooks hear of it.
//!
//! Relies on the ledger to judge what can be agreed. Promises that nothing is accepted whose amount nobody typed.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::super::output::{escape, prompt, talk};
use super::super::owner;
use super::super::which::Which;
use super::create::parse_amount;
use super::view;
use crate::answer::find::find;
use crate::answer::invoice::accepting;
use crate::answer::name::Name;
use crate::clock::wall_ms;
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::status::Outcome;
use crate::invoice::sum::Sum;
use crate::ledger::{Acceptance, InvoiceRow, Objection, Operated, Reader, Recorded, is_served};

/// Longest line read from a terminal, bytes: far more than any amount.
const LONGEST_LINE: u64 = 4096;

/// Flags of `invoice accept-amount`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    which: Which,
    /// The amount that the service reported; without it the command asks on a terminal
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
    let amount = match &args.amount {
        Some(amount) => amount.clone(),
        None => ask(&row)?,
    };
    guard(&amount, args.currency.as_ref(), &row)?;
    let ledger = ledger::open_to_decide(&context)?;
    let wish = Acceptance {
        key: row.key,
        amount: row.amount_reported.clone(),
        currency: row.currency_reported.clone(),
        named: amount,
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

/// The invoice that is meant: the only one of the order with something to accept, else the one that stands for the order.
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
                "{name} has {} invoices with something to accept",
                told.len()
            );
            Err(Failure::new(Exit::Error, error).hint(format!("name one: {}", told.join(", "))))
        }
    }
}

/// True when the service reported something else than is agreed, or money came that pays no order yet.
fn differs(row: &InvoiceRow) -> bool {
    if row.outcome == Outcome::Mismatch || row.needs(Attention::AmountMissing) {
        return true;
    }
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

/// The amount as a person types it, who is shown what stands.
fn ask(row: &InvoiceRow) -> Result<Amount, Failure> {
    let command = accepting(row);
    let hint = format!("`{command}` does it");
    if !io::stdin().is_terminal() {
        let error = "`--amount` is missing, and there is no terminal to ask on";
        return Err(Failure::new(Exit::Usage, error).hint(hint));
    }
    talk(&format!(
        "order {}: {} is agreed, the service reported {}",
        escape(&row.order_id),
        agreed(row),
        escape(&view::reported(row))
    ));
    prompt("amount to accept: ");
    let mut line = String::new();
    let read = io::stdin().lock().take(LONGEST_LINE).read_line(&mut line);
    let refused = |error: String| Failure::new(Exit::Usage, error).hint(&*hint);
    read.map_err(|error| refused(format!("the amount could not be read: {error}")))?;
    parse_amount(line.trim()).map_err(|error| refused(format!("{error}; nothing was changed")))
}

/// What a person means to accept must be what was reported. Where no amount was, it is what was agreed, or that of a payment
/// the service names no amount of.
fn guard(amount: &Amount, currency: Option<&String>, row: &InvoiceRow) -> Result<(), Failure> {
    let reported = row.amount_reported.as_deref();
    let known = reported.unwrap_or(&row.amount_agreed);
    let is_known = Amount::parse(known).is_ok_and(|known| known == *amount);
    // The ledger says that nothing was reported at all.
    let nothing = reported.is_none() && row.currency_reported.is_none();
    let same_amount = is_known || nothing || row.needs(Attention::AmountMissing);
    if !is_known {
        let code = row
            .currency_reported
            .as_ref()
            .unwrap_or(&row.currency_agreed);
        if let Ok(sum) = Sum::new(amount.clone(), code) {
            sum.check_digits()
                .map_err(|error| Failure::new(Exit::Usage, error))?;
        }
    }
    let same_currency = currency.is_none_or(|own| Some(own) == row.currency_reported.as_ref());
    if same_amount && same_currency {
        return Ok(());
    }
    let error = format!(
        "the service reported {} for order `{}`; nothing was changed",
        view::reported(row),
        row.order_id
    );
    Err(Failure::new(Exit::Error, error)
        .hint(format!("`{}` takes what it reported", accepting(row))))
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
