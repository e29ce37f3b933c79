//! What a person changes at the command line: an invoice that the shop's own code opened is watched over, the id of one
//! whose create answer was lost is named, reported figures are agreed to, what needed a look has had it.
//!
//! Each changes what it names and nothing else. A change of an invoice is always an event `operator`, followed in the same
//! commit by whatever the change makes of the claims. Tracking makes no event: nothing is claimed yet and nothing changes,
//! so the history alone tells of it, and the first answer of the service makes the first event. Nor does a look: no claim
//! changes by it, and no hook has anything to do.

use super::event::{Told, write_event};
use super::opening::take_place;
use super::reassess::freshen;
use super::record::{nothing, record_on, show_money, stand_if_paid};
use super::{ApplyError, Rules, dates, load, restored};
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::event::{Change, EventKind};
use crate::invoice::observation::{Asked, Observation, Source};
use crate::invoice::opening::{Mode, Opening, Wanted};
use crate::invoice::status::Outcome;
use crate::invoice::sum::Sum;
use crate::invoice::transition::{self, Claim, Decision, Why, unnamed_payment};
use crate::ledger::command::{Acceptance, Intent, Objection, Operated, Recorded, Tracking};
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::store::{NewHistory, PollState, Store, StoreError, Stored};
use crate::process_mark::ProcessMark;

/// Takes away what the operator acknowledged.
pub(super) fn acknowledge<S: Store>(
    store: &mut S,
    key: InvoiceKey,
    reasons: &[Attention],
    now_ms: i64,
) -> Result<Operated, ApplyError> {
    let mut stored = load(store, key)?;
    let before = stored.row.attention.len();
    let attention = &mut stored.row.attention;
    attention.retain(|reason| !reasons.contains(reason));
    if stored.row.attention.len() == before {
        return Ok(Operated::Already(Box::new(stored.row)));
    }
    store.save(&stored)?;
    note(store, &stored, Why::Acknowledged, now_ms)?;
    done(store, key, Vec::new())
}

/// Writes the row of an invoice that was opened elsewhere, due to be asked about at once.
pub(super) fn track<S: Store>(
    store: &mut S,
    rules: &Rules,
    wish: &Tracking,
) -> Result<Operated, ApplyError> {
    if let Some(owner) = store.owner_of(&wish.invoice_id)? {
        let row = load(store, owner)?.row;
        return Ok(tracked_before(row, wish));
    }
    let now_ms = wish.now_ms;
    let intent = Intent {
        order_id: wish.order_id.clone(),
        wanted: Wanted {
            sum: wish.agreed.clone(),
            method: String::new(),
            mode: Mode::Unknown,
            anew: true,
        },
        reference: wish.reference.clone(),
        instead_of: None,
        sealed: wish.sealed.clone(),
        creator: ProcessMark::own(),
        now_ms,
        deadline_ms: now_ms,
        window_ms: 0,
        polled: Vec::new(),
    };
    let key = store.insert_invoice(&intent, restored::of_tracked(rules))?;
    take_place(store, key, wish.order_id.as_str())?;
    let mut stored = load(store, key)?;
    stored.invoice.id = Some(wish.invoice_id.clone());
    stored.row.invoice_id = Some(wish.invoice_id.as_str().to_owned());
    stored.row.opening = Opening::Tracked;
    stored.row.creator = None;
    store.save(&stored)?;
    note(store, &stored, Why::Tracked, now_ms)?;
    let due = PollState {
        nudged_ms: Some(now_ms),
        ..PollState::default()
    };
    dates::put(store, &stored, due, Some(now_ms), now_ms)?;
    done(store, key, Vec::new())
}

/// The ledger has the id already: is it the same invoice?
fn tracked_before(row: InvoiceRow, wish: &Tracking) -> Operated {
    let same_sum = [
        (&row.amount_asked, &row.currency_asked),
        (&row.amount_agreed, &row.currency_agreed),
    ]
    .into_iter()
    .any(|(amount, currency)| {
        *currency == wish.agreed.currency
            && Amount::parse(amount).is_ok_and(|amount| amount == wish.agreed.amount)
    });
    let row = Box::new(row);
    if row.order_id != wish.order_id.as_str() {
        Operated::Refused(row, Objection::Taken)
    } else if same_sum {
        Operated::Already(row)
    } else {
        Operated::Refused(row, Objection::OtherSum)
    }
}

