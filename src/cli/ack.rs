//! `tilld ack`: the operator has dealt with what no later event settles for sure, so `status` and the alarms drop it. Relies on
//! [`End::Ack`] for which reasons that are; changes nothing else of an invoice or a delivery, and runs no hook.

use serde::Serialize;

use super::context::Context;
use super::delivery::change::{Done, Pages, change, counted};
use super::failure::{Exit, Failure};
use super::invoice::{find, not_found};
use super::ledger::{self, CLOSE_WITHIN};
use super::output::{escape, print_json, talk};
use super::owner;
use crate::answer::attention::words;
use crate::clock::wall_ms;
use crate::invoice::attention::{Attention, End};
use crate::ledger::{Act, Choice, InvoiceRow, Operated, Reader, Whose, Writer};

/// The ends a script must tell apart.
pub(super) const ENDS: &str = "Acknowledged are the reasons `mismatch`, `other_id`, `rewound` and `unresolved` of invoices, and deliveries
that were given up (`abandoned`). All others end with their cause: `tilld status` says what helps.
Exit codes: 0 acknowledged, 1 nothing to acknowledge, 3 no such order";

/// Invoices acknowledged at a time.
const PAGE: u32 = 500;

/// Flags of `ack`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["name", "all"]))]
pub(super) struct Args {
    /// The order id; or the service's id or the ref of one of its invoices
    #[arg(value_name = "ORDER-OR-ID")]
    name: Option<String>,
    /// Everything that can be acknowledged
    #[arg(long)]
    all: bool,
    /// Only deliveries to this hook that were given up
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Show what would be acknowledged, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What was acknowledged, in the words of `--json`.
#[derive(Default, Serialize)]
struct Acknowledged {
    invoices: Vec<InvoiceReasons>,
    /// How many that were given up.
    deliveries: usize,
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
    let found = match &args.name {
        Some(name) => Some(named(&reader, name).await?),
        None => None,
    };
    let whose = found.as_ref().map_or(Whose::All, |rows| {
        let order = rows.first().map(|row| row.order_id.clone());
        Whose::Order(order.unwrap_or_default())
    });
    let choice = Choice {
        whose,
        hook: args.hook.clone(),
        ..Choice::default()
    };
    let mut pages = Pages::begin(&reader, Act::Acknowledge, choice).await?;
    let mut done = Acknowledged::default();
    let invoices = Invoices {
        reader: &reader,
        found: found.as_deref(),
        skip: args.hook.is_some(),
    };
    if args.dry_run {
        done.invoices = invoices.next().await?.iter().map(acknowledgeable).collect();
        loop {
            let rows = pages.next().await?.len();
            done.deliveries += rows;
            if rows == 0 {
                break;
            }
        }
    } else {
        let first = pages.next().await?;
        if first.is_empty() && invoices.next().await?.is_empty() {
            return Err(nothing(found.as_deref()));
        }
        let ledger = ledger::open(&context)?;
        let acknowledged = invoices.acknowledge(&ledger.writer(), &mut done).await;
        let changed = match acknowledged {
            Ok(()) => change(&ledger, pages, first).await,
            Err(failure) => Err(failure),
        };
        ledger.close(CLOSE_WITHIN).await;
        let Done { changed, .. } = changed?;
        done.deliveries = changed;
    }
    if done.invoices.is_empty() && done.deliveries == 0 {
        return Err(nothing(found.as_deref()));
    }
    print(&context, &done)?;
    if args.dry_run {
        talk("nothing was changed: this is what would be acknowledged");
    }
    Ok(Exit::Ok)
}

async fn named(reader: &Reader, name: &str) -> Result<Vec<InvoiceRow>, Failure> {
    let found = find(reader, name).await?;
    if found.is_empty() {
        return Err(not_found(name));
    }
    Ok(found)
}

/// The invoices that are meant.
struct Invoices<'a> {
    reader: &'a Reader,
    /// Those of the order that was named.
    found: Option<&'a [InvoiceRow]>,
    /// Only deliveries are meant.
    skip: bool,
}

impl Invoices<'_> {
    /// Those with something to acknowledge; of all there are, the newest.
    async fn next(&self) -> Result<Vec<InvoiceRow>, Failure> {
        if self.skip {
            return Ok(Vec::new());
        }
        let mut rows = match self.found {
            Some(found) => found.to_vec(),
            None => self.reader.to_acknowledge(PAGE).await?,
        };
        rows.retain(|row| !acknowledgeable(row).reasons.is_empty());
        Ok(rows)
    }

    async fn acknowledge(&self, writer: &Writer, done: &mut Acknowledged) -> Result<(), Failure> {
        loop {
            let before = done.invoices.len();
            for row in self.next().await? {
                if let Operated::Done(now, _) = writer.acknowledge(row.key, wall_ms()).await? {
                    let mut invoice = acknowledgeable(&row);
                    invoice.reasons.retain(|reason| !now.needs(*reason));
                    done.invoices.push(invoice);
                }
            }
            // Those of one order are all there from the beginning.
            if self.found.is_some() || done.invoices.len() == before {
                return Ok(());
            }
        }
    }
}

/// An invoice with the reasons that are acknowledged.
fn acknowledgeable(row: &InvoiceRow) -> InvoiceReasons {
    let reasons = row.attention.iter().copied();
    InvoiceReasons {
        order_id: row.order_id.clone(),
        invoice_id: row.invoice_id.clone(),
        reasons: reasons.filter(|reason| reason.end() == End::Ack).collect(),
    }
}

fn print(context: &Context, done: &Acknowledged) -> Result<(), Failure> {
    if context.output.json() {
        return print_json(done);
    }
    for invoice in &done.invoices {
        let (order, reasons) = (escape(&invoice.order_id), words(&invoice.reasons, ", "));
        context
            .output
            .line(&format!("order {order}: {reasons} acknowledged"))?;
    }
    if done.deliveries > 0 {
        context
            .output
            .line(&counted(done.deliveries, "acknowledged"))?;
    }
    Ok(())
}

fn nothing(found: Option<&[InvoiceRow]>) -> Failure {
    let Some(row) = found.and_then(<[InvoiceRow]>::first) else {
        return Failure::new(Exit::Error, "nothing waits to be acknowledged".to_owned())
            .hint("`tilld status` shows what needs a person");
    };
    let hint = if row.attention.is_empty() {
        "nothing of it needs a person".to_owned()
    } else {
        let left = words(&row.attention, ", ");
        format!("{left} ends with its cause: `tilld status` says what helps")
    };
    let error = format!(
        "order `{}` has nothing to acknowledge",
        escape(&row.order_id)
    );
    Failure::new(Exit::Error, error).hint(hint)
}
