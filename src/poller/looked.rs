//! When the poller last looked at what is due, for whoever must know that it goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The time of the last look. By the monotonic clock.
#[derive(Debug)]
pub(crate) struct Looked {
    since: Instant,
    /// Milliseconds behind `since`, and one more, so that 0 is never.
    at_ms: AtomicU64,
}

impl Default for Looked {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            at_ms: AtomicU64::new(0),
        }
    }
}

impl Looked {
    /// It looks now.
    pub(super) fn looks(&self) {
        let behind = self.since.elapsed().as_millis();
        let at_ms = u64::try_from(behind).unwrap_or(u64::MAX).saturating_add(1);
        self.at_ms.store(at_ms, Ordering::Relaxed);
    }

    /// How long ago that was; `None` when it has not looked yet.
    pub(crate) fn ago(&self) -> Option<Duration> {
        let at_ms = self.at_ms.load(Ordering::Relaxed).checked_sub(1)?;
        Some(
            self.since
                .elapsed()
                .saturating_sub(Duration::from_millis(at_ms)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_the_first_look_there_is_none() {
        let looked = Looked::default();
        assert_eq!(looked.ago(), None);
        looked.looks();
        assert!(looked.ago().is_some_and(|ago| ago < Duration::from_mins(1)));
    }
}
