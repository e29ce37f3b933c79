//! How many questions without an answer the log tells. Pure: the moments at which they ended come in, how each is told goes
//! out. A service that knows none of a million old invoices would write several lines a second for days, and hide all
//! others among them.

use std::time::{Duration, Instant};

/// Told one by one within [`SPAN`]; of the rest only how many there were.
const TOLD: u32 = 5;
/// How long the count goes on, from the first one told.
const SPAN: Duration = Duration::from_mins(10);

/// How a question without an answer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Telling {
    /// By itself; before it, how many were told by their number alone since the last time.
    Told {
        /// That many.
        untold: u32,
    },
    /// By its number, later.
    Counted,
}

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    began: Option<Instant>,
    told: u32,
    untold: u32,
}

impl Unanswered {
    /// A question ended without an answer at this moment.
    pub(super) fn tell(&mut self, now: Instant) -> Telling {
        let is_past = |began: Instant| now.saturating_duration_since(began) >= SPAN;
        if self.began.is_none_or(is_past) {
            (self.began, self.told) = (Some(now), 0);
        }
        if self.told == TOLD {
            self.untold = self.untold.saturating_add(1);
            return Telling::Counted;
        }
        self.told += 1;
        Telling::Told {
            untold: std::mem::take(&mut self.untold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_told_and_of_the_rest_the_number() {
        let began = Instant::now();
        let mut unanswered = Unanswered::default();
        let mut told = Vec::new();
        // Five a second for an hour.
        for tick in 0..18_000 {
            let now = began + Duration::from_millis(200) * tick;
            if let Telling::Told { untold } = unanswered.tell(now) {
                told.push((tick, untold));
            }
        }
        let lines = usize::try_from(6 * TOLD).expect("few");
        assert_eq!(told.len(), lines);
        assert_eq!(
            told.get(..6),
            Some(&[(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (3_000, 2_995)][..])
        );
        // One now and then is told each time.
        let later = began + SPAN * 10;
        assert_eq!(unanswered.tell(later), Telling::Told { untold: 2_995 });
        for times in 1..20 {
            let now = later + SPAN * times;
            assert_eq!(unanswered.tell(now), Telling::Told { untold: 0 });
        }
    }
}
