//! Records an observation: judges it, takes it over into the invoice, and keeps it in the history whatever was decided.

use super::dates::{Touch, date_after, is_due};
use super::event::{Told, note_odd, note_unsorted, write_event};
use super::reassess::{freshen, held_for};
use super::{ApplyError, Rules, restored};
use crate::invoice::attention::Attention;
use crate::invoice::event::Change;
use crate::invoice::ids::InvoiceId;
use crate::invoice::moment::Moment;
use crate::invoice::observation::{How, Observation, Odd, Report, Reported, Source};
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::status::Outcome;
use crate::invoice::sum::Verdict;
use crate::invoice::transition::{
    Ask, Claim, Decision, Policy, Transition, Why, claim_of, decide, same_word,
};
use crate::ledger::command::Recorded;
use crate::ledger::fact::SERVICE_AHEAD_MS;
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::store::{NewHistory, Rank, Store, StoreError, Stored};

pub(super) fn record<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    observation: &Observation,
) -> Result<Recorded, ApplyError> {
    let mut stored = store
        .load(key)?
        .ok_or(ApplyError::Missing("such invoice"))?;
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
        return refuse(
            store,
            &rules.policy,
            stored,
            observation,
            (decision, Why::OtherInvoice),
        );
    }
    let undated = without_instant_ahead(store, stored, observation)?;
    let observation = undated.as_ref().unwrap_or(observation);
    let was_due = is_due(stored);
    let resorted = freshen(store, rules, stored, observation.received_ms)?;
    let claim = claim_of(&observation.report, &stored.invoice, &rules.policy);
    // Only a claim that differs from the current one, and is not newer than all that was heard, needs to be looked for
    // among the earlier ones.
    let may_be_known = claim.at.is_some_and(|at| at <= stored.newest);
    if may_be_known
        && stored
            .invoice
            .claim
            .as_ref()
            .is_some_and(|current| !same_word(current, &claim))
    {
        stored.invoice.recorded = store.recorded_claims(key)?;
    }
    let made = decide(&stored.invoice, observation, &rules.policy);
    let judged = (made.decision, made.why);
    if matches!(made.decision, Decision::NotThisInvoice | Decision::OtherId) {
        let refused = refuse(store, &rules.policy, stored, observation, judged)?;
        return Ok(Recorded {
            resorted,
            ..refused
        });
    }
    let first_id = stored.invoice.id.is_none();
    let was_doubt = stored.invoice.doubt;
    let was_refused = stored.row.opening == Opening::Refused;
    let (change, ask) = take_over(stored, made, observation);
    if was_refused {
        // It exists after all.
        store.rank(key, &stored.row.order_id, Rank::Known)?;
    }
    stand_if_paid(store, stored)?;
    if was_doubt && observation.source == Source::Poll {
        name_who_told(store, stored, change.as_ref())?;
    }
    let arrived = change
        .as_ref()
        .is_some_and(|change| change.status != change.previous_status);
    let mut recorded = Recorded {
        ask_soon: ask == Ask::Now,
        resorted,
        new_unsorted: note_unsorted(store, rules, stored, arrived)?,
        new_odd: note_odd(store, stored, &observation.report.odd)?,
        ..nothing(stored, judged.0)
    };
    let sorted = held_for(stored, observation.source, stored.invoice.doubt);
    let missed = restored::held_for(rules, stored, observation, judged.0);
    let held = sorted.or(missed);
    let is_line = observation.report.updated_at_text.is_none()
        && change
            .as_ref()
            .is_some_and(|change| change.cause.as_ref() == Some(&claim));
    if !is_line {
        remember(store, key, observation, &claim, judged)?;
    }
    if let Some(change) = &change {
        let told = Told {
            source: Some(observation.source),
            at_ms: observation.received_ms,
            reported: observation.report.reported(),
            raw: Some(observation.report.raw.as_str()),
            held,
            judged: is_line.then_some(judged),
        };
        let event = write_event(store, rules, key, change, &told)?;
        recorded.event = Some(event);
    }
    store.save(stored)?;
    let touch = Touch {
        ask,
        first_id,
        changed: change.is_some(),
        stays_due: was_due && is_due(stored),
    };
    date_after(store, rules, stored, observation, &touch)?;
    Ok(recorded)
}

