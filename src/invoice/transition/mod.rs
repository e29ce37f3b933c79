//! The moves: what an observation does to an invoice. Pure, and the only judge; whatever is believed is believed here.
//!
//! A *claim* is the service's word, whether amount and currency agree with what was agreed, and the service's own
//! instant. Claims are ordered by that instant and by nothing of ours. Two registers follow: the latest claim (the status
//! shown) and the latest claim whose status is sorted (the outcome). Where order alone cannot tell, the invoice is in
//! *doubt*: the current claim stands and a poll, which nobody can forge or reorder, decides. So the end is a function
//! of the set of claims and not of their order.

mod doubt;
mod operator;
mod reassess;
mod registers;
mod state;
#[cfg(test)]
mod tests;
mod unnamed;
mod why;

use crate::invoice::event::Change;
use crate::invoice::observation::{Observation, Report, Source};
use crate::invoice::status::{Meaning, Outcome, StatusLists};
use crate::invoice::sum::Verdict;

pub use doubt::{Doubted, is_second, judged_by, same_word};
pub use operator::{accept, adopt, stand_again};
pub use reassess::{Counted, reassess};
pub use state::{Claim, Invoice, Pending, Sorted, Superseding};
pub use unnamed::unnamed_payment;
pub use why::{Decision, Why};

use registers::{Cause, feed, settle};
use unnamed::{completed, lacks_amount};

/// A poll that contradicts without being newer is asked again after this long before it is believed, milliseconds.
/// Long enough for a replica behind the service's load balancer to catch up.
pub const SECOND_POLL_AFTER_MS: i64 = 30_000;

/// A payment whose amount no answer names is polled at least this often, milliseconds: every 4 hours, as any old invoice.
const SELDOM_MS: i64 = 14_400_000;

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
    /// By which rule.
    pub why: Why,
    /// The invoice from now on. Equal to the one before when nothing changed.
    pub after: Invoice,
    /// The event to record, if any.
    pub change: Option<Change>,
    /// When to ask.
    pub ask: Ask,
}

/// Decides on one observation; the rules and their numbers are those of design 4. The first that fits wins.
pub fn decide(invoice: &Invoice, observation: &Observation, policy: &Policy) -> Transition {
    let report = &observation.report;
    if report.names_other_order(invoice.order_id.as_str()) {
        return unchanged(invoice, Decision::NotThisInvoice, Why::OtherOrder);
    }
    if invoice.id.as_ref().is_some_and(|id| *id != report.id) {
        let decision = match observation.source {
            Source::Create => Decision::OtherId,
            Source::Notification | Source::Poll | Source::Operator => Decision::NotThisInvoice,
        };
        return unchanged(invoice, decision, Why::OtherInvoice);
    }
    let claim = claim_of(report, invoice, policy);
    let meaning = policy.lists.sort(&claim.status);
    let mut after = invoice.clone();
    // One that is known already is the same.
    after.id.get_or_insert_with(|| report.id.clone());
    let mut step = Step {
        before: invoice,
        after,
        claim,
        meaning,
        policy,
        cause: Cause::default(),
    };
    let verdict = match observation.source {
        Source::Notification => step.notification(),
        Source::Poll | Source::Create | Source::Operator => step.answer(observation),
    };
    step.finish(verdict)
}

/// What a report claims, measured against what was agreed and, where it names no amount, against the payment that stands.
pub fn claim_of(report: &Report, invoice: &Invoice, policy: &Policy) -> Claim {
    let verdict = invoice
        .agreed
        .verdict(&report.amount, report.currency.as_deref());
    let claim = Claim {
        status: report.status.clone(),
        verdict,
        at: report.updated_at,
    };
    completed(claim, &policy.lists, invoice.sorted.as_ref())
}

fn unchanged(invoice: &Invoice, decision: Decision, why: Why) -> Transition {
    Transition {
        decision,
        why,
        after: invoice.clone(),
        change: None,
        ask: Ask::AsPlanned,
    }
}

