//! Who goes before whom when more is due than may be asked. Pure. The ledger files due times by class, so that a million
//! old invoices never stand between the poller and a young one.

use super::{Heard, counted_ms};

/// Invoices younger than this are young, milliseconds: the customer is likely still at the till.
pub const YOUNG_MS: i64 = 1_800_000;

/// What a question is about, the most pressing first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Doubt, a second poll, or a nudge: money may hang on it.
    Urgent,
    /// Opened within the last half hour.
    Young,
    /// All else that the plan polls.
    #[default]
    Old,
    /// What the plan polls no more, and a restore wants polled once.
    Restored,
}

impl Class {
    /// All of them, the most pressing first.
    pub const ALL: [Self; 4] = [Self::Urgent, Self::Young, Self::Old, Self::Restored];

    /// True of a class whose slow answers must not take the last place from a young invoice.
    pub const fn is_patient(self) -> bool {
        matches!(self, Self::Old | Self::Restored)
    }

    /// The number it is stored under: its place among all of them.
    pub const fn number(self) -> i64 {
        match self {
            Self::Urgent => 0,
            Self::Young => 1,
            Self::Old => 2,
            Self::Restored => 3,
        }
    }

    /// Reads the number back.
    pub fn of_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.number() == number)
    }
}

/// The class of an invoice at a time, milliseconds since 1970.
pub fn class(heard: &Heard, at_ms: i64) -> Class {
    if heard.doubt || heard.pending_since_ms.is_some() || is_nudged(heard) {
        Class::Urgent
    } else if heard.restored {
        Class::Restored
    } else if at_ms.saturating_sub(heard.created_ms).unsigned_abs() < YOUNG_MS.unsigned_abs() {
        // Of one that was opened far in the future nobody knows its age: a clock was wrong, maybe for all of them.
        Class::Young
    } else {
        Class::Old
    }
}

/// A nudge is done with once a question that came after it was answered, or brought no answer often enough. One that was
/// heard of since is done with as well.
fn is_nudged(heard: &Heard) -> bool {
    let before = |at: Option<i64>, nudged| at.is_none_or(|at| at < nudged);
    heard.nudged_ms.is_some_and(|nudged| {
        before(heard.asked_ms, nudged)
            || (before(counted_ms(heard), nudged) && before(heard.heard_ms, nudged))
    })
}
