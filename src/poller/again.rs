//! After a restore, polls once what the plan polls no more: some invoices in each look, newest first.
//! Relies on the ledger, which files them behind all others, and on being called in every look.
//! Promises to take half of the requests at most, and to read nothing once all were looked at.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::Trouble;
use crate::ledger::{FILED_AT_ONCE, InvoiceKey, REPOLL, Reader, Repoll, Writer};

/// Of so many requests one may be such a poll: the others stay for invoices that can still be paid, and for what else is polled.
const ONE_OF: u32 = 2;
/// Between two looks that filed nothing.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How far it is, as far as this process knows.
#[derive(Debug)]
enum Stage {
    /// The ledger was not asked yet.
    Unread,
    /// So far.
    At(Repoll),
    /// Nothing is left to be filed.
    Over,
}

/// What a look is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Nothing,
    /// Read in the ledger how far it is.
    Read,
    /// Go on from there.
    GoOn(Repoll),
}

/// When the next invoices may be filed, and where.
#[derive(Debug)]
pub(crate) struct Again {
    stage: Stage,
    every: Duration,
    next: Option<Instant>,
}

impl Again {
    /// The state of a poller that starts now and may send so many requests a second.
    pub(crate) fn at_start(per_second: NonZeroU32) -> Self {
        Self {
            stage: Stage::Unread,
            every: Duration::from_secs(u64::from(FILED_AT_ONCE * ONE_OF)) / per_second.get(),
            next: None,
        }
    }

    /// How long until more may be filed; `None` when nothing is left.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let next = self.next.unwrap_or(now);
        let left = next.saturating_duration_since(now);
        (!matches!(self.stage, Stage::Over)).then_some(left)
    }

    /// What to do at this moment. `waits`: some that were filed are still to be polled.
    pub(crate) fn next(&self, waits: bool, now: Instant) -> Next {
        match self.stage {
            Stage::Unread => Next::Read,
            Stage::At(repoll) if !waits && self.wait(now) == Some(Duration::ZERO) => {
                Next::GoOn(repoll)
            }
            Stage::At(_) | Stage::Over => Next::Nothing,
        }
    }

    /// Takes what the ledger says of it.
    pub(crate) fn read(&mut self, known: Option<Repoll>) {
        let left = known.filter(|repoll| !repoll.is_over());
        self.stage = left.map_or(Stage::Over, Stage::At);
    }

    /// Takes how far it is once that is stored, with those that were filed just now.
    pub(crate) fn filed(&mut self, repoll: Repoll, keys: &[InvoiceKey], now: Instant) {
        let wait = if keys.is_empty() {
            LOOK_EVERY
        } else {
            self.every
        };
        self.read(Some(repoll));
        self.next = now.checked_add(wait);
    }
}

/// One look at this moment, as [`Again::next`] has it. True when more were filed.
pub(super) async fn poll_again(
    again: &mut Again,
    (reader, writer): (&Reader, &Writer),
    waits: bool,
    (now, now_ms): (Instant, i64),
) -> Result<bool, Trouble> {
    if again.next(waits, now) == Next::Read {
        again.read(reader.repoll().await?);
    }
    let Next::GoOn(mut repoll) = again.next(waits, now) else {
        return Ok(false);
    };
    let mut keys = Vec::new();
    if let Some(below) = repoll.uncounted {
        repoll.count(reader.count_ended(repoll.generation, below).await?);
    } else {
        keys = repoll.go_on(&reader.passed(repoll.below).await?);
    }
    // Filed twice is no harm, and passed over would be.
    writer.redate(&keys, now_ms).await?;
    writer.note(&REPOLL, &repoll).await?;
    again.filed(repoll, &keys, now);
    if repoll.is_over() && repoll.of > 0 {
        tracing::info!(
            of = repoll.of,
            "after the restore, all {} invoices that were final are polled again, or are about to be",
            repoll.of
        );
    }
    Ok(!keys.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_requests_stay_for_others() {
        let start = Instant::now();
        let mut again = Again::at_start(NonZeroU32::new(5).expect("not zero"));
        assert_eq!(again.next(false, start), Next::Read);
        let begun = Repoll::begin(1);
        again.filed(begun, &[InvoiceKey(8); 8], start);
        assert_eq!(again.wait(start), Some(Duration::from_millis(3_200)));
        let later = start + Duration::from_millis(3_200);
        assert_eq!(again.next(false, start), Next::Nothing);
        assert_eq!(again.next(true, later), Next::Nothing);
        assert_eq!(again.next(false, later), Next::GoOn(begun));
        again.filed(begun, &[], later);
        assert_eq!(again.wait(later), Some(LOOK_EVERY));
    }

    #[test]
    fn nothing_is_waited_for_once_all_were_looked_at() {
        let mut again = Again::at_start(NonZeroU32::MIN);
        let over = Repoll {
            uncounted: None,
            ..Repoll::begin(1)
        };
        again.read(Some(over));
        assert_eq!(again.wait(Instant::now()), None);
        again.read(None);
        assert_eq!(again.wait(Instant::now()), None);
    }
}
