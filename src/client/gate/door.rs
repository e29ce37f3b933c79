//! All the gate knows, and who may pass it. Pure: requests come and go, the time and the dice come in.
//!
//! Two lanes: creates, and polls. Each has places of its own and is shut by what the service answered to it; polls have a pace
//! beside them. Promises that neither lane waits for the other, but for the pace of the whole process where one is set.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::outage::{Change, Outage, Ticket, Verdict};
use super::pace::{Pace, Taken, jittered};
use super::rate::Rate;
use super::retry_after;
use super::{CREATES_AT_ONCE, Caller, Hold, Limits};

/// The gate's state.
#[derive(Debug)]
pub(crate) struct Door {
    creates: Lane,
    polls: Lane,
    /// Of both, where one is set.
    all: Option<Pace>,
    outage: Outage,
}

#[derive(Debug)]
struct Lane {
    at_once: NonZeroU32,
    under_way: u32,
    pace: Option<Pace>,
    shut_until: Option<Instant>,
}

/// A request that passed and has not ended.
#[derive(Debug)]
#[must_use = "its place is taken until it is known how it ended"]
pub(crate) struct Pass {
    caller: Caller,
    own: Option<Taken>,
    all: Option<Taken>,
    ticket: Ticket,
}

impl Pass {
    /// Who has it.
    pub(crate) const fn caller(&self) -> Caller {
        self.caller
    }
}

impl Lane {
    /// Whether a request may leave here, or what it waits for.
    fn admits(&self, now: Instant) -> Result<(), Hold> {
        if self.under_way >= self.at_once.get() {
            return Err(Hold::Change);
        }
        let turn = self.pace.as_ref().and_then(|pace| pace.free_at(now));
        match turn.max(self.is_shut_until(now)) {
            Some(until) => Err(Hold::Until(until)),
            None => Ok(()),
        }
    }

    fn is_shut_until(&self, now: Instant) -> Option<Instant> {
        self.shut_until.filter(|until| *until > now)
    }
}

impl Door {
    /// An open door.
    pub(crate) fn new(limits: Limits) -> Self {
        let lane = |at_once, pace| Lane {
            at_once,
            under_way: 0,
            pace,
            shut_until: None,
        };
        let polls = Rate::below(limits.fastest_polls());
        Self {
            creates: lane(CREATES_AT_ONCE, None),
            polls: lane(limits.polls_at_once, Some(Pace::new(polls))),
            all: limits.per_second.map(|all| Pace::new(Rate::fixed(all))),
            outage: Outage::new(),
        }
    }

    const fn lane(&self, caller: Caller) -> &Lane {
        match caller {
            Caller::Create => &self.creates,
            Caller::Operator | Caller::Background => &self.polls,
        }
    }

    const fn lane_mut(&mut self, caller: Caller) -> &mut Lane {
        match caller {
            Caller::Create => &mut self.creates,
            Caller::Operator | Caller::Background => &mut self.polls,
        }
    }

    /// Whether a request could leave now but for the pace of the whole process.
    pub(crate) fn is_ready(&self, caller: Caller, now: Instant) -> bool {
        let is_held = caller == Caller::Background && self.outage.holds_background(now);
        !is_held && self.lane(caller).admits(now).is_ok()
    }

    /// True when both lanes share a pace.
    pub(crate) const fn has_common_pace(&self) -> bool {
        self.all.is_some()
    }

    /// Lets a request pass, or says what it waits for. Changes nothing when it does not pass.
    pub(crate) fn enter(&mut self, caller: Caller, now: Instant) -> Result<Pass, Hold> {
        self.lane(caller).admits(now)?;
        if let Some(until) = self.all.as_ref().and_then(|all| all.free_at(now)) {
            return Err(Hold::Until(until));
        }
        let ticket = self.outage.admit(caller, now)?;
        let lane = self.lane_mut(caller);
        lane.under_way += 1;
        Ok(Pass {
            caller,
            own: lane.pace.as_mut().map(|pace| pace.take(now)),
            all: self.all.as_mut().map(|all| all.take(now)),
            ticket,
        })
    }

    /// A request that passed leaves only now.
    pub(crate) fn leaves(&mut self, caller: Caller, now: Instant) {
        if let Some(pace) = &mut self.lane_mut(caller).pace {
            pace.leaves(now);
        }
        if let Some(all) = &mut self.all {
            all.leaves(now);
        }
    }

    /// A request ended.
    pub(crate) fn ended(
        &mut self,
        pass: &Pass,
        verdict: Verdict,
        now: Instant,
        dice: u16,
    ) -> Change {
        let lane = self.lane_mut(pass.caller);
        lane.under_way = lane.under_way.saturating_sub(1);
        if let Some((pace, taken)) = lane.pace.as_mut().zip(pass.own.as_ref()) {
            match &verdict {
                Verdict::Alive if taken.is_at_pace => pace.rate_mut().faster(),
                Verdict::Alive | Verdict::Nothing => {}
                Verdict::Busy | Verdict::Outage(_) => pace.rate_mut().slower(taken.at, now),
            }
        }
        self.outage.ended(pass.ticket, verdict, now, dice)
    }

    /// There was nothing to ask: as if it had never passed.
    pub(crate) fn unused(&mut self, pass: &Pass) {
        let lane = self.lane_mut(pass.caller);
        lane.under_way = lane.under_way.saturating_sub(1);
        if let Some((pace, taken)) = lane.pace.as_mut().zip(pass.own.as_ref()) {
            pace.give_back(taken);
        }
        if let Some((pace, taken)) = self.all.as_mut().zip(pass.all.as_ref()) {
            pace.give_back(taken);
        }
        self.outage.dropped(pass.ticket);
    }

    /// The service wants the lane of this caller to be left alone. Gives how long it will be: at least as long, and at most a
    /// quarter longer than [`retry_after::LONGEST`], so that a crowd does not come back in step.
    pub(crate) fn heed(
        &mut self,
        caller: Caller,
        wish: Duration,
        now: Instant,
        dice: u16,
    ) -> Duration {
        let wait = jittered(wish.min(retry_after::LONGEST), dice);
        self.heed_still(caller, wait, now);
        wait
    }

    /// What is left of an earlier wish, to the letter. An earlier end never undoes a later one.
    pub(crate) fn heed_still(&mut self, caller: Caller, left: Duration, now: Instant) {
        let lane = self.lane_mut(caller);
        lane.shut_until = lane.shut_until.max(Some(now + left));
    }

    /// Until when the service wants the lane of this caller to be left alone, if that time is still to come.
    pub(crate) fn is_shut_until(&self, caller: Caller, now: Instant) -> Option<Instant> {
        self.lane(caller).is_shut_until(now)
    }

    /// Polls per second at present.
    pub(crate) fn polls_per_second(&self) -> u32 {
        let pace = self.polls.pace.as_ref();
        pace.map_or(0, |pace| pace.rate().per_second())
    }

    /// The service's outage, if there is one.
    pub(crate) fn outage(&self) -> &Outage {
        &self.outage
    }
}
