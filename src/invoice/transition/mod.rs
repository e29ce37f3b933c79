//! The moves: what an observation does to an invoice. Pure, and the only judge; whatever is believed is believed here.
//!
//! A *claim* is the service's word, whether amount and currency agree with what was agreed, and the service's own
//! instant. Claims are ordered by that instant and by nothing of ours. Two registers follow: the latest claim (the status
//! shown) and the latest claim whose status is sorted (the outcome). Where order alone cannot tell, the invoice is in
//! *doubt*: the current claim stands and a poll, which nobody can forge or reorder, decides. So the end is a function
//! of the set of claims and not of their order.

use std::cmp::Ordering;

use crate::invoice::event::{Change, EventKind};
use crate::invoice::observation::{Observation, Report, Reported, Source};
use crate::invoice::status::{Meaning, Outcome, StatusLists};
use crate::invoice::sum::{Sum, Verdict};

mod state;

pub use state::{Claim, Invoice, Pending, Sorted};

/// A poll that contradicts without being newer is asked again after this long before it is believed, milliseconds.
/// Long enough for a replica behind the service's load balancer to catch up.
pub const SECOND_POLL_AFTER_MS: i64 = 30_000;

/// Claims remembered while in doubt. An honest service makes one or two.
const DOUBTED_KEPT: usize = 16;

/// The merchant's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// The lists that sort statuses.
    pub lists: StatusLists,
    /// A notification that says paid is doubt until a poll agrees.
    pub confirm_paid: bool,
}

/// What was decided on an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is the invoice's state now.
    Advance,
    /// A second poll said the same as the first: it is the state now, although it is older or takes back a payment.
    AdvanceAgreed,
    /// Known already.
    Repeat,
    /// A poll agrees with what stands.
    Confirmed,
    /// Older than what stands: kept in the history.
    Stale,
    /// A poll must tell.
    Doubt,
    /// A second poll must agree.
    Pending,
    /// The invoice moved on while the answer was under way: asked again.
    Overtaken,
    /// It names another invoice or order: not authentic from a notification, discarded from a poll.
    NotThisInvoice,
    /// The answer to our create names another id than the invoice already has: a person must look.
    OtherId,
}

impl Decision {
    /// The word used in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Advance => "advance",
            Self::AdvanceAgreed => "advance_agreed",
            Self::Repeat => "repeat",
            Self::Confirmed => "confirmed",
            Self::Stale => "stale",
            Self::Doubt => "doubt",
            Self::Pending => "pending",
            Self::Overtaken => "overtaken",
            Self::NotThisInvoice => "not_this_invoice",
            Self::OtherId => "other_id",
        }
    }
}

/// When the invoice must be asked about because of this decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The decision changes nothing about it.
    AsPlanned,
    /// As soon as possible.
    Now,
    /// Not before this long, milliseconds.
    After(i64),
}

/// The decision on one observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// What was decided.
    pub decision: Decision,
    /// The invoice from now on. Equal to the one before when nothing changed.
    pub after: Invoice,
    /// The event to record, if any.
    pub change: Option<Change>,
    /// When to ask.
    pub ask: Ask,
}

/// Decides on one observation; the rules and their numbers are those of the design's section 4. The first that fits wins.
pub fn decide(invoice: &Invoice, observation: &Observation, policy: &Policy) -> Transition {
    let report = &observation.report;
    if report.names_other_order(&invoice.order_id) {
        return unchanged(invoice, Decision::NotThisInvoice, Ask::AsPlanned);
    }
    if invoice.id.as_ref().is_some_and(|id| *id != report.id) {
        let decision = match observation.source {
            Source::Create => Decision::OtherId,
            Source::Notification | Source::Poll | Source::Operator => Decision::NotThisInvoice,
        };
        return unchanged(invoice, decision, Ask::AsPlanned);
    }
    let claim = claim_of(report, &invoice.agreed);
    let meaning = policy.lists.sort(&claim.status);
    let mut after = invoice.clone();
    after.id = Some(report.id.clone());
    let mut step = Step {
        before: invoice,
        after,
        claim,
        meaning,
        policy,
    };
    let (decision, ask) = match observation.source {
        Source::Notification => step.notification(),
        Source::Poll | Source::Create | Source::Operator => step.answer(observation),
    };
    step.finish(decision, ask)
}

