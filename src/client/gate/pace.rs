//! When the next request of a lane may leave. Pure: a generic cell rate algorithm with a burst of one, so that nothing that was
//! held back ever leaves in a crowd. How far apart two requests are is [`Rate`]'s to say.

use std::time::{Duration, Instant};

use super::rate::Rate;

/// Turns, evenly spaced.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Rate,
    next: Option<Instant>,
}

/// A turn that was taken, to be given back when nothing came of it.
#[derive(Debug)]
#[must_use = "a turn nothing comes of is given back"]
pub(crate) struct Taken {
    before: Option<Instant>,
    pub(super) at: Instant,
    after: Instant,
    /// It was waited for, or came as soon as the pace allowed it: its answer says something about the pace.
    pub(crate) is_at_pace: bool,
}

impl Pace {
    /// A pace that has seen no request yet.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, next: None }
    }

    /// When a turn is free, if that is still to come.
    pub(crate) fn free_at(&self, now: Instant) -> Option<Instant> {
        self.next.filter(|next| *next > now)
    }

    /// Takes a turn. To be asked for when one is free.
    pub(crate) fn take(&mut self, now: Instant) -> Taken {
        let gap = self.rate.gap();
        let (before, after) = (self.next, now + gap);
        self.next = Some(after);
        Taken {
            before,
            at: now,
            after,
            is_at_pace: before.is_some_and(|free| now < free + gap),
        }
    }

    /// The request of a turn leaves only now: the next one keeps its distance from this moment, not from the turn's.
    pub(crate) fn leaves(&mut self, now: Instant) {
        self.next = self.next.max(Some(now + self.rate.gap()));
    }

    /// Gives a turn back as if it had not been taken, unless another was taken since.
    pub(crate) fn give_back(&mut self, taken: &Taken) {
        if self.next == Some(taken.after) {
            self.next = taken.before;
        }
    }

    /// How fast it is.
    pub(crate) const fn rate(&self) -> &Rate {
        &self.rate
    }

    /// The same, to be changed.
    pub(crate) const fn rate_mut(&mut self) -> &mut Rate {
        &mut self.rate
    }
}

/// `wait` and up to a quarter more. Never less: asking earlier than wished uses up the service's patience (A29).
pub(super) fn jittered(wait: Duration, dice: u16) -> Duration {
    wait + wait / 4 * u32::from(dice) / u32::from(u16::MAX)
}