/// Names the id of an invoice whose create answer was lost, and records what the service said about that id.
pub(super) fn adopt<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    answer: &Observation,
) -> Result<Operated, ApplyError> {
    let (id, now_ms) = (&answer.report.id, answer.received_ms);
    let mut stored = load(store, key)?;
    let refused =
        |row: &InvoiceRow, objection| Ok(Operated::Refused(Box::new(row.clone()), objection));
    match &stored.invoice.id {
        Some(known) if known == id => return Ok(Operated::Already(Box::new(stored.row))),
        Some(_) => return refused(&stored.row, Objection::OtherId),
        None => {}
    }
    if !stored.row.is_lost(now_ms) {
        return refused(&stored.row, Objection::NotLost);
    }
    if let Some(owner) = store.owner_of(id)? {
        return refused(&load(store, owner)?.row, Objection::Taken);
    }
    if answer
        .report
        .names_other_order(stored.invoice.order_id.as_str())
    {
        return refused(&stored.row, Objection::OtherOrder);
    }
    let asked_at = stored.invoice.revision;
    stored.invoice = transition::adopt(&stored.invoice, id.clone());
    let row = &mut stored.row;
    row.invoice_id = Some(id.as_str().to_owned());
    row.opening = Opening::Answered;
    row.opening_note = None;
    row.creator = None;
    row.revision = stored.invoice.revision;
    row.updated_ms = now_ms;
    row.set_attention(Attention::OutcomeUnknown, false);
    store.save(&stored)?;
    note(store, &stored, Why::Adopted, now_ms)?;
    let change = operator_change(&stored);
    let named = tell(store, rules, &stored, &change, now_ms)?;
    // Naming the id is no news that could have overtaken the question.
    let mut answer = answer.clone();
    answer.asked = answer.asked.map(|asked| Asked {
        revision: if asked.revision == asked_at {
            stored.invoice.revision
        } else {
            asked.revision
        },
        ..asked
    });
    let answered = record_on(store, rules, &mut stored, &answer)?;
    done(store, key, vec![named, answered])
}

/// Takes the reported figures as agreed, and what the stored claims amount to then.
pub(super) fn accept<S: Store>(
    store: &mut S,
    rules: &Rules,
    wish: &Acceptance,
) -> Result<Operated, ApplyError> {
    let (key, now_ms) = (wish.key, wish.now_ms);
    let mut stored = load(store, key)?;
    let confirmed = unnamed(&stored, rules);
    let sum = match acceptable(&stored, wish, confirmed.is_some()) {
        Ok(sum) => sum,
        Err(objection) => return Ok(Operated::Refused(Box::new(stored.row), objection)),
    };
    let superseded = stored.row.superseded.as_ref();
    if superseded.is_some_and(|by| by.outcome == Outcome::Paid.as_str()) {
        return Ok(Operated::Refused(
            Box::new(stored.row),
            Objection::OrderPaid,
        ));
    }
    let takes_over = stored.row.outcome.has_money() && stored.row.outcome != Outcome::Paid;
    if sum == stored.invoice.agreed && confirmed.is_none() && !takes_over {
        // Reported otherwise once, and corrected by the service since: the person has looked.
        if stored.row.needs(Attention::AmountDiffers) {
            stored.row.set_attention(Attention::AmountDiffers, false);
            store.save(&stored)?;
        }
        return Ok(Operated::Already(Box::new(stored.row)));
    }
    let resorted = freshen(store, rules, &mut stored, now_ms)?;
    if stored.row.outcome == Outcome::Paid {
        return Ok(Operated::Refused(Box::new(stored.row), Objection::Paid));
    }
    if unnamed(&stored, rules) != confirmed {
        return Ok(Operated::Refused(
            Box::new(stored.row),
            Objection::ReportedSince,
        ));
    }
    let agreed = operator_change(&stored);
    let (after, followed) = transition::accept(&stored.invoice, &sum, confirmed.as_ref());
    stored.invoice = after;
    sum.amount
        .as_str()
        .clone_into(&mut stored.row.amount_agreed);
    stored.row.currency_agreed = sum.currency;
    // An earlier amount is not that of a payment without one.
    if confirmed.is_some() {
        stored.row.amount_reported = None;
    }
    take_outcome(&mut stored, now_ms);
    stand_if_paid(store, &mut stored)?;
    store.save(&stored)?;
    note(store, &stored, Why::Accepted, now_ms)?;
    let accepted = tell(store, rules, &stored, &agreed, now_ms)?;
    let mut recorded = vec![Recorded {
        resorted,
        ..accepted
    }];
    if let Some(change) = &followed {
        recorded.push(tell(store, rules, &stored, change, now_ms)?);
    }
    let state = store.poll_state(key)?;
    dates::redate(store, rules, key, state, now_ms)?;
    done(store, key, recorded)
}

