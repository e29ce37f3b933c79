//! `tilld ack`: the operator has dealt with what no later event settles for sure, so `status` and the alarms drop it. Relies on
//! [`End::Ack`] for which reasons that are; of an invoice or a delivery it changes nothing else, and runs no hook.

use clap::builder::PossibleValuesParser;
use serde::Serialize;

use super::context::Context;
use super::delivery::change::{Pages, change, counted};
use super::failure::{Exit, Failure};
use super::ledger::{self, CLOSE_WITHIN};
use super::output::{escape, print_json, talk};
use super::owner;
use crate::answer::attention::words;
use crate::answer::find::find_order;
use crate::clock::wall_ms;
use crate::invoice::attention::{Attention, End};
use crate::ledger::{
    Act, Choice, InvoiceKey, InvoiceRow, LOST, Ledger, Operated, Reader, Whose, Writer,
};
use crate::status::Reason;

/// The ends a script must tell apart.
pub(super) const ENDS: &str = "All other reasons end with their cause: `tilld status` says what helps. Deliveries that were given up stay so, and
`tilld delivery retry` takes them up again.
Exit codes: 0 acknowledged, 1 nothing to acknowledge, 3 no such order";

/// Invoices looked at in one read.
const PAGE: u32 = 500;

/// Flags of `ack`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["order", "all"]))]
pub(super) struct Args {
    /// The order id
    #[arg(value_name = "ORDER")]
    order: Option<String>,
    /// Everything that can be acknowledged
    #[arg(long)]
    all: bool,
    /// Only this reason
    #[arg(long, value_parser = reasons())]
    reason: Option<String>,
    /// Only deliveries to this hook that were given up
    #[arg(long, value_name = "NAME", conflicts_with = "reason")]
    hook: Option<String>,
    /// Show what would be acknowledged, and change nothing
    #[arg(long)]
    dry_run: bool,
}

fn reasons() -> PossibleValuesParser {
    let words = Reason::all().filter(|reason| reason.end() == End::Ack);
    PossibleValuesParser::new(words.map(Reason::as_str))
}

/// What was acknowledged, in the words of `--json`.
#[derive(Default, Serialize)]
struct Acknowledged {
    invoices: Vec<InvoiceReasons>,
    /// How many that were given up.
    deliveries: usize,
    /// That the ledger lacks events, or was made new.
    #[serde(skip_serializing_if = "Option::is_none")]
    ledger: Option<Reason>,
    dry_run: bool,
}

#[derive(Serialize)]
struct InvoiceReasons {
    order_id: String,
    invoice_id: Option<String>,
    reasons: Vec<Attention>,
}

/// Runs `ack`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    if !args.dry_run {
        owner::check(&context.state_dir()?)?;
    }
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let of_order = match &args.order {
        Some(order) => Some(invoices_of(&reader, order).await?),
        None => None,
    };
    let mut invoices = Invoices {
        reader: &reader,
        of_order: of_order.clone(),
        below: InvoiceKey(i64::MAX),
        reasons: wanted(&args),
    };
    let choice = Choice {
        whose: args.order.clone().map_or(Whose::All, Whose::Order),
        hook: args.hook.clone(),
        ..Choice::default()
    };
    let pages = Pages::begin(&reader, Act::Acknowledge, choice).await?;
    let pages = (args.hook.is_some() || is_wanted(&args, Reason::Abandoned)).then_some(pages);
    let mut done = Acknowledged {
        dry_run: args.dry_run,
        ..Acknowledged::default()
    };
    done.ledger = lost(&reader, &args).await?;
    if args.dry_run {
        look(&mut invoices, pages, &mut done).await?;
    } else {
        let ledger = ledger::open(&context)?;
        let ended = acknowledge(&ledger, &mut invoices, pages, &mut done).await;
        ledger.close(CLOSE_WITHIN).await;
        if let Err(failure) = ended {
            let before = format!(
                "{} and {} acknowledged, the others not",
                counted_invoices(done.invoices.len()),
                counted(done.deliveries, "were")
            );
            return Err(failure.context(before));
        }
    }
    if done.invoices.is_empty() && done.deliveries == 0 && done.ledger.is_none() {
        return Err(nothing(&args, of_order.as_deref()));
    }
    print(&context, &done)?;
    Ok(Exit::Ok)
}

/// What is to be acknowledged of the ledger itself.
async fn lost(reader: &Reader, args: &Args) -> Result<Option<Reason>, Failure> {
    let lost = reader.fact(&LOST).await?.flatten();
    let reason = lost.map(|lost| {
        if lost.is_new {
            Reason::LedgerNew
        } else {
            Reason::LedgerBehind
        }
    });
    Ok(reason.filter(|reason| args.all && is_wanted(args, *reason)))
}

async fn invoices_of(reader: &Reader, order: &str) -> Result<Vec<InvoiceRow>, Failure> {
    let hint = "`tilld status` names the orders that need attention";
    find_order(reader, order, hint).await
}

fn is_wanted(args: &Args, reason: Reason) -> bool {
    let narrowed = args.reason.as_deref();
    args.hook.is_none() && narrowed.is_none_or(|wanted| wanted == reason.as_str())
}

