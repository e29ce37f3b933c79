//! What the moves act on: claims, the two registers, and the invoice as far as [`super::decide`] needs to know it.

use crate::invoice::ids::{InvoiceId, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::{Sum, Verdict};

/// The service's word at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The status, to the letter.
    pub status: Status,
    /// Whether amount and currency agree with what was agreed.
    pub verdict: Verdict,
    /// `updatedAt`, when it was there and readable.
    pub at: Option<Moment>,
}

/// The latest claim whose status stands on a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorted {
    /// The claim.
    pub claim: Claim,
    /// What its status was sorted as.
    pub meaning: Meaning,
    /// A poll agreed: a claim of the same instant does not move it any more.
    pub settled: bool,
}

/// A poll's claim that waits for a second poll to say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What the first poll said.
    pub claim: Claim,
    /// When it was heard, milliseconds since 1970.
    pub since_ms: i64,
}

/// The invoice that stands for the order in the place of this one: a newer one, or the one that paid it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superseding {
    /// What was agreed for it.
    pub sum: Sum,
    /// What it amounts to: the outcome of the order.
    pub outcome: Outcome,
}

/// What [`decide`](super::decide) needs to know of an invoice, and what it changes.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts, each with its own column"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invoice {
    /// The merchant's order.
    pub order_id: OrderId,
    /// The service's id, once known.
    pub id: Option<InvoiceId>,
    /// What was agreed: what was asked, until a person accepts other figures.
    pub agreed: Sum,
    /// Counts changes. An answer carries the revision its question was asked at.
    pub revision: i64,
    /// The claim register: the status shown.
    pub claim: Option<Claim>,
    /// The sorted register: the outcome.
    pub sorted: Option<Sorted>,
    /// What the claims amount to.
    pub outcome: Outcome,
    /// What stands for the order instead, if this invoice is superseded. A payment that makes it `paid` ends that.
    pub superseded: Option<Superseding>,
    /// Only a poll can tell what is right.
    pub doubt: bool,
    /// Claims that were doubted and count once a poll has spoken.
    pub doubted: Vec<Claim>,
    /// A poll's claim that waits for a second one.
    pub pending: Option<Pending>,
    /// Some counted claim said paid.
    pub paid_counted: bool,
    /// The event `paid` or `late` has happened; it happens once in an invoice's life.
    pub paid_fired: bool,
    /// The event `failed` has happened: a payment after it is `late`.
    pub failed_fired: bool,
    /// Claims that are events of this invoice already.
    pub recorded: Vec<Claim>,
}

impl Invoice {
    /// What the order amounts to.
    pub fn order_outcome(&self) -> Outcome {
        let superseding = self.superseded.as_ref();
        superseding.map_or(self.outcome, |superseding| superseding.outcome)
    }
}

#[cfg(test)]
impl Invoice {
    /// An invoice nobody has said anything about yet.
    pub(crate) fn unheard(order_id: OrderId, agreed: Sum) -> Self {
        Self {
            order_id,
            id: None,
            agreed,
            revision: 0,
            claim: None,
            sorted: None,
            outcome: Outcome::Open,
            superseded: None,
            doubt: false,
            doubted: Vec::new(),
            pending: None,
            paid_counted: false,
            paid_fired: false,
            failed_fired: false,
            recorded: Vec::new(),
        }
    }
}
