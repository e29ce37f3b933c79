//! When to ask about an invoice that nobody speaks of. Pure: what was heard and when, in; the next due time, out.
//!
//! Young invoices are asked about soon and often, old ones rarely, once shortly after their payment window closed, and
//! not beyond a horizon. After a restore what is polled no more is polled once. A notification pushes the due time back; doubt pulls it to now. A question that brought no
//! answer is asked again soon, and later each time, so that it never crowds out the others; when it has brought none
//! often enough, the plan goes on without its answer. An invoice is given up only on the word of the service's clock
//! (`end.rs`), never by ours alone. All times are milliseconds since 1970.

mod class;
pub mod delay;
mod end;

use serde::{Deserialize, Serialize};

use crate::invoice::status::Outcome;

pub use class::{Class, YOUNG_MS, class};
pub use end::{Ended, end_ms};

/// One step of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The step holds for invoices younger than this, milliseconds.
    pub until_ms: i64,
    /// Silence longer than this makes the invoice due, milliseconds.
    pub every_ms: i64,
}

/// The merchant's schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Steps by age, rising. The last gap holds until the horizon.
    pub steps: Vec<Step>,
    /// One poll this long after `expireAt`, milliseconds: long enough for the service to notice it itself.
    pub after_expiry_ms: i64,
    /// An open invoice is given up this long after `expireAt`, or after creation without one, milliseconds.
    pub horizon_ms: i64,
}

/// What is known about an invoice's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// When it was opened here.
    pub created_ms: i64,
    /// `expireAt`, when the service gave one.
    pub expire_ms: Option<i64>,
    /// The last authentic observation, whatever its source.
    pub heard_ms: Option<i64>,
    /// The last time we asked, answered or not.
    pub asked_ms: Option<i64>,
    /// The service's clock at its last answer, when that was dated.
    pub service_ms: Option<i64>,
    /// Answers after the end, by our clock.
    pub ended: Ended,
    /// A refused notification asks for a poll at this time; done once an answer came since, or none however often.
    pub nudged_ms: Option<i64>,
    /// Polls in a row that brought no answer about it.
    pub failures: u32,
    /// Only a poll can tell what is right.
    pub doubt: bool,
    /// A first poll waits for a second to agree, since then.
    pub pending_since_ms: Option<i64>,
    /// What it amounts to so far.
    pub outcome: Outcome,
    /// Since when it amounts to that.
    pub outcome_ms: i64,
    /// The event `unresolved` was written.
    pub unresolved: bool,
    /// The plan polls it no more, and the ledger was restored since it was polled last.
    pub restored: bool,
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// To be asked at this time, or at once when it has passed.
    At(i64),
    /// The horizon has passed without a final answer.
    Unresolved,
    /// Nothing more is expected.
    Never,
}

/// Money may come late: a failed invoice is asked about again this long after it failed (5 min, 30 min, 2 h, 12 h, 24 h, 72 h).
const AFTER_FAILURE_MS: [i64; 6] = [
    300_000,
    1_800_000,
    7_200_000,
    43_200_000,
    86_400_000,
    259_200_000,
];
/// First step back after a poll that brought nothing.
const BACK_OFF_MS: i64 = 5_000;
/// Largest step back after polls that brought nothing: 10 minutes, so that an outage's end is noticed soon.
const BACK_OFF_MOST_MS: i64 = 600_000;
/// Questions in a row without an answer that are made up for out of turn: about 20 minutes of an outage. An invoice the
/// service never answers about is asked by the plan from then on, or a thousand of them would fill every second.
const MADE_UP_FOR: u32 = 8;
/// The gap when a schedule has no steps.
const GAP_WITHOUT_STEPS_MS: i64 = 60_000;

/// The next time to ask. Past times that lie in the future were written by a clock that was wrong: they count as unknown.
pub fn next(schedule: &Schedule, heard: &Heard, now_ms: i64) -> Due {
    let heard = &believable(heard, now_ms);
    let urgent = heard.doubt || heard.pending_since_ms.is_some();
    let planned = match heard.outcome {
        // The poll that is to end its doubt is refused for good.
        Outcome::Open if urgent && is_refused_for_good(schedule, heard, now_ms) => {
            if heard.unresolved {
                Due::Never
            } else {
                Due::Unresolved
            }
        }
        _ if urgent => Due::At(urgent_at(heard, now_ms)),
        _ if heard.restored => Due::At(after_restore(schedule, heard, now_ms)),
        Outcome::Open => open(schedule, heard, now_ms),
        Outcome::Failed => after_failure(heard),
        Outcome::Paid | Outcome::Reversed | Outcome::Mismatch | Outcome::SecondPayment => {
            Due::Never
        }
    };
    let nudged = heard
        .nudged_ms
        .filter(|nudged| counted_ms(heard).is_none_or(|asked| asked < *nudged));
    let planned = match (planned, nudged) {
        (Due::At(at), Some(nudged)) => Due::At(at.min(nudged)),
        (Due::Never, Some(nudged)) => Due::At(nudged),
        (planned, _) => planned,
    };
    match (planned, heard.asked_ms) {
        (Due::At(at), Some(asked)) if heard.failures > 0 => {
            Due::At(at.max(asked.saturating_add(back_off(heard.failures))))
        }
        (planned, _) => planned,
    }
}

/// 2025-01-01, milliseconds since 1970: a clock that shows less was never set. A machine without a battery starts in 1970
/// and is set some seconds later; nothing is concluded from the time until then, and what was dated by a clock that was set
/// counts as due.
pub const CLOCK_IS_SET_MS: i64 = 1_735_689_600_000;

