//! How far the polls are that a restore wants: one of each invoice that the plan polls no more.
//! Relies on invoices being numbered in the order in which they were opened.
//! Promises that a look reads a bounded number of rows, and that a restart goes on where the last look ended.

use serde::{Deserialize, Serialize};

use super::error::ReadError;
use super::fact::{GENERATION, REPOLL};
use super::overview::Tally;
use super::reader::Reader;
use super::row::InvoiceKey;

/// Invoices filed in one look: so many may stand before one that becomes due.
pub(crate) const FILED_AT_ONCE: u32 = 8;

/// How far the polls are after the last restore. They go from the newest invoice to the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repoll {
    /// The generation that the restore began.
    pub(crate) generation: i64,
    /// Invoices below this one are still to be looked at; 0 when all were.
    pub(crate) below: InvoiceKey,
    /// How many were to be polled when it began.
    pub(crate) of: u64,
    /// How many of them were filed, or were polled before their turn.
    pub(crate) passed: u64,
}

/// How many invoices were polled since a restore, of those that were to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repolled {
    /// So many were.
    pub count: u64,
    /// Of so many.
    pub of: u64,
}

/// An invoice as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The invoice.
    pub(crate) key: InvoiceKey,
    /// The service has it, and its outcome is final or it is unresolved.
    pub(crate) is_ended: bool,
    /// The generation under which it was polled last.
    pub(crate) generation: i64,
}

impl Repoll {
    /// Invoices read in one look: a million of them in some minutes where none of them is to be polled.
    pub(crate) const LOOKED_AT: u32 = 256;

    /// Begins: the newest invoice of before the restore, and how many are to be polled.
    pub(crate) fn begin(generation: i64, (newest, of): (InvoiceKey, u64)) -> Self {
        Self {
            generation,
            below: InvoiceKey(if of == 0 { 0 } else { newest.0 + 1 }),
            of,
            passed: 0,
        }
    }

    /// True when all were looked at.
    pub(crate) const fn is_over(&self) -> bool {
        self.below.0 <= 0
    }

    /// What that comes to, when so many that were filed are still to be polled.
    pub(super) const fn repolled(&self, waits: Tally) -> Repolled {
        Repolled {
            count: self.passed.saturating_sub(waits.count),
            of: self.of,
        }
    }

    /// Goes on behind the rows read below [`Self::below`]; gives those that are to be filed.
    pub(crate) fn go_on(&mut self, rows: &[Passed]) -> Vec<InvoiceKey> {
        let mut filed = Vec::new();
        let most = usize::try_from(FILED_AT_ONCE).unwrap_or(usize::MAX);
        for row in rows {
            if filed.len() == most {
                return filed;
            }
            if row.is_ended {
                self.passed = self.passed.saturating_add(1).min(self.of);
                if row.generation < self.generation {
                    filed.push(row.key);
                }
            }
            self.below = row.key;
        }
        if rows.len() < usize::try_from(Self::LOOKED_AT).unwrap_or(usize::MAX) {
            (self.below, self.passed) = (InvoiceKey(0), self.of);
        }
        filed
    }
}

impl Reader {
    /// How far the polls after the last restore are, begun where they were not; `None` of a ledger that was never restored.
    pub(crate) async fn repoll(&self) -> Result<Option<Repoll>, ReadError> {
        self.ask(|store| {
            store.at_one_moment(|store| {
                let generation = store.fact(&GENERATION)?.unwrap_or_default();
                let known = store.fact(&REPOLL)?;
                match known.filter(|known| known.generation == generation) {
                    Some(known) => Ok(Some(known)),
                    None if generation == 0 => Ok(None),
                    None => Ok(Some(Repoll::begin(generation, store.ended(generation)?))),
                }
            })
        })
        .await
    }

    /// The invoices to be looked at next.
    pub(crate) async fn passed(&self, below: InvoiceKey) -> Result<Vec<Passed>, ReadError> {
        self.ask(move |store| store.passed(below, Repoll::LOOKED_AT))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: i64, is_ended: bool, generation: i64) -> Passed {
        Passed {
            key: InvoiceKey(key),
            is_ended,
            generation,
        }
    }

    fn keys(keys: impl IntoIterator<Item = i64>) -> Vec<InvoiceKey> {
        keys.into_iter().map(InvoiceKey).collect()
    }

    #[test]
    fn the_newest_are_filed_first_and_each_once() {
        let mut repoll = Repoll::begin(2, (InvoiceKey(300), 300));
        let mut rows: Vec<Passed> = (45..=300).rev().map(|key| row(key, true, 1)).collect();
        assert_eq!(repoll.go_on(&rows), keys((293..=300).rev()));
        assert_eq!((repoll.below, repoll.passed), (InvoiceKey(293), 8));
        // Open ones, and those that were polled since.
        rows = (37..=292)
            .rev()
            .map(|key| row(key, key % 2 == 0, 2))
            .collect();
        assert_eq!(repoll.go_on(&rows), []);
        assert_eq!((repoll.below, repoll.passed), (InvoiceKey(37), 136));
        let last = [row(20, true, 0), row(3, false, 0)];
        assert_eq!(repoll.go_on(&last), keys([20]));
        assert!(repoll.is_over());
        assert_eq!(repoll.passed, repoll.of);
    }

    #[test]
    fn where_none_is_to_be_polled_it_is_over_at_once() {
        assert!(Repoll::begin(1, (InvoiceKey(9), 0)).is_over());
        let mut repoll = Repoll::begin(1, (InvoiceKey(9), 1));
        assert!(!repoll.is_over());
        // As many as may be filed, and nothing behind them: that is seen by the next look.
        let rows: Vec<Passed> = (2..=9).rev().map(|key| row(key, true, 0)).collect();
        assert_eq!(repoll.go_on(&rows), keys((2..=9).rev()));
        assert!(repoll.go_on(&[]).is_empty() && repoll.is_over());
    }
}
