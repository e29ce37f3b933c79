//! What stored invoices amount to after the merchant's lists changed. An invoice is looked at again before anything new
//! about it is decided, or when the pass comes to it, whichever is first; what would fire is held for a person, since it
//! is old. Relies on `lists` for which names changed; promises one event per change, however often it is interrupted.

mod replay;

use super::dates::{self, heard};
use super::event::{Told, note_unsorted, write_event};
use super::lists::{PASS, Pass, pass};
use super::record::{show_money, stand_if_paid};
use super::{ApplyError, Rules, load};
use crate::invoice::attention::Attention;
use crate::invoice::event::Change;
use crate::invoice::observation::Source;
use crate::invoice::silence::{self, Due};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Claim, Decision, Why, reassess};
use crate::ledger::command::{Reassessed, Resorted};
use crate::ledger::fact::LISTS_NUMBER;
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{HeardClaim, NewHistory, Store, StoreError, Stored, Withdrawn};

use replay::{claim_now, counted};

/// Why deliveries wait for a person: what they tell is old, and only the lists made it so.
const NEWLY_SORTED: &str = "newly_sorted";
/// Invoices looked over in one commit of the pass at most.
const LOOKED_OVER_AT_ONCE: u32 = 500;
/// Invoices sorted anew in one commit at most: each writes some rows, and a notification waits for the commit.
const SORTED_AT_ONCE: u32 = 50;

/// One commit of the pass.
pub(super) fn reassess_some<S: Store>(
    store: &mut S,
    rules: &Rules,
    now_ms: i64,
) -> Result<Reassessed, ApplyError> {
    let (Some(number), Some(under_way)) = (rules.sorted_by, pass(store)?) else {
        return Ok(Reassessed::default());
    };
    let names: Vec<String> = under_way.names.iter().cloned().collect();
    let from = InvoiceKey(under_way.from);
    let (found, next) = store.with_status(from, &names, LOOKED_OVER_AT_ONCE, SORTED_AT_ONCE)?;
    let mut done = Reassessed::default();
    for key in found {
        let mut stored = load(store, key)?;
        if stored.sorted_by.abs() == number {
            continue;
        }
        let doubted = stored.invoice.doubt;
        done.resorted
            .extend(sort_anew(store, rules, &mut stored, number, now_ms)?);
        done.ask_soon |= stored.invoice.doubt && !doubted;
    }
    // Read again: what was sorted anew is counted there.
    let after = pass(store)?.unwrap_or(under_way);
    done.changed = after.changed;
    done.more = next.is_some();
    let after = next.map(|next| Pass {
        from: next.0,
        ..after
    });
    store.set_fact(&PASS, &after)?;
    Ok(done)
}

/// Sorts an invoice by the present lists if they changed since it was sorted; before anything new is decided about it.
pub(super) fn freshen<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    now_ms: i64,
) -> Result<Option<Resorted>, StoreError> {
    let Some(number) = rules
        .sorted_by
        .filter(|number| *number != stored.sorted_by.abs())
    else {
        return Ok(None);
    };
    // A command that outlived a change of the lists sorts by its own and leaves the rest to the daemon.
    if store.fact(&LISTS_NUMBER)? != Some(number) {
        return Ok(None);
    }
    stored.sorted_by = marked(number, awaits(stored));
    if stored.invoice.claim.is_none() {
        return Ok(None);
    }
    let key = stored.row.key;
    let Some(under_way) = pass(store)?.filter(|pass| pass.from <= key.0) else {
        return Ok(None);
    };
    let names: Vec<String> = under_way.names.iter().cloned().collect();
    let (found, _) = store.with_status(key, &names, 1, 1)?;
    if found.is_empty() {
        return Ok(None);
    }
    sort_anew(store, rules, stored, number, now_ms)
}

/// Sorts the claims of an invoice again and stores what comes of it.
fn sort_anew<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    number: i64,
    now_ms: i64,
) -> Result<Option<Resorted>, StoreError> {
    if stored.row.superseded.is_some() {
        sort_standing_first(store, rules, stored, number, now_ms)?;
    }
    let lines = store.heard_claims(stored.row.key)?;
    let before = stored.invoice.clone();
    let counted = counted(&before, &lines, &rules.policy);
    let (after, change) = reassess(&before, &counted, &rules.policy);
    let asks = after.doubt && !before.doubt;
    // A doubt is about a claim heard before the lists changed, whether it arose before or now.
    stored.sorted_by = marked(number, after.doubt);
    stored.invoice = after;
    let cause = change.as_ref().and_then(|change| change.cause.clone());
    let basis = Basis::of(cause, stored, &lines);
    take_over(stored, change.as_ref(), basis.source, now_ms);
    stand_if_paid(store, stored)?;
    let known = stored.row.needs(Attention::UnsortedStatus);
    // A name that is new here was on a list until now: the merchant took it off, and knows.
    let _new_name = note_unsorted(store, rules, stored, !known)?;
    let mut withdrawn = Withdrawn::default();
    if change.is_some() {
        withdrawn = store.withdraw_held(stored.row.key)?;
    }
    // What the lists before made of it was told to nobody: a payment that nobody heard of is still to come.
    if withdrawn.count > 0 && !withdrawn.payment_left && stored.invoice.outcome != Outcome::Paid {
        stored.invoice.paid_fired = false;
    }
    store.save(stored)?;
    if change.is_none() && !asks {
        return Ok(None);
    }
    remember(store, stored, &basis, now_ms)?;
    let event = match &change {
        None => None,
        Some(change) => {
            let told = Told {
                source: basis.source,
                at_ms: now_ms,
                reported: (basis.reported.0.as_deref(), basis.reported.1.as_deref()),
                raw: None,
                held: Some(NEWLY_SORTED),
                judged: None,
            };
            Some(write_event(store, rules, stored.row.key, change, &told)?)
        }
    };
    date(store, rules, stored, asks, now_ms)?;
    let Some(event) = event else {
        return Ok(None);
    };
    if let Some(mut under_way) = pass(store)? {
        under_way.changed = under_way.changed.saturating_add(1);
        store.set_fact(&PASS, &Some(under_way))?;
    }
    Ok(Some(Resorted {
        order_id: stored.row.order_id.clone(),
        outcome: stored.invoice.outcome,
        event,
        withdrawn: withdrawn.count,
    }))
}

