//! `tilld delivery show`: the deliveries of one event with every attempt that has ended and what it wrote.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::{find_event, view};
use crate::ledger::{Choice, DeliveryRow, EventRow, Reader, Whose};

/// Flags of `delivery show`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The event's id, or its number
    #[arg(value_name = "EVENT")]
    event: String,
    /// Only the delivery to this hook
    #[arg(long, value_name = "NAME")]
    hook: Option<String>,
}

/// Runs `delivery show`.
pub(super) async fn run(args: Args, context: Context) -> Result<Exit, Failure> {
    let reader = ledger::open_reader(&context)?;
    let event = find_event(&reader, &args.event).await?;
    let found = deliveries(&reader, &event, args.hook.as_deref()).await?;
    for (place, row) in found.iter().enumerate() {
        if place > 0 && !context.output.json() {
            context.output.line("")?;
        }
        let attempts = reader.attempts(row.key).await?;
        view::print(context.output, row, &attempts)?;
    }
    Ok(Exit::Ok)
}

/// The deliveries of an event, to one hook or to all. Having none is a failure that says why.
pub(super) async fn deliveries(
    reader: &Reader,
    event: &EventRow,
    hook: Option<&str>,
) -> Result<Vec<DeliveryRow>, Failure> {
    let all = reader.deliveries_of(&event.event_id).await?;
    let owed: Vec<String> = all.iter().map(|row| format!("`{}`", row.hook)).collect();
    let found: Vec<DeliveryRow> = all
        .into_iter()
        .filter(|row| hook.is_none_or(|hook| hook == row.hook))
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let missing = reader.missing(Choice {
        whose: Whose::Event(event.event_id.clone()),
        hook: hook.map(str::to_owned),
        ..Choice::default()
    });
    if let Some(missing) = missing.await?.first() {
        let (seq, hook) = (missing.seq, &missing.hook);
        let error = format!("event {seq} is owed to hook `{hook}` and has no delivery");
        let hint = format!(
            "`tilld delivery replay {seq} --hook {hook}` makes it, `tilld delivery abandon` gives it up"
        );
        return Err(Failure::new(Exit::NotFound, error).hint(hint));
    }
    let kind = event.kind;
    let failure = |error: String| Failure::new(Exit::NotFound, error);
    Err(match hook.filter(|_| !owed.is_empty()) {
        Some(hook) => failure(format!(
            "the `{kind}` event `{}` is not owed to a hook `{hook}`",
            event.event_id
        ))
        .hint(format!("it is owed to {}", owed.join(", "))),
        None => failure(format!(
            "the `{kind}` event `{}` is owed to no hook",
            event.event_id
        ))
        .hint("hooks are owed what their `on` list named when the event was recorded"),
    })
}
