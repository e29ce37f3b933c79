//! How many requests a second a lane sends. Pure: additive increase, multiplicative decrease, as TCP does it (RFC 5681).
//!
//! Promises to stay between [`SLOWEST`] and the ceiling, to become one a second faster for each second of good answers at the
//! full pace, and to halve at once when the service has too much to do or gives no answers; what left before says no more.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

/// The slowest, requests per second: however the service answers, it is polled so often unless it is out.
pub(crate) const SLOWEST: u32 = 1;
/// Where it begins, requests per second, or at the ceiling where that is lower.
pub(crate) const FIRST: u32 = 5;
/// It is counted in thousandths.
const MILLI: u32 = 1_000;

/// A rate that is adapted.
#[derive(Debug)]
pub(crate) struct Rate {
    /// Requests in a thousand seconds.
    milli: u32,
    ceiling: u32,
    halved: Option<Instant>,
}

impl Rate {
    /// A rate between the slowest and this ceiling, requests per second.
    pub(crate) fn below(ceiling: NonZeroU32) -> Self {
        let ceiling = ceiling.get().saturating_mul(MILLI);
        Self {
            milli: (FIRST * MILLI).min(ceiling),
            ceiling,
            halved: None,
        }
    }

    /// One that is never adapted, requests per second.
    pub(crate) const fn fixed(per_second: NonZeroU32) -> Self {
        let milli = per_second.get().saturating_mul(MILLI);
        Self {
            milli,
            ceiling: milli,
            halved: None,
        }
    }

    /// From one request to the next.
    pub(crate) fn gap(&self) -> Duration {
        Duration::from_secs(1) * MILLI / self.milli
    }

    /// An answer to a request that left at the full pace was good.
    pub(crate) fn faster(&mut self) {
        let step = MILLI * MILLI / self.milli;
        self.milli = self.milli.saturating_add(step.max(1)).min(self.ceiling);
    }

    /// The service has too much to do, or gave no answer, to a request that left at that instant.
    pub(crate) fn slower(&mut self, left: Instant, now: Instant) {
        if self.halved.is_some_and(|halved| left < halved) {
            return;
        }
        self.halved = Some(now);
        self.milli = (self.milli / 2).max(SLOWEST * MILLI);
    }

    /// Whole requests per second, at least one.
    pub(crate) const fn per_second(&self) -> u32 {
        self.milli / MILLI
    }
}
