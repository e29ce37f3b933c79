//! When the next request may leave. Pure: a generic cell rate algorithm with a burst of one, so that nothing that was held
//! back ever leaves in a crowd, and the time until which the service wants to be left alone.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// Turns, evenly spaced.
#[derive(Debug)]
pub(crate) struct Pace {
    gap: Duration,
    next: Option<Instant>,
    shut_until: Option<Instant>,
}

/// A turn that was taken, to be given back when nothing came of it.
#[derive(Debug)]
#[must_use = "a turn nothing comes of is given back"]
pub(crate) struct Taken {
    before: Option<Instant>,
    after: Instant,
}

impl Pace {
    /// A pace that has seen no request yet.
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        Self {
            gap: Duration::from_secs(1) / per_second.get(),
            next: None,
            shut_until: None,
        }
    }

    /// Takes a turn, or says when to come back.
    pub(crate) fn take(&mut self, now: Instant) -> Result<Taken, Instant> {
        let free = [self.next, self.shut_until].into_iter().flatten().max();
        match free {
            Some(free) if free > now => Err(free),
            Some(_) | None => {
                let (before, after) = (self.next, now + self.gap);
                self.next = Some(after);
                Ok(Taken { before, after })
            }
        }
    }

    /// The request of a turn leaves only now: the next one keeps its distance from this moment, not from the turn's.
    pub(crate) fn leaves(&mut self, now: Instant) {
        self.next = self.next.max(Some(now + self.gap));
    }

    /// Gives a turn back as if it had not been taken, unless another was taken since.
    pub(crate) fn give_back(&mut self, taken: &Taken) {
        if self.next == Some(taken.after) {
            self.next = taken.before;
        }
    }

    /// Gives no turn before this time; an earlier one never undoes a later one.
    pub(crate) fn shut_until(&mut self, until: Instant) {
        self.shut_until = self.shut_until.max(Some(until));
    }

    /// Until when the service wants to be left alone, if that time is still to come.
    pub(crate) fn is_shut_until(&self, now: Instant) -> Option<Instant> {
        self.shut_until.filter(|until| *until > now)
    }
}

/// `wait` and up to a quarter more. Never less: asking earlier than told uses up the service's patience (A29).
pub(super) fn jittered(wait: Duration, dice: u16) -> Duration {
    wait + wait / 4 * u32::from(dice) / u32::from(u16::MAX)
}
