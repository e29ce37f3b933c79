//! Lines that a stranger can cause at will: told now and then, with how many were left out since.

use std::sync::{Mutex, PoisonError};

use tokio::time::{Duration, Instant};

/// One kind of line.
#[derive(Debug)]
pub(super) struct Seldom {
    every: Duration,
    /// Held for a moment by whoever has such a line.
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// At most one line in this time.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            every,
            told: Mutex::default(),
        }
    }

    /// There is such a line: how many were left out before it, when it is to be told.
    pub(super) fn turn(&self, now: Instant) -> Option<u64> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told
            .last
            .is_some_and(|last| now.duration_since(last) < self.every)
        {
            told.left_out += 1;
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_told_and_the_others_are_counted() {
        let (start, seldom) = (Instant::now(), Seldom::new(Duration::from_secs(10)));
        let turn = |after_s: u64| seldom.turn(start + Duration::from_secs(after_s));
        for (after_s, wanted) in [
            (0, Some(0)),
            (1, None),
            (9, None),
            (10, Some(2)),
            (11, None),
            (20, Some(1)),
            (60, Some(0)),
        ] {
            assert_eq!(turn(after_s), wanted, "after {after_s} s");
        }
    }
}
