//! The last restore of the ledger, in the words of `--json`: what is held for it, and how far the polls after it are. Pure.
//! Relies on what the ledger counted. Promises no figure before a daemon has counted all.

use serde::{Deserialize, Serialize};

use super::report::{Count, time};
use crate::ledger::{Overview, Repolled};

/// The last restore of the ledger from a copy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Restored {
    /// When it was opened after it.
    pub(crate) at: String,
    /// Its number.
    pub(crate) generation: i64,
    /// Deliveries that are held because of it.
    pub(crate) held: Count,
    /// How many final outcomes were polled again; `None` until a daemon has counted them.
    pub(crate) polled: Option<Polled>,
}

/// How far the polls of final outcomes are.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Polled {
    pub(crate) count: u64,
    pub(crate) of: u64,
}

impl Restored {
    pub(super) fn of(overview: &Overview) -> Option<Self> {
        let restore = overview.restore?;
        let polled = |Repolled { count, of }| Polled { count, of };
        Some(Self {
            at: time(restore.at_ms),
            generation: restore.generation,
            held: overview.held_restored.into(),
            polled: overview.repolled.map(polled),
        })
    }
}
