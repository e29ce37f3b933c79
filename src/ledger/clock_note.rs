//! What the daemon found out about this machine's clock, as the ledger remembers it. Pure; relies on the daemon to look.
//! Promises to say in what way the clock is wrong, in a form that whoever reads the ledger understands.

use serde::{Deserialize, Serialize};

/// A clock that cannot be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WrongClock {
    /// It shows a time before this program was written.
    NotSet,
    /// It shows less than when the newest event was recorded, milliseconds since 1970.
    Behind {
        /// When that was.
        newest_ms: i64,
    },
    /// It differs from the service's.
    Differs {
        /// How far ours is ahead, milliseconds; less than 0 for behind.
        ahead_ms: i64,
    },
}

/// The last finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClockNote {
    /// In what way it is wrong; `None` for a clock that may be right.
    pub wrong: Option<WrongClock>,
    /// The newest event then: later ones are not judged yet.
    pub upto: i64,
}
