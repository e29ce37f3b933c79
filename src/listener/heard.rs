//! How many notifications were stored, and how many refused for which reason, since the daemon's start. One atomic for each
//! notification and nothing that waits.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::reason::Reason;

/// The counts. Shared by the listener, which adds, and whoever tells them.
#[derive(Debug, Default)]
pub struct Heard {
    /// When the last one was stored, milliseconds since 1970; 0 for never. Its own cache line is not worth having: one
    /// thread adds.
    last_ms: AtomicI64,
    stored: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
}

impl Heard {
    /// One was stored that was received at this time, milliseconds since 1970.
    pub(super) fn stored(&self, received_ms: i64) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.last_ms.store(received_ms, Ordering::Relaxed);
    }

    /// One was refused.
    pub(super) fn refused(&self, reason: Reason) {
        let at = Reason::ALL.iter().position(|known| *known == reason);
        if let Some(count) = at.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notifications that were stored, repetitions included.
    pub fn all_stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// When the last one was stored since the start, milliseconds since 1970.
    pub fn last_ms(&self) -> Option<i64> {
        Some(self.last_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0)
    }

    /// Every reason with how many were refused for it.
    pub fn all_refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .refused
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Reason::ALL.iter().map(|reason| reason.as_str()).zip(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let heard = Heard::default();
        assert_eq!(heard.last_ms(), None);
        heard.stored(7);
        for reason in Reason::ALL {
            heard.refused(reason);
        }
        heard.refused(Reason::TokenWrong);
        assert_eq!((heard.all_stored(), heard.last_ms()), (1, Some(7)));
        for (reason, count) in heard.all_refused() {
            assert_eq!(count, 1 + u64::from(reason == "token_wrong"), "{reason}");
        }
    }
}
