//! How many notifications were stored, and how many refused for which reason, since the daemon's start. One atomic for each
//! notification and nothing that waits.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::reason::Reason;
use crate::http::Unserved;

/// How far what is written down of the last notification is behind, milliseconds. What asks how long nothing was heard asks
/// for hours.
const NOTE_EVERY_MS: i64 = 60_000;

/// The counts. Shared by the listener, which adds, and whoever tells them.
#[derive(Debug, Default)]
pub struct Heard {
    /// When the last one was stored, milliseconds since 1970; 0 for never. Its own cache line is not worth having: one
    /// thread adds.
    last_ms: AtomicI64,
    /// When that was last worth writing down, milliseconds since 1970; 0 for never.
    noted_ms: AtomicI64,
    stored: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
    unserved: [AtomicU64; Unserved::ALL.len()],
}

impl Heard {
    /// One was stored that was received at this time, milliseconds since 1970.
    pub(super) fn stored(&self, received_ms: i64) {
        self.stored.fetch_add(1, Ordering::Relaxed);
        self.last_ms.store(received_ms, Ordering::Relaxed);
    }

    /// Whether that one is to be written down: one a minute is, and the first after the clock was set back.
    pub(super) fn is_worth_a_note(&self, received_ms: i64) -> bool {
        let noted_ms = self.noted_ms.load(Ordering::Relaxed);
        let is_due = !(noted_ms..noted_ms.saturating_add(NOTE_EVERY_MS)).contains(&received_ms);
        if is_due {
            self.noted_ms.store(received_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// One was refused.
    pub(super) fn refused(&self, reason: Reason) {
        let at = Reason::ALL.iter().position(|known| *known == reason);
        if let Some(count) = at.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One was closed or answered before there was a whole request.
    pub(super) fn unserved(&self, why: Unserved) {
        let at = Unserved::ALL.iter().position(|known| *known == why);
        if let Some(count) = at.and_then(|at| self.unserved.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every reason why there was no whole request, with how often that was.
    pub fn all_unserved(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self
            .unserved
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        Unserved::ALL.iter().map(|why| why.as_str()).zip(counts)
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
    fn the_last_is_noted_once_a_minute() {
        let heard = Heard::default();
        for (at_ms, noted) in [
            (1_000_000, true),
            (1_059_999, false),
            (1_060_000, true),
            (1_060_001, false),
            (9, true),
            (10, false),
        ] {
            assert_eq!(heard.is_worth_a_note(at_ms), noted, "{at_ms}");
        }
    }

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
