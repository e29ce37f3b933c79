//! Payments that name no amount that can be read, though contract 2.3 shows one: they are doubt until an answer names one, or a
//! person does.
//! Pure; relies on the verdict of a claim.
//! Promises that no such claim makes a payment, and that none takes back a payment whose amount is known.

use super::state::{Claim, Invoice, Sorted};
use crate::invoice::status::{Meaning, StatusLists};
use crate::invoice::sum::Verdict;

/// The claim says paid and names no amount.
pub(super) fn lacks_amount(claim: &Claim, meaning: Option<Meaning>) -> bool {
    meaning == Some(Meaning::Paid) && !claim.verdict.names_amount()
}

/// The claim, about the payment that stands where it names no amount of its own: that says nothing against the known one.
pub(super) fn completed(claim: Claim, lists: &StatusLists, standing: Option<&Sorted>) -> Claim {
    if !is_silent(&claim) || lists.sort(&claim.status) != Some(Meaning::Paid) {
        return claim;
    }
    let payment = standing.filter(|standing| {
        standing.meaning == Meaning::Paid && standing.claim.verdict.names_amount()
    });
    match payment {
        Some(payment) => Claim {
            verdict: payment.claim.verdict.clone(),
            ..claim
        },
        None => claim,
    }
}

/// It says nothing about the sum that can be read, and names no other currency.
const fn is_silent(claim: &Claim) -> bool {
    matches!(claim.verdict, Verdict::NoAmount | Verdict::Unreadable)
}

/// The latest doubted claim that says paid without an amount: what a person confirms who names the amount.
pub fn unnamed_payment<'i>(invoice: &'i Invoice, lists: &StatusLists) -> Option<&'i Claim> {
    let doubted = invoice.doubted.iter();
    doubted
        .filter(|claim| is_silent(claim) && lists.sort(&claim.status) == Some(Meaning::Paid))
        .max_by_key(|claim| claim.at)
}
