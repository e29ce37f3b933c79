//! What is told of a trouble that lasts: when it begins, once a minute while it goes on, and when it is over. Pure. One that
//! comes and goes within the minute is not told again, so that a disk on its last bytes does not fill itself with log lines.
//! One that a person alone can mend may be told less often.

use std::time::{Duration, Instant};

use crate::telemetry::LogRate;

/// Between two lines about the same trouble.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// A trouble of one kind.
#[derive(Debug)]
pub(super) struct Trouble {
    lines: LogRate,
    /// What was told, until its end is.
    told: Option<String>,
}

impl Default for Trouble {
    fn default() -> Self {
        Self::told_every(TOLD_EVERY)
    }
}

impl Trouble {
    /// One that is told again after this time.
    pub(super) const fn told_every(told_every: Duration) -> Self {
        Self {
            lines: LogRate::new(1, told_every),
            told: None,
        }
    }

    /// It is there. True when that is to be told.
    pub(super) fn is_to_be_told(&mut self, text: &str, now: Instant) -> bool {
        if self.lines.turn(now).is_none() {
            return false;
        }
        self.told = Some(text.to_owned());
        true
    }

    /// It is over. Gives what was told of it, when the end is to be told.
    pub(super) fn over(&mut self) -> Option<String> {
        self.told.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_a_minute_and_its_end_once() {
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        let mut trouble = Trouble::default();
        assert_eq!(trouble.over(), None);
        assert!(trouble.is_to_be_told("full", at(0)));
        assert!(!trouble.is_to_be_told("full", at(1)));
        assert!(!trouble.is_to_be_told("failed", at(59)));
        assert!(trouble.is_to_be_told("failed", at(60)));
        assert_eq!(trouble.over().as_deref(), Some("failed"));
        assert_eq!(trouble.over(), None);
        // Back within the minute: neither it nor its end is told.
        assert!(!trouble.is_to_be_told("full", at(61)));
        assert_eq!(trouble.over(), None);
        assert!(trouble.is_to_be_told("full", at(120)));
        let mut seldom = Trouble::told_every(Duration::from_hours(1));
        assert!(seldom.is_to_be_told("spoilt", at(0)));
        assert!(!seldom.is_to_be_told("spoilt", at(3_599)));
        assert!(seldom.is_to_be_told("spoilt", at(3_600)));
    }
}
