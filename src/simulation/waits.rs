//! What the outbox does about waits after the clock was set, as `outbox/waits` does it: with the ledger's own correction. Relies on
//! a look after each jump. Promises to say when a delivery is still to wait longer than the step of the schedule it waits for.

use super::running::SCAN_EVERY;
use super::world::{Sabotage, World, say};
use crate::clock::STEP_MS;
use crate::ledger::{DeliveryState, LedgerCommand};

impl World {
    /// Plans again what a wrong clock planned.
    pub(super) fn correct_waits(&mut self) {
        let (now_ms, skew) = (self.wall_ms(), self.skew);
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let set_ms = skew - daemon.looked_skew;
        let forward_ms = if set_ms > STEP_MS { set_ms } else { 0 };
        let is_ahead = self.store.planned_after(now_ms + STEP_MS);
        if (is_ahead || forward_ms > 0) && self.sabotage != Sabotage::KeepWaits {
            say!(self, "outbox", "plans again: the clock was set");
            let replan = LedgerCommand::Replan { now_ms, forward_ms };
            if self.write_now(&replan).is_err() {
                self.scan_at(self.now + SCAN_EVERY);
                return;
            }
        }
        if let Some(daemon) = &mut self.daemon {
            daemon.looked_skew = skew;
        }
        self.check_waits();
    }

    fn check_waits(&mut self) {
        let now_ms = self.wall_ms();
        let rows = self.store.deliveries().into_iter();
        let late = rows.filter(|row| row.state == DeliveryState::Waiting);
        let late = late.filter_map(|row| {
            let (left_ms, wait_ms) = (row.next_ms? - now_ms, *self.book.waits.get(&row.key)?);
            (left_ms > wait_ms + STEP_MS).then(|| {
                format!(
                    "no wait is longer than its step: delivery {} has {left_ms} of {wait_ms} ms left",
                    row.key.0
                )
            })
        });
        let late: Vec<String> = late.collect();
        self.book.broken.extend(late);
    }
}
