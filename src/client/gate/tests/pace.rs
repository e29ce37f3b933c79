//! Turns, and turns that are given back.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::client::gate::pace::{Pace, jittered};
use crate::client::gate::rate::Rate;
use crate::client::retry_after;

const SECOND: Duration = Duration::from_secs(1);

fn one_a_second() -> Pace {
    Pace::new(Rate::fixed(NonZeroU32::MIN))
}

#[test]
fn a_turn_given_back_costs_no_caller_anything() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let unused = pace.take(now);
    pace.give_back(&unused);
    assert_eq!(pace.free_at(now), None);
    let used = pace.take(now);
    assert_eq!(pace.free_at(now), Some(now + SECOND));
    let _later = pace.take(now + SECOND);
    // Another took its turn meanwhile: nothing to undo.
    pace.give_back(&used);
    assert_eq!(pace.free_at(now + SECOND), Some(now + SECOND * 2));
}

#[test]
fn a_request_that_leaves_late_keeps_the_next_one_at_its_distance() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let _used = pace.take(now);
    pace.leaves(now + SECOND * 3);
    assert_eq!(pace.free_at(now + SECOND * 3), Some(now + SECOND * 4));
}

/// Else a quiet night would raise the pace that nothing was measured at.
#[test]
fn a_turn_after_a_quiet_time_says_nothing_about_the_pace() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let at_pace: Vec<bool> = [0, 1, 10, 11]
        .map(|second| pace.take(now + SECOND * second).is_at_pace)
        .into();
    assert_eq!(at_pace, [false, true, false, true]);
}

#[test]
fn jitter_only_adds() {
    let wait = Duration::from_secs(100);
    assert_eq!(jittered(wait, 0), wait);
    assert_eq!(jittered(wait, u16::MAX), Duration::from_secs(125));
    assert_eq!(jittered(Duration::ZERO, 9), Duration::ZERO);
    assert_eq!(
        jittered(retry_after::LONGEST, u16::MAX),
        Duration::from_mins(75)
    );
}