/// The payment that a poll told of without an amount.
fn unnamed(stored: &Stored, rules: &Rules) -> Option<Claim> {
    let polled = stored.row.needs(Attention::AmountMissing);
    let payment = unnamed_payment(&stored.invoice, &rules.policy.lists);
    payment.filter(|_| polled).cloned()
}

/// The sum that would be agreed: what the service reported, and where it said nothing what was agreed before. Of a payment
/// without an amount it is what the person names.
fn acceptable(stored: &Stored, wish: &Acceptance, is_unnamed: bool) -> Result<Sum, Objection> {
    let (row, agreed) = (&stored.row, &stored.invoice.agreed);
    if (&row.amount_reported, &row.currency_reported) != (&wish.amount, &wish.currency) {
        return Err(Objection::ReportedSince);
    }
    let currency = row.currency_reported.as_deref().unwrap_or(&agreed.currency);
    let unreadable = |_no_currency| Objection::Unreadable;
    if is_unnamed {
        return Sum::new(wish.named.clone(), currency).map_err(unreadable);
    }
    if row.amount_reported.is_none() && row.currency_reported.is_none() {
        return Err(Objection::NothingReported);
    }
    let amount = match &row.amount_reported {
        Some(text) => Amount::parse_payable(text).map_err(|_no_amount| Objection::Unreadable)?,
        None => agreed.amount.clone(),
    };
    Sum::new(amount, currency).map_err(unreadable)
}

/// Shows what the claims amount to against the new figures.
fn take_outcome(stored: &mut Stored, now_ms: i64) {
    let (outcome, row) = (stored.invoice.outcome, &mut stored.row);
    if row.outcome != outcome {
        row.outcome = outcome;
        row.outcome_ms = now_ms;
        row.found_by = Some(Source::Operator);
    }
    row.revision = stored.invoice.revision;
    row.updated_ms = now_ms;
    row.doubt = stored.invoice.doubt;
    let shown = stored.invoice.claim.as_ref();
    row.status = shown.map(|claim| claim.status.as_str().to_owned());
    row.set_attention(Attention::AmountDiffers, false);
    row.set_attention(Attention::AmountMissing, false);
    show_money(row, true);
    row.drop_settled();
}

/// The change that tells of a person's hand: status and outcome stay as they are.
fn operator_change(stored: &Stored) -> Change {
    let claim = stored.invoice.claim.as_ref();
    let status = claim.map(|claim| claim.status.clone());
    Change {
        kind: EventKind::Operator,
        rewound: false,
        cause: None,
        status: status.clone(),
        previous_status: status,
        outcome: stored.invoice.outcome,
        previous_outcome: stored.invoice.outcome,
        order_outcome: stored.invoice.order_outcome(),
    }
}

/// Writes the event of a change. Where a claim stands behind it, the service's document does too.
fn tell<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &Stored,
    change: &Change,
    at_ms: i64,
) -> Result<Recorded, StoreError> {
    let row = &stored.row;
    let told = Told {
        source: Some(Source::Operator),
        at_ms,
        reported: (
            row.amount_reported.as_deref(),
            row.currency_reported.as_deref(),
        ),
        raw: change.cause.as_ref().and(row.raw.as_deref()),
        held: restored::held(rules, stored),
        judged: None,
    };
    let event = write_event(store, rules, row.key, change, &told)?;
    Ok(Recorded {
        event: Some(event),
        outcome: change.outcome,
        ..nothing(stored, Decision::Operator)
    })
}

/// One line of history. It holds no claim: the service said nothing.
fn note<S: Store>(store: &mut S, stored: &Stored, why: Why, at_ms: i64) -> Result<(), StoreError> {
    let row = &stored.row;
    store.add_history(&NewHistory {
        invoice: row.key,
        at_ms,
        source: Source::Operator,
        claim: None,
        updated_at_text: None,
        decision: Decision::Operator,
        why,
        reported: (row.amount_reported.clone(), row.currency_reported.clone()),
    })
}

fn done<S: Store>(
    store: &mut S,
    key: InvoiceKey,
    recorded: Vec<Recorded>,
) -> Result<Operated, ApplyError> {
    let row = Box::new(load(store, key)?.row);
    Ok(Operated::Done(row, recorded))
}
