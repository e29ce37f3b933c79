//! What was heard of an invoice, gone through again: which of its claims counted, and which of them a poll stood behind.
//! Keeps to the rules of `decide` about doubts, so that lists that did not change make nothing of it. Pure.

use crate::invoice::amount::Amount;
use crate::invoice::observation::{Reported, Source};
use crate::invoice::status::Meaning;
use crate::invoice::sum::{Sum, Verdict};
use crate::invoice::transition::{
    Claim, Counted, Decision, Doubted, Invoice, Policy, is_second, judged_by, same_word,
};
use crate::ledger::store::HeardClaim;

/// The claim as it is judged by what is agreed now. Where no amount could be read, the verdict of then tells what was there.
pub(super) fn claim_now(line: &HeardClaim, agreed: &Sum) -> Claim {
    let (amount, currency) = &line.reported;
    if amount.is_none() && currency.is_none() {
        return line.claim.clone();
    }
    let amount = amount.as_deref().and_then(|text| Amount::parse(text).ok());
    let verdict = match (amount, &line.claim.verdict) {
        (Some(amount), _) => agreed.verdict(&Reported::Value(amount), currency.as_deref()),
        (None, Verdict::Agrees) => Verdict::Agrees,
        (None, said) => said.rejudged(agreed, agreed),
    };
    Claim {
        verdict,
        ..line.claim.clone()
    }
}

/// The claims that counted, oldest heard first. The one the outcome rests on leads: its line may be dropped by now.
pub(super) fn counted(invoice: &Invoice, lines: &[HeardClaim], policy: &Policy) -> Vec<Counted> {
    let mut replay = Replay {
        policy,
        counted: Vec::new(),
        shown: None,
        doubted: Vec::new(),
        waits: None,
    };
    let rests_on = invoice.sorted.as_ref().map(|sorted| Counted {
        claim: sorted.claim.clone(),
        answered: sorted.settled,
        cleared: false,
    });
    replay.counted.extend(rests_on);
    for line in lines {
        replay.hear(line, claim_now(line, &invoice.agreed));
    }
    replay.counted
}

/// The state that decides what counts.
struct Replay<'a> {
    policy: &'a Policy,
    counted: Vec<Counted>,
    /// The claim that was shown.
    shown: Option<Claim>,
    doubted: Vec<Claim>,
    /// An answer that waited for a second one, and since when, milliseconds since 1970.
    waits: Option<(Claim, i64)>,
}

impl Replay<'_> {
    fn hear(&mut self, line: &HeardClaim, mut claim: Claim) {
        let answered = matches!(line.source, Source::Poll | Source::Create);
        match line.decision {
            // A payment without an amount: the first such answer is remembered.
            Decision::Doubt if answered => {
                if self.waited_ms(&claim, line.at_ms).is_none() {
                    self.waits = Some((claim.clone(), line.at_ms));
                }
                self.doubt(Some(claim));
                return;
            }
            Decision::Doubt => {
                if self.doubt(Some(claim)) {
                    self.waits = None;
                }
                return;
            }
            Decision::Pending => {
                if self.waited_ms(&claim, line.at_ms).is_none() {
                    self.waits = Some((claim, line.at_ms));
                }
                return;
            }
            // It counted when it was heard first, and what came since may have taken it back.
            Decision::Repeat if line.known => return,
            Decision::Advance
            | Decision::AdvanceAgreed
            | Decision::Repeat
            | Decision::Confirmed
            | Decision::Stale => {}
            Decision::Overtaken
            | Decision::NotThisInvoice
            | Decision::OtherId
            | Decision::Operator
            | Decision::Reassessed => return,
        }
        if answered {
            // An answer that took the place of another word of its instant is asked for again.
            let replaced = self.shown.clone().filter(|shown| {
                line.decision == Decision::Advance
                    && shown.at.is_some()
                    && shown.at == claim.at
                    && !same_word(shown, &claim)
            });
            self.doubt(replaced);
            self.end_doubt(&claim, line.at_ms);
        }
        match line.decision {
            // The newer instant was kept.
            Decision::Repeat | Decision::Confirmed => {
                let shown = self.shown.as_ref().and_then(|shown| shown.at);
                claim.at = claim.at.max(shown);
                self.shown = Some(claim.clone());
            }
            Decision::Stale => {}
            _ => {
                self.waits = self.waits.take().filter(|_| answered);
                self.shown = Some(claim.clone());
            }
        }
        let unconfirmed =
            line.decision == Decision::Repeat && self.policy.confirm_paid && self.is_paid(&claim);
        if !unconfirmed {
            self.counted.push(Counted {
                claim,
                answered,
                cleared: false,
            });
        }
    }

    /// True when there is one, and it was not doubted before.
    fn doubt(&mut self, claim: Option<Claim>) -> bool {
        let new = claim.filter(|claim| !self.doubted.contains(claim));
        let is_new = new.is_some();
        self.doubted.extend(new);
        is_new
    }

    /// A poll said `answer`.
    fn end_doubt(&mut self, answer: &Claim, at_ms: i64) {
        let waited = self.waited_ms(answer, at_ms);
        let second = is_second(waited);
        self.waits = None;
        for claim in std::mem::take(&mut self.doubted) {
            match judged_by(&claim, answer, second) {
                Doubted::Stays => self.doubted.push(claim),
                Doubted::Dropped => {}
                Doubted::Counts => {
                    // Under `confirm_paid` the answer itself must say so, and always where no amount was named.
                    let unconfirmed = self.is_paid(&claim)
                        && (!claim.verdict.names_amount()
                            || self.policy.confirm_paid && !self.is_paid(answer));
                    let counted = Counted {
                        claim,
                        answered: false,
                        cleared: true,
                    };
                    self.counted.extend((!unconfirmed).then_some(counted));
                }
            }
        }
        if !self.doubted.is_empty() {
            let since_ms = at_ms.saturating_sub(waited.unwrap_or_default());
            self.waits = Some((answer.clone(), since_ms));
        }
    }

    /// How long ago an answer said the same and was not believed, milliseconds.
    fn waited_ms(&self, claim: &Claim, at_ms: i64) -> Option<i64> {
        let (waits, since_ms) = self.waits.as_ref()?;
        same_word(waits, claim).then(|| at_ms.saturating_sub(*since_ms))
    }

    fn is_paid(&self, claim: &Claim) -> bool {
        self.policy.lists.sort(&claim.status) == Some(Meaning::Paid)
    }
}

#[cfg(test)]
mod tests;
