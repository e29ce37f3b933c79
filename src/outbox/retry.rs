//! What becomes of a delivery after an attempt. Pure: time and randomness are arguments.

use std::time::Duration;

use crate::hook::process::Ending;

/// Exit codes after which another attempt would be no use: `EX_DATAERR`, `EX_NOPERM`, `EX_CONFIG` of sysexits.
const HOPELESS: [i32; 3] = [65, 77, 78];

/// `EX_TEMPFAIL` of sysexits: the hook itself asks to be run again, and it is never given up for that.
const TRY_AGAIN: i32 = 75;

/// `410 Gone`: the address wants nothing any more (Standard Webhooks 1.0).
const GONE: u16 = 410;

/// Longest wait taken over from an answer's `Retry-After`. A longer one is more likely an accident than a wish, and an
/// hour is what a paid order may wait for a shop that is being mended without anybody asking whether it is back.
const LONGEST_WISH: Duration = Duration::from_hours(1);

/// The gap when the schedule is empty and a hook asks to be run again.
const ONLY_GAP: Duration = Duration::from_mins(5);

/// A gap is stretched by at most this part of it, so that deliveries that failed together do not come back together.
const JITTER_PART: u64 = 10;

/// What to do with the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It is done.
    Done,
    /// Run it again, not before this time (milliseconds since 1970).
    Retry {
        /// When.
        at_ms: i64,
    },
    /// Run it again as it asks, not before this time (milliseconds since 1970); the attempt was no failure.
    Postpone {
        /// When.
        at_ms: i64,
    },
    /// Give it up: a person must look.
    Abandon,
    /// Run it again as soon as possible; the attempt was no failure.
    Interrupted,
}

/// The attempts at a delivery before this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// All of them.
    pub before: u32,
    /// The failed ones since a person last asked for a retry.
    pub failures: u32,
}

/// Decides after an attempt that ended at `now_ms`. `schedule` holds the gap after each failure: one more failure than
/// gaps, and it is abandoned. Who asks to be run again uses up nothing of that, and waits longer with every attempt until
/// the last gap is reached. A failed answer with a wish to be left alone is not repeated before that time, at most
/// [`LONGEST_WISH`] later; it is a failure like any other. `random` is any number.
pub(crate) fn plan(
    ending: &Ending,
    count: Count,
    schedule: &[Duration],
    random: u64,
    now_ms: i64,
) -> Plan {
    let gap_after = |attempts: u32| {
        let index = usize::try_from(attempts).unwrap_or(usize::MAX);
        schedule.get(index).copied()
    };
    let failed = |wish: Duration| {
        gap_after(count.failures).map_or(Plan::Abandon, |gap| Plan::Retry {
            at_ms: time_after(gap.max(wish.min(LONGEST_WISH)), random, now_ms),
        })
    };
    match ending {
        Ending::Exited(0)
        | Ending::Answered {
            status: 200..=299, ..
        } => Plan::Done,
        // What could not begin was no attempt.
        Ending::Interrupted | Ending::Wanting(_) | Ending::Exposed(_) => Plan::Interrupted,
        Ending::Exited(code) if HOPELESS.contains(code) => Plan::Abandon,
        Ending::Exited(TRY_AGAIN) => {
            let gap = gap_after(count.before).or(schedule.last().copied());
            let at_ms = time_after(gap.unwrap_or(ONLY_GAP), random, now_ms);
            Plan::Postpone { at_ms }
        }
        Ending::Answered { status: GONE, .. } => Plan::Abandon,
        Ending::Answered { retry_after, .. } => failed(retry_after.unwrap_or_default()),
        Ending::Exited(_)
        | Ending::Signalled(_)
        | Ending::TimedOut
        | Ending::NotStarted(_)
        | Ending::NoAnswer(_) => failed(Duration::ZERO),
    }
}

/// The longest time between the end of an attempt and the next one, a shop's wish included, with a minute for what a clock
/// is corrected by.
pub(crate) fn longest_wait(schedule: &[Duration]) -> Duration {
    let longest = schedule
        .iter()
        .copied()
        .chain([ONLY_GAP, LONGEST_WISH])
        .max();
    let gap = longest.unwrap_or(LONGEST_WISH);
    let stretched = u32::try_from(JITTER_PART).map_or(gap, |part| gap / part);
    gap.saturating_add(stretched)
        .saturating_add(Duration::from_mins(1))
}