/// What a report claims, measured against what was agreed.
pub fn claim_of(report: &Report, agreed: &Sum) -> Claim {
    let verdict = agreed.verdict(&report.amount, report.currency.as_deref());
    Claim {
        status: report.status.clone(),
        verdict,
        at: report.updated_at,
    }
}

fn unchanged(invoice: &Invoice, decision: Decision, ask: Ask) -> Transition {
    Transition {
        decision,
        after: invoice.clone(),
        change: None,
        ask,
    }
}

/// One decision under way.
struct Step<'a> {
    before: &'a Invoice,
    after: Invoice,
    claim: Claim,
    meaning: Option<Meaning>,
    policy: &'a Policy,
}

/// How the claim's instant stands to the current claim's.
enum Order {
    Newer,
    Same,
    Older,
    Unknown,
}

impl Step<'_> {
    /// Rules 0 to 4, and the first claim.
    fn notification(&mut self) -> (Decision, Ask) {
        let unconfirmed = self.policy.confirm_paid && self.says_paid();
        let Some(current) = &self.before.claim else {
            let doubtful = unconfirmed || self.claim.verdict != Verdict::Agrees;
            return if doubtful {
                self.doubt()
            } else {
                self.advance(false)
            };
        };
        let known = self.claim.at.is_some() && self.before.recorded.contains(&self.claim);
        if known {
            return (Decision::Repeat, Ask::AsPlanned);
        }
        if self.same_as(current) {
            return self.repeat(Decision::Repeat);
        }
        match self.order(current) {
            Order::Unknown | Order::Same => self.doubt(),
            Order::Newer
                if unconfirmed || self.leaves_paid() || self.claim.verdict != Verdict::Agrees =>
            {
                self.doubt()
            }
            Order::Newer => self.advance(false),
            Order::Older if self.says_paid() => self.doubt(),
            Order::Older => {
                self.feed_sorted(false);
                (Decision::Stale, Ask::AsPlanned)
            }
        }
    }

    /// Rules 5 to 7: answers to questions of ours.
    fn answer(&mut self, observation: &Observation) -> (Decision, Ask) {
        let order = self
            .before
            .claim
            .as_ref()
            .map(|current| self.order(current));
        let overtaken = observation
            .asked
            .is_some_and(|asked| asked.revision < self.before.revision);
        // A question that was sent before a doubt arose cannot end it, however new its answer is.
        let not_newer = order
            .as_ref()
            .is_some_and(|order| !matches!(order, Order::Newer));
        if overtaken && (self.before.doubt || not_newer) {
            return (Decision::Overtaken, Ask::Now);
        }
        let (Some(current), Some(order)) = (&self.before.claim, order) else {
            return self.advance(true);
        };
        if self.same_as(current) {
            self.end_doubt();
            return self.repeat(Decision::Confirmed);
        }
        if matches!(order, Order::Newer | Order::Same) && !self.leaves_paid() {
            return self.advance(true);
        }
        if let Some(pending) = &self.before.pending {
            let waited = observation.received_ms.saturating_sub(pending.since_ms);
            let same = pending.claim.status == self.claim.status
                && pending.claim.verdict == self.claim.verdict;
            // A clock set back must not hold the answer for ever: then the second poll counts at once.
            if same && !(0..SECOND_POLL_AFTER_MS).contains(&waited) {
                let (_, ask) = self.advance(true);
                return (Decision::AdvanceAgreed, ask);
            }
            if same {
                return (Decision::Pending, Ask::After(SECOND_POLL_AFTER_MS - waited));
            }
        }
        self.after.pending = Some(Pending {
            claim: self.claim.clone(),
            since_ms: observation.received_ms,
        });
        (Decision::Pending, Ask::After(SECOND_POLL_AFTER_MS))
    }

    /// The claim is the state now. `answered` when it came from a question of ours, which ends every doubt.
    fn advance(&mut self, answered: bool) -> (Decision, Ask) {
        if answered {
            self.end_doubt();
        }
        self.after.claim = Some(self.claim.clone());
        self.feed_sorted(answered);
        (Decision::Advance, Ask::AsPlanned)
    }

    /// Same status and verdict as now: the newer instant is kept, and the status is sorted again, since the merchant's
    /// lists may have learned its name.
    fn repeat(&mut self, decision: Decision) -> (Decision, Ask) {
        let answered = decision == Decision::Confirmed;
        if let Some(current) = &mut self.after.claim
            && self.claim.at > current.at
        {
            current.at = self.claim.at;
        }
        let stands = self.after.claim.clone();
        if let Some(stands) = stands {
            self.claim = stands;
        }
        let unconfirmed = self.policy.confirm_paid && self.says_paid() && !answered;
        if !unconfirmed {
            self.feed_sorted(answered);
        }
        (decision, Ask::AsPlanned)
    }

    fn doubt(&mut self) -> (Decision, Ask) {
        self.after.doubt = true;
        if self.meaning.is_some() && !self.after.doubted.contains(&self.claim) {
            if self.after.doubted.len() >= DOUBTED_KEPT {
                self.after.doubted.remove(0);
            }
            self.after.doubted.push(self.claim.clone());
        }
        (Decision::Doubt, Ask::Now)
    }

    /// A poll has spoken: doubted claims that are not newer than it count now.
    fn end_doubt(&mut self) {
        self.after.doubt = false;
        self.after.pending = None;
        for doubted in std::mem::take(&mut self.after.doubted) {
            let in_time =
                doubted.at.is_some() && (self.claim.at.is_none() || doubted.at <= self.claim.at);
            let meant = self.policy.lists.sort(&doubted.status);
            // Under `confirm_paid` a push alone never makes a payment: the poll itself must say so.
            let unconfirmed =
                self.policy.confirm_paid && meant == Some(Meaning::Paid) && !self.says_paid();
            let counts = in_time && !unconfirmed;
            if let (true, Some(meaning)) = (counts, meant) {
                self.after.paid_counted |= meaning == Meaning::Paid;
                feed(
                    &mut self.after.sorted,
                    Sorted {
                        claim: doubted,
                        meaning,
                        settled: false,
                    },
                );
            }
        }
    }

    /// Feeds the sorted register. A claim a poll stands behind replaces whatever is there.
    fn feed_sorted(&mut self, answered: bool) {
        let Some(meaning) = self.meaning else { return };
        self.after.paid_counted |= meaning == Meaning::Paid;
        let sorted = Sorted {
            claim: self.claim.clone(),
            meaning,
            settled: answered,
        };
        if answered {
            self.after.sorted = Some(sorted);
        } else {
            feed(&mut self.after.sorted, sorted);
        }
    }

    fn same_as(&self, current: &Claim) -> bool {
        current.status == self.claim.status && current.verdict == self.claim.verdict
    }

    fn order(&self, current: &Claim) -> Order {
        match (self.claim.at, current.at) {
            (None, _) => Order::Unknown,
            (Some(_), None) => Order::Newer,
            (Some(new), Some(old)) if new > old => Order::Newer,
            (Some(new), Some(old)) if new < old => Order::Older,
            (Some(_), Some(_)) => Order::Same,
        }
    }

    fn says_paid(&self) -> bool {
        self.meaning == Some(Meaning::Paid)
    }

    fn leaves_paid(&self) -> bool {
        let paid_now = self
            .before
            .sorted
            .as_ref()
            .is_some_and(|sorted| sorted.meaning == Meaning::Paid);
        paid_now && !self.says_paid()
    }

    fn finish(mut self, decision: Decision, ask: Ask) -> Transition {
        self.after.outcome = outcome(self.after.sorted.as_ref(), self.after.paid_counted);
        let rewound = decision == Decision::AdvanceAgreed
            && self
                .before
                .claim
                .as_ref()
                .is_some_and(|current| matches!(self.order(current), Order::Older));
        let change = change(self.before, &mut self.after, rewound);
        self.after
            .recorded
            .extend(change.as_ref().and_then(|change| change.cause.clone()));
        if self.after != *self.before {
            self.after.revision = self.before.revision.saturating_add(1);
        }
        Transition {
            decision,
            after: self.after,
            change,
            ask,
        }
    }
}