/// The observation without its instant, when that is ahead of the service's clock, or was when it was heard before.
fn without_instant_ahead<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    observation: &Observation,
) -> Result<Option<Observation>, StoreError> {
    let Some(at) = observation.report.updated_at else {
        return Ok(None);
    };
    let ahead_ms = store.fact(&SERVICE_AHEAD_MS)?.unwrap_or(0);
    if observation.is_ahead(ahead_ms) {
        // A repetition that comes when the time has passed is found by it.
        stored.newest = stored.newest.max(at);
        let mut undated = observation.undated();
        undated.report.odd.push(Odd {
            field: "updatedAt",
            how: How::Ahead,
        });
        return Ok(Some(undated));
    }
    let shown = stored.invoice.claim.as_ref().map(|claim| &claim.status);
    // What a poll says is so now, and its answer has the service's own time.
    let is_told = observation.source == Source::Notification;
    let may_be_known = is_told && at <= stored.newest && shown != Some(&observation.report.status);
    if may_be_known && store.was_undated(stored.row.key, &at.to_string())? {
        return Ok(Some(observation.undated()));
    }
    Ok(None)
}

/// An invoice that pays its order stands for it from then on.
pub(super) fn stand_if_paid<S: Store>(
    store: &mut S,
    stored: &mut Stored,
) -> Result<(), StoreError> {
    if stored.invoice.superseded.is_none() && stored.row.superseded.take().is_some() {
        store.rank(stored.row.key, &stored.row.order_id, Rank::First)?;
    }
    Ok(())
}

/// An outcome that a poll only confirmed was found by the notification that told it. As `found_by` in `ledger/sqlite/heard.rs`.
fn name_who_told<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    change: Option<&Change>,
) -> Result<(), StoreError> {
    let change = change.filter(|change| change.outcome != change.previous_outcome);
    let Some(cause) = change.and_then(|change| change.cause.as_ref()) else {
        return Ok(());
    };
    let lines = store.heard_claims(stored.row.key)?;
    let mut of_it = lines.iter().rev();
    let told = of_it.find_map(|line| match (line.source, line.decision) {
        _ if line.claim.status != cause.status => None,
        (Source::Notification, Decision::Doubt) => Some(true),
        // The last change to this status: what was heard before it told of that.
        (_, Decision::Advance | Decision::AdvanceAgreed) => Some(false),
        _ => None,
    });
    if told == Some(true) {
        stored.row.found_by = Some(Source::Notification);
    }
    Ok(())
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
    policy: &Policy,
    stored: &mut Stored,
    observation: &Observation,
    (decision, why): (Decision, Why),
) -> Result<Recorded, StoreError> {
    // A notification that names another invoice is not authentic: it stands among the refusals.
    if observation.source != Source::Notification {
        let claim = claim_of(&observation.report, &stored.invoice, policy);
        remember(store, stored.row.key, observation, &claim, (decision, why))?;
    }
    if decision == Decision::OtherId {
        stored.row.set_attention(Attention::OtherId, true);
        store.save(stored)?;
    }
    Ok(nothing(stored, decision))
}

/// One line of history.
fn remember<S: Store>(
    store: &mut S,
    invoice: InvoiceKey,
    observation: &Observation,
    claim: &Claim,
    (decision, why): (Decision, Why),
) -> Result<(), StoreError> {
    let (amount, currency) = observation.report.reported();
    store.add_history(&NewHistory {
        invoice,
        at_ms: observation.received_ms,
        source: observation.source,
        claim: Some(claim),
        decision,
        why,
        reported: (amount.map(str::to_owned), currency.map(str::to_owned)),
        updated_at_text: observation.report.updated_at_text.as_deref(),
    })
}

/// What became of an observation that changed nothing.
pub(super) fn nothing(stored: &Stored, decision: Decision) -> Recorded {
    Recorded {
        order_id: stored.row.order_id.clone(),
        decision,
        event: None,
        outcome: stored.invoice.outcome,
        new_unsorted: None,
        new_odd: Vec::new(),
        ask_soon: false,
        resorted: None,
    }
}

