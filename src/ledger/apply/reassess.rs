//! What stored invoices amount to after the merchant's lists changed. An invoice is looked at again before anything new
//! about it is decided, or when the pass comes to it, whichever is first; what would fire is held for a person, since it
//! is old. Relies on `lists` for which names changed; promises one event per change, however often it is interrupted.

use super::dates::{self, heard};
use super::event::{Told, note_unsorted, write_event};
use super::lists::{self, Pass, pass, save_pass};
use super::record::set_attention;
use super::{ApplyError, Rules, load};
use crate::invoice::amount::Amount;
use crate::invoice::event::Change;
use crate::invoice::observation::{Reported, Source};
use crate::invoice::silence::{self, Due};
use crate::invoice::status::{Meaning, Outcome};
use crate::invoice::sum::Sum;
use crate::invoice::transition::{Claim, Counted, Decision, Policy, Why, reassess};
use crate::ledger::command::{Reassessed, Resorted};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{HeardClaim, NewHistory, Store, StoreError, Stored};

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
    save_pass(store, after.as_ref())?;
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
    if lists::number(store)? != Some(number) {
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
    let lines = store.heard_claims(stored.row.key)?;
    let before = stored.invoice.clone();
    let counted = counted(stored, &lines, &rules.policy);
    let (after, change) = reassess(&before, &counted, &rules.policy);
    let asks = after.doubt && !before.doubt;
    // A doubt is about a claim heard before the lists changed, whether it arose before or now.
    stored.sorted_by = marked(number, after.doubt);
    stored.invoice = after;
    let cause = change.as_ref().and_then(|change| change.cause.clone());
    let basis = Basis::of(cause, stored, &lines);
    take_over(stored, change.as_ref(), basis.source, now_ms);
    let known = stored
        .row
        .attention
        .iter()
        .any(|word| word == "unsorted_status");
    // A name that is new here was on a list until now: the merchant took it off, and knows.
    let _new_name = note_unsorted(store, rules, stored, !known)?;
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
                reported: basis.reported,
                raw: None,
                held: Some(NEWLY_SORTED),
            };
            Some(write_event(store, rules, stored.row.key, change, told)?)
        }
    };
    date(store, rules, stored, asks, now_ms)?;
    let Some(event) = event else {
        return Ok(None);
    };
    if let Some(mut under_way) = pass(store)? {
        under_way.changed = under_way.changed.saturating_add(1);
        save_pass(store, Some(&under_way))?;
    }
    Ok(Some(Resorted {
        order_id: stored.row.order_id.clone(),
        outcome: stored.invoice.outcome,
        event,
    }))
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
fn take_over(stored: &mut Stored, change: Option<&Change>, source: Option<Source>, now_ms: i64) {
    let (invoice, row) = (&stored.invoice, &mut stored.row);
    row.doubt = invoice.doubt;
    if row.revision != invoice.revision {
        row.updated_ms = now_ms;
    }
    row.revision = invoice.revision;
    if change.is_some_and(|change| change.outcome != change.previous_outcome) {
        row.outcome = invoice.outcome;
        row.outcome_ms = now_ms;
        row.found_by = source;
    }
    set_attention(row, "mismatch", row.outcome == Outcome::Mismatch);
    if row.outcome.is_final() {
        set_attention(row, "unresolved", false);
    }
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
    as_if_asked.asked_ms = Some(now_ms);
    let over = silence::next(&rules.schedule, &as_if_asked, now_ms) == Due::Unresolved;
    if over && !asks {
        dates::give_up(store, rules, stored, now_ms, Some(NEWLY_SORTED))?;
    }
    // Without an id there is nothing to ask for.
    state.due_ms = if stored.invoice.id.is_none() {
        None
    } else if asks {
        Some(now_ms)
    } else {
        dates::due_ms(&rules.schedule, &heard(stored, &state), now_ms)
    };
    store.save_poll(key, &state)
}

/// The claim as it is judged by what is agreed now; where nothing was reported, as it was judged then.
fn claim_now(line: &HeardClaim, agreed: &Sum) -> Claim {
    let (amount, currency) = &line.reported;
    if amount.is_none() && currency.is_none() {
        return line.claim.clone();
    }
    let amount = amount.as_ref().map_or(Reported::Missing, |text| {
        Amount::parse(text).map_or_else(
            |_not_plain| Reported::Unreadable(text.clone()),
            Reported::Amount,
        )
    });
    Claim {
        verdict: agreed.verdict(&amount, currency.as_deref()),
        ..line.claim.clone()
    }
}

