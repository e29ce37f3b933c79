//! The two registers, what they amount to, and the event that tells a difference. Functions of claims and meanings alone.

use std::cmp::Ordering;

use super::state::{Claim, Invoice, Sorted};
use crate::invoice::event::{Change, EventKind};
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::Verdict;

/// The later one stays; at the same instant the higher meaning, then the sum that differs, unless a poll has settled it.
/// A claim without an instant is never later by itself.
pub(super) fn feed(register: &mut Option<Sorted>, new: Sorted) {
    let rank = |sorted: &Sorted| (sorted.meaning, sorted.claim.verdict != Verdict::Agrees);
    let replaces = register
        .as_ref()
        .is_none_or(|old| match new.claim.at.cmp(&old.claim.at) {
            Ordering::Greater => true,
            Ordering::Equal => !old.settled && rank(&new) > rank(old),
            Ordering::Less => false,
        });
    if replaces {
        *register = Some(new);
    }
}

/// What the invoice amounts to in its order. New money on a superseded one pays the order only when the order is unpaid and the
/// sum is the one of the invoice that stands for it. What money was taken for stays, whatever becomes of the other invoices: a
/// person decides.
fn in_order(before: &Invoice, after: &Invoice) -> Outcome {
    let own = outcome(after.sorted.as_ref(), after.paid_counted);
    let was_other_sum = || outcome(before.sorted.as_ref(), before.paid_counted) == Outcome::Paid;
    match (before.outcome, &after.superseded) {
        _ if !own.has_money() => own,
        (Outcome::SecondPayment, _) => Outcome::SecondPayment,
        (Outcome::Mismatch, _) if own == Outcome::Mismatch || was_other_sum() => Outcome::Mismatch,
        (_, Some(by)) if by.outcome == Outcome::Paid => Outcome::SecondPayment,
        (_, Some(by)) if after.agreed != by.sum => Outcome::Mismatch,
        (_, _) => own,
    }
}

/// The outcome as a function of the counted claims, never of their order.
pub(super) fn outcome(sorted: Option<&Sorted>, paid_counted: bool) -> Outcome {
    let Some(sorted) = sorted else {
        return Outcome::Open;
    };
    match (sorted.meaning, &sorted.claim.verdict) {
        (Meaning::Paid, Verdict::Agrees) => Outcome::Paid,
        (Meaning::Paid, verdict) if verdict.names_amount() => Outcome::Mismatch,
        // Of a payment without an amount it is not known what was paid.
        (Meaning::Open | Meaning::Paid, _) => Outcome::Open,
        // A failure after a payment is money that went back: the plain failed hook must not run for it (A05).
        (Meaning::Failed | Meaning::Reversed, _) if paid_counted => Outcome::Reversed,
        (Meaning::Failed | Meaning::Reversed, _) => Outcome::Failed,
    }
}

/// What made a difference, beside the registers themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Cause {
    /// A poll, twice the same, went back to an older claim.
    pub(super) rewound: bool,
    /// A payment that counts from now on without being the latest claim.
    pub(super) paid_late: Option<Claim>,
    /// The invoice stands for its order, and what its money is taken for does not depend on what it was taken for before.
    pub(super) decided: bool,
}

/// Settles `after` against `before`: its outcome, the event that tells the difference if there is one, and its revision.
pub(super) fn settle(before: &Invoice, after: &mut Invoice, cause: Cause) -> Option<Change> {
    after.outcome = if cause.decided {
        outcome(after.sorted.as_ref(), after.paid_counted)
    } else {
        in_order(before, after)
    };
    if after.outcome == Outcome::Paid {
        after.superseded = None;
    }
    let change = change(before, after, cause);
    after
        .recorded
        .extend(change.as_ref().and_then(|change| change.cause.clone()));
    if *after != *before {
        after.revision = before.revision.saturating_add(1);
    }
    change
}

fn shown(invoice: &Invoice) -> Option<Status> {
    invoice.claim.as_ref().map(|claim| claim.status.clone())
}

