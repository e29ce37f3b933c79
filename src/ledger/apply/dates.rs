//! When invoices are due to be asked about, and the event for those past their horizon.

use super::event::{Told, write_event};
use super::{ApplyError, Rules, load, restored};
use crate::invoice::attention::Attention;
use crate::invoice::event::{Change, EventKind};
use crate::invoice::observation::{Observation, Source};
use crate::invoice::polled::Polled;
use crate::invoice::silence::{self, Class, Due, Heard, NUDGE_EVERY_MS};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Ask, Decision, Why};
use crate::ledger::command::{NoAnswer, PollFailed, Reply};
use crate::ledger::fact::{CLOCK_MARK, SERVICE_AHEAD_MS};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{NewHistory, PollState, Store, StoreError, Stored};

/// For so long the service must have said that it has no such invoice before that is an alert, milliseconds: it may need some
/// minutes to find its own.
const NOT_FOUND_AFTER_MS: i64 = 600_000;
/// So many polls in a row have failed before an invoice past its horizon is an alert: more than an outage counts for.
const UNANSWERED_AFTER: u32 = OUTAGE_COUNTS + 1;
/// An invoice without an end to its payment window can be paid for so long at least, milliseconds: a day.
const OPEN_FOR_MS: i64 = 86_400_000;
/// Questions that only met an outage count no further than this: 40 s of stepping back, less than it takes to notice the
/// end. The most pressing invoice is what an outage is tried with, and would be put back by ten minutes for it.
const OUTAGE_COUNTS: u32 = 4;

/// Why a due time is touched.
pub(super) struct Touch {
    /// What the decision asks for.
    pub(super) ask: Ask,
    /// The invoice's id is known from now on.
    pub(super) first_id: bool,
    /// An event was made.
    pub(super) changed: bool,
    /// It was due before, and is still: see [`is_due`].
    pub(super) stays_due: bool,
}

/// True of an invoice that has a due time in any case: one with an id that is open and not given up is asked about until it is
/// one or the other.
pub(super) fn is_due(stored: &Stored) -> bool {
    let open = stored.invoice.outcome == Outcome::Open && !stored.row.unresolved;
    open && stored.invoice.id.is_some()
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
        stays_due,
    } = *touch;
    let asked = observation.source == Source::Poll;
    let told = !asked && !first_id && ask == Ask::AsPlanned;
    if told && (!changed || stays_due) {
        return Ok(());
    }
    let mut state = store.poll_state(stored.row.key)?;
    if told && state.due_ms.is_some() {
        return Ok(());
    }
    let now_ms = observation.received_ms;
    // When it was sent, not when its answer came: a nudge in between is not answered by it.
    let sent_ms = observation.asked.map_or(now_ms, |asked| asked.at_ms);
    if asked {
        state.asked_ms = Some(sent_ms);
        state.failures = 0;
        let before = state.ended;
        state.ended = before.answered(&rules.schedule, &heard(stored, &state), sent_ms);
        let dated = observation.report.service_ms;
        state.polled = Polled::answered(service_clock(store, dated, sent_ms)?);
    }
    if matches!(observation.source, Source::Poll | Source::Create) {
        see_service_clock(store, observation.report.service_ms, [sent_ms, now_ms])?;
        state.service_ms = observation.report.service_ms;
        state.first_service_ms = state.first_service_ms.or(state.service_ms);
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
        Ask::AsPlanned => planned_ms(rules, stored, &mut state, now_ms),
    };
    put(store, stored, state, due_ms, now_ms)
}

/// Stores a due time, filed under the class the invoice will have then. Without an id there is nothing to ask for.
pub(super) fn put<S: Store>(
    store: &mut S,
    stored: &Stored,
    mut state: PollState,
    due_ms: Option<i64>,
    now_ms: i64,
) -> Result<(), StoreError> {
    let has_id = stored.invoice.id.is_some();
    state.due_ms = due_ms.filter(|_| has_id);
    // One that is overdue is of the class it has now: it may have grown old while it waited.
    let at_ms = due_ms.unwrap_or(now_ms).max(now_ms);
    state.class = silence::class(&heard(stored, &state), at_ms);
    let is_over = has_id
        && state.due_ms.is_none()
        && matches!(stored.invoice.outcome, Outcome::Open | Outcome::Failed);
    let since = state.retired_ms.filter(|since| *since <= now_ms);
    state.retired_ms = is_over.then_some(since.unwrap_or(now_ms));
    mark_clock(store, now_ms)?;
    store.save_poll(stored.row.key, &state)
}

