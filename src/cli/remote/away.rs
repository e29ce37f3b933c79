//! A daemon that gives no answer for a while: how long it is left alone, what is said of it, and when there is no use in
//! waiting for it.
//!
//! Whoever follows events or waits for money lives longer than a daemon, which is updated, restarted, or cannot read its
//! ledger for a moment. Promises one line when it is lost and one when it is back, and that only what asking again does not
//! mend is an end.

use std::time::Duration;

use super::super::output::{escape, talk};
use super::{NoAnswer, is_denied};
use crate::telemetry::chain;

/// A restart takes a second or two.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// It doubles up to this: soon enough for a shop, and not noticed by a machine.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A daemon that starts makes its socket for itself alone and opens it to its group then, so that one refusal, or two, may be
/// part of a restart. So many in a row are meant.
const REFUSALS: u32 = 3;

/// How long a daemon has not answered.
#[derive(Debug, Default)]
pub(in super::super) struct Away {
    /// How often in a row it gave no answer.
    lost: u32,
    /// How often in a row this user might not connect.
    refused: u32,
}

impl Away {
    /// It answered.
    pub(in super::super) fn answered(&mut self) {
        if std::mem::take(self).lost > 0 {
            talk("the daemon answers again");
        }
    }

    /// It did not: how long to leave it alone, `None` when that mends nothing.
    pub(in super::super) fn lost(&mut self, error: &NoAnswer) -> Option<Duration> {
        let pause = self.judge(error)?;
        if self.lost == 1 {
            talk(&format!("{}; trying again", escape(&chain(error))));
        }
        Some(pause)
    }

    fn judge(&mut self, error: &NoAnswer) -> Option<Duration> {
        match error {
            NoAnswer::Restored { .. } | NoAnswer::Ended(_) => return None,
            NoAnswer::Absent { source, .. } if is_denied(source) => self.refused += 1,
            NoAnswer::Absent { .. }
            | NoAnswer::Gone { .. }
            | NoAnswer::Silent { .. }
            | NoAnswer::Busy(_) => self.refused = 0,
        }
        if self.refused >= REFUSALS {
            return None;
        }
        let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.lost));
        self.lost = self.lost.saturating_add(1);
        Some(doubled.min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::super::super::failure::{Exit, Failure};
    use super::*;

    fn absent(kind: io::ErrorKind) -> NoAnswer {
        NoAnswer::Absent {
            path: PathBuf::from("/run/x.sock"),
            source: kind.into(),
        }
    }

    fn pauses(errors: &[NoAnswer]) -> Vec<Option<u64>> {
        let mut away = Away::default();
        let pauses = errors.iter().map(|error| away.judge(error));
        pauses.map(|pause| pause.map(|p| p.as_secs())).collect()
    }

    #[test]
    fn a_daemon_that_is_away_is_asked_ever_less_often() {
        let gone = || NoAnswer::Gone {
            path: PathBuf::from("/run/x.sock"),
        };
        let unread = || NoAnswer::Busy(Failure::new(Exit::Ledger, "x"));
        let refused = || absent(io::ErrorKind::ConnectionRefused);
        let errors = [
            gone(),
            refused(),
            absent(io::ErrorKind::NotFound),
            absent(io::ErrorKind::TimedOut),
            unread(),
            refused(),
        ];
        let wanted = [1, 2, 4, 8, 10, 10].map(Some);
        assert_eq!(pauses(&errors), wanted);
        let many: Vec<NoAnswer> = (0..100).map(|_| gone()).collect();
        assert_eq!(pauses(&many).last(), Some(&Some(10)));
    }

    #[test]
    fn an_answer_is_the_end_and_a_lack_of_rights_when_it_lasts() {
        let denied = || absent(io::ErrorKind::PermissionDenied);
        let missing = || absent(io::ErrorKind::NotFound);
        assert_eq!(
            pauses(&[NoAnswer::Ended(Failure::new(Exit::NotFound, "x"))]),
            [None]
        );
        assert_eq!(
            pauses(&[missing(), denied(), denied(), denied()]),
            [Some(1), Some(2), Some(4), None]
        );
        assert_eq!(
            pauses(&[denied(), denied(), missing(), denied(), denied()]),
            [Some(1), Some(2), Some(4), Some(8), Some(10)]
        );
    }
}
