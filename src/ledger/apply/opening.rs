//! The opening of an invoice, from its row to the end of its request.

use super::event::{Told, write_event};
use super::reassess::take_over;
use super::record::{nothing, record_on};
use super::{ApplyError, Rules, load, restored};
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::opening::{Judgement, Opening, Standing, judge};
use crate::invoice::status::Outcome;
use crate::invoice::sum::Sum;
use crate::invoice::transition::{self, Decision};
use crate::ledger::command::{Begun, Intent, Recorded, Reply, Settled};
use crate::ledger::fact::SERVICE_AHEAD_MS;
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::store::{Earlier, Rank, Store, StoreError, Stored};

pub(super) fn begin<S: Store>(
    store: &mut S,
    rules: &Rules,
    intent: &Intent,
) -> Result<Begun, ApplyError> {
    let tries = [Some(&intent.reference), intent.instead_of.as_ref()];
    let mut earlier = store.standing_of_order(intent.order_id.as_str(), tries)?;
    for one in &mut earlier {
        if intent.polled.contains(&one.row.key) {
            one.poll.nudged_ms = one.poll.nudged_ms.filter(|nudged| *nudged <= intent.now_ms);
        }
    }
    let ahead_ms = store.fact(&SERVICE_AHEAD_MS)?.unwrap_or(0);
    let standing: Vec<Standing> = earlier
        .iter()
        .map(|earlier| {
            standing(earlier, intent.window_ms, ahead_ms).ok_or(ApplyError::Missing(
                "readable sum for an invoice of this order",
            ))
        })
        .collect::<Result<_, _>>()?;
    let rows: Vec<InvoiceRow> = earlier.into_iter().map(|earlier| earlier.row).collect();
    let boxed = |at: usize| {
        rows.get(at)
            .cloned()
            .map(Box::new)
            .ok_or(ApplyError::Missing("such invoice"))
    };
    let own = rows.iter().find(|row| row.reference == intent.reference);
    let earlier = rows
        .iter()
        .find(|row| Some(&row.reference) == intent.instead_of.as_ref());
    let mut tried = own.into_iter().chain(earlier);
    if let Some(row) = tried.find(|row| row.opening != Opening::Refused) {
        return Ok(refuted(row.clone()));
    }
    match judge(&standing, &intent.wanted, intent.now_ms) {
        Judgement::Open => {
            let generation = rules.restore.generation;
            let key = match own {
                Some(row) => begin_anew(store, row, intent, generation)?,
                None => store.insert_invoice(intent, generation)?,
            };
            take_place(store, key, intent.order_id.as_str())?;
            Ok(Begun::Fresh(key))
        }
        Judgement::Standing(at) => {
            let row = boxed(at)?;
            if row.superseded.is_none() {
                return Ok(Begun::Standing(row));
            }
            // What is handed out to the customer stands for the order.
            let order_id = intent.order_id.as_str();
            let before = store.standing_beside(row.key, order_id)?;
            take_place(store, row.key, order_id)?;
            let mut stored = load(store, row.key)?;
            if before.is_some_and(|(_, outcome)| outcome == Outcome::Failed) {
                // The order has failed: a payment of it comes late.
                stored.invoice.failed_fired = true;
                store.save(&stored)?;
            }
            Ok(Begun::Standing(Box::new(stored.row)))
        }
        Judgement::Paid(at) => Ok(Begun::Paid(boxed(at)?)),
        Judgement::BeingCreated(at) => Ok(Begun::BeingCreated(boxed(at)?)),
        Judgement::Unknown(at) => Ok(Begun::Unknown(boxed(at)?)),
        Judgement::Differs(at, what) => Ok(Begun::Differs(boxed(at)?, what)),
        Judgement::Unsettled(at) => Ok(Begun::Unsettled(boxed(at)?)),
        Judgement::Superseded(at) => Ok(Begun::Superseded(boxed(at)?)),
    }
}

/// An invoice stands for its order from the moment it may exist, unless another one has paid the order.
pub(super) fn take_place<S: Store>(
    store: &mut S,
    key: InvoiceKey,
    order_id: &str,
) -> Result<(), StoreError> {
    store.rank(key, order_id, Rank::First)?;
    match store.standing_beside(key, order_id)? {
        Some((paid, Outcome::Paid)) => store.rank(paid, order_id, Rank::First),
        Some(_) | None => Ok(()),
    }
}

/// A row of an earlier try that is no longer refused: the service was heard of it, or somebody settled it. Another request
/// would make a second invoice, whatever the wish was.
fn refuted(row: InvoiceRow) -> Begun {
    let row = Box::new(row);
    match row.opening {
        Opening::Answered | Opening::Tracked | Opening::Refused => Begun::Standing(row),
        Opening::Unknown => Begun::Unknown(row),
        Opening::Creating => Begun::BeingCreated(row),
    }
}

/// Takes the row of an earlier try for the next one.
fn begin_anew<S: Store>(
    store: &mut S,
    own: &InvoiceRow,
    intent: &Intent,
    generation: i64,
) -> Result<InvoiceKey, ApplyError> {
    let mut stored = load(store, own.key)?;
    stored.row.opening = Opening::Creating;
    stored.row.opening_note = None;
    stored.row.creator = Some(intent.creator.clone());
    stored.row.creator_deadline_ms = intent.deadline_ms;
    // Its age, by which it is asked for, and a Redirect invoice's window count from the request that opens it.
    stored.row.created_ms = intent.now_ms;
    stored.row.updated_ms = intent.now_ms;
    stored.generation = generation;
    store.save(&stored)?;
    Ok(own.key)
}