/// A nudge is never planned further ahead than this, milliseconds.
pub const NUDGE_EVERY_MS: i64 = 60_000;

fn believable(heard: &Heard, now_ms: i64) -> Heard {
    let past = |at: Option<i64>| at.filter(|at| *at <= now_ms);
    let (heard_ms, asked_ms) = (past(heard.heard_ms), past(heard.asked_ms));
    let ended = past(heard.ended.since_ms).map_or(Ended::default(), |_| heard.ended);
    let last = [heard_ms, asked_ms].into_iter().flatten().max();
    // What remains known stands in; when nothing does, the invoice is due at once.
    let stand_in = last.unwrap_or(i64::MIN);
    Heard {
        heard_ms,
        asked_ms,
        ended,
        created_ms: past(Some(heard.created_ms)).unwrap_or(stand_in),
        outcome_ms: past(Some(heard.outcome_ms)).unwrap_or(stand_in),
        pending_since_ms: heard
            .pending_since_ms
            .map(|since| past(Some(since)).unwrap_or(i64::MIN)),
        nudged_ms: heard
            .nudged_ms
            .map(|nudged| nudged.min(now_ms.saturating_add(NUDGE_EVERY_MS))),
        ..*heard
    }
}

/// The last question that counts: one that brought no answer is still owed, until it was made up for often enough.
fn counted_ms(heard: &Heard) -> Option<i64> {
    let owed = (1..=MADE_UP_FOR).contains(&heard.failures);
    heard.asked_ms.filter(|_| !owed)
}

/// Past its end the service said often enough that there is no such invoice, and nothing else since.
fn is_refused_for_good(schedule: &Schedule, heard: &Heard, now_ms: i64) -> bool {
    let end = end_ms(schedule, heard);
    let asked = counted_ms(heard).filter(|asked| *asked >= end);
    let is_over = asked.is_some_and(|asked| end::is_over(heard, end, asked));
    heard.failures > 0 && now_ms >= end && is_over
}

fn urgent_at(heard: &Heard, now_ms: i64) -> i64 {
    match heard.pending_since_ms {
        Some(since) => since.saturating_add(crate::invoice::transition::SECOND_POLL_AFTER_MS),
        None => now_ms.min(heard.heard_ms.unwrap_or(now_ms)),
    }
}

fn open(schedule: &Schedule, heard: &Heard, now_ms: i64) -> Due {
    let end = end_ms(schedule, heard);
    if now_ms >= end {
        // Asked once more at the horizon itself, and by the last gap while the service's clock does not agree.
        return match counted_ms(heard).filter(|asked| *asked >= end) {
            _ if heard.unresolved => Due::Never,
            None => Due::At(end),
            Some(asked) if end::is_over(heard, end, asked) => Due::Unresolved,
            Some(asked) => Due::At(asked.saturating_add(last_gap_ms(schedule))),
        };
    }
    let age = now_ms.saturating_sub(heard.created_ms);
    let step = schedule
        .steps
        .iter()
        .find(|step| age < step.until_ms)
        .or(schedule.steps.last());
    let gap = step.map_or(GAP_WITHOUT_STEPS_MS, |step| step.every_ms);
    let last = [heard.heard_ms, counted_ms(heard)]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(heard.created_ms);
    let regular = last.saturating_add(gap).min(end);
    let window_closed = heard
        .expire_ms
        .map(|expire| expire.saturating_add(schedule.after_expiry_ms));
    match window_closed {
        Some(closed) if last < closed && closed < regular => Due::At(closed),
        _ => Due::At(regular),
    }
}

fn last_gap_ms(schedule: &Schedule) -> i64 {
    let last = schedule.steps.last();
    last.map_or(GAP_WITHOUT_STEPS_MS, |step| step.every_ms)
}

/// No due time is planned further ahead than this, milliseconds.
pub fn longest_gap_ms(schedule: &Schedule) -> i64 {
    let gaps = schedule.steps.iter().map(|step| step.every_ms);
    let after_failure = AFTER_FAILURE_MS.windows(2).filter_map(|pair| match pair {
        [earlier, later] => Some(later - earlier),
        _ => None,
    });
    gaps.chain(after_failure)
        .chain([GAP_WITHOUT_STEPS_MS, BACK_OFF_MOST_MS, NUDGE_EVERY_MS])
        .max()
        .unwrap_or(BACK_OFF_MOST_MS)
}

/// At once; by the last gap when that has brought no answer often enough: the outcome may have changed.
fn after_restore(schedule: &Schedule, heard: &Heard, now_ms: i64) -> i64 {
    let gave_up = counted_ms(heard).filter(|_| heard.failures > 0);
    gave_up.map_or(now_ms, |asked| asked.saturating_add(last_gap_ms(schedule)))
}

fn after_failure(heard: &Heard) -> Due {
    let last = [heard.heard_ms, counted_ms(heard)]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(heard.outcome_ms);
    AFTER_FAILURE_MS
        .into_iter()
        .map(|after| heard.outcome_ms.saturating_add(after))
        .find(|at| *at > last)
        .map_or(Due::Never, Due::At)
}

fn back_off(failures: u32) -> i64 {
    let doublings = failures.saturating_sub(1).min(10);
    BACK_OFF_MS
        .saturating_mul(1 << doublings)
        .min(BACK_OFF_MOST_MS)
}

#[cfg(test)]
mod tests;
