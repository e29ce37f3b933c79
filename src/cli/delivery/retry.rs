//! `tilld delivery retry`: what waits or was given up is due now, with a fresh schedule. What is done stays done.

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger::{self, CLOSE_WITHIN};
use super::super::output::{print_json, talk};
use super::super::owner;
use super::find_event;
use super::show::deliveries;
use crate::clock::wall_ms;
use crate::daemon::is_served;
use crate::ledger::{DeliveryRow, DeliveryState, Reader, RetryWish};

/// Flags of `delivery retry`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: String,
    /// Only the delivery to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
}

/// Runs `delivery retry`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    owner::check(&context.state_dir()?)?;
    // Looked for with a reader first: opening to write would make a ledger where none is.
    let reader = ledger::open_reader(&context)?;
    let event = find_event(&reader, &args.event).await?;
    let hook = args.hook.as_deref();
    deliveries(&reader, &event, hook).await?;
    let ledger = ledger::open(&context)?;
    let wish = RetryWish {
        event_id: event.event_id.clone(),
        hook: args.hook.clone(),
        now_ms: wall_ms(),
    };
    let retried = ledger.writer().retry_deliveries(wish).await;
    ledger.close(CLOSE_WITHIN).await;
    let count = retried?;
    if count == 0 {
        return Err(nothing(&reader, &event.event_id, hook).await?);
    }
    if context.output.json() {
        print_json(&json!({ "event_id": event.event_id, "retried": count }))?;
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

/// `1 delivery is`, `2 deliveries are`.
pub(super) fn deliveries_are(count: usize) -> String {
    if count == 1 {
        "1 delivery is".to_owned()
    } else {
        format!("{count} deliveries are")
    }
}

/// Why nothing of an event could be retried.
async fn nothing(reader: &Reader, event_id: &str, hook: Option<&str>) -> Result<Failure, Failure> {
    let rows = reader.deliveries_of(event_id).await?;
    let told = |row: &DeliveryRow| {
        let how = match row.state {
            DeliveryState::Done => "is done already",
            DeliveryState::Running => "is running now",
            DeliveryState::Held => "is held until `tilld delivery release`",
            // It was retried, or ended, between the change and this look.
            DeliveryState::Waiting | DeliveryState::Abandoned => "was busy a moment ago",
        };
        format!("`{}` {how}", row.hook)
    };
    let wanted = |row: &&DeliveryRow| hook.is_none_or(|hook| hook == row.hook);
    let reasons: Vec<String> = rows.iter().filter(wanted).map(told).collect();
    let error = format!("nothing to retry: {}", reasons.join(", "));
    Ok(Failure::new(Exit::Error, error).hint(format!(
        "`tilld delivery show {event_id}` shows what was said"
    )))
}