/// Takes the decision and the report's fields over into the stored invoice. Gives the event to record, if any, and when to
/// ask.
fn take_over(
    stored: &mut Stored,
    made: Transition,
    observation: &Observation,
) -> (Option<Change>, Ask) {
    let report = &observation.report;
    let stands = stands(&made, report);
    let made_why = made.why;
    let Transition {
        after, change, ask, ..
    } = made;
    let first = stored.invoice.claim.is_none();
    let outcome_changed = stored.invoice.outcome != after.outcome;
    let changed = stored.invoice != after;
    stored.invoice = after;
    stored.heard_ms = Some(observation.received_ms);
    stored.newest = stored
        .newest
        .max(report.updated_at.unwrap_or(stored.newest));
    let (after, row) = (&stored.invoice, &mut stored.row);
    put_text(
        &mut row.invoice_id,
        after.id.as_ref().map(InvoiceId::as_str),
    );
    if matches!(row.opening, Opening::Unknown | Opening::Refused) {
        // Its id is known now: the service has it, whatever became of the answer, and whoever said no.
        row.opening = Opening::Answered;
        row.set_attention(Attention::OutcomeUnknown, false);
    }
    let shown = after.claim.as_ref().map(|claim| claim.status.as_str());
    put_text(&mut row.status, shown);
    row.outcome = after.outcome;
    row.doubt = after.doubt;
    row.revision = after.revision;
    if changed {
        row.updated_ms = observation.received_ms;
    }
    if outcome_changed {
        row.outcome_ms = observation.received_ms;
        row.found_by = Some(observation.source);
    }
    if stands || row.raw.is_none() {
        put_text(&mut row.raw, Some(&report.raw));
    }
    fill(row, report, stands);
    row.set_attention(Attention::NotFound, false);
    row.set_attention(Attention::Unanswered, false);
    if observation.source != Source::Notification {
        let is_missing = made_why == Why::NoAmount;
        row.set_attention(Attention::AmountMissing, is_missing);
    }
    show_money(row, outcome_changed);
    if change.as_ref().is_some_and(|change| change.rewound) {
        row.set_attention(Attention::Rewound, true);
    }
    let opened_with = match observation.source {
        Source::Create => true,
        // The answer to its create was lost, or went to the shop's own code.
        Source::Poll => first && stands && stored.row.outcome == Outcome::Open,
        Source::Notification | Source::Operator => false,
    };
    if opened_with && differs_from_asked(stored, report) {
        stored.row.set_attention(Attention::AmountDiffers, true);
    }
    stored.row.drop_settled();
    (change, ask)
}

/// Money that does not pay the order needs a person. Once it was looked at, a repetition is no news.
pub(super) fn show_money(row: &mut InvoiceRow, outcome_changed: bool) {
    for (outcome, reason) in [
        (Outcome::Mismatch, Attention::Mismatch),
        (Outcome::SecondPayment, Attention::SecondPayment),
    ] {
        if outcome_changed || row.outcome != outcome {
            row.set_attention(reason, row.outcome == outcome);
        }
    }
}

/// Writes a text over one that may be the same, without making another.
fn put_text(slot: &mut Option<String>, text: Option<&str>) {
    match (slot, text) {
        (Some(slot), Some(text)) if slot == text => {}
        (Some(slot), Some(text)) => text.clone_into(slot),
        (slot, text) => *slot = text.map(str::to_owned),
    }
}

/// True when the report is the invoice's newest word: not every repeat is one, it may repeat an older claim.
fn stands(made: &Transition, report: &Report) -> bool {
    match made.decision {
        Decision::Advance | Decision::AdvanceAgreed => true,
        Decision::Confirmed | Decision::Repeat => made.after.claim.as_ref().is_some_and(|claim| {
            claim.status == report.status && report.updated_at.is_none_or(|at| Some(at) >= claim.at)
        }),
        Decision::Operator
        | Decision::Reassessed
        | Decision::Stale
        | Decision::Doubt
        | Decision::Pending
        | Decision::Overtaken
        | Decision::NotThisInvoice
        | Decision::OtherId => false,
    }
}

/// What stands replaces; what is stale or doubtful only fills what is empty.
fn fill(row: &mut InvoiceRow, report: &Report, stands: bool) {
    let put = |slot: &mut Option<String>, text: Option<&str>| {
        if text.is_some() && (stands || slot.is_none()) {
            put_text(slot, text);
        }
    };
    let (amount, currency) = report.reported();
    if stands && report.amount == Reported::Unreadable {
        row.amount_reported = None;
    }
    put(&mut row.amount_reported, amount);
    put(&mut row.currency_reported, currency);
    put(&mut row.requisites, report.requisites.as_deref());
    put(&mut row.payment_url, report.payment_url.as_deref());
    if stands || row.expire_ms.is_none() {
        row.expire_ms = report.expire_at.map(Moment::as_ms).or(row.expire_ms);
    }
    // Of an invoice that was opened elsewhere the answers show what a create would have known.
    if row.mode == Mode::Unknown {
        row.mode = match (&report.payment_url, &report.requisites) {
            (Some(_), _) => Mode::Redirect,
            (None, Some(_)) => Mode::H2h,
            (None, None) => Mode::Unknown,
        };
    }
    if row.method.is_empty() {
        row.method = report.method.clone().unwrap_or_default();
    }
}

/// An answer that names no amount does not differ in it.
fn differs_from_asked(stored: &Stored, report: &Report) -> bool {
    let agreed = &stored.invoice.agreed;
    let verdict = agreed.verdict(&report.amount, report.currency.as_deref());
    !matches!(verdict, Verdict::Agrees | Verdict::NoAmount)
}