/// The reasons of invoices that are meant.
fn wanted(args: &Args) -> Vec<Attention> {
    let all = Attention::ALL.into_iter();
    let ends = all.filter(|reason| reason.end() == End::Ack);
    ends.filter(|reason| is_wanted(args, Reason::Invoice(*reason)))
        .collect()
}

/// The invoices with a reason that is meant, page by page, newest first.
struct Invoices<'a> {
    reader: &'a Reader,
    /// Those of the order that was named, until they were taken.
    of_order: Option<Vec<InvoiceRow>>,
    below: InvoiceKey,
    reasons: Vec<Attention>,
}

impl Invoices<'_> {
    /// The next ones, each with the reasons that are meant; empty behind the last one.
    async fn next(&mut self) -> Result<Vec<(InvoiceKey, InvoiceReasons)>, Failure> {
        loop {
            let rows = match &mut self.of_order {
                Some(rows) => std::mem::take(rows),
                None => self.reader.to_acknowledge(self.below, PAGE).await?.rows,
            };
            let Some(last) = rows.last() else {
                return Ok(Vec::new());
            };
            self.below = last.key;
            let found = rows.iter().map(|row| (row.key, self.meant(row)));
            let found: Vec<_> = found.filter(|(_, of)| !of.reasons.is_empty()).collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }

    fn meant(&self, row: &InvoiceRow) -> InvoiceReasons {
        let reasons = row.attention.iter().copied();
        InvoiceReasons {
            order_id: row.order_id.clone(),
            invoice_id: row.invoice_id.clone(),
            reasons: reasons
                .filter(|reason| self.reasons.contains(reason))
                .collect(),
        }
    }
}

/// Finds what would be acknowledged.
async fn look(
    invoices: &mut Invoices<'_>,
    pages: Option<Pages<'_>>,
    done: &mut Acknowledged,
) -> Result<(), Failure> {
    loop {
        let found = invoices.next().await?;
        if found.is_empty() {
            break;
        }
        done.invoices.extend(found.into_iter().map(|(_, of)| of));
    }
    let Some(mut pages) = pages else {
        return Ok(());
    };
    loop {
        let found = pages.next().await?.len();
        if found == 0 {
            return Ok(());
        }
        done.deliveries += found;
    }
}

async fn acknowledge(
    ledger: &Ledger,
    invoices: &mut Invoices<'_>,
    pages: Option<Pages<'_>>,
    done: &mut Acknowledged,
) -> Result<(), Failure> {
    let writer = ledger.writer();
    loop {
        let found = invoices.next().await?;
        if found.is_empty() {
            break;
        }
        for (key, of) in found {
            done.invoices.extend(one(&writer, key, of).await?);
        }
    }
    if let Some(mut pages) = pages {
        let first = pages.next().await?;
        done.deliveries = change(ledger, pages, first).await?.changed;
    }
    if done.ledger.is_some() {
        writer.note(&LOST, &None).await?;
    }
    Ok(())
}

/// Acknowledges the reasons that were shown, and no other one that came meanwhile.
async fn one(
    writer: &Writer,
    key: InvoiceKey,
    of: InvoiceReasons,
) -> Result<Option<InvoiceReasons>, Failure> {
    let reasons = of.reasons.clone();
    let ended = writer.acknowledge(key, reasons, wall_ms()).await?;
    Ok(matches!(ended, Operated::Done(..)).then_some(of))
}

fn print(context: &Context, done: &Acknowledged) -> Result<(), Failure> {
    if context.output.json() {
        return print_json(done);
    }
    let verb = if done.dry_run {
        "would be acknowledged"
    } else {
        "acknowledged"
    };
    for invoice in &done.invoices {
        let (order, reasons) = (escape(&invoice.order_id), words(&invoice.reasons, ", "));
        let line = format!("order {order}: {reasons} {verb}");
        context.output.line(&line)?;
    }
    if done.deliveries > 0 {
        context.output.line(&counted(done.deliveries, verb))?;
    }
    if let Some(reason) = done.ledger {
        context
            .output
            .line(&format!("the ledger: {reason} {verb}"))?;
    }
    if done.dry_run {
        talk("nothing was changed");
    }
    Ok(())
}

fn counted_invoices(count: usize) -> String {
    let plural = if count == 1 { "invoice" } else { "invoices" };
    format!("{count} {plural}")
}

fn nothing(args: &Args, of_order: Option<&[InvoiceRow]>) -> Failure {
    let error = args.order.as_ref().map_or_else(
        || "nothing waits to be acknowledged".to_owned(),
        |order| format!("order `{}` has nothing to acknowledge", escape(order)),
    );
    let left: Vec<Attention> = of_order
        .into_iter()
        .flatten()
        .flat_map(|row| row.attention.iter().copied())
        .collect();
    let hint = if args.hook.is_some() || args.reason.is_some() {
        "without `--hook` and `--reason` it takes everything that can be acknowledged".to_owned()
    } else if left.is_empty() {
        "`tilld status` shows what needs attention".to_owned()
    } else {
        let left = words(&left, ", ");
        format!("{left} ends with its cause: `tilld status` says what helps")
    };
    Failure::new(Exit::Error, error).hint(hint)
}
