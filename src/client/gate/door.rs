//! All the gate knows, and who may pass it. Pure: requests come and go, the time and the dice come in.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::outage::{Change, Outage, Ticket, Verdict};
use super::pace::{Pace, Taken, jittered};
use super::retry_after;
use super::{Caller, Hold, Limits};

/// The gate's state.
#[derive(Debug)]
pub(crate) struct Door {
    pace: Pace,
    outage: Outage,
    at_once: NonZeroU32,
    under_way: u32,
}

/// A request that passed and has not ended.
#[derive(Debug)]
#[must_use = "its place is taken until it is told how it ended"]
pub(crate) struct Pass {
    taken: Taken,
    ticket: Ticket,
}

impl Door {
    /// An open door.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            pace: Pace::new(limits.per_second),
            outage: Outage::new(),
            at_once: limits.at_once,
            under_way: 0,
        }
    }

    /// Lets a request pass, or says what it waits for. Changes nothing when it does not pass.
    pub(crate) fn enter(&mut self, caller: Caller, now: Instant) -> Result<Pass, Hold> {
        if self.under_way >= self.at_once.get() {
            return Err(Hold::Change);
        }
        let ticket = self.outage.admit(caller, now)?;
        match self.pace.take(now) {
            Ok(taken) => {
                self.under_way += 1;
                Ok(Pass { taken, ticket })
            }
            Err(next) => {
                self.outage.dropped(ticket);
                Err(Hold::Until(next))
            }
        }
    }

    /// A request that passed leaves only now.
    pub(crate) fn leaves(&mut self, now: Instant) {
        self.pace.leaves(now);
    }

    /// A request ended.
    pub(crate) fn ended(
        &mut self,
        pass: &Pass,
        verdict: Verdict,
        now: Instant,
        dice: u16,
    ) -> Change {
        self.under_way = self.under_way.saturating_sub(1);
        self.outage.ended(pass.ticket, verdict, now, dice)
    }

    /// There was nothing to ask: as if it had never passed.
    pub(crate) fn unused(&mut self, pass: &Pass) {
        self.under_way = self.under_way.saturating_sub(1);
        self.pace.give_back(&pass.taken);
        self.outage.dropped(pass.ticket);
    }

    /// The service wants to be left alone. Gives how long it will be: at least as long, and at most a quarter longer than
    /// [`retry_after::LONGEST`], so that a crowd does not come back in step.
    pub(crate) fn heed(&mut self, wish: Duration, now: Instant, dice: u16) -> Duration {
        let wait = jittered(wish.min(retry_after::LONGEST), dice);
        self.pace.shut_until(now + wait);
        wait
    }

    /// What is left of an earlier wish, to the letter.
    pub(crate) fn heed_still(&mut self, left: Duration, now: Instant) {
        self.pace.shut_until(now + left);
    }

    /// Until when the service wants to be left alone, if that time is still to come.
    pub(crate) fn is_shut_until(&self, now: Instant) -> Option<Instant> {
        self.pace.is_shut_until(now)
    }

    /// The service's outage, if there is one.
    pub(crate) fn outage(&self) -> &Outage {
        &self.outage
    }
}
