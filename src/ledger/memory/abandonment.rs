//! Deliveries that tell of others which were given up; the rules are those of `ledger/sqlite/abandonment.rs`.

use super::{MemoryStore, Owed};
use crate::hook::abandonment::{self, GivenUp};
use crate::ledger::row::{DeliveryKey, DeliveryState};

impl MemoryStore {
    pub(super) fn owe_telling(&mut self, key: DeliveryKey, at_ms: i64) {
        let Some(gave_up) = self.deliveries.get(key.0).cloned() else {
            return;
        };
        let Some(hook) = abandonment::teller_of(&gave_up.hook) else {
            return;
        };
        let gave_up_after = Some(gave_up.attempts);
        let teller = |(_, owed): &(i64, &Owed)| owed.event == gave_up.event && owed.hook == hook;
        let known = self.deliveries.iter().find(teller);
        let known = known.map(|(id, owed)| (id, owed.clone()));
        match known {
            None => drop(self.deliveries.add(Owed {
                hook,
                state: DeliveryState::Waiting,
                attempts: 0,
                round_start: 0,
                next_ms: Some(at_ms),
                wait_ms: 0,
                replay: false,
                held_why: None,
                abandoned_by: None,
                acknowledged: false,
                started_ms: 0,
                claimant: None,
                child: None,
                gave_up_after,
                ..gave_up
            })),
            Some((id, mut owed)) => {
                if matches!(owed.state, DeliveryState::Done | DeliveryState::Abandoned) {
                    owed.state = DeliveryState::Waiting;
                    (owed.next_ms, owed.wait_ms) = (Some(at_ms), 0);
                    owed.round_start = owed.attempts;
                    (owed.replay, owed.abandoned_by) = (false, None);
                    owed.acknowledged = false;
                }
                owed.gave_up_after = gave_up_after;
                self.deliveries.put(id, owed);
            }
        }
    }

    /// What a delivery tells that tells of another one.
    pub(super) fn given_up(&self, owed: &Owed) -> Option<GivenUp> {
        let hook = abandonment::told_of(&owed.hook)?;
        let attempts = owed.gave_up_after.unwrap_or_default();
        let mut others = self.deliveries.iter();
        let gave_up = others.find(|(_, other)| other.event == owed.event && other.hook == hook);
        let ended = gave_up.and_then(|(id, _)| {
            let mut attempts_of = self.attempts.iter().map(|(_, attempt)| attempt);
            attempts_of.find(|attempt| attempt.delivery == id && attempt.number == attempts)
        });
        let record = ended.map(|attempt| &attempt.record);
        Some(GivenUp {
            hook: hook.to_owned(),
            event_id: self.events.get(owed.event)?.row.event_id.clone(),
            attempts,
            at_ms: record.map(|record| record.ended_ms).unwrap_or_default(),
            result: record
                .map(|record| record.result.clone())
                .unwrap_or_default(),
            stderr: record
                .map(|record| abandonment::tail(&record.stderr))
                .unwrap_or_default(),
        })
    }
}