/// The clock is marked at most this often, milliseconds: a due time may be off by as much without anybody minding.
const MARK_EVERY_MS: i64 = 60_000;

/// A clock that shows less than the mark was wrong then or is wrong now, and due times stored before are not to be trusted.
fn mark_clock<S: Store>(store: &mut S, now_ms: i64) -> Result<(), StoreError> {
    let mark = store.fact(&CLOCK_MARK)?;
    if mark.is_none_or(|mark| now_ms > mark.saturating_add(MARK_EVERY_MS)) {
        store.set_fact(&CLOCK_MARK, &now_ms)?;
    }
    Ok(())
}

/// What the service's clock showed: the date of its answer, or else ours, corrected.
fn service_clock<S: Store>(
    store: &mut S,
    dated_ms: Option<i64>,
    ours_ms: i64,
) -> Result<i64, StoreError> {
    let Some(dated_ms) = dated_ms else {
        let ahead_ms = store.fact(&SERVICE_AHEAD_MS)?.unwrap_or(0);
        return Ok(ours_ms.saturating_add(ahead_ms));
    };
    Ok(dated_ms)
}

/// Dates have whole seconds: a smaller change says nothing, milliseconds.
const CLOCKS_MOVED_MS: u64 = 1_000;

/// An answer that took longer tells too little about the time it was made at, milliseconds.
const TELLS_TIME_MS: i64 = 2_000;

/// Remembers how far the service's clock is ahead of ours.
fn see_service_clock<S: Store>(
    store: &mut S,
    dated_ms: Option<i64>,
    [sent_ms, received_ms]: [i64; 2],
) -> Result<(), StoreError> {
    let Some(dated_ms) = dated_ms else {
        return Ok(());
    };
    let ahead_ms = dated_ms.saturating_sub(received_ms);
    let known_ms = store.fact(&SERVICE_AHEAD_MS)?;
    if known_ms.is_some() && received_ms.saturating_sub(sent_ms) > TELLS_TIME_MS {
        return Ok(());
    }
    let is_known = known_ms.is_some_and(|known| known.abs_diff(ahead_ms) <= CLOCKS_MOVED_MS);
    if !is_known {
        store.set_fact(&SERVICE_AHEAD_MS, &ahead_ms)?;
    }
    Ok(())
}

/// Beyond this the service's clock, not ours, tells when an invoice was opened, milliseconds: a machine without a battery
/// starts in 1970.
const CLOCKS_DIFFER_MS: i64 = 86_400_000;

/// What the silence of a stored invoice is counted from.
pub(in crate::ledger) fn heard(stored: &Stored, state: &PollState) -> Heard {
    let opened = state.first_service_ms;
    let opened = opened.filter(|opened| opened - CLOCKS_DIFFER_MS > stored.row.created_ms);
    Heard {
        created_ms: opened.unwrap_or(stored.row.created_ms),
        expire_ms: stored.row.expire_ms,
        heard_ms: stored.heard_ms,
        asked_ms: state.asked_ms,
        service_ms: state.service_ms,
        ended: state.ended,
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
        restored: state.class == Class::Restored,
    }
}

