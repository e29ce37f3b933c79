//! What a person may change: the id of an invoice whose create answer was lost, and the figures that are agreed. Each
//! changes what it names and nothing else; what the claims amount to then follows by the same rules as ever.

use super::registers::{Cause, outcome, settle};
use super::state::{Claim, Invoice, Sorted};
use crate::invoice::event::Change;
use crate::invoice::ids::InvoiceId;
use crate::invoice::status::{Meaning, Outcome};
use crate::invoice::sum::{Sum, Verdict};

/// Names the id. The caller has made sure that the invoice has none and that no other has it.
pub fn adopt(invoice: &Invoice, id: InvoiceId) -> Invoice {
    Invoice {
        id: Some(id),
        revision: invoice.revision.saturating_add(1),
        ..invoice.clone()
    }
}

/// Takes `sum` as what is agreed for the order and judges the stored claims again; a payment in that sum counts from now on,
/// and makes the invoice the one that stands for its order. `recorded` claims are left as they were told in their events.
/// `confirmed` is a doubted payment without an amount, whose amount the person names.
pub fn accept(
    invoice: &Invoice,
    sum: &Sum,
    confirmed: Option<&Claim>,
) -> (Invoice, Option<Change>) {
    let judged = |claim: &Claim| Claim {
        verdict: claim.verdict.rejudged(&invoice.agreed, sum),
        ..claim.clone()
    };
    let mut after = invoice.clone();
    after.agreed = sum.clone();
    after.claim = invoice.claim.as_ref().map(judged);
    if let Some(sorted) = &mut after.sorted {
        sorted.claim = judged(&sorted.claim);
    }
    if let Some(pending) = &mut after.pending {
        pending.claim = judged(&pending.claim);
    }
    after.doubted = invoice.doubted.iter().map(judged).collect();
    if let Some(claim) = confirmed {
        confirm(&mut after, claim);
    }
    // A person says that this payment pays the order.
    let pays = outcome(after.sorted.as_ref(), after.paid_counted) == Outcome::Paid;
    if pays {
        after.superseded = None;
    }
    let cause = Cause {
        decided: pays,
        ..Cause::default()
    };
    let change = settle(invoice, &mut after, cause);
    (after, change)
}

/// The payment stands with the agreed sum, and what doubted its amount is settled.
fn confirm(after: &mut Invoice, claim: &Claim) {
    let payment = Claim {
        verdict: Verdict::Agrees,
        ..claim.clone()
    };
    let named = |doubted: &Claim| doubted.verdict.names_amount();
    after
        .doubted
        .retain(|doubted| doubted.status != payment.status || named(doubted));
    after.doubt = !after.doubted.is_empty();
    after.pending = None;
    if after
        .claim
        .as_ref()
        .is_none_or(|shown| shown.at <= payment.at)
    {
        after.claim = Some(payment.clone());
    }
    after.paid_counted = true;
    after.sorted = Some(Sorted {
        claim: payment,
        meaning: Meaning::Paid,
        settled: true,
    });
}

/// An invoice stands for its order again, since the newer one was never opened.
pub fn stand_again(invoice: &Invoice) -> (Invoice, Option<Change>) {
    let mut after = invoice.clone();
    let cause = Cause {
        decided: invoice.outcome != Outcome::SecondPayment,
        ..Cause::default()
    };
    let change = settle(invoice, &mut after, cause);
    (after, change)
}
