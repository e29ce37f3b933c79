//! What an observation leaves beside the invoice: the event with its deliveries, and the names and forms not met before.

use uuid::Uuid;

use super::Rules;
use crate::invoice::attention::Attention;
use crate::invoice::event::Change;
use crate::invoice::observation::{Odd, Source};
use crate::invoice::transition::{Decision, Why};
use crate::ledger::command::RecordedEvent;
use crate::ledger::fact::{Fact, ODD, ODD_NAMES, UNSORTED, UNSORTED_NAMES, UNSORTED_OTHERS};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{NewEvent, Next, Store, StoreError, Stored};

/// Names of a family that a ledger notes, at most. A service has a dozen statuses.
const NAMES_MOST: u64 = 100;

/// Who tells a change, and how.
pub(super) struct Told<'a> {
    /// Who brought it; `None` for what tilld found itself.
    pub(super) source: Option<Source>,
    /// When, milliseconds since 1970.
    pub(super) at_ms: i64,
    /// The reported amount and currency.
    pub(super) reported: (Option<&'a str>, Option<&'a str>),
    /// The service's document, secrets cut out.
    pub(super) raw: Option<&'a str>,
    /// Why its deliveries wait for a person, as a fixed word; `None` when they do not.
    pub(super) held: Option<&'static str>,
    /// How what was heard was judged, when the event is its line of history too.
    pub(super) judged: Option<(Decision, Why)>,
}

/// Writes an event and what it is owed to.
pub(super) fn write_event<S: Store>(
    store: &mut S,
    rules: &Rules,
    invoice: InvoiceKey,
    change: &Change,
    told: &Told<'_>,
) -> Result<RecordedEvent, StoreError> {
    let mut text = Uuid::encode_buffer();
    let event_id = &*Uuid::now_v7().hyphenated().encode_lower(&mut text);
    let event = NewEvent {
        event_id,
        invoice,
        change,
        source: told.source,
        at_ms: told.at_ms,
        reported: told.reported,
        raw: told.raw,
        judged: told.judged,
    };
    let seq = store.insert_event(&event)?;
    let first = Next::At {
        at_ms: told.at_ms.saturating_add(rules.first_delay_ms),
        wait_ms: rules.first_delay_ms,
    };
    let next = told.held.map_or(first, Next::Held);
    let mut deliveries = 0;
    for subscription in &rules.subscriptions {
        if subscription.wants(change) {
            store.insert_delivery(seq, invoice, &subscription.hook, next)?;
            deliveries += 1;
        }
    }
    Ok(RecordedEvent {
        seq,
        event_id: event_id.to_owned(),
        kind: change.kind,
        deliveries,
    })
}

/// Keeps attention on an invoice whose status stands on no list, and counts the arrivals of each such name. Returns a name
/// that was not met before.
pub(super) fn note_unsorted<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    arrived: bool,
) -> Result<Option<String>, StoreError> {
    let shown = stored.invoice.claim.as_ref().map(|claim| &claim.status);
    let unsorted = shown.filter(|status| rules.policy.lists.sort(status).is_none());
    stored
        .row
        .set_attention(Attention::UnsortedStatus, unsorted.is_some());
    let Some(status) = unsorted.filter(|_| arrived) else {
        return Ok(None);
    };
    let mut count = UNSORTED.named(status);
    let mut before = store.fact(&count)?;
    if before.is_none() && !has_room(store, &UNSORTED_NAMES)? {
        count = UNSORTED_OTHERS.named("");
        before = store.fact(&count)?;
    }
    store.set_fact(&count, &before.unwrap_or_default().saturating_add(1))?;
    Ok(before.is_none().then(|| status.as_str().to_owned()))
}

/// Counts one name more of a family, unless it has as many as may be: the names are the service's to choose.
fn has_room<S: Store>(store: &mut S, names: &Fact<u64>) -> Result<bool, StoreError> {
    let known = store.fact(names)?.unwrap_or_default();
    if known >= NAMES_MOST {
        return Ok(false);
    }
    store.set_fact(names, &(known + 1))?;
    Ok(true)
}

/// Remembers what was odd about the service's fields, each once per ledger (A08), up to a bound. Returns what is new.
pub(super) fn note_odd<S: Store>(
    store: &mut S,
    stored: &Stored,
    odd: &[Odd],
) -> Result<Vec<Odd>, StoreError> {
    let mut new = Vec::new();
    for odd in odd {
        let met_at = ODD.named(odd.key());
        if store.fact(&met_at)?.is_none() && has_room(store, &ODD_NAMES)? {
            store.set_fact(&met_at, &stored.row.order_id)?;
            new.push(odd.clone());
        }
    }
    Ok(new)
}
