//! What an invoice amounts to after the merchant's lists changed: its counted claims are sorted again, in the order they
//! were heard. Status and agreed figures stay; only the outcome may change, or a doubt arise about a payment nobody confirmed.

use super::Policy;
use super::doubt::same_word;
use super::registers::{Cause, feed, settle};
use super::state::{Claim, Invoice, Sorted};
use super::unnamed::{completed, lacks_amount};
use crate::invoice::event::Change;
use crate::invoice::status::Meaning;

/// A claim that counted when it was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The claim.
    pub claim: Claim,
    /// A poll stood behind it.
    pub answered: bool,
    /// It was doubted until a poll said nothing against it.
    pub cleared: bool,
}

/// Sorts the counted claims, oldest heard first, by the policy's lists. The claim that is shown counts as well, whether
/// it is among them or not.
pub fn reassess(
    invoice: &Invoice,
    counted: &[Counted],
    policy: &Policy,
) -> (Invoice, Option<Change>) {
    let mut after = invoice.clone();
    after.sorted = None;
    after.paid_counted = false;
    let shown = invoice.claim.clone().map(|claim| Counted {
        claim,
        answered: false,
        cleared: false,
    });
    for Counted {
        claim,
        answered,
        cleared,
    } in counted.iter().chain(&shown)
    {
        let Some(meaning) = policy.lists.sort(&claim.status) else {
            continue;
        };
        let claim = &completed(claim.clone(), &policy.lists, after.sorted.as_ref());
        let lacks_amount = lacks_amount(claim, Some(meaning));
        // Without a poll behind it a push makes no payment for a shop that trusts none.
        let unconfirmed =
            policy.confirm_paid && meaning == Meaning::Paid && !(*answered || *cleared);
        let standing = invoice.sorted.as_ref().map(|sorted| &sorted.claim);
        if lacks_amount || unconfirmed && standing != Some(claim) {
            // The payment that stands, told again with a newer instant, is no other one.
            if !lacks_amount && standing.is_some_and(|standing| same_word(standing, claim)) {
                continue;
            }
            after.doubt = true;
            if !after.doubted.contains(claim) {
                after.doubted.push(claim.clone());
            }
            continue;
        }
        after.paid_counted |= meaning == Meaning::Paid;
        let sorted = Sorted {
            claim: claim.clone(),
            meaning,
            settled: *answered,
        };
        if *answered {
            after.sorted = Some(sorted);
        } else {
            feed(&mut after.sorted, sorted);
        }
    }
    after
        .doubted
        .retain(|claim| policy.lists.sort(&claim.status).is_some());
    let change = settle(invoice, &mut after, Cause::default());
    (after, change)
}
