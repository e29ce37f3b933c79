//! `tilld delivery release`: what is held is due now. A person has looked: the hooks run as if the event had just come.

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger::{self, CLOSE_WITHIN};
use super::super::output::{print_json, talk};
use super::super::owner;
use super::retry::deliveries_are;
use super::show::deliveries;
use super::{find_event, view};
use crate::clock::wall_ms;
use crate::daemon::is_served;
use crate::ledger::{DeliveryRow, DeliveryState, Held, Ledger, Reader, ReleaseWish, WriteError};

/// Deliveries released in one commit: a notification waits for it.
const AT_ONCE: u32 = 500;
/// Deliveries that `--dry-run` shows at most.
const SHOWN_MOST: u32 = 1_000;

/// Flags of `delivery release`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["event", "order", "all"]))]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// All that is held of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    /// All that is held
    #[arg(long)]
    all: bool,
    /// Only deliveries to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
    /// Show what would run, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// What is to be released, with the event it names, if any.
struct Wanted {
    held: Held,
    event_id: Option<String>,
    hook: Option<String>,
}

/// Runs `delivery release`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    if !args.dry_run {
        owner::check(&context.state_dir()?)?;
    }
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let dry_run = args.dry_run;
    let wanted = wanted(args, &reader).await?;
    if dry_run {
        return show(&context, &reader, wanted).await;
    }
    let ledger = ledger::open(&context)?;
    let released = release(&ledger, &wanted).await;
    ledger.close(CLOSE_WITHIN).await;
    let count = released?;
    if count == 0 {
        return Err(nothing(&reader, &wanted).await?);
    }
    if context.output.json() {
        print_json(&json!({ "released": count }))?;
    } else {
        context
            .output
            .line(&format!("{} due now", deliveries_are(count)))?;
    }
    if !is_served(&context.state_dir()?) {
        talk("no daemon runs: `tilld serve` runs what is due");
    }
    Ok(Exit::Ok)
}

async fn wanted(args: Args, reader: &Reader) -> Result<Wanted, Failure> {
    let Args {
        event, order, hook, ..
    } = args;
    let mut event_id = None;
    let held = match (event, order) {
        (Some(name), _) => {
            let event = find_event(reader, &name).await?;
            deliveries(reader, &event, hook.as_deref()).await?;
            event_id = Some(event.event_id.clone());
            Held::Event(event.event_id)
        }
        (None, Some(order)) => {
            if reader.invoices_of_order(&order).await?.is_empty() {
                let error = format!("no invoice of order `{order}` in the ledger");
                let failure = Failure::new(Exit::NotFound, error);
                return Err(failure.hint("`tilld delivery list --state held` names orders"));
            }
            Held::Order(order)
        }
        (None, None) => Held::All,
    };
    Ok(Wanted {
        held,
        event_id,
        hook,
    })
}

/// Releases in commits of [`AT_ONCE`] until nothing that was held at the start is left.
async fn release(ledger: &Ledger, wanted: &Wanted) -> Result<usize, WriteError> {
    let mut released = 0;
    loop {
        let wish = ReleaseWish {
            held: wanted.held.clone(),
            hook: wanted.hook.clone(),
            now_ms: wall_ms(),
            most: AT_ONCE,
        };
        let count = ledger.writer().release_deliveries(wish).await?;
        released += count;
        if u32::try_from(count).is_ok_and(|count| count < AT_ONCE) {
            return Ok(released);
        }
    }
}

async fn show(context: &Context, reader: &Reader, wanted: Wanted) -> Result<Exit, Failure> {
    let rows = reader
        .held(wanted.held.clone(), wanted.hook.clone(), SHOWN_MOST)
        .await?;
    if rows.is_empty() {
        return Err(nothing(reader, &wanted).await?);
    }
    view::print_many(context.output, &rows)?;
    let more = u32::try_from(rows.len()).is_ok_and(|shown| shown >= SHOWN_MOST);
    let which = if more {
        format!("the first {SHOWN_MOST} are shown")
    } else {
        format!("{} held", deliveries_are(rows.len()))
    };
    talk(&format!("nothing was changed: {which}"));
    Ok(Exit::Ok)
}

/// Why nothing was released.
async fn nothing(reader: &Reader, wanted: &Wanted) -> Result<Failure, Failure> {
    let hook = wanted.hook.as_deref();
    let Some(event_id) = &wanted.event_id else {
        let which = match (&wanted.held, hook) {
            (Held::Order(order), None) => format!(" of order `{order}`"),
            (Held::Order(order), Some(hook)) => format!(" of order `{order}` for hook `{hook}`"),
            (Held::All | Held::Event(_), Some(hook)) => format!(" for hook `{hook}`"),
            (Held::All | Held::Event(_), None) => String::new(),
        };
        let failure = Failure::new(
            Exit::Error,
            format!("nothing to release: no delivery{which} is held"),
        );
        return Ok(failure.hint("`tilld delivery list` shows how far each delivery has come"));
    };
    let told = |row: &DeliveryRow| {
        let how = match row.state {
            DeliveryState::Done => "is done already",
            DeliveryState::Running => "is running now",
            DeliveryState::Waiting => "waits to be run",
            DeliveryState::Abandoned => "was given up, `tilld delivery retry` starts it over",
            // It became so between the change and this look.
            DeliveryState::Held => "was busy a moment ago",
        };
        format!("`{}` {how}", row.hook)
    };
    let rows = reader.deliveries_of(event_id).await?;
    let wanted = |row: &&DeliveryRow| hook.is_none_or(|hook| hook == row.hook);
    let reasons: Vec<String> = rows.iter().filter(wanted).map(told).collect();
    let error = format!("nothing to release: {}", reasons.join(", "));
    Ok(Failure::new(Exit::Error, error).hint(format!(
        "`tilld delivery show {event_id}` shows what was said"
    )))
}
