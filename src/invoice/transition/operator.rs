//! What a person may change: the id of an invoice whose create answer was lost, and the figures that are agreed. Each
//! changes what it names and nothing else; what the claims amount to then follows by the same rules as ever.

use super::registers::{Cause, outcome, settle};
use super::state::{Claim, Invoice};
use crate::invoice::event::Change;
use crate::invoice::ids::InvoiceId;
use crate::invoice::status::Outcome;
use crate::invoice::sum::Sum;

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
pub fn accept(invoice: &Invoice, sum: &Sum) -> (Invoice, Option<Change>) {
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
    // A person says that this payment pays the order.
    if outcome(after.sorted.as_ref(), after.paid_counted) == Outcome::Paid {
        after.superseded = None;
    }
    let change = settle(invoice, &mut after, Cause::default());
    (after, change)
}
