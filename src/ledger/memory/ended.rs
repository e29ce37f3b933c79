//! A restore in memory: the catching up, and the invoices that the plan polls no more, as SQLite's store answers.
//! Relies on `apply`, which catches up whatever store there is.
//! Promises to leave the rules as an opening after the restore has them.

use super::MemoryStore;
use crate::invoice::status::Outcome;
use crate::ledger::apply::{Rules, catch_up};
use crate::ledger::fact::{GENERATION, RESTORED};
use crate::ledger::repoll::{Counted, Passed};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::{Store as _, StoreError, Stored};

impl MemoryStore {
    /// Takes this ledger for a copy that was put back, as the first opening after a restore does.
    pub(crate) fn catch_up(&mut self, rules: &mut Rules, now_ms: i64) -> Result<(), StoreError> {
        self.begin()?;
        let generation = self.fact_of(&GENERATION).unwrap_or_default() + 1;
        catch_up(self, generation, now_ms)?;
        self.commit()?;
        rules.restore = self.fact_of(&RESTORED).unwrap_or_default();
        Ok(())
    }

    /// Invoices below this one, newest first.
    pub(crate) fn passed(&self, below: InvoiceKey, limit: u32) -> Vec<Passed> {
        let most = usize::try_from(limit).unwrap_or(usize::MAX);
        let older = self.invoices.iter().rev().filter(|(key, _)| *key < below.0);
        let passed = |(key, stored): (i64, &Stored)| Passed {
            key: InvoiceKey(key),
            is_ended: stored.invoice.id.is_some()
                && (stored.row.outcome != Outcome::Open || stored.row.unresolved),
            generation: stored.generation,
        };
        older.map(passed).take(most).collect()
    }

    /// Counts among so many below this one those that the plan polls no more and that were not polled since this generation began.
    pub(crate) fn count_ended(&self, generation: i64, below: InvoiceKey, limit: u32) -> Counted {
        let mut rows = self.passed(below, limit);
        let upto = rows.last().map(|passed| passed.key);
        rows.retain(|passed| passed.is_ended && passed.generation < generation);
        Counted {
            upto,
            newest: rows.first().map(|passed| passed.key),
            count: u64::try_from(rows.len()).unwrap_or(u64::MAX),
        }
    }
}