/// An invoice as it is judged whether its order may be given another. `None` is impossible for rows this code wrote: their sums
/// were checked before they were stored. `ahead_ms`: how far the service's clock is ahead of ours.
pub(in crate::ledger) fn standing(
    earlier: &Earlier,
    window_ms: i64,
    ahead_ms: i64,
) -> Option<Standing> {
    let Earlier { row, poll, .. } = earlier;
    // Redirect answers carry no `expireAt` (contract 2.3): a configured window stands in, by our clock.
    let stand_in = row
        .created_ms
        .saturating_add(window_ms)
        .saturating_add(ahead_ms);
    let closes_ms = row.expire_ms.unwrap_or(stand_in);
    let sum = |amount: &str, currency: &str| Sum::new(Amount::parse(amount).ok()?, currency).ok();
    let agreed = sum(&row.amount_agreed, &row.currency_agreed);
    let superseded = row.superseded.as_ref();
    Some(Standing {
        opening: row.opening,
        outcome: row.outcome,
        sum: sum(&row.amount_asked, &row.currency_asked)?,
        method: row.method.clone(),
        mode: row.mode,
        closes_ms: closes_ms.saturating_sub(ahead_ms),
        unsure: earlier.is_unsure(),
        unpaid: poll.polled.says_unpaid(closes_ms, row.status.as_deref()),
        superseded: superseded.is_some_and(|by| sum(&by.amount, &by.currency) != agreed),
    })
}

pub(super) fn settle<S: Store>(
    store: &mut S,
    rules: &Rules,
    key: InvoiceKey,
    settled: &Settled,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    let mut recorded = None;
    match settled {
        Settled::Answered(observation) => {
            stored.row.opening = Opening::Answered;
            stored.row.creator = None;
            stored.row.set_attention(Attention::OutcomeUnknown, false);
            let made = record_on(store, rules, &mut stored, observation)?;
            if made.decision == Decision::NotThisInvoice {
                let note = "the answer names another order";
                end_opening(store, &mut stored, Opening::Unknown, note)?;
            } else if made.decision == Decision::OtherId && stored.invoice.id.is_none() {
                let note = "the service answered with the id of another invoice of this ledger";
                end_opening(store, &mut stored, Opening::Refused, note)?;
            }
            recorded = Some(made);
        }
        Settled::Refused(note) => {
            end_opening(store, &mut stored, Opening::Refused, note)?;
            recorded = step_back(store, rules, &stored)?;
        }
        Settled::Unknown(note) => end_opening(store, &mut stored, Opening::Unknown, note)?,
    }
    let row = load(store, key)?.row;
    Ok(Reply::Settled(Box::new(row), recorded))
}

/// Nothing was opened: what stood for the order before stands for it again, with what it was not told as long as it did not.
fn step_back<S: Store>(
    store: &mut S,
    rules: &Rules,
    refused: &Stored,
) -> Result<Option<Recorded>, ApplyError> {
    let row = &refused.row;
    let standing = store.standing_beside(row.key, &row.order_id)?;
    let Some((key, _)) = standing.filter(|_| row.opening == Opening::Refused) else {
        return Ok(None);
    };
    let mut stored = load(store, key)?;
    // One that a person has looked at is left to them.
    let looked_at = stored.row.outcome.has_money() && !stored.row.needs(Attention::Mismatch);
    let (after, change) = transition::stand_again(&stored.invoice);
    let Some(change) = change.filter(|_| !looked_at) else {
        return Ok(None);
    };
    stored.invoice = after;
    let at_ms = row.created_ms;
    take_over(&mut stored, Some(&change), None, at_ms);
    store.save(&stored)?;
    let told = Told {
        source: None,
        at_ms,
        reported: (
            stored.row.amount_reported.as_deref(),
            stored.row.currency_reported.as_deref(),
        ),
        raw: None,
        held: restored::held(rules, &stored),
        judged: None,
    };
    let event = write_event(store, rules, key, &change, &told)?;
    Ok(Some(Recorded {
        event: Some(event),
        ..nothing(&stored, Decision::Advance)
    }))
}

pub(super) fn give_up_opening<S: Store>(
    store: &mut S,
    key: InvoiceKey,
) -> Result<Reply, ApplyError> {
    let mut stored = load(store, key)?;
    if stored.row.opening == Opening::Creating {
        let note = "the process that opened it ended before the answer was recorded";
        end_opening(store, &mut stored, Opening::Unknown, note)?;
    }
    Ok(Reply::Done)
}

/// Ends an opening without an answer. If a notification has named the id meanwhile, the service has the invoice after all.
fn end_opening<S: Store>(
    store: &mut S,
    stored: &mut Stored,
    opening: Opening,
    note: &str,
) -> Result<(), StoreError> {
    let known = stored.invoice.id.is_some();
    stored.row.opening = if known { Opening::Answered } else { opening };
    stored.row.opening_note = (!known).then(|| note.to_owned());
    stored.row.creator = None;
    stored.row.set_attention(
        Attention::OutcomeUnknown,
        !known && opening == Opening::Unknown,
    );
    store.save(stored)?;
    if stored.row.opening == Opening::Refused {
        let (key, order_id) = (stored.row.key, stored.row.order_id.as_str());
        store.rank(key, order_id, Rank::Refused)?;
    }
    Ok(())
}
