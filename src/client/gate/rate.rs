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

#[cfg(test)]
mod tests {
    use super::*;

    fn below(ceiling: u32) -> Rate {
        Rate::below(NonZeroU32::new(ceiling).expect("not zero"))
    }

    #[test]
    fn it_climbs_by_one_a_second_and_halves_at_once() {
        let mut rate = below(20);
        let mut course = vec![rate.per_second()];
        for _ in 0..20 {
            // A second of good answers.
            for _ in 0..rate.per_second() {
                rate.faster();
            }
            course.push(rate.per_second());
        }
        assert!(course.is_sorted());
        let each = |second: usize| course.get(second).copied().expect("one of 21");
        assert_eq!((each(0), each(20)), (FIRST, 20), "{course:?}");
        assert!((9..=10).contains(&each(5)), "{course:?}");
        let left = Instant::now();
        let now = left + Duration::from_millis(1);
        rate.slower(left, now);
        assert_eq!(rate.per_second(), 10);
        // Those that left with it say nothing more.
        rate.slower(left, now);
        assert_eq!(rate.per_second(), 10);
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let mut rate = below(3);
        assert_eq!(rate.per_second(), 3);
        rate.faster();
        assert_eq!(
            (rate.per_second(), rate.gap()),
            (3, Duration::from_secs(1) / 3)
        );
        let now = Instant::now();
        for _ in 0..100 {
            rate.slower(now, now);
        }
        assert_eq!(
            (rate.per_second(), rate.gap()),
            (SLOWEST, Duration::from_secs(1))
        );
        rate.faster();
        assert_eq!(rate.per_second(), 2);
    }
}
