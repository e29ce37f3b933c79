//! An operator who retries, replays, releases and abandons whatever there is, at any time, from a process of its own. The
//! promises must hold all the same: attempts without gaps, events in their order, and all done that nobody gave up.

use super::world::{Happens, World, say};
use crate::ledger::{Act, Acting, DeliveryKey, DeliveryRow, LedgerCommand};

impl World {
    /// Plans when the operator comes.
    pub(super) fn plan_operator(&mut self) {
        for at in self.scenario.operator.clone() {
            self.at(at, Happens::Operator);
        }
    }

    /// One act on up to three deliveries, whatever their state is.
    pub(super) fn operate(&mut self) {
        let rows = self.store.deliveries();
        if rows.is_empty() {
            return;
        }
        let act = self
            .dice
            .pick(&[Act::Retry, Act::Replay, Act::Release, Act::Abandon]);
        let last = i64::try_from(rows.len()).expect("a handful") - 1;
        let keys: Vec<DeliveryKey> = (0..self.dice.between(1, 3))
            .filter_map(|_| {
                let place = usize::try_from(self.dice.between(0, last)).ok()?;
                rows.get(place).map(|row| row.key)
            })
            .collect();
        say!(self, "operator", "{act:?} {keys:?}");
        // Stored or not: who asked for it cannot always tell.
        for key in &keys {
            self.book.operated.insert(*key, self.now);
        }
        let acting = Acting {
            act,
            keys,
            now_ms: self.wall_ms(),
        };
        // A process that dies here is the operator's own.
        self.write(&[&LedgerCommand::Act(acting)]);
        self.plan_looks();
    }

    /// True when the operator touched a delivery at this time or later.
    pub(super) fn is_operated_since(&self, row: &DeliveryRow, since: i64) -> bool {
        let at = self.book.operated.get(&row.key);
        at.is_some_and(|at| *at >= since)
    }
}
