//! What is counted again, by where the clock stands. The whole of it, with a ledger, is in `jumps.rs`.

use super::*;
use crate::invoice::silence::Step;

const NOW: i64 = 1_800_000_000_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

fn schedule() -> Schedule {
    Schedule {
        steps: vec![Step {
            until_ms: HOUR,
            every_ms: 60_000,
        }],
        after_expiry_ms: 5_000,
        horizon_ms: 3 * DAY,
    }
}

/// The stages gone through when nothing is found.
fn stages(recheck: &mut Recheck) -> Vec<Stage> {
    let mut seen = Vec::new();
    while let Some(stage) = recheck.stage() {
        seen.push(stage);
        match stage {
            Stage::Due(_) => recheck.done(&[]),
            Stage::Retired(..) => drop(recheck.done_retired(&[], NOW)),
        }
    }
    seen
}

/// Every class behind a time, then what was retired behind it.
fn all_behind(from_ms: i64) -> Vec<Stage> {
    let due = Class::ALL.map(|class| Stage::Due(after(class, from_ms)));
    due.into_iter()
        .chain([Stage::Retired(from_ms, LAST)])
        .collect()
}

#[test]
fn a_start_with_a_right_clock_looks_only_where_no_due_time_lies() {
    let mut recheck = Recheck::at_start(&schedule());
    assert_eq!(recheck.look(NOW, Some(NOW - HOUR)), Clock::Steady);
    // The plan for failed invoices has the longest gap: from one day to three.
    assert_eq!(stages(&mut recheck), all_behind(NOW + 2 * DAY));
    assert_eq!(recheck.look(NOW + 5_000, Some(NOW)), Clock::Steady);
    assert_eq!(recheck.stage(), None);
}

#[test]
fn a_start_behind_the_mark_or_without_one_counts_everything_ahead() {
    for (mark, told) in [(Some(NOW + DAY), Clock::SetBack), (None, Clock::Steady)] {
        let mut recheck = Recheck::at_start(&schedule());
        assert_eq!(recheck.look(NOW, mark), told);
        assert_eq!(stages(&mut recheck), all_behind(NOW));
    }
}

#[test]
fn a_clock_set_back_while_it_runs_counts_everything_ahead_once() {
    let mut recheck = Recheck::at_start(&schedule());
    recheck.look(NOW + HOUR, Some(NOW + HOUR));
    stages(&mut recheck);
    let ordinary = NOW + HOUR - CLOCK_SLACK_MS;
    assert_eq!(recheck.look(ordinary, Some(NOW + HOUR)), Clock::Steady);
    assert_eq!(recheck.stage(), None);
    assert_eq!(recheck.look(NOW, Some(NOW + HOUR)), Clock::SetBack);
    recheck.done(&[]);
    // The mark stands until all is counted, and is no reason to begin anew.
    assert_eq!(recheck.look(NOW + 5, Some(NOW + HOUR)), Clock::Steady);
    assert_eq!(recheck.stage(), Some(Stage::Due(after(Class::Young, NOW))));
    stages(&mut recheck);
    // It was ahead between two looks, and something was dated then.
    assert_eq!(recheck.look(NOW + 10, Some(NOW + DAY)), Clock::SetBack);
    assert_eq!(stages(&mut recheck), all_behind(NOW + 10));
}

#[test]
fn the_mark_is_taken_back_when_all_is_counted() {
    let mut recheck = Recheck::at_start(&schedule());
    recheck.look(NOW, Some(NOW + DAY));
    for _class in Class::ALL {
        recheck.done(&[]);
    }
    let found = [(NOW + 5, InvoiceKey(7))];
    assert!(!recheck.done_retired(&found, NOW), "there may be more");
    assert_eq!(
        recheck.stage(),
        Some(Stage::Retired(NOW + 5, InvoiceKey(7)))
    );
    assert!(recheck.done_retired(&[], NOW));
    let mut recheck = Recheck::at_start(&schedule());
    recheck.look(NOW, Some(NOW - 9));
    for _class in Class::ALL {
        recheck.done(&[]);
    }
    assert!(!recheck.done_retired(&[], NOW), "nothing to take back");
}

#[test]
fn nothing_is_concluded_from_a_clock_that_was_never_set() {
    let mut recheck = Recheck::at_start(&schedule());
    assert_eq!(recheck.look(9_000, Some(NOW)), Clock::NotSet);
    assert_eq!(recheck.stage(), None);
    assert_eq!(recheck.look(NOW + 9, Some(NOW)), Clock::Steady);
    assert_eq!(stages(&mut recheck), all_behind(NOW + 9 + 2 * DAY));
    assert_eq!(recheck.look(14_000, Some(NOW)), Clock::NotSet);
    assert_eq!(recheck.look(NOW + 20, Some(NOW)), Clock::Steady);
}
