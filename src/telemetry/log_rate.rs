//! A rate limit of log lines: so many of a kind in a stretch of time, and of the others how many there were.
//!
//! Relies on the moments it is given. Promises that nobody outside fills the log, and that no line is left out without being
//! counted in a later one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The rate of one kind of line.
#[derive(Debug)]
pub(crate) struct LogRate {
    lines: u32,
    per: Duration,
    /// Held for a moment by the thread that has such a line.
    count: Mutex<Count>,
}

#[derive(Debug, Default)]
struct Count {
    since: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl LogRate {
    /// At most so many lines, counted from the first of them.
    pub(crate) const fn new(lines: u32, per: Duration) -> Self {
        let count = Count {
            since: None,
            written: 0,
            left_out: 0,
        };
        Self {
            lines,
            per,
            count: Mutex::new(count),
        }
    }

    /// There is such a line. Gives how many were left out before it, when it is to be written.
    pub(crate) fn turn(&self, now: Instant) -> Option<u64> {
        self.add(1, now).map(|all| all - 1)
    }

    /// There are so many more to be counted by one line. Gives how many that are with those left out, when it is to be written.
    pub(crate) fn add(&self, more: u64, now: Instant) -> Option<u64> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        count.left_out = count.left_out.saturating_add(more);
        let lasts = |since: Instant| now.saturating_duration_since(since) < self.per;
        if !count.since.is_some_and(lasts) {
            count.written = 0;
        }
        if count.left_out == 0 || count.written == self.lines {
            return None;
        }
        if count.written == 0 {
            count.since = Some(now);
        }
        count.written += 1;
        Some(std::mem::take(&mut count.left_out))
    }

    /// When what was left out may be told, whether more comes or not.
    pub(crate) fn due(&self) -> Option<Instant> {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let since = count.since.filter(|_| count.left_out > 0);
        since.map(|since| since + self.per)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_written_and_the_others_are_counted() {
        let (start, rate) = (Instant::now(), LogRate::new(1, Duration::from_secs(10)));
        for (after_s, wanted) in [
            (0, Some(0)),
            (1, None),
            (9, None),
            (10, Some(2)),
            (11, None),
            (20, Some(1)),
            (60, Some(0)),
        ] {
            let turn = rate.turn(start + Duration::from_secs(after_s));
            assert_eq!(turn, wanted, "after {after_s} s");
        }
    }

    #[test]
    fn so_many_in_a_stretch_and_of_the_rest_the_number() {
        let (start, rate) = (Instant::now(), LogRate::new(5, Duration::from_mins(10)));
        let mut written = Vec::new();
        // Five a second for an hour.
        for tick in 0..18_000 {
            let left_out = rate.turn(start + Duration::from_millis(200) * tick);
            written.extend(left_out.map(|left_out| (tick, left_out)));
        }
        assert_eq!(written.len(), 30);
        assert_eq!(
            written.get(..6),
            Some(&[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (3_000, 2_995)][..])
        );
    }

    #[test]
    fn a_number_is_told_at_once_and_the_rest_when_it_is_due() {
        let (start, rate) = (Instant::now(), LogRate::new(1, Duration::from_secs(10)));
        for (after_s, more, wanted) in [
            (0, 0, None),
            (1, 5, Some(5)),
            (2, 3, None),
            (10, 4, None),
            (11, 0, Some(7)),
            (12, 0, None),
            (30, 0, None),
            (31, 2, Some(2)),
        ] {
            let now = start + Duration::from_secs(after_s);
            assert_eq!(rate.add(more, now), wanted, "after {after_s} s");
            let is_owed = matches!(after_s, 2 | 10);
            let due = is_owed.then(|| start + Duration::from_secs(11));
            assert_eq!(rate.due(), due, "after {after_s} s");
        }
    }
}