/// What a payment of a superseded invoice is depends on what the lists make of the one that stands for the order.
fn sort_standing_first<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    number: i64,
    now_ms: i64,
) -> Result<(), StoreError> {
    let (key, order_id) = (stored.row.key, stored.row.order_id.as_str());
    let standing = match store.standing_beside(key, order_id)? {
        Some((standing, _)) => store.load(standing)?,
        None => None,
    };
    if let Some(mut standing) = standing.filter(|one| one.sorted_by.abs() != number) {
        sort_anew(store, rules, &mut standing, number, now_ms)?;
    }
    // Which invoice stands for the order may be another now.
    if let Some(own) = store.load(key)? {
        stored.row.superseded = own.row.superseded;
        stored.invoice.superseded = own.invoice.superseded;
    }
    Ok(())
}

/// How the number of the lists stands in an invoice: below zero while a poll must confirm what they made of old claims.
const fn marked(number: i64, awaits: bool) -> i64 {
    if awaits { -number } else { number }
}

/// A poll must confirm what the changed lists made of old claims, so what the poll brings is as old as they are.
const fn awaits(stored: &Stored) -> bool {
    stored.sorted_by < 0
}

/// Why the deliveries of what this observation brings are held, if they are; `doubt`: the invoice is in doubt after it.
pub(super) fn held_for(stored: &mut Stored, source: Source, doubt: bool) -> Option<&'static str> {
    let asked_for = awaits(stored) && matches!(source, Source::Poll | Source::Create);
    if !doubt {
        stored.sorted_by = stored.sorted_by.abs();
    }
    asked_for.then_some(NEWLY_SORTED)
}

/// The claim that a change rests on, and what is known of how it was heard.
struct Basis {
    claim: Option<Claim>,
    source: Option<Source>,
    reported: (Option<String>, Option<String>),
}

impl Basis {
    /// Without a cause it is the claim that is shown.
    fn of(cause: Option<Claim>, stored: &Stored, lines: &[HeardClaim]) -> Self {
        let claim = cause.or_else(|| stored.invoice.claim.clone());
        let agreed = &stored.invoice.agreed;
        let line = lines
            .iter()
            .rfind(|line| claim.as_ref() == Some(&claim_now(line, agreed)));
        Self {
            source: line.map(|line| line.source),
            reported: line.map(|line| line.reported.clone()).unwrap_or_default(),
            claim,
        }
    }
}

/// One line of history.
fn remember<S: Store>(
    store: &mut S,
    stored: &Stored,
    basis: &Basis,
    now_ms: i64,
) -> Result<(), StoreError> {
    let Some(claim) = &basis.claim else {
        return Ok(());
    };
    store.add_history(&NewHistory {
        invoice: stored.row.key,
        at_ms: now_ms,
        // Where no line of the claim is left: it was a person who changed the lists.
        source: basis.source.unwrap_or(Source::Operator),
        claim: Some(claim),
        decision: Decision::Reassessed,
        why: Why::ListsChanged,
        reported: basis.reported.clone(),
        updated_at_text: None,
    })
}

/// Shows what the invoice amounts to now.
pub(super) fn take_over(
    stored: &mut Stored,
    change: Option<&Change>,
    source: Option<Source>,
    now_ms: i64,
) {
    let (invoice, row) = (&stored.invoice, &mut stored.row);
    row.doubt = invoice.doubt;
    if !row.doubt {
        row.set_attention(Attention::AmountMissing, false);
    }
    if row.revision != invoice.revision {
        row.updated_ms = now_ms;
    }
    row.revision = invoice.revision;
    if change.is_some_and(|change| change.outcome != change.previous_outcome) {
        row.outcome = invoice.outcome;
        row.outcome_ms = now_ms;
        row.found_by = source;
    }
    show_money(row, true);
    row.drop_settled();
}

/// A doubt is asked about at once, and an invoice that is open again is asked about by the plan. One that is past its
/// horizon would fire as `unresolved` only because the lists changed: that is held as well.
fn date<S: Store>(
    store: &mut S,
    rules: &Rules,
    stored: &mut Stored,
    asks: bool,
    now_ms: i64,
) -> Result<(), StoreError> {
    let key = stored.row.key;
    let mut state = store.poll_state(key)?;
    if asks {
        state.nudged_ms = Some(now_ms);
    }
    let mut as_if_asked = heard(stored, &state);
    (as_if_asked.asked_ms, as_if_asked.service_ms) = (Some(now_ms), Some(now_ms));
    let over = silence::next(&rules.schedule, &as_if_asked, now_ms) == Due::Unresolved;
    if over && !asks {
        dates::give_up(store, rules, stored, now_ms, Some(NEWLY_SORTED))?;
    }
    let due_ms = if asks {
        Some(now_ms)
    } else {
        dates::planned_ms(rules, stored, &mut state, now_ms)
    };
    dates::put(store, stored, state, due_ms, now_ms)
}
