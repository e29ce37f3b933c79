//! Which stored times are counted again because a clock of ours was wrong when they were written. Pure: the time, and the
//! ledger's mark of the latest time our clock has shown, come in; the next place to look at goes out.
//!
//! A due time written by a clock that was ahead looks like any other, and nobody would ask until the clock had caught up;
//! an invoice retired by it would not be asked about at all. Both are found by the mark at the start, by the poller's own
//! last look while it runs, and counted again in small commits. Where the clock was right, nothing is read but the places
//! where due times never lie.

use super::pass::after;
use crate::invoice::silence::{self, CLOCK_IS_SET_MS, Class, Due, Schedule};
use crate::ledger::{DueRow, InvoiceKey, Place};

/// A step back of the clock smaller than this is its ordinary correction, milliseconds.
const CLOCK_SLACK_MS: i64 = 1_000;
/// What a look at the clock found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// It shows a time before this program was written.
    NotSet,
    /// It goes on as before.
    Steady,
    /// It was ahead, and was set back.
    SetBack,
}

/// What is counted again next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Due times of a class behind this place.
    Due(Place),
    /// Invoices retired behind this place: since when, and which.
    Retired(i64, InvoiceKey),
}

/// How far stored times were counted again.
#[derive(Debug)]
pub(crate) struct Recheck {
    /// No due time is planned further ahead, milliseconds.
    longest_ms: i64,
    /// The time of the last look; `None` before the first one with a clock that was set.
    looked_ms: Option<i64>,
    /// The ledger's mark then.
    mark_ms: Option<i64>,
    /// The time behind which times are counted again.
    from_ms: i64,
    stage: Option<Stage>,
}

impl Recheck {
    /// The state of a poller that starts now.
    pub(crate) fn at_start(schedule: &Schedule) -> Self {
        Self {
            longest_ms: silence::longest_gap_ms(schedule),
            looked_ms: None,
            mark_ms: None,
            from_ms: 0,
            stage: None,
        }
    }

    /// Takes note of a look at this time, with the ledger's mark of the latest time our clock has shown.
    pub(crate) fn look(&mut self, now_ms: i64, mark_ms: Option<i64>) -> Clock {
        if now_ms < CLOCK_IS_SET_MS {
            return Clock::NotSet;
        }
        let is_behind = |at: i64| now_ms < at.saturating_sub(CLOCK_SLACK_MS);
        let first = self.looked_ms.is_none();
        // The same mark is not news: it stands until all is counted.
        let by_mark = mark_ms != self.mark_ms && mark_ms.is_some_and(is_behind);
        let set_back = self.looked_ms.is_some_and(is_behind) || by_mark;
        if set_back || first {
            // Without a mark nobody knows what the clock has shown: the ledger was written by a tilld that kept none.
            let known = !set_back && mark_ms.is_some();
            let ahead_ms = if known { self.longest_ms } else { 0 };
            self.from_ms = now_ms.saturating_add(ahead_ms);
            self.stage = Some(Stage::Due(after(Class::Urgent, self.from_ms)));
        }
        (self.looked_ms, self.mark_ms) = (Some(now_ms), mark_ms);
        if set_back {
            Clock::SetBack
        } else {
            Clock::Steady
        }
    }

    /// What is to be read next; `None` when all is counted.
    pub(crate) fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// Goes on behind the rows read for [`Stage::Due`], once those dated wrongly are stored anew.
    pub(crate) fn done(&mut self, rows: &[DueRow]) {
        self.stage = match (rows.last(), self.stage) {
            (Some(row), _) => Some(Stage::Due(Place {
                class: row.class,
                due_ms: row.due_ms,
                key: row.key,
            })),
            (None, Some(Stage::Due(place))) => {
                let later = Class::ALL.into_iter().find(|class| *class > place.class);
                Some(later.map_or(Stage::Retired(self.from_ms, LAST), |class| {
                    Stage::Due(after(class, self.from_ms))
                }))
            }
            (None, stage) => stage,
        };
    }

    /// Goes on behind the invoices read for [`Stage::Retired`], once they are stored anew. True when all is counted and the
    /// ledger's mark may be taken back to this time.
    pub(crate) fn done_retired(&mut self, found: &[(i64, InvoiceKey)], now_ms: i64) -> bool {
        self.stage = found
            .last()
            .map(|(since, key)| Stage::Retired(*since, *key));
        self.stage.is_none() && self.mark_ms.is_none_or(|mark| mark > now_ms)
    }

    /// Which of the rows read for [`Stage::Due`] are dated wrongly.
    pub(crate) fn wrong(schedule: &Schedule, rows: &[DueRow], now_ms: i64) -> Vec<InvoiceKey> {
        let wrong = |row: &&DueRow| match silence::next(schedule, &row.heard, now_ms) {
            Due::At(at) => at < row.due_ms,
            Due::Unresolved | Due::Never => true,
        };
        rows.iter().filter(wrong).map(|row| row.key).collect()
    }
}

/// Behind every invoice of its time.
const LAST: InvoiceKey = InvoiceKey(i64::MAX);

#[cfg(test)]
mod tests;