/// The stored form of a due time. `unresolved` is due at once: the poller writes its event.
pub(super) fn planned_ms(
    rules: &Rules,
    stored: &Stored,
    state: &mut PollState,
    now_ms: i64,
) -> Option<i64> {
    restored::owe_poll(rules, stored, state);
    match silence::next(&rules.schedule, &heard(stored, state), now_ms) {
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
    let failures = state.failures.saturating_add(1);
    state.failures = match failed.why {
        NoAnswer::Outage => state.failures.max(failures.min(OUTAGE_COUNTS)),
        NoAnswer::NotFound { .. } | NoAnswer::Alone | NoAnswer::Other => failures,
    };
    let before = state.polled;
    state.polled = before.failed();
    if let NoAnswer::NotFound { service_ms } = failed.why {
        let mut stored = load(store, failed.key)?;
        let known = heard(&stored, &state);
        // Beyond its end this is the last that will be heard of it.
        state.ended = (state.ended).answered(&rules.schedule, &known, failed.asked_ms);
        state.service_ms = service_ms;
        let at_ms = service_clock(store, service_ms, failed.asked_ms)?;
        state.polled = before.gone(at_ms);
        see_service_clock(store, service_ms, [failed.asked_ms, failed.now_ms])?;
        let end = silence::end_ms(&rules.schedule, &known);
        let is_over = stored.row.outcome == Outcome::Open && failed.now_ms >= end;
        // Nothing was ever heard of it: its id was given by a person, and may be mistyped or of another shop. One in doubt
        // may be paid, and only an answer would tell.
        let closes = stored.row.expire_ms;
        let closes = closes.unwrap_or(known.created_ms.saturating_add(OPEN_FOR_MS));
        // A service may drop what nobody paid in time, but not what can still be paid.
        let is_payable = state
            .polled
            .gone_since_ms
            .is_some_and(|since| since < closes);
        let is_unsettled = stored.invoice.claim.is_none() || stored.invoice.doubt;
        let is_strange = is_unsettled || is_payable || is_over;
        if is_strange && state.polled.gone_for_ms() >= NOT_FOUND_AFTER_MS {
            alert(
                store,
                &mut stored,
                (&mut state, failed.now_ms),
                Attention::NotFound,
            )?;
        }
    } else if failed.why == NoAnswer::Alone && state.failures > UNANSWERED_AFTER {
        // The service answers about others: past the horizon that is an alert, and no end of the polls.
        let mut stored = load(store, failed.key)?;
        let end = silence::end_ms(&rules.schedule, &heard(&stored, &state));
        if stored.row.outcome == Outcome::Open && failed.now_ms >= end {
            alert(
                store,
                &mut stored,
                (&mut state, failed.now_ms),
                Attention::Unanswered,
            )?;
        }
    }
    redate(store, rules, failed.key, state, failed.now_ms)
}

/// Raises an alert about an invoice that polls bring no answer about, once until something is heard of it: an operator who
/// acknowledged it hears no more of it.
fn alert<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    (state, now_ms): (&mut PollState, i64),
    reason: Attention,
) -> Result<(), StoreError> {
    let heard_since = |at: i64| stored.heard_ms.is_some_and(|heard_ms| heard_ms > at);
    if state.alerted_ms.is_none_or(heard_since) {
        state.alerted_ms = Some(now_ms);
        stored.row.set_attention(reason, true);
        store.save(stored)?;
    }
    Ok(())
}

pub(super) fn redate<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    mut state: PollState,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    reopen(store, rules, &mut stored, &state, now_ms)?;
    let due_ms = planned_ms(rules, &stored, &mut state, now_ms);
    put(store, &stored, state, due_ms, now_ms)?;
    Ok(Reply::Done)
}

/// Takes back that an invoice was given up, when a clock that was ahead did it. Its event stays, and is not written again.
fn reopen<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    state: &PollState,
    now_ms: i64,
) -> Result<(), StoreError> {
    let ahead = state.retired_ms.is_some_and(|since| since > now_ms);
    if !ahead || !stored.row.unresolved || stored.row.outcome != Outcome::Open {
        return Ok(());
    }
    let as_if_asked = Heard {
        unresolved: false,
        ..heard(stored, state)
    };
    if silence::next(&rules.schedule, &as_if_asked, now_ms) == Due::Unresolved {
        return Ok(());
    }
    stored.row.unresolved = false;
    stored.row.updated_ms = now_ms;
    stored.row.set_attention(Attention::Unresolved, false);
    store.save(stored)?;
    store.add_history(&NewHistory {
        invoice: stored.row.key,
        at_ms: now_ms,
        source: Source::Operator,
        claim: None,
        decision: Decision::Reassessed,
        why: Why::ClockWasAhead,
        reported: (None, None),
        updated_at_text: None,
    })
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
    put(store, &stored, state, Some(due_ms), now_ms)
}

pub(super) fn unresolve<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    now_ms: i64,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    let held = restored::held(rules, &stored);
    give_up(store, rules, &mut stored, now_ms, held)?;
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
    stored.row.set_attention(Attention::Unresolved, true);
    store.save(stored)?;
    // It was given up before, by a clock that was ahead, and reopened since: hooks were told.
    if store.has_event(stored.row.key, EventKind::Unresolved)? {
        return Ok(());
    }
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
        order_outcome: stored.invoice.order_outcome(),
    };
    let told = Told {
        source: None,
        at_ms: now_ms,
        reported: (
            stored.row.amount_reported.as_deref(),
            stored.row.currency_reported.as_deref(),
        ),
        raw: None,
        held,
        judged: None,
    };
    write_event(store, rules, stored.row.key, &change, &told).map(drop)
}