/// One decision under way.
struct Step<'a> {
    before: &'a Invoice,
    after: Invoice,
    claim: Claim,
    meaning: Option<Meaning>,
    policy: &'a Policy,
    cause: Cause,
}

/// How a step ends.
type Verdicted = (Decision, Why, Ask);

/// How the claim's instant stands to the current claim's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Newer,
    Same,
    Older,
    /// The claim has none.
    Unknown,
    /// The current claim has none.
    Unbound,
}

impl Step<'_> {
    /// Rules 0 to 4, and the first claim.
    fn notification(&mut self) -> Verdicted {
        let Some(current) = &self.before.claim else {
            return match self.unbelievable() {
                Some(why) => self.doubt(why),
                None => self.advance(Why::First),
            };
        };
        if self.claim.at.is_some() && self.before.recorded.contains(&self.claim) {
            return (Decision::Repeat, Why::Known, Ask::AsPlanned);
        }
        if self.same_as(current) {
            return self.repeat(Decision::Repeat);
        }
        match self.order(current) {
            Order::Unknown | Order::Unbound => self.doubt(Why::NoInstant),
            Order::Same => self.doubt(Why::SameInstant),
            Order::Newer => match self.unbelievable() {
                Some(why) => self.doubt(why),
                None => self.advance(Why::Newer),
            },
            Order::Older if self.says_paid() => self.doubt(Why::OlderPaid),
            Order::Older if self.moves_off_paid() => self.doubt(Why::LeavesPaid),
            Order::Older => {
                self.feed_sorted(false);
                (Decision::Stale, Why::Older, Ask::AsPlanned)
            }
        }
    }

    /// Why a push alone does not make this claim the invoice's state, if so.
    fn unbelievable(&self) -> Option<Why> {
        if self.lacks_amount() {
            Some(Why::NoAmount)
        } else if self.policy.confirm_paid && self.says_paid() {
            Some(Why::Unconfirmed)
        } else if self.leaves_paid() {
            Some(Why::LeavesPaid)
        } else if !matches!(self.claim.verdict, Verdict::Agrees | Verdict::NoAmount) {
            Some(Why::SumDiffers)
        } else if self.claim.at.is_none() {
            Some(Why::NoInstant)
        } else {
            None
        }
    }

    /// Rules 5 to 7: answers to questions of ours.
    fn answer(&mut self, observation: &Observation) -> Verdicted {
        let order = self
            .before
            .claim
            .as_ref()
            .map(|current| self.order(current));
        let overtaken = observation
            .asked
            .is_some_and(|asked| asked.revision < self.before.revision);
        // A question that was sent before a doubt arose cannot end it, however new its answer is.
        let newer = order.is_none_or(|order| order == Order::Newer);
        if overtaken && (self.before.doubt || !newer) {
            return (Decision::Overtaken, Why::AskedBefore, Ask::Now);
        }
        let current = self.before.claim.as_ref();
        let repeats_a_sum =
            current.is_some_and(|current| current.verdict.names_amount() && self.same_as(current));
        if self.lacks_amount() && !repeats_a_sum {
            return self.answer_without_amount(observation.received_ms);
        }
        let (Some(current), Some(order)) = (current, order) else {
            return self.advance_answered(Why::First, observation.received_ms);
        };
        if self.same_as(current) {
            let ask = self.end_doubt(observation.received_ms);
            let (decision, why, _) = self.repeat(Decision::Confirmed);
            return (decision, why, ask);
        }
        let why = match order {
            _ if self.leaves_paid() => Why::LeavesPaid,
            Order::Same => {
                // Two words of one instant: the answer is taken over, and asked for again, since either may lag behind.
                self.remember_doubted(current.clone());
                return self.advance_answered(Why::Answered, observation.received_ms);
            }
            Order::Newer | Order::Unbound => {
                return self.advance_answered(Why::Answered, observation.received_ms);
            }
            Order::Older => Why::Older,
            Order::Unknown => Why::NoInstant,
        };
        self.second_answer(why, observation.received_ms)
    }

    /// An answer that says paid without an amount changes nothing: it is polled again, later each time, until one is named.
    fn answer_without_amount(&mut self, received_ms: i64) -> Verdicted {
        let waited = self.waited_ms(received_ms).unwrap_or_default().max(0);
        self.after.doubt = true;
        self.remember_doubted(self.claim.clone());
        self.after.pending = Some(Pending {
            claim: self.claim.clone(),
            since_ms: received_ms.saturating_sub(waited),
        });
        let wait = waited.clamp(SECOND_POLL_AFTER_MS, SELDOM_MS);
        (Decision::Doubt, Why::NoAmount, Ask::After(wait))
    }

    /// Rule 7: believed only when a second answer says the same.
    fn second_answer(&mut self, why: Why, received_ms: i64) -> Verdicted {
        if let Some(waited) = self.waited_ms(received_ms) {
            // A clock set back must not hold the answer for ever: then the second poll counts at once.
            if (0..SECOND_POLL_AFTER_MS).contains(&waited) {
                let rest = Ask::After(SECOND_POLL_AFTER_MS - waited);
                return (Decision::Pending, why, rest);
            }
            let ask = self.end_doubt(received_ms);
            self.stand(true);
            return (Decision::AdvanceAgreed, Why::SecondAnswer, ask);
        }
        self.after.pending = Some(Pending {
            claim: self.claim.clone(),
            since_ms: received_ms,
        });
        (Decision::Pending, why, Ask::After(SECOND_POLL_AFTER_MS))
    }

    /// The claim is the state now.
    fn advance(&mut self, why: Why) -> Verdicted {
        // What an earlier answer said against the state before says nothing against this one.
        self.after.pending = None;
        self.stand(false);
        (Decision::Advance, why, Ask::AsPlanned)
    }

    /// As [`Step::advance`], from an answer to a question of ours.
    fn advance_answered(&mut self, why: Why, received_ms: i64) -> Verdicted {
        let ask = self.end_doubt(received_ms);
        self.stand(true);
        (Decision::Advance, why, ask)
    }

    fn stand(&mut self, answered: bool) {
        self.after.claim = Some(self.claim.clone());
        self.feed_sorted(answered);
    }

    /// Same status and verdict as now: the newer instant is kept, and the status is sorted again, since the merchant's
    /// lists may have learned its name.
    fn repeat(&mut self, decision: Decision) -> Verdicted {
        let answered = decision == Decision::Confirmed;
        if let Some(current) = &mut self.after.claim {
            current.at = current.at.max(self.claim.at);
            // What one of the two does not name, the other does.
            if !current.verdict.names_amount() && self.claim.verdict == Verdict::Agrees {
                current.verdict = Verdict::Agrees;
            }
            self.claim.clone_from(current);
        }
        let unconfirmed = self.policy.confirm_paid && self.says_paid() && !answered;
        if !(unconfirmed || self.lacks_amount()) {
            self.feed_sorted(answered);
        }
        (decision, Why::Same, Ask::AsPlanned)
    }

    fn doubt(&mut self, why: Why) -> Verdicted {
        self.after.doubt = true;
        if self.remember_doubted(self.claim.clone()) {
            // What an answer said before denies nothing that is heard now.
            self.after.pending = None;
        }
        (Decision::Doubt, why, Ask::Now)
    }

    /// False when it is known already.
    fn remember_doubted(&mut self, claim: Claim) -> bool {
        if self.after.doubted.contains(&claim) {
            return false;
        }
        if self.after.doubted.len() >= DOUBTED_KEPT {
            self.after.doubted.remove(0);
        }
        self.after.doubted.push(claim);
        true
    }

    /// A poll has spoken: doubted claims that are older than it count now. Against one that is not older, or has no
    /// instant, the answer may come from a place that lags behind: the doubt stays until a second answer says the same.
    fn end_doubt(&mut self, received_ms: i64) -> Ask {
        let waited = self.waited_ms(received_ms);
        let second = is_second(waited);
        self.after.pending = None;
        self.after.doubt = false;
        for doubted in std::mem::take(&mut self.after.doubted) {
            match judged_by(&doubted, &self.claim, second) {
                Doubted::Counts => self.count(doubted),
                Doubted::Dropped => {}
                Doubted::Stays => {
                    self.after.doubt = true;
                    self.after.doubted.push(doubted);
                }
            }
        }
        if !self.after.doubt {
            return Ask::AsPlanned;
        }
        let since_ms = received_ms.saturating_sub(waited.unwrap_or_default());
        self.after.pending = Some(Pending {
            claim: self.claim.clone(),
            since_ms,
        });
        Ask::After(SECOND_POLL_AFTER_MS.saturating_sub(waited.unwrap_or_default()))
    }

    /// A doubted claim that the answer does not contradict.
    fn count(&mut self, doubted: Claim) {
        let Some(meaning) = self.policy.lists.sort(&doubted.status) else {
            return;
        };
        let paid = meaning == Meaning::Paid;
        // Under `confirm_paid`, or without an amount, a push alone never makes a payment: the poll itself must say so.
        let unconfirmed = self.policy.confirm_paid && !self.says_paid();
        if paid && (unconfirmed || !doubted.verdict.names_amount()) {
            return;
        }
        if paid && !self.after.paid_counted {
            self.after.paid_counted = true;
            self.cause.paid_late = Some(doubted.clone());
        }
        let sorted = Sorted {
            claim: doubted,
            meaning,
            settled: false,
        };
        feed(&mut self.after.sorted, sorted);
    }

    /// How long ago an answer said the same as this one and was not believed, milliseconds.
    fn waited_ms(&self, received_ms: i64) -> Option<i64> {
        let pending = self.before.pending.as_ref()?;
        self.same_as(&pending.claim)
            .then(|| received_ms.saturating_sub(pending.since_ms))
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
        same_word(current, &self.claim)
    }

    fn order(&self, current: &Claim) -> Order {
        match (self.claim.at, current.at) {
            (None, _) => Order::Unknown,
            (Some(_), None) => Order::Unbound,
            (Some(new), Some(old)) if new > old => Order::Newer,
            (Some(new), Some(old)) if new < old => Order::Older,
            (Some(_), Some(_)) => Order::Same,
        }
    }

    fn says_paid(&self) -> bool {
        self.meaning == Some(Meaning::Paid)
    }

    fn lacks_amount(&self) -> bool {
        lacks_amount(&self.claim, self.meaning)
    }

    /// The outcome rests on a payment, and this claim would not.
    fn leaves_paid(&self) -> bool {
        let paid_now = self
            .before
            .sorted
            .as_ref()
            .is_some_and(|sorted| sorted.meaning == Meaning::Paid);
        let keeps = self.says_paid()
            && (self.before.outcome != Outcome::Paid || self.claim.verdict == Verdict::Agrees);
        paid_now && !keeps
    }

    /// The claim is older than the one shown, but newer than the payment the outcome rests on; or it takes that payment back,
    /// however the service dated it.
    fn moves_off_paid(&self) -> bool {
        let rests_on = self.before.sorted.as_ref().map(|sorted| sorted.claim.at);
        let is_later = self.meaning.is_some() && rests_on.is_some_and(|at| at <= self.claim.at);
        self.leaves_paid() && (is_later || self.meaning == Some(Meaning::Reversed))
    }

    fn finish(mut self, (decision, why, ask): Verdicted) -> Transition {
        self.cause.rewound = decision == Decision::AdvanceAgreed
            && self
                .before
                .claim
                .as_ref()
                .is_some_and(|current| self.order(current) == Order::Older);
        let change = settle(self.before, &mut self.after, self.cause);
        Transition {
            decision,
            why,
            after: self.after,
            change,
            ask,
        }
    }
}