/// The claims that counted, oldest heard first. The one the outcome rests on leads: its line may be dropped by now.
fn counted(stored: &Stored, lines: &[HeardClaim], policy: &Policy) -> Vec<Counted> {
    let agreed = &stored.invoice.agreed;
    let mut counted: Vec<Counted> = Vec::new();
    counted.extend(stored.invoice.sorted.as_ref().map(|sorted| Counted {
        claim: sorted.claim.clone(),
        answered: sorted.settled,
    }));
    let mut doubted: Vec<(Claim, bool)> = Vec::new();
    for line in lines {
        let claim = claim_now(line, agreed);
        let answered = matches!(line.source, Source::Poll | Source::Create);
        match line.decision {
            Decision::Doubt => {
                // Under `confirm_paid` only the answer itself counts, and it has a line of its own.
                let unconfirmed =
                    policy.confirm_paid && policy.lists.sort(&claim.status) == Some(Meaning::Paid);
                if !unconfirmed {
                    doubted.push((claim, false));
                }
            }
            Decision::Advance
            | Decision::AdvanceAgreed
            | Decision::Repeat
            | Decision::Confirmed
            | Decision::Stale => {
                if answered {
                    counted.extend(ended_by(&claim, &mut doubted));
                }
                counted.push(Counted { claim, answered });
            }
            Decision::Pending
            | Decision::Overtaken
            | Decision::NotThisInvoice
            | Decision::OtherId
            | Decision::Operator
            | Decision::Reassessed => {}
        }
    }
    counted
}

/// The doubted claims that count since a poll said `answer`: those that are not newer. One that is newer waits for a second
/// answer, and is dropped when that denies it too; the flag says that one has.
fn ended_by(answer: &Claim, doubted: &mut Vec<(Claim, bool)>) -> Vec<Counted> {
    let mut counted = Vec::new();
    for (claim, denied) in std::mem::take(doubted) {
        let newer = answer.at.is_some() && claim.at > answer.at;
        if newer && !denied {
            doubted.push((claim, true));
        } else if !newer && claim.at.is_some() {
            counted.push(Counted {
                claim,
                answered: false,
            });
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::status::Status;
    use crate::invoice::sum::Verdict;

    #[test]
    fn a_claim_is_judged_by_what_is_agreed_now() {
        let sum = |amount: &str| {
            Sum::new(Amount::parse(amount).expect(amount), "RUB").expect("a currency")
        };
        let check = |reported: (Option<&str>, Option<&str>), wanted: Verdict| {
            let line = HeardClaim {
                claim: Claim {
                    status: Status::new("paid").expect("a status"),
                    verdict: Verdict::Differs("1400 RUB".to_owned()),
                    at: None,
                },
                source: Source::Poll,
                decision: Decision::Advance,
                reported: (reported.0.map(str::to_owned), reported.1.map(str::to_owned)),
            };
            assert_eq!(claim_now(&line, &sum("1400.00")).verdict, wanted);
        };
        let differs = |text: &str| Verdict::Differs(text.to_owned());
        check((Some("1400"), Some("RUB")), Verdict::Agrees);
        check((Some("1400"), None), Verdict::Agrees);
        check((Some("1300"), Some("RUB")), differs("1300 RUB"));
        check((Some("much"), None), differs("much -"));
        // Nothing kept of it: as it was judged.
        check((None, None), differs("1400 RUB"));
    }

    #[test]
    fn a_doubted_claim_counts_once_an_answer_is_not_older() {
        let claim = |at: Option<i64>| Claim {
            status: Status::new("paid").expect("a status"),
            verdict: Verdict::Agrees,
            at: at.map(crate::invoice::moment::Moment::from_ms),
        };
        let check = |doubted: Option<i64>, answers: &[Option<i64>], wanted: bool| {
            let mut left = vec![(claim(doubted), false)];
            let counted = answers
                .iter()
                .map(|at| ended_by(&claim(*at), &mut left).len());
            assert_eq!(
                counted.sum::<usize>() == 1,
                wanted,
                "{doubted:?} {answers:?}"
            );
        };
        check(Some(5), &[Some(5)], true);
        check(Some(5), &[Some(4)], false);
        check(Some(5), &[Some(4), Some(6)], true);
        check(Some(5), &[Some(4), Some(4), Some(6)], false);
        check(Some(5), &[None], true);
        check(None, &[Some(9)], false);
    }
}
