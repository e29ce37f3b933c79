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

/// How far the polls are after the last restore. Invoices are counted first, so that it can be said how many there are; both go
/// from the newest to the oldest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repoll {
    /// The generation that the restore began.
    pub(crate) generation: i64,
    /// Invoices below this one are still to be counted; `None` when all were.
    pub(crate) uncounted: Option<InvoiceKey>,
    /// Invoices below this one are still to be looked at; 0 when all were.
    pub(crate) below: InvoiceKey,
    /// How many are to be polled, of those that were counted.
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

/// What one look counted of the invoices that are to be polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// The last invoice that was read; `None` when there was none to be read.
    pub(crate) upto: Option<InvoiceKey>,
    /// The newest of them.
    pub(crate) newest: Option<InvoiceKey>,
    /// How many.
    pub(crate) count: u64,
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
    /// Invoices counted in one look: a tenth of a second, for which the poller stands still.
    pub(crate) const COUNTED: u32 = 50_000;

    /// Begins.
    pub(crate) const fn begin(generation: i64) -> Self {
        Self {
            generation,
            uncounted: Some(InvoiceKey(i64::MAX)),
            below: InvoiceKey(0),
            of: 0,
            passed: 0,
        }
    }

    /// True when all were looked at.
    pub(crate) const fn is_over(&self) -> bool {
        self.uncounted.is_none() && self.below.0 <= 0
    }

    /// Goes on counting behind what a look counted below [`Self::uncounted`].
    pub(crate) fn count(&mut self, counted: Counted) {
        self.uncounted = counted.upto;
        self.of = self.of.saturating_add(counted.count);
        if let Some(newest) = counted.newest.filter(|_| self.below.0 == 0) {
            self.below = InvoiceKey(newest.0.saturating_add(1));
        }
    }

    /// What that comes to, when so many that were filed are still to be polled.
    /// `None` until all are counted.
    pub(super) fn repolled(&self, waits: Tally) -> Option<Repolled> {
        let repolled = Repolled {
            count: self.passed.saturating_sub(waits.count),
            of: self.of,
        };
        self.uncounted.is_none().then_some(repolled)
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
                let known = known.filter(|known| known.generation == generation);
                let begun = || Repoll::begin(generation);
                Ok((generation > 0).then(|| known.unwrap_or_else(begun)))
            })
        })
        .await
    }

    /// Counts those below this invoice that were not polled since this generation began.
    pub(crate) async fn count_ended(
        &self,
        generation: i64,
        below: InvoiceKey,
    ) -> Result<Counted, ReadError> {
        self.ask(move |store| store.count_ended(generation, below, Repoll::COUNTED))
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

    /// After a look that counted so many up to this one.
    fn counted(generation: i64, newest: i64, count: u64) -> Repoll {
        let mut repoll = Repoll::begin(generation);
        repoll.count(Counted {
            upto: Some(InvoiceKey(1)),
            newest: (count > 0).then_some(InvoiceKey(newest)),
            count,
        });
        assert!(!repoll.is_over());
        assert_eq!(repoll.repolled(Tally::default()), None);
        repoll.count(Counted {
            upto: None,
            newest: None,
            count: 0,
        });
        repoll
    }

    #[test]
    fn the_newest_are_filed_first_and_each_once() {
        let mut repoll = counted(2, 300, 300);
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
        let waits = Tally {
            count: 9,
            more: false,
        };
        let (count, of) = (291, 300);
        assert_eq!(repoll.repolled(waits), Some(Repolled { count, of }));
    }

    #[test]
    fn where_none_is_to_be_polled_it_is_over_at_once() {
        assert!(counted(1, 9, 0).is_over());
        let mut repoll = counted(1, 9, 1);
        assert!(!repoll.is_over());
        // As many as may be filed, and nothing behind them: that is seen by the next look.
        let rows: Vec<Passed> = (2..=9).rev().map(|key| row(key, true, 0)).collect();
        assert_eq!(repoll.go_on(&rows), keys((2..=9).rev()));
        assert!(repoll.go_on(&[]).is_empty() && repoll.is_over());
    }
}
