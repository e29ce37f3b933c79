//! What keeps the log from being moved: what the disk said at the last try, else a command of tilld that says it reads, else
//! some other program. And for how long each may go on before a person is told, however short the log is.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::ledger::log_held::HeldBy;
use crate::ledger::reading;
use crate::ledger::store::StoreError;
use crate::ledger::trouble::Trouble;
use crate::telemetry;

/// Tries that move nothing for so long are told: nobody else reads for so long without being in the way.
pub(super) const LASTING_AFTER: Duration = Duration::from_secs(30);
/// The same of a command of tilld, which reads for as long as the ledger is big and ends by itself: a copy of some hundred
/// gigabytes to a slow disk.
const OWN_LASTING_AFTER: Duration = Duration::from_hours(1);
/// Between two looks whether one reads.
const OWN_PAUSE: Duration = Duration::from_secs(5);

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Cause {
    /// What the disk did at the last try.
    failing: Option<HeldBy>,
    /// As it is told.
    trouble: Trouble,
    /// Whether a command of tilld reads, as it was the last time that was looked.
    pub(super) own: Option<(Instant, bool)>,
    /// When one was last seen reading: what it kept from being moved is moved after it, so others are not blamed for its time.
    pub(super) own_seen: Option<Instant>,
}

impl Cause {
    /// The disk does not take it.
    pub(super) fn fails(&mut self, error: &StoreError) {
        self.failing = Some(match error {
            StoreError::Full => HeldBy::DiskFull,
            other => HeldBy::Disk(other.to_string()),
        });
        let reason = telemetry::chain(error);
        if self.trouble.is_to_be_told(&reason, Instant::now()) {
            tracing::warn!(%reason, "the ledger's log could not be moved into its file: {reason}");
        }
    }

    /// The disk took what there was.
    pub(super) fn works(&mut self) {
        self.failing = None;
    }

    /// Nothing stands in the way.
    pub(super) fn over(&mut self) {
        self.failing = None;
        drop(self.trouble.over());
    }

    /// What stands in the way of this ledger's log since then, once it is worth telling; `anyway` it is.
    pub(super) fn standing(
        &mut self,
        ledger: &Path,
        since: Instant,
        anyway: bool,
    ) -> Option<HeldBy> {
        let lasts = since.elapsed();
        if let Some(disk) = &self.failing {
            return Some(disk.clone());
        }
        if !anyway && lasts < LASTING_AFTER {
            return None;
        }
        if !self.own_command_reads(ledger) {
            let just_over = |at: Instant| at.elapsed() < LASTING_AFTER;
            let is_its_own = !anyway && self.own_seen.is_some_and(just_over);
            return (!is_its_own).then_some(HeldBy::Reader);
        }
        (anyway || lasts >= OWN_LASTING_AFTER).then_some(HeldBy::OwnCommand)
    }

    fn own_command_reads(&mut self, ledger: &Path) -> bool {
        let now = Instant::now();
        let lately = |(at, _): &(Instant, bool)| now.saturating_duration_since(*at) < OWN_PAUSE;
        let known = self.own.filter(lately);
        let look = || (now, ledger.parent().is_some_and(reading::is_said));
        let (at, reads) = *self.own.insert(known.unwrap_or_else(look));
        if reads {
            self.own_seen = Some(at);
        }
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_is_not_blamed_for_the_time_of_a_command_that_is_over() {
        let ledger = Path::new("/no/such/directory/ledger.db");
        let mut cause = Cause::default();
        let Some(since) = Instant::now().checked_sub(Duration::from_mins(2)) else {
            return;
        };
        cause.own = Some((Instant::now(), true));
        assert_eq!(cause.standing(ledger, since, false), None);
        cause.own = None;
        assert_eq!(
            cause.standing(ledger, since, false),
            None,
            "it was just over"
        );
        assert_eq!(cause.standing(ledger, since, true), Some(HeldBy::Reader));
        cause.own_seen = Instant::now().checked_sub(LASTING_AFTER);
        assert_eq!(cause.standing(ledger, since, false), Some(HeldBy::Reader));
    }

    #[test]
    fn what_the_disk_says_goes_before_whoever_reads() {
        let ledger = Path::new("/no/such/directory/ledger.db");
        let (mut cause, now) = (Cause::default(), Instant::now());
        assert_eq!(cause.standing(ledger, now, false), None);
        assert_eq!(cause.standing(ledger, now, true), Some(HeldBy::Reader));
        cause.own = Some((now, true));
        assert_eq!(cause.standing(ledger, now, true), Some(HeldBy::OwnCommand));
        cause.fails(&StoreError::Full);
        assert_eq!(cause.standing(ledger, now, false), Some(HeldBy::DiskFull));
        cause.fails(&StoreError::Io("disk I/O error".into()));
        let disk = HeldBy::Disk("the disk failed".to_owned());
        assert_eq!(cause.standing(ledger, now, false), Some(disk));
        cause.works();
        assert_eq!(cause.standing(ledger, now, false), None);
    }
}
