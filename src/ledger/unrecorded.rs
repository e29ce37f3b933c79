//! How many refusals were not recorded, as the log is told: at once, then once in ten seconds with all since. Pure. Strangers
//! can make them without end.

use std::time::{Duration, Instant};

/// Between two lines.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What is not told yet.
#[derive(Debug, Default)]
pub(super) struct Unrecorded {
    told_at: Option<Instant>,
    count: u64,
}

impl Unrecorded {
    /// So many more are not recorded; 0 is none. Gives how many that are now, when it is to be told.
    pub(super) fn add(&mut self, count: u64, now: Instant) -> Option<u64> {
        self.count = self.count.saturating_add(count);
        let lately = |at: Instant| now.saturating_duration_since(at) < TOLD_EVERY;
        if self.count == 0 || self.told_at.is_some_and(lately) {
            return None;
        }
        self.told_at = Some(now);
        Some(std::mem::take(&mut self.count))
    }

    /// When the rest is to be told, whether more come or not.
    pub(super) fn due(&self) -> Option<Instant> {
        self.told_at
            .filter(|_| self.count > 0)
            .map(|at| at + TOLD_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_at_once_and_then_once_in_ten_seconds() {
        let began = Instant::now();
        let mut unrecorded = Unrecorded::default();
        for (after_s, count, told) in [
            (0, 0, None),
            (1, 5, Some(5)),
            (2, 3, None),
            (10, 4, None),
            (11, 0, Some(7)),
            (12, 0, None),
            (30, 0, None),
            (31, 2, Some(2)),
        ] {
            let now = began + Duration::from_secs(after_s);
            assert_eq!(unrecorded.add(count, now), told, "after {after_s} s");
            let is_owed = matches!(after_s, 2 | 10);
            let due = is_owed.then(|| began + Duration::from_secs(11));
            assert_eq!(unrecorded.due(), due, "after {after_s} s");
        }
    }
}