fn change(before: &Invoice, after: &mut Invoice, cause: Cause) -> Option<Change> {
    let (old, new) = (shown(before), shown(after));
    let outcome_changed = before.outcome != after.outcome;
    let sum = |invoice: &Invoice| invoice.sorted.as_ref().map(|s| s.claim.verdict.clone());
    let sum_changed =
        after.outcome.has_money() && after.outcome != Outcome::Paid && sum(before) != sum(after);
    let superseded = after.superseded.is_some();
    let is_told = !(cause.decided && after.outcome == Outcome::Failed && !after.failed_fired);
    if !outcome_changed && old == new && !sum_changed && is_told {
        return None;
    }
    let kind = match after.outcome {
        Outcome::Paid if outcome_changed && after.paid_fired => EventKind::PaidAgain,
        // However long ago it failed: whoever acted on the failure must hear that the money came after all.
        Outcome::Paid if outcome_changed && after.failed_fired => EventKind::Late,
        Outcome::Paid if outcome_changed => EventKind::Paid,
        // The order does not fail with an invoice that does not stand for it.
        Outcome::Failed
            if (outcome_changed || cause.decided && !after.failed_fired) && !superseded =>
        {
            EventKind::Failed
        }
        Outcome::Reversed if outcome_changed && !superseded => EventKind::Reversed,
        Outcome::Mismatch if outcome_changed || sum_changed => EventKind::Mismatch,
        Outcome::SecondPayment if outcome_changed || sum_changed => EventKind::SecondPayment,
        Outcome::Open if old.is_none() => EventKind::Opened,
        Outcome::Open
        | Outcome::Paid
        | Outcome::Failed
        | Outcome::Reversed
        | Outcome::Mismatch
        | Outcome::SecondPayment => EventKind::Status,
    };
    after.paid_fired |= matches!(kind, EventKind::Paid | EventKind::Late);
    after.failed_fired |= kind == EventKind::Failed;
    Some(Change {
        kind,
        rewound: cause.rewound,
        cause: claim_behind(before, after, cause.paid_late),
        status: new,
        previous_status: old,
        outcome: after.outcome,
        previous_outcome: before.outcome,
        order_outcome: after.order_outcome(),
    })
}

/// The claim behind a change: the one shown when that is new, else the one the outcome rests on when that is new, else a
/// payment heard of late.
fn claim_behind(before: &Invoice, after: &Invoice, paid_late: Option<Claim>) -> Option<Claim> {
    let rests_on = |invoice: &Invoice| invoice.sorted.as_ref().map(|sorted| sorted.claim.clone());
    if before.claim != after.claim {
        after.claim.clone()
    } else if rests_on(before) == rests_on(after) && paid_late.is_some() {
        paid_late
    } else {
        rests_on(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::moment::Moment;

    fn sorted(meaning: Meaning, at: Option<i64>, differs: bool, name: &str) -> Sorted {
        let verdict = if differs {
            Verdict::Differs("0.05 RUB".into())
        } else {
            Verdict::Agrees
        };
        let claim = Claim {
            status: Status::new(name).expect("a status"),
            verdict,
            at: at.map(Moment::from_ms),
        };
        Sorted {
            claim,
            meaning,
            settled: false,
        }
    }

    #[test]
    fn the_later_stays_then_the_higher_meaning_then_the_sum_that_differs() {
        use Meaning::{Failed, Open, Paid, Reversed};
        let at = |meaning, at| sorted(meaning, Some(at), false, "x");
        let rising = [
            sorted(Reversed, None, true, "x"),
            at(Open, 1),
            at(Failed, 1),
            at(Paid, 1),
            sorted(Paid, Some(1), true, "x"),
            at(Reversed, 1),
            at(Open, 2),
        ];
        for (place, higher) in rising.iter().enumerate().skip(1) {
            for lower in rising.iter().take(place) {
                for (first, second) in [(lower, higher), (higher, lower)] {
                    let mut register = Some(first.clone());
                    feed(&mut register, second.clone());
                    assert_eq!(register.as_ref(), Some(higher), "{first:?}, {second:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_poll_settled_or_what_is_as_high_is_not_replaced_at_its_instant() {
        let first = sorted(Meaning::Paid, Some(1), false, "paid");
        let mut register = Some(first.clone());
        feed(
            &mut register,
            sorted(Meaning::Paid, Some(1), false, "settled"),
        );
        assert_eq!(register, Some(first.clone()));
        let settled = Sorted {
            settled: true,
            ..first
        };
        let mut register = Some(settled.clone());
        feed(
            &mut register,
            sorted(Meaning::Reversed, Some(1), false, "refunded"),
        );
        assert_eq!(register, Some(settled));
        feed(&mut register, sorted(Meaning::Open, Some(2), false, "new"));
        assert_eq!(register.map(|sorted| sorted.meaning), Some(Meaning::Open));
    }
}
