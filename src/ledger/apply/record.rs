//! Records an observation: judges it, takes it over into the invoice, and writes the event it makes with its deliveries.

use uuid::Uuid;

use super::dates::{Touch, date_after};
use super::{ApplyError, Rules, load};
use crate::invoice::event::Change;
use crate::invoice::moment::Moment;
use crate::invoice::observation::{Observation, Report, Source};
use crate::invoice::opening::Opening;
use crate::invoice::status::Outcome;
use crate::invoice::sum::Verdict;
use crate::invoice::transition::{
    Ask, Claim, Decision, Transition, claim_of, decide, reported_texts,
};
use crate::ledger::command::{Recorded, RecordedEvent};
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::store::{NewEvent, NewHistory, Store, StoreError, Stored};

pub(super) fn record<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    observation: &Observation,
) -> Result<Recorded, ApplyError> {
    let mut stored = load(store, key)?;
    Ok(record_on(store, rules, &mut stored, observation)?)
}

/// Records an observation on a loaded invoice and stores it.
pub(super) fn record_on<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    observation: &Observation,
) -> Result<Recorded, StoreError> {
    let key = stored.row.key;
    if let Some(decision) = taken_by_another(store, stored, observation)? {
        return refuse(store, stored, decision);
    }
    let claim = claim_of(&observation.report, &stored.invoice.agreed);
    let same = |current: &Claim| current.status == claim.status && current.verdict == claim.verdict;
    // Only a claim that differs from the current one needs to be looked for among the earlier ones.
    if stored
        .invoice
        .claim
        .as_ref()
        .is_some_and(|current| !same(current))
    {
        stored.invoice.recorded = store.recorded_claims(key)?;
    }
    let made = decide(&stored.invoice, observation, &rules.policy);
    let mut recorded = Recorded {
        outcome: made.after.outcome,
        ask_soon: made.ask == Ask::Now,
        ..nothing(stored, made.decision)
    };
    if matches!(made.decision, Decision::NotThisInvoice | Decision::OtherId) {
        return refuse(store, stored, made.decision);
    }
    let first_id = stored.invoice.id.is_none();
    take_over(stored, &made, observation);
    recorded.new_unsorted = note_unsorted(store, rules, stored)?;
    recorded.new_odd = note_odd(store, stored, &observation.report.odd)?;
    store.save(stored)?;
    let (at_ms, source) = (observation.received_ms, observation.source);
    store.add_history(&NewHistory {
        invoice: key,
        at_ms,
        source,
        claim: &claim,
        decision: made.decision,
    })?;
    if let Some(change) = &made.change {
        let reported = reported_texts(&observation.report);
        let raw = Some(observation.report.raw.as_str());
        recorded.event = Some(write_event(
            store,
            rules,
            key,
            change,
            Some(source),
            at_ms,
            reported,
            raw,
        )?);
    }
    let touch = Touch {
        ask: made.ask,
        first_id,
        changed: made.change.is_some(),
    };
    date_after(store, rules, stored, observation, &touch)?;
    Ok(recorded)
}

/// The decision when the id in the report belongs to another invoice of this ledger: a service may answer a second
/// create with the invoice it has already.
fn taken_by_another<S: Store>(
    store: &mut S,
    stored: &Stored,
    observation: &Observation,
) -> Result<Option<Decision>, StoreError> {
    if stored.invoice.id.is_some() {
        return Ok(None);
    }
    let owner = store.owner_of(&observation.report.id)?;
    let taken = owner.is_some_and(|owner| owner != stored.row.key);
    let decision = match observation.source {
        Source::Create => Decision::OtherId,
        Source::Notification | Source::Poll | Source::Operator => Decision::NotThisInvoice,
    };
    Ok(taken.then_some(decision))
}

/// Leaves the invoice as it is; another id in the answer to our own create is for a person to look at.
fn refuse<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    decision: Decision,
) -> Result<Recorded, StoreError> {
    if decision == Decision::OtherId {
        add_attention(&mut stored.row, "other_id");
        store.save(stored)?;
    }
    Ok(nothing(stored, decision))
}

fn nothing(stored: &Stored, decision: Decision) -> Recorded {
    Recorded {
        order_id: stored.row.order_id.clone(),
        decision,
        event: None,
        outcome: stored.invoice.outcome,
        new_unsorted: None,
        new_odd: Vec::new(),
        ask_soon: false,
    }
}

/// Takes the decision and the report's fields over into the stored invoice.
fn take_over(stored: &mut Stored, made: &Transition, observation: &Observation) {
    let report = &observation.report;
    let outcome_changed = stored.invoice.outcome != made.after.outcome;
    let changed = stored.invoice != made.after;
    stored.invoice = made.after.clone();
    stored.heard_ms = Some(observation.received_ms);
    let stands = stands(made, report);
    let row = &mut stored.row;
    row.invoice_id = made.after.id.as_ref().map(|id| id.as_str().to_owned());
    if row.opening == Opening::Unknown {
        // Its id is known now: the service has it, whatever became of the answer.
        row.opening = Opening::Answered;
        row.attention.retain(|word| word != "outcome_unknown");
    }
    row.status = made
        .after
        .claim
        .as_ref()
        .map(|claim| claim.status.as_str().to_owned());
    row.outcome = made.after.outcome;
    row.doubt = made.after.doubt;
    row.revision = made.after.revision;
    if changed {
        row.updated_ms = observation.received_ms;
    }
    if outcome_changed {
        row.outcome_ms = observation.received_ms;
        row.found_by = Some(observation.source);
    }
    fill(row, report, stands);
    set_attention(row, "mismatch", row.outcome == Outcome::Mismatch);
    if made.change.as_ref().is_some_and(|change| change.rewound) {
        add_attention(row, "rewound");
    }
    if observation.source == Source::Create && differs_from_asked(stored, report) {
        add_attention(&mut stored.row, "amount_differs");
    }
    if stored.row.outcome.is_final() {
        set_attention(&mut stored.row, "unresolved", false);
    }
}