fn time_after(gap: Duration, random: u64, now_ms: i64) -> i64 {
    let gap_ms = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
    let jitter_ms = random % (gap_ms / JITTER_PART + 1);
    let wait_ms = i64::try_from(gap_ms.saturating_add(jitter_ms)).unwrap_or(i64::MAX);
    now_ms.saturating_add(wait_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

    #[test]
    fn no_next_attempt_is_later_than_the_longest_wait() {
        for schedule in [SCHEDULE.as_slice(), &[], &[Duration::from_hours(24)]] {
            let most = i64::try_from(longest_wait(schedule).as_millis()).expect("days");
            for (random, failures) in [
                (0, 0),
                (5_999, 1),
                (359_999, 0),
                (8_639_999, 0),
                (u64::MAX, 0),
            ] {
                for ending in [
                    Ending::Exited(1),
                    Ending::Exited(TRY_AGAIN),
                    answered(429, Some(Duration::MAX)),
                ] {
                    match plan(&ending, failed(failures), schedule, random, 0) {
                        Plan::Retry { at_ms } | Plan::Postpone { at_ms } => {
                            assert!(at_ms < most, "{at_ms} of {most}");
                        }
                        Plan::Done | Plan::Abandon | Plan::Interrupted => {}
                    }
                }
            }
        }
    }

    fn after(ending: &Ending, failures: u32) -> Plan {
        plan(ending, failed(failures), &SCHEDULE, 0, 1_000)
    }

    fn answered(status: u16, retry_after: Option<Duration>) -> Ending {
        Ending::Answered {
            status,
            retry_after,
        }
    }

    /// Nothing but failures.
    fn failed(failures: u32) -> Count {
        Count {
            before: failures,
            failures,
        }
    }

    #[test]
    fn every_code_and_signal_does_what_the_contract_says() {
        for code in 0..=255 {
            let first = after(&Ending::Exited(code), 0);
            let last = after(&Ending::Exited(code), 2);
            let wanted = match code {
                0 => (Plan::Done, Plan::Done),
                65 | 77 | 78 => (Plan::Abandon, Plan::Abandon),
                75 => (
                    Plan::Postpone { at_ms: 11_000 },
                    Plan::Postpone { at_ms: 61_000 },
                ),
                _ => (Plan::Retry { at_ms: 11_000 }, Plan::Abandon),
            };
            assert_eq!((first, last), wanted, "exit {code}");
        }
        let others = (1..=31)
            .map(Ending::Signalled)
            .chain([Ending::TimedOut, Ending::NotStarted("no".to_owned())]);
        for ending in others {
            assert_eq!(after(&ending, 0), Plan::Retry { at_ms: 11_000 }, "{ending}");
            assert_eq!(after(&ending, 1), Plan::Retry { at_ms: 61_000 }, "{ending}");
            assert_eq!(after(&ending, 2), Plan::Abandon, "{ending}");
        }
        assert_eq!(after(&Ending::Interrupted, 9), Plan::Interrupted);
    }

    #[test]
    fn every_answer_does_what_the_contract_says() {
        for status in 100..=599 {
            let first = after(&answered(status, None), 0);
            let last = after(&answered(status, None), 2);
            let wanted = match status {
                200..=299 => (Plan::Done, Plan::Done),
                410 => (Plan::Abandon, Plan::Abandon),
                _ => (Plan::Retry { at_ms: 11_000 }, Plan::Abandon),
            };
            assert_eq!((first, last), wanted, "http {status}");
        }
        let lost = Ending::NoAnswer("connection refused".to_owned());
        assert_eq!(after(&lost, 0), Plan::Retry { at_ms: 11_000 });
        assert_eq!(after(&lost, 2), Plan::Abandon);
    }

    #[test]
    fn a_shop_is_left_alone_as_long_as_it_wishes() {
        for (status, wish_s, at_ms) in [
            (429, 30, 31_000),
            (503, 30, 31_000),
            (404, 30, 31_000),
            (302, 30, 31_000),
            // The gap of the schedule is longer than the wish.
            (503, 2, 11_000),
            // A wish of days is heeded for an hour.
            (503, 1_000_000, 3_601_000),
        ] {
            let ending = answered(status, Some(Duration::from_secs(wish_s)));
            let plan = after(&ending, 0);
            assert_eq!(plan, Plan::Retry { at_ms }, "{status} for {wish_s} s");
        }
        let wish = Some(Duration::from_secs(30));
        assert_eq!(after(&answered(200, wish), 0), Plan::Done);
        assert_eq!(after(&answered(410, wish), 0), Plan::Abandon);
        // A wish is no promise: it makes no attempts beyond the schedule.
        assert_eq!(after(&answered(503, wish), 2), Plan::Abandon);
        // Those who were sent away together do not come back together, and nobody comes too early.
        let all = [0, 1, 2_999, 3_000, u64::MAX].map(|random| {
            match plan(&answered(429, wish), failed(0), &SCHEDULE, random, 0) {
                Plan::Retry { at_ms } => at_ms,
                other => panic!("{other:?}"),
            }
        });
        assert!(
            all.iter().all(|at_ms| (30_000..=33_000).contains(at_ms)),
            "{all:?}"
        );
    }

    #[test]
    fn without_a_schedule_only_the_hooks_own_wish_brings_another_run() {
        assert_eq!(
            plan(&Ending::Exited(1), failed(0), &[], 0, 0),
            Plan::Abandon
        );
        assert_eq!(
            plan(&Ending::Exited(75), failed(0), &[], 0, 0),
            Plan::Postpone { at_ms: 300_000 }
        );
    }

    #[test]
    fn the_hooks_own_wish_grows_apart_from_its_failures() {
        let asked = Count {
            before: 9,
            failures: 0,
        };
        let after = |ending| plan(&ending, asked, &SCHEDULE, 0, 1_000);
        assert_eq!(after(Ending::Exited(75)), Plan::Postpone { at_ms: 61_000 });
        assert_eq!(after(Ending::Exited(1)), Plan::Retry { at_ms: 11_000 });
    }

    #[test]
    fn a_gap_grows_by_at_most_a_tenth_and_never_shrinks() {
        for random in [0, 1, 999, 1_000, 1_001, u64::MAX] {
            let Plan::Retry { at_ms } = plan(&Ending::TimedOut, failed(0), &SCHEDULE, random, 0)
            else {
                panic!("it is retried");
            };
            assert!((10_000..=11_000).contains(&at_ms), "{random}: {at_ms}");
        }
        let endless = [Duration::MAX];
        assert_eq!(
            plan(&Ending::TimedOut, failed(0), &endless, u64::MAX, 5),
            Plan::Retry { at_ms: i64::MAX }
        );
    }
}
