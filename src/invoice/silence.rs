//! When to ask about an invoice that nobody speaks of. Pure: what was heard and when, in; the next due time, out.
//!
//! Young invoices are asked about soon and often, old ones rarely, once shortly after their payment window closed, and
//! not beyond a horizon. A notification pushes the due time back; doubt pulls it to now. A question that brought no
//! answer is asked again soon, and later each time, so that it never crowds out the others; when it has brought none
//! often enough, the plan goes on without its answer. All times are milliseconds since 1970.

use super::status::Outcome;

/// One step of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step holds for invoices younger than this, milliseconds.
    pub until_ms: i64,
    /// Silence longer than this makes the invoice due, milliseconds.
    pub every_ms: i64,
}

/// The merchant's schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Steps by age, rising. The last gap holds until the horizon.
    pub steps: Vec<Step>,
    /// One poll this long after `expireAt`, milliseconds: long enough for the service to notice it itself.
    pub after_expiry_ms: i64,
    /// Nobody is asked later than this after `expireAt`, or after creation without one, milliseconds.
    pub horizon_ms: i64,
}

impl Schedule {
    /// The longest gap between two questions about an open invoice, milliseconds.
    pub fn longest_step_ms(&self) -> i64 {
        let steps = self.steps.iter().map(|step| step.every_ms);
        steps.max().unwrap_or(GAP_WITHOUT_STEPS_MS)
    }
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
        _ if urgent => Due::At(urgent_at(heard, now_ms)),
        Outcome::Open => open(schedule, heard, now_ms),
        Outcome::Failed => after_failure(heard),
        Outcome::Paid | Outcome::Reversed | Outcome::Mismatch => Due::Never,
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

/// A nudge is never planned further ahead than this, milliseconds.
pub const NUDGE_EVERY_MS: i64 = 60_000;

fn believable(heard: &Heard, now_ms: i64) -> Heard {
    let past = |at: Option<i64>| at.filter(|at| *at <= now_ms);
    let (heard_ms, asked_ms) = (past(heard.heard_ms), past(heard.asked_ms));
    let last = [heard_ms, asked_ms].into_iter().flatten().max();
    // What remains known stands in; when nothing does, the invoice is due at once.
    let stand_in = last.unwrap_or(i64::MIN);
    Heard {
        heard_ms,
        asked_ms,
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

fn urgent_at(heard: &Heard, now_ms: i64) -> i64 {
    match heard.pending_since_ms {
        Some(since) => since.saturating_add(super::transition::SECOND_POLL_AFTER_MS),
        None => now_ms.min(heard.heard_ms.unwrap_or(now_ms)),
    }
}

fn open(schedule: &Schedule, heard: &Heard, now_ms: i64) -> Due {
    let end = heard
        .expire_ms
        .unwrap_or(heard.created_ms)
        .saturating_add(schedule.horizon_ms);
    if now_ms >= end {
        // Asked once more at the horizon itself before it is given up.
        let asked_at_end = counted_ms(heard).is_some_and(|asked| asked >= end);
        return match (heard.unresolved, asked_at_end) {
            (true, _) => Due::Never,
            (false, true) => Due::Unresolved,
            (false, false) => Due::At(end),
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
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn schedule() -> Schedule {
        let steps = vec![
            Step {
                until_ms: 30 * MINUTE,
                every_ms: MINUTE,
            },
            Step {
                until_ms: 120 * MINUTE,
                every_ms: 5 * MINUTE,
            },
        ];
        Schedule {
            steps,
            after_expiry_ms: 5_000,
            horizon_ms: 72 * 60 * MINUTE,
        }
    }

    fn silent() -> Heard {
        Heard {
            created_ms: 0,
            expire_ms: None,
            heard_ms: None,
            asked_ms: None,
            nudged_ms: None,
            failures: 0,
            doubt: false,
            pending_since_ms: None,
            outcome: Outcome::Open,
            outcome_ms: 0,
            unresolved: false,
        }
    }

    fn check(heard: Heard, now_ms: i64, wanted: Due) {
        assert_eq!(
            next(&schedule(), &heard, now_ms),
            wanted,
            "{heard:?} at {now_ms}"
        );
    }

    #[test]
    fn the_young_are_asked_often_and_the_old_rarely() {
        check(silent(), 0, Due::At(MINUTE));
        check(
            Heard {
                asked_ms: Some(10 * MINUTE),
                ..silent()
            },
            10 * MINUTE,
            Due::At(11 * MINUTE),
        );
        check(
            Heard {
                asked_ms: Some(40 * MINUTE),
                ..silent()
            },
            40 * MINUTE,
            Due::At(45 * MINUTE),
        );
        check(
            Heard {
                asked_ms: Some(900 * MINUTE),
                ..silent()
            },
            900 * MINUTE,
            Due::At(905 * MINUTE),
        );
    }

    #[test]
    fn a_notification_pushes_the_due_time_back() {
        check(
            Heard {
                heard_ms: Some(50_000),
                ..silent()
            },
            55_000,
            Due::At(110_000),
        );
    }

    #[test]
    fn the_closed_window_is_asked_about_once() {
        let heard = Heard {
            expire_ms: Some(60 * MINUTE),
            asked_ms: Some(58 * MINUTE),
            ..silent()
        };
        check(heard, 58 * MINUTE, Due::At(60 * MINUTE + 5_000));
        check(
            Heard {
                asked_ms: Some(60 * MINUTE + 5_000),
                ..heard
            },
            61 * MINUTE,
            Due::At(65 * MINUTE + 5_000),
        );
    }

    #[test]
    fn doubt_is_due_at_once_and_a_second_poll_after_its_gap() {
        check(
            Heard {
                doubt: true,
                heard_ms: Some(7_000),
                ..silent()
            },
            9_000,
            Due::At(7_000),
        );
        check(
            Heard {
                pending_since_ms: Some(9_000),
                doubt: true,
                ..silent()
            },
            9_500,
            Due::At(39_000),
        );
        check(
            Heard {
                doubt: true,
                outcome: Outcome::Paid,
                heard_ms: Some(1),
                ..silent()
            },
            2,
            Due::At(1),
        );
    }

    #[test]
    fn what_fails_moves_back_and_never_to_the_front() {
        let heard = Heard {
            doubt: true,
            heard_ms: Some(0),
            asked_ms: Some(10_000),
            failures: 1,
            ..silent()
        };
        check(heard, 10_000, Due::At(15_000));
        check(
            Heard {
                failures: 4,
                ..heard
            },
            10_000,
            Due::At(50_000),
        );
        check(
            Heard {
                failures: 400,
                ..heard
            },
            10_000,
            Due::At(610_000),
        );
    }

    #[test]
    fn a_question_without_an_answer_is_made_up_for_soon_and_not_for_ever() {
        let hour = 60 * MINUTE;
        // A late payment is looked for at five minutes; the service was away just then.
        let failed = Heard {
            outcome: Outcome::Failed,
            heard_ms: Some(0),
            asked_ms: Some(5 * MINUTE),
            failures: 1,
            ..silent()
        };
        // So was it when a refused notification asked for a poll, and when a whole day had passed in silence.
        let nudged = Heard {
            nudged_ms: Some(5 * MINUTE - 1),
            outcome: Outcome::Open,
            ..failed
        };
        for heard in [failed, nudged] {
            check(heard, 5 * MINUTE, Due::At(5 * MINUTE + 5_000));
        }
        let old = Heard {
            asked_ms: Some(24 * hour),
            heard_ms: Some(20 * hour),
            failures: 3,
            ..silent()
        };
        check(old, 24 * hour, Due::At(24 * hour + 20_000));
        let end = 72 * hour;
        let at_the_end = Heard {
            asked_ms: Some(end),
            ..old
        };
        check(at_the_end, end, Due::At(end + 20_000));
        // Often enough: the plan goes on.
        let failures = MADE_UP_FOR + 1;
        check(
            Heard { failures, ..failed },
            5 * MINUTE,
            Due::At(30 * MINUTE),
        );
        check(
            Heard {
                failures,
                ..at_the_end
            },
            end,
            Due::Unresolved,
        );
    }

    #[test]
    fn beyond_the_horizon_it_is_asked_once_more_and_then_unresolved() {
        let end = 72 * 60 * MINUTE;
        check(
            Heard {
                asked_ms: Some(end - 1),
                ..silent()
            },
            end + 9,
            Due::At(end),
        );
        check(
            Heard {
                asked_ms: Some(end + 20),
                ..silent()
            },
            end + 30,
            Due::Unresolved,
        );
        check(
            Heard {
                asked_ms: Some(end + 20),
                unresolved: true,
                ..silent()
            },
            end + 30,
            Due::Never,
        );
    }

    #[test]
    fn a_failed_invoice_is_asked_again_since_money_may_come_late() {
        let failed = Heard {
            outcome: Outcome::Failed,
            outcome_ms: 1_000,
            heard_ms: Some(1_000),
            ..silent()
        };
        check(failed, 2_000, Due::At(301_000));
        check(
            Heard {
                asked_ms: Some(301_000),
                ..failed
            },
            301_000,
            Due::At(1_801_000),
        );
        check(
            Heard {
                asked_ms: Some(259_201_000),
                ..failed
            },
            259_202_000,
            Due::Never,
        );
    }

    #[test]
    fn times_of_a_clock_that_was_ahead_do_not_silence_it() {
        const AHEAD: i64 = 1_000_000_000_000;
        let now = 10 * MINUTE;
        let wrong = Heard {
            created_ms: AHEAD,
            outcome_ms: AHEAD,
            ..silent()
        };
        let due_now =
            |heard: Heard| matches!(next(&schedule(), &heard, now), Due::At(at) if at <= now);
        assert!(due_now(wrong));
        assert!(due_now(Heard {
            heard_ms: Some(AHEAD),
            asked_ms: Some(AHEAD),
            ..wrong
        }));
        assert!(due_now(Heard {
            pending_since_ms: Some(AHEAD),
            doubt: true,
            ..wrong
        }));
        assert!(due_now(Heard {
            doubt: true,
            heard_ms: Some(AHEAD),
            ..silent()
        }));
        // Once it was asked by the right clock, it waits like any other.
        check(
            Heard {
                asked_ms: Some(now),
                ..wrong
            },
            now,
            Due::At(now + MINUTE),
        );
        check(
            Heard {
                heard_ms: Some(AHEAD),
                asked_ms: Some(now),
                ..silent()
            },
            now,
            Due::At(now + MINUTE),
        );
        let failed = Heard {
            outcome: Outcome::Failed,
            asked_ms: Some(now),
            ..wrong
        };
        check(failed, now, Due::At(now + 5 * MINUTE));
    }

    #[test]
    fn a_question_without_an_answer_is_not_the_last_one() {
        let end = 72 * 60 * MINUTE;
        let unanswered = Heard {
            asked_ms: Some(end + 20),
            failures: 1,
            ..silent()
        };
        check(unanswered, end + 30, Due::At(end + 5_020));
        let failed = Heard {
            outcome: Outcome::Failed,
            heard_ms: Some(0),
            asked_ms: Some(259_200_001),
            failures: 1,
            ..silent()
        };
        assert_ne!(next(&schedule(), &failed, 259_200_002), Due::Never);
    }

    #[test]
    fn what_is_paid_is_left_alone() {
        check(
            Heard {
                outcome: Outcome::Paid,
                ..silent()
            },
            9,
            Due::Never,
        );
    }
}
