//! Waits do not depend on the wall clock: when it is set, what waits is planned again. Relies on the time at which each wait
//! was planned, which the ledger keeps, and on a look at both clocks in each turn of the loop. Promises that no delivery waits
//! longer than the wait it was given, from the correction on, also when the clock was set while no daemon ran.

use std::error::Error;

use super::Outbox;
use crate::clock::{Reading, STEP_MS};

impl Outbox {
    /// Plans again what a wrong clock planned. `scans`: the ledger is read for it though the clock was not set, since
    /// something may have been planned between a step and the turn that noticed it.
    pub(super) async fn correct_waits(&mut self, scans: bool) {
        let now = Reading::now();
        let set_ms = self.looked.map(|looked| now.set_since(looked));
        let is_set = set_ms.is_none_or(|set_ms| set_ms.abs() > STEP_MS);
        if !is_set && !scans {
            self.looked = Some(now);
            return;
        }
        let forward_ms = set_ms.filter(|set_ms| *set_ms > STEP_MS).unwrap_or(0);
        if forward_ms == 0 {
            let ahead = self
                .reader
                .planned_after(now.wall_ms.saturating_add(STEP_MS));
            match ahead.await {
                Ok(false) => {
                    self.looked = Some(now);
                    return;
                }
                Ok(true) => {}
                // The look for deliveries to run meets the same trouble, and tells.
                Err(_unread) => return,
            }
        }
        match self.desk.writer.replan(now.wall_ms, forward_ms).await {
            Ok(count) => {
                self.looked = Some(now);
                if count > 0 {
                    tracing::warn!(
                        deliveries = count,
                        "the clock was set: {count} deliveries are planned again"
                    );
                }
            }
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn Error,
                    "what waits could not be planned again yet"
                );
            }
        }
    }
}
