//! The one gate all requests of a process to the payment service pass: so many per second, so many at once, and none
//! while the service wants to be left alone (A29).
//!
//! A place is taken by [`Gate::admit`] and given back when the [`Permit`] is dropped. Nothing is reserved ahead: a caller
//! that gives up while waiting costs nobody a turn.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::retry_after;
use crate::entropy;

/// How much a process may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Requests per second, evenly spaced.
    pub per_second: NonZeroU32,
    /// Requests under way at the same time.
    pub at_once: NonZeroU32,
}

impl Default for Limits {
    /// 5 per second, 4 at once (design, section 7).
    fn default() -> Self {
        let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            per_second: number(5),
            at_once: number(4),
        }
    }
}

/// The gate. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    /// Owned by the gate; held for a few instructions, never across an await.
    pace: Arc<Mutex<Pace>>,
}

/// The right to one request, until it is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when the permit is dropped: hold it until the answer is read"]
pub(crate) struct Permit(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

/// The gate did not open within the time the caller had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payment service wants to be left alone for another {} s", opens_in.as_secs().max(1))]
pub(crate) struct Closed {
    /// How long until it is worth coming back.
    pub opens_in: Duration,
}

impl Gate {
    /// An open gate.
    pub(crate) fn new(limits: Limits) -> Self {
        let places = usize::try_from(limits.at_once.get()).unwrap_or(usize::MAX);
        Self {
            places: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            pace: Arc::new(Mutex::new(Pace::new(limits.per_second))),
        }
    }

    /// Waits for a place and a turn, however long it takes. Safe to drop while waiting.
    pub(crate) async fn admit(&self) -> Permit {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .expect("the gate never closes its places");
        while let Err(next) = self.with(|pace| pace.take(Instant::now())) {
            sleep_until(next).await;
        }
        Permit(place)
    }

    /// As [`Gate::admit`], but says at once when the gate stays shut longer than `patience`, and gives up after it. For
    /// whatever a person waits for, and for a create, whose row must not outlive its request by hours.
    pub(crate) async fn admit_within(&self, patience: Duration) -> Result<Permit, Closed> {
        let deadline = Instant::now() + patience;
        let closed = self.shut_for();
        if closed > patience {
            return Err(Closed { opens_in: closed });
        }
        timeout_at(deadline, self.admit())
            .await
            .map_err(|_elapsed| Closed {
                opens_in: self.shut_for(),
            })
    }

    /// Shuts the gate for at least `wish`, and up to a quarter more so that a crowd does not come back in step. Clamped to
    /// [`retry_after::LONGEST`] before that. A shorter wish never undoes a longer one.
    pub(crate) fn heed(&self, wish: Duration) {
        let wait = jittered(
            wish.min(retry_after::LONGEST),
            u16::from_le_bytes(entropy::bytes()),
        );
        self.with(|pace| pace.shut_until(Instant::now() + wait));
        tracing::warn!(
            wait_s = wait.as_secs(),
            "payment service wants to be left alone for {} s",
            wait.as_secs()
        );
    }

    /// How long the gate is shut by the service's wish; zero when it is not.
    pub(crate) fn shut_for(&self) -> Duration {
        self.with(|pace| {
            pace.shut_until.map_or(Duration::ZERO, |until| {
                until.saturating_duration_since(Instant::now())
            })
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Pace) -> T) -> T {
        act(&mut self.pace.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// When the next request may leave: a generic cell rate algorithm with a burst of one.
#[derive(Debug)]
pub(crate) struct Pace {
    gap: Duration,
    next: Option<Instant>,
    shut_until: Option<Instant>,
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
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let free = [self.next, self.shut_until].into_iter().flatten().max();
        match free {
            Some(free) if free > now => Err(free),
            Some(_) | None => {
                self.next = Some(now + self.gap);
                Ok(())
            }
        }
    }

    /// Gives no turn before this time; an earlier one never undoes a later one.
    pub(crate) fn shut_until(&mut self, until: Instant) {
        self.shut_until = self.shut_until.max(Some(until));
    }
}

/// `wait` and up to a quarter more. Never less: asking earlier than told uses up the service's patience.
fn jittered(wait: Duration, entropy: u16) -> Duration {
    wait + wait / 4 * u32::from(entropy) / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(per_second: u32, at_once: u32) -> Gate {
        let number = |n| NonZeroU32::new(n).expect("above zero");
        Gate::new(Limits {
            per_second: number(per_second),
            at_once: number(at_once),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn requests_leave_evenly_spaced() {
        let gate = gate(5, 4);
        let start = Instant::now();
        for turn in 0..11_u32 {
            drop(gate.admit().await);
            let wanted = Duration::from_millis(200) * turn;
            let late = start.elapsed().abs_diff(wanted);
            assert!(
                late < Duration::from_millis(15),
                "turn {turn} after {:?}",
                start.elapsed()
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_the_limit_is_under_way() {
        let gate = gate(1_000, 2);
        let (first, _second) = (gate.admit().await, gate.admit().await);
        let closed = gate.admit_within(Duration::from_mins(1)).await;
        assert!(closed.is_err());
        drop(first);
        assert!(gate.admit_within(Duration::from_secs(1)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn the_services_wish_is_kept_even_by_those_already_waiting() {
        let gate = gate(1, 4);
        let _under_way = gate.admit().await;
        let start = Instant::now();
        let waiting = tokio::spawn({
            let gate = gate.clone();
            async move { gate.admit().await }
        });
        tokio::task::yield_now().await;
        gate.heed(Duration::from_secs(30));
        gate.heed(Duration::from_secs(1));
        assert!(gate.admit_within(Duration::from_secs(10)).await.is_err());
        assert!(
            start.elapsed() < Duration::from_secs(1),
            "a shut gate says so at once"
        );
        let _permit = waiting.await.expect("admitted");
        let waited = start.elapsed();
        assert!(
            (Duration::from_secs(30)..Duration::from_secs(38)).contains(&waited),
            "{waited:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_costs_nobody_a_turn() {
        let gate = gate(1, 4);
        drop(gate.admit().await);
        for _ in 0..10 {
            assert!(gate.admit_within(Duration::from_millis(1)).await.is_err());
        }
        let start = Instant::now();
        drop(gate.admit().await);
        assert!(start.elapsed() <= Duration::from_secs(1));
    }

    #[test]
    fn jitter_only_adds() {
        let wait = Duration::from_secs(100);
        assert_eq!(jittered(wait, 0), wait);
        assert_eq!(jittered(wait, u16::MAX), Duration::from_secs(125));
        assert_eq!(jittered(Duration::ZERO, 9), Duration::ZERO);
        assert_eq!(
            jittered(retry_after::LONGEST, u16::MAX),
            Duration::from_mins(75)
        );
    }
}
