//! One committed change of an invoice: what kind it is and what it says. Append-only and numbered by the ledger.

use std::fmt;

use super::status::{Outcome, Status};
use super::transition::Claim;

/// What kind of change an event is (design 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The first claim, and the invoice is open.
    Opened,
    /// Another status. The order's outcome stays as it is.
    Status,
    /// Paid for the first time, not after a failure.
    Paid,
    /// Paid again after another outcome.
    PaidAgain,
    /// Paid for the first time, after it had failed.
    Late,
    /// Will not be paid any more.
    Failed,
    /// Was paid, and the money went back.
    Reversed,
    /// Paid with another amount or currency than agreed, or than the order's newer invoice has.
    Mismatch,
    /// Paid when another invoice had paid the order already.
    SecondPayment,
    /// Asked until the horizon without a final answer.
    Unresolved,
    /// A person changed something.
    Operator,
}

impl EventKind {
    /// All of them, in the order they usually come.
    pub const ALL: [Self; 11] = [
        Self::Opened,
        Self::Status,
        Self::Paid,
        Self::PaidAgain,
        Self::Late,
        Self::Failed,
        Self::Reversed,
        Self::Mismatch,
        Self::SecondPayment,
        Self::Unresolved,
        Self::Operator,
    ];

    /// The word used in the ledger and in the hook document.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Status => "status",
            Self::Paid => "paid",
            Self::PaidAgain => "paid_again",
            Self::Late => "late",
            Self::Failed => "failed",
            Self::Reversed => "reversed",
            Self::Mismatch => "mismatch",
            Self::SecondPayment => "second_payment",
            Self::Unresolved => "unresolved",
            Self::Operator => "operator",
        }
    }

    /// Reads the word back.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What changed. The ledger adds the number, the id, the time and the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What kind of change it is.
    pub kind: EventKind,
    /// A poll, twice the same, went back to an older claim.
    pub rewound: bool,
    /// The claim that caused it; `None` for what nobody claimed (`unresolved`, `operator`).
    pub cause: Option<Claim>,
    /// The status shown from now on.
    pub status: Option<Status>,
    /// The status shown before.
    pub previous_status: Option<Status>,
    /// The outcome from now on.
    pub outcome: Outcome,
    /// The outcome before.
    pub previous_outcome: Outcome,
    /// The outcome of the order from now on.
    pub order_outcome: Outcome,
}
