//! What becomes of a delivery after an attempt. Pure: time and randomness are arguments.

use std::time::Duration;

use crate::hook::process::Ending;

/// Exit codes after which another attempt would be no use: `EX_DATAERR`, `EX_NOPERM`, `EX_CONFIG` of sysexits.
const HOPELESS: [i32; 3] = [65, 77, 78];

/// `EX_TEMPFAIL` of sysexits: the hook itself asks to be run again, and it is never given up for that.
const TRY_AGAIN: i32 = 75;

/// The gap when the schedule is empty and a hook asks to be run again.
const ONLY_GAP: Duration = Duration::from_mins(5);

/// A gap is stretched by at most this part of it, so that deliveries that failed together do not come back together.
const JITTER_PART: u64 = 10;

/// What to do with the delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// It is done.
    Done,
    /// Run it again, not before this time (milliseconds since 1970).
    Retry {
        /// When.
        at_ms: i64,
    },
    /// Give it up: a person must look.
    Abandon,
    /// Run it again as soon as possible; the attempt was no failure.
    Interrupted,
}

/// Decides after an attempt that ended at `now_ms`. `failures` counts the failed attempts before this one (interrupted
/// ones are none), `schedule` holds the gap after each failure: one more failure than gaps, and it is abandoned.
/// `random` is any number.
pub fn plan(
    ending: &Ending,
    failures: u32,
    schedule: &[Duration],
    random: u64,
    now_ms: i64,
) -> Plan {
    let gap = schedule
        .get(usize::try_from(failures).unwrap_or(usize::MAX))
        .copied();
    let gap = match ending {
        Ending::Exited(0) => return Plan::Done,
        Ending::Interrupted => return Plan::Interrupted,
        Ending::Exited(code) if HOPELESS.contains(code) => return Plan::Abandon,
        Ending::Exited(TRY_AGAIN) => Some(gap.or(schedule.last().copied()).unwrap_or(ONLY_GAP)),
        Ending::Exited(_) | Ending::Signalled(_) | Ending::TimedOut | Ending::NotStarted(_) => gap,
    };
    let Some(gap) = gap else { return Plan::Abandon };
    let gap_ms = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
    let jitter_ms = random % (gap_ms / JITTER_PART + 1);
    let wait_ms = i64::try_from(gap_ms.saturating_add(jitter_ms)).unwrap_or(i64::MAX);
    Plan::Retry {
        at_ms: now_ms.saturating_add(wait_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: [Duration; 2] = [Duration::from_secs(10), Duration::from_mins(1)];

    fn after(ending: &Ending, failures: u32) -> Plan {
        plan(ending, failures, &SCHEDULE, 0, 1_000)
    }

    #[test]
    fn every_code_and_signal_does_what_the_contract_says() {
        for code in 0..=255 {
            let first = after(&Ending::Exited(code), 0);
            let last = after(&Ending::Exited(code), 2);
            let wanted = match code {
                0 => (Plan::Done, Plan::Done),
                65 | 77 | 78 => (Plan::Abandon, Plan::Abandon),
                75 => (Plan::Retry { at_ms: 11_000 }, Plan::Retry { at_ms: 61_000 }),
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
    fn without_a_schedule_only_the_hooks_own_wish_brings_another_run() {
        assert_eq!(plan(&Ending::Exited(1), 0, &[], 0, 0), Plan::Abandon);
        assert_eq!(
            plan(&Ending::Exited(75), 0, &[], 0, 0),
            Plan::Retry { at_ms: 300_000 }
        );
    }

    #[test]
    fn a_gap_grows_by_at_most_a_tenth_and_never_shrinks() {
        for random in [0, 1, 999, 1_000, 1_001, u64::MAX] {
            let Plan::Retry { at_ms } = plan(&Ending::TimedOut, 0, &SCHEDULE, random, 0) else {
                panic!("it is retried");
            };
            assert!((10_000..=11_000).contains(&at_ms), "{random}: {at_ms}");
        }
        let endless = [Duration::MAX];
        assert_eq!(
            plan(&Ending::TimedOut, 0, &endless, u64::MAX, 5),
            Plan::Retry { at_ms: i64::MAX }
        );
    }
}
