//! When invoices are due to be asked about, and the event for those past their horizon.

use super::event::{Told, write_event};
use super::record::add_attention;
use super::{ApplyError, Rules, load};
use crate::invoice::event::{Change, EventKind};
use crate::invoice::observation::{Observation, Source};
use crate::invoice::silence::{self, Due, Heard, NUDGE_EVERY_MS, Schedule};
use crate::invoice::status::Outcome;
use crate::invoice::transition::Ask;
use crate::ledger::command::{PollFailed, Reply};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{PollState, Store, StoreError, Stored};

/// Attention: the service has no invoice with this id, or keeps it from this login.
pub(super) const NOT_FOUND: &str = "not_found";
/// Questions without an answer after which a person must look: the first may come before the service can find its own.
const NOT_FOUND_AFTER: u32 = 2;

/// Why a due time is touched.
pub(super) struct Touch {
    /// What the decision asks for.
    pub(super) ask: Ask,
    /// The invoice's id is known from now on.
    pub(super) first_id: bool,
    /// An event was made.
    pub(super) changed: bool,
}

/// Sets the due time where the observation touches it. A notification that leaves no doubt does not, unless the invoice
/// was not to be asked about any more: the poller counts again when the old due time comes, which spares every
/// notification a write to the due-time index.
pub(super) fn date_after<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &Stored,
    observation: &Observation,
    touch: &Touch,
) -> Result<(), StoreError> {
    let Touch {
        ask,
        first_id,
        changed,
    } = *touch;
    let asked = observation.source == Source::Poll;
    let told = !asked && !first_id && ask == Ask::AsPlanned;
    if told && !changed {
        return Ok(());
    }
    let mut state = store.poll_state(stored.row.key)?;
    if told && state.due_ms.is_some() {
        return Ok(());
    }
    let now_ms = observation.received_ms;
    if asked {
        // When it was sent, not when its answer came: a nudge in between is not answered by it.
        let sent = observation.asked.map(|asked| asked.at_ms);
        state.asked_ms = Some(sent.unwrap_or(now_ms));
        state.failures = 0;
    }
    // Remembered as a wish, since the poller counts the silence again before it asks.
    match ask {
        Ask::Now => state.nudged_ms = Some(now_ms),
        Ask::After(wait_ms) => state.nudged_ms = Some(now_ms.saturating_add(wait_ms)),
        Ask::AsPlanned => {}
    }
    let due_ms = match ask {
        Ask::Now => Some(now_ms),
        Ask::After(wait_ms) => Some(now_ms.saturating_add(wait_ms)),
        Ask::AsPlanned => due_ms(&rules.schedule, &heard(stored, &state), now_ms),
    };
    file(&mut state, stored, due_ms, now_ms);
    store.save_poll(stored.row.key, &state)
}

/// Files a due time under the class the invoice will have then. Without an id there is nothing to ask for.
pub(super) fn file(state: &mut PollState, stored: &Stored, due_ms: Option<i64>, now_ms: i64) {
    state.due_ms = due_ms.filter(|_| stored.invoice.id.is_some());
    // One that is overdue is of the class it has now: it may have grown old while it waited.
    let at_ms = due_ms.unwrap_or(now_ms).max(now_ms);
    state.class = silence::class(&heard(stored, state), at_ms);
}

/// What the silence of a stored invoice is counted from.
pub(in crate::ledger) fn heard(stored: &Stored, state: &PollState) -> Heard {
    Heard {
        created_ms: stored.row.created_ms,
        expire_ms: stored.row.expire_ms,
        heard_ms: stored.heard_ms,
        asked_ms: state.asked_ms,
        nudged_ms: state.nudged_ms,
        failures: state.failures,
        doubt: stored.invoice.doubt,
        pending_since_ms: stored
            .invoice
            .pending
            .as_ref()
            .map(|pending| pending.since_ms),
        outcome: stored.row.outcome,
        outcome_ms: stored.row.outcome_ms,
        unresolved: stored.row.unresolved,
    }
}

/// The stored form of a due time. `unresolved` is due at once: the poller writes its event.
pub(super) fn due_ms(schedule: &Schedule, heard: &Heard, now_ms: i64) -> Option<i64> {
    match silence::next(schedule, heard, now_ms) {
        Due::At(at) => Some(at),
        Due::Unresolved => Some(now_ms),
        Due::Never => None,
    }
}

pub(super) fn poll_failed<S: Store>(
    store: &mut S,
    rules: &Rules,
    failed: &PollFailed,
) -> Result<Reply, ApplyError> {
    let mut state = store.poll_state(failed.key)?;
    state.asked_ms = Some(failed.asked_ms);
    state.failures = state.failures.saturating_add(1);
    if failed.not_found && state.failures >= NOT_FOUND_AFTER {
        let mut stored = load(store, failed.key)?;
        // Nothing was ever heard of it: its id was given by a person, and may be mistyped or of another shop.
        if stored.invoice.claim.is_none() {
            add_attention(&mut stored.row, NOT_FOUND);
            store.save(&stored)?;
        }
    }
    redate(store, rules, failed.key, state, failed.now_ms)
}

pub(super) fn redate<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    mut state: PollState,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let stored = load(store, key)?;
    let due_ms = due_ms(&rules.schedule, &heard(&stored, &state), now_ms);
    file(&mut state, &stored, due_ms, now_ms);
    store.save_poll(key, &state)?;
    Ok(Reply::Done)
}

pub(super) fn nudge<S: Store>(
    store: &mut S,
    key: InvoiceKey,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(stored) = store.load(key)? else {
        return Ok(());
    };
    let mut state = store.poll_state(key)?;
    let quiet_until = |last: i64| last.saturating_add(NUDGE_EVERY_MS);
    let at = match state.nudged_ms {
        // Further ahead than a nudge can be planned: a clock was wrong.
        Some(planned) if planned > quiet_until(now_ms) => now_ms,
        Some(planned) if planned > now_ms => planned,
        Some(last) if now_ms < quiet_until(last) => quiet_until(last),
        Some(_) | None => now_ms,
    };
    state.nudged_ms = Some(at);
    // Without an id the wish is remembered until there is one.
    let due_ms = state.due_ms.map_or(at, |due| due.min(at));
    file(&mut state, &stored, Some(due_ms), now_ms);
    store.save_poll(key, &state)
}

pub(super) fn unresolve<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    give_up(store, rules, &mut stored, now_ms, None)?;
    let state = store.poll_state(key)?;
    redate(store, rules, key, state, now_ms)
}

/// Writes the event and the attention of an open invoice past its horizon, once. `held`: why its deliveries wait for a
/// person, as a fixed word.
pub(super) fn give_up<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    now_ms: i64,
    held: Option<&'static str>,
) -> Result<(), StoreError> {
    if stored.row.unresolved || stored.row.outcome != Outcome::Open {
        return Ok(());
    }
    stored.row.unresolved = true;
    stored.row.updated_ms = now_ms;
    add_attention(&mut stored.row, "unresolved");
    store.save(stored)?;
    let status = stored
        .invoice
        .claim
        .as_ref()
        .map(|claim| claim.status.clone());
    let change = Change {
        kind: EventKind::Unresolved,
        rewound: false,
        cause: None,
        status: status.clone(),
        previous_status: status,
        outcome: Outcome::Open,
        previous_outcome: Outcome::Open,
    };
    let told = Told {
        source: None,
        at_ms: now_ms,
        reported: (
            stored.row.amount_reported.clone(),
            stored.row.currency_reported.clone(),
        ),
        raw: None,
        held,
    };
    write_event(store, rules, stored.row.key, &change, told).map(drop)
}
