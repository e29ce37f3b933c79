//! Which of the service's wishes to be left alone the log tells. Pure. A busy service may wish it with every answer, and
//! each wish is heeded; a line for each would say nothing new for hours.

use std::time::{Duration, Instant};

use crate::telemetry::LogRate;

/// A wish that is no longer than one told before is told again after this time.
const TOLD_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    told: Option<(LogRate, Duration)>,
}

impl Wishes {
    /// True when this wish is to be told.
    pub(super) fn tell(&mut self, wish: Duration, now: Instant) -> bool {
        if let Some((lines, longest)) = &self.told
            && wish <= *longest
            && lines.turn(now).is_none()
        {
            return false;
        }
        let lines = LogRate::new(1, TOLD_AGAIN_AFTER);
        let _first = lines.turn(now);
        self.told = Some((lines, wish));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_told_when_it_is_longer_or_some_time_has_passed() {
        let (began, mut wishes) = (Instant::now(), Wishes::default());
        let told: Vec<(u64, u64)> = [
            (0, 2),
            (2, 2),
            (4, 1),
            (6, 30),
            (36, 30),
            (604, 2),
            (606, 2),
            (700, 3),
        ]
        .into_iter()
        .filter(|(at_s, wish_s)| {
            let now = began + Duration::from_secs(*at_s);
            wishes.tell(Duration::from_secs(*wish_s), now)
        })
        .collect();
        assert_eq!(told, [(0, 2), (6, 30), (606, 2), (700, 3)]);
    }
}