/// True when the report is the invoice's newest word: not every repeat is one, it may repeat an older claim.
fn stands(made: &Transition, report: &Report) -> bool {
    match made.decision {
        Decision::Advance | Decision::AdvanceAgreed => true,
        Decision::Confirmed | Decision::Repeat => made.after.claim.as_ref().is_some_and(|claim| {
            claim.status == report.status && report.updated_at.is_none_or(|at| Some(at) >= claim.at)
        }),
        Decision::Stale
        | Decision::Doubt
        | Decision::Pending
        | Decision::Overtaken
        | Decision::NotThisInvoice
        | Decision::OtherId => false,
    }
}

/// What stands replaces; what is stale or doubtful only fills what is empty.
fn fill(row: &mut InvoiceRow, report: &Report, stands: bool) {
    fn put<T>(slot: &mut Option<T>, value: Option<T>, stands: bool) {
        if value.is_some() && (stands || slot.is_none()) {
            *slot = value;
        }
    }
    let (amount, currency) = reported_texts(report);
    put(&mut row.amount_reported, amount, stands);
    put(&mut row.currency_reported, currency, stands);
    put(&mut row.requisites, report.requisites.clone(), stands);
    put(&mut row.payment_url, report.payment_url.clone(), stands);
    put(
        &mut row.expire_ms,
        report.expire_at.map(Moment::as_ms),
        stands,
    );
    put(&mut row.raw, Some(report.raw.clone()), stands);
}

fn differs_from_asked(stored: &Stored, report: &Report) -> bool {
    stored
        .invoice
        .agreed
        .verdict(&report.amount, report.currency.as_deref())
        != Verdict::Agrees
}

pub(super) fn add_attention(row: &mut InvoiceRow, word: &str) {
    set_attention(row, word, true);
}

pub(super) fn set_attention(row: &mut InvoiceRow, word: &str, wanted: bool) {
    match (row.attention.iter().position(|w| w == word), wanted) {
        (None, true) => row.attention.push(word.to_owned()),
        (Some(at), false) => drop(row.attention.remove(at)),
        (None, false) | (Some(_), true) => {}
    }
}

/// Keeps attention on an invoice whose status stands on no list, and remembers each such name once.
fn note_unsorted<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
) -> Result<Option<String>, StoreError> {
    let shown = stored.invoice.claim.as_ref().map(|claim| &claim.status);
    let unsorted = shown.filter(|status| rules.policy.lists.sort(status).is_none());
    set_attention(&mut stored.row, "unsorted_status", unsorted.is_some());
    let Some(status) = unsorted else {
        return Ok(None);
    };
    let key = format!("unsorted:{status}");
    if store.meta(&key)?.is_some() {
        return Ok(None);
    }
    store.set_meta(&key, stored.row.order_id.as_str())?;
    Ok(Some(status.as_str().to_owned()))
}

/// Remembers each field that came in another form than the contract's, once per ledger (A08).
fn note_odd<S: Store>(
    store: &mut S,
    stored: &Stored,
    odd: &[&'static str],
) -> Result<Vec<&'static str>, StoreError> {
    let mut new = Vec::new();
    for field in odd {
        let key = format!("odd:{field}");
        if store.meta(&key)?.is_none() {
            store.set_meta(&key, stored.row.order_id.as_str())?;
            new.push(*field);
        }
    }
    Ok(new)
}

#[expect(
    clippy::too_many_arguments,
    reason = "an event is made of exactly these, and is made in two places"
)]
pub(super) fn write_event<S: Store>(
    store: &mut S,
    rules: &Rules,
    invoice: InvoiceKey,
    change: &Change,
    source: Option<Source>,
    at_ms: i64,
    reported: (Option<String>, Option<String>),
    raw: Option<&str>,
) -> Result<RecordedEvent, StoreError> {
    let event_id = Uuid::now_v7().to_string();
    let event = NewEvent {
        event_id: event_id.clone(),
        invoice,
        change,
        source,
        at_ms,
        reported,
        raw,
    };
    let seq = store.insert_event(&event)?;
    let owed = rules
        .subscriptions
        .iter()
        .filter(|subscription| subscription.wants(change));
    let due_ms = at_ms.saturating_add(rules.first_delay_ms);
    let mut deliveries = 0;
    for subscription in owed {
        store.insert_delivery(seq, invoice, &subscription.hook, due_ms)?;
        deliveries += 1;
    }
    Ok(RecordedEvent {
        seq,
        event_id,
        kind: change.kind,
        deliveries,
    })
}