/// The later one stays; at the same instant the higher meaning, then the sum that differs, unless a poll has settled it.
/// A claim without an instant is never later by itself.
fn feed(register: &mut Option<Sorted>, new: Sorted) {
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

/// The outcome as a function of the counted claims, never of their order.
fn outcome(sorted: Option<&Sorted>, paid_counted: bool) -> Outcome {
    let Some(sorted) = sorted else {
        return Outcome::Open;
    };
    match (sorted.meaning, &sorted.claim.verdict) {
        (Meaning::Open, _) => Outcome::Open,
        (Meaning::Paid, Verdict::Agrees) => Outcome::Paid,
        (Meaning::Paid, Verdict::Differs(_)) => Outcome::Mismatch,
        // A failure after a payment is money that went back: the plain failed hook must not run for it (A05).
        (Meaning::Failed | Meaning::Reversed, _) if paid_counted => Outcome::Reversed,
        (Meaning::Failed | Meaning::Reversed, _) => Outcome::Failed,
    }
}

/// The event that tells the difference between before and after, if there is one.
fn change(before: &Invoice, after: &mut Invoice, rewound: bool) -> Option<Change> {
    let status = |invoice: &Invoice| invoice.claim.as_ref().map(|claim| claim.status.clone());
    let (old, new) = (status(before), status(after));
    let outcome_changed = before.outcome != after.outcome;
    let sum_changed = after.outcome == Outcome::Mismatch
        && before.sorted.as_ref().map(|s| &s.claim.verdict)
            != after.sorted.as_ref().map(|s| &s.claim.verdict);
    if !outcome_changed && old == new && !sum_changed {
        return None;
    }
    let kind = match after.outcome {
        Outcome::Paid if outcome_changed && after.paid_fired => EventKind::PaidAgain,
        Outcome::Paid if outcome_changed && before.outcome == Outcome::Failed => EventKind::Late,
        Outcome::Paid if outcome_changed => EventKind::Paid,
        Outcome::Failed if outcome_changed => EventKind::Failed,
        Outcome::Reversed if outcome_changed => EventKind::Reversed,
        Outcome::Mismatch if outcome_changed || sum_changed => EventKind::Mismatch,
        Outcome::Open if old.is_none() => EventKind::Opened,
        Outcome::Open | Outcome::Paid | Outcome::Failed | Outcome::Reversed | Outcome::Mismatch => {
            EventKind::Status
        }
    };
    after.paid_fired |= matches!(kind, EventKind::Paid | EventKind::Late);
    let cause = if before.claim == after.claim {
        after.sorted.as_ref().map(|sorted| sorted.claim.clone())
    } else {
        after.claim.clone()
    };
    Some(Change {
        kind,
        rewound,
        cause,
        status: new,
        previous_status: old,
        outcome: after.outcome,
        previous_outcome: before.outcome,
    })
}

/// The reported sum as it is shown: the texts the service wrote.
pub fn reported_texts(report: &Report) -> (Option<String>, Option<String>) {
    let amount = match &report.amount {
        Reported::Missing => None,
        Reported::Amount(amount) => Some(amount.as_str().to_owned()),
        Reported::Unreadable(text) => Some(text.clone()),
    };
    (amount, report.currency.clone())
}

#[cfg(test)]
mod tests;
