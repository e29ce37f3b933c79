//! What `tilld hook test` tells a hook: a sample, or what really happened to an invoice and the hook would be told of.

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::ledger;
use super::sample;
use crate::answer::find::find;
use crate::answer::name::Name;
use crate::clock::wall_ms;
use crate::config::{self, ON_ABANDONED};
use crate::hook::abandonment::{self, GivenUp};
use crate::hook::payload::Facts;
use crate::hook::{Selector, Subscription};
use crate::invoice::event::Change;
use crate::invoice::status::Status;
use crate::ledger::{DeliveryState, EventRow, Reader};
use crate::outbox;

/// Events of one order looked through, the newest; no order has as many.
const EVENTS_MOST: u32 = 1_000;

/// What the hook is told.
pub(super) struct Told {
    pub(super) facts: Facts,
    /// It never happened.
    pub(super) sample: bool,
}

/// No hook of this name.
pub(super) fn unknown(name: &str, hooks: &[config::Hook]) -> Failure {
    let failure = Failure::new(Exit::NotFound, format!("no hook `{name}` is configured"));
    let names: Vec<String> = hooks
        .iter()
        .map(|hook| format!("`{}`", hook.name))
        .collect();
    if names.is_empty() {
        failure.hint("add a `[[hook]]` with `name`, `on` and `run` to the config")
    } else {
        failure.hint(format!("configured are {}", names.join(", ")))
    }
}

/// What never happened.
pub(super) fn sample(hook: &config::Hook) -> Told {
    let wish = hook.on.iter().find_map(|word| Selector::parse(word).ok());
    let facts = match wish {
        Some(wish) => sample::facts(&hook.name, &wish, wall_ms()),
        // It wants no event of itself: what it is told of is that another hook gave one up.
        None => sample::abandonment(&hook.name, wall_ms()),
    };
    Told {
        facts,
        sample: true,
    }
}

/// The newest event of the order or invoice that the hook wants. It is never told any other: the program is real, and one
/// that ships what it is told of would ship an order nobody has paid.
pub(super) async fn newest(
    hook: &config::Hook,
    name: &Name,
    context: &Context,
) -> Result<Told, Failure> {
    let reader = ledger::open_reader(context)?;
    let invoices = find(&reader, name).await?;
    let first = invoices.first().expect("found are one at least");
    let mut events = reader.events_of_order(&first.order_id, EVENTS_MOST).await?;
    events.retain(|event| invoices.iter().any(|invoice| invoice.key == event.invoice));
    let found = if hook.name == ON_ABANDONED {
        newest_given_up(&reader, events).await?
    } else {
        newest_wanted(hook, events).map(|event| (event, None))
    };
    let (event, given_up) = found.ok_or_else(|| nothing_to_tell(name, hook))?;
    // Lists come without the service's document.
    let whole = reader.find_event(&event.event_id).await?;
    let event = whole.expect("an event is never removed");
    let invoice = reader.invoice(event.invoice).await?;
    let invoice = invoice.expect("an event's invoice is never removed");
    // The daemon may have told it already; a script that was paid for once must see that this is no news.
    let (attempt, replay) = (1, true);
    let facts = outbox::facts(&hook.name, attempt, replay, event, invoice);
    Ok(Told {
        facts: match given_up {
            Some(given_up) => facts.telling(given_up),
            None => facts,
        },
        sample: false,
    })
}

fn newest_wanted(hook: &config::Hook, events: Vec<EventRow>) -> Option<EventRow> {
    let on = hook.on.iter().filter_map(|word| Selector::parse(word).ok());
    let subscription = Subscription {
        hook: hook.name.clone(),
        on: on.collect(),
    };
    let wanted = |event: &EventRow| subscription.wants(&change(event));
    events.into_iter().find(wanted)
}

/// The newest event whose delivery to some hook is given up, and that giving up.
async fn newest_given_up(
    reader: &Reader,
    events: Vec<EventRow>,
) -> Result<Option<(EventRow, Option<GivenUp>)>, Failure> {
    for event in events {
        for delivery in reader.deliveries_of(&event.event_id).await? {
            let is_teller = abandonment::told_of(&delivery.hook).is_some();
            if is_teller || delivery.state != DeliveryState::Abandoned {
                continue;
            }
            let attempts = reader.attempts(delivery.key).await?;
            if let Some(last) = attempts.last() {
                let given_up = GivenUp {
                    hook: delivery.hook,
                    event_id: event.event_id.clone(),
                    attempts: last.number,
                    at_ms: last.ended_ms,
                    result: last.result.clone(),
                    stderr: abandonment::tail(&last.stderr),
                };
                return Ok(Some((event, Some(given_up))));
            }
        }
    }
    Ok(None)
}

fn nothing_to_tell(name: &Name, hook: &config::Hook) -> Failure {
    let error = if hook.name == ON_ABANDONED {
        format!("no delivery of {name} is given up")
    } else {
        let on = hook.on.join(", ");
        format!("{name} has no event that hook `{}` wants ({on})", hook.name)
    };
    Failure::new(Exit::NotFound, error).hint("`--sample` runs it with a sample")
}

/// The event as selectors judge it.
fn change(event: &EventRow) -> Change {
    Change {
        kind: event.kind,
        rewound: event.rewound,
        cause: None,
        status: event.status.clone().and_then(Status::new),
        previous_status: event.previous_status.clone().and_then(Status::new),
        outcome: event.outcome,
        previous_outcome: event.previous_outcome,
        order_outcome: event.order_outcome,
    }
}
