//! Turns, and turns that are given back.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::client::gate::pace::{Pace, jittered};
use crate::client::retry_after;

fn one_a_second() -> Pace {
    Pace::new(NonZeroU32::MIN)
}

#[test]
fn a_turn_given_back_costs_nobody_anything() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let unused = pace.take(now).expect("a turn");
    pace.give_back(&unused);
    let used = pace.take(now).expect("the same turn");
    assert_eq!(
        pace.take(now).expect_err("taken"),
        now + Duration::from_secs(1)
    );
    let _later = pace
        .take(now + Duration::from_secs(1))
        .expect("the next turn");
    // Another took its turn meanwhile: nothing to undo.
    pace.give_back(&used);
    assert_eq!(
        pace.take(now + Duration::from_secs(1))
            .expect_err("still taken"),
        now + Duration::from_secs(2)
    );
}

#[test]
fn a_request_that_leaves_late_keeps_the_next_one_at_its_distance() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let second = Duration::from_secs(1);
    let _used = pace.take(now).expect("a turn");
    pace.leaves(now + second * 3);
    assert_eq!(
        pace.take(now + second * 3).expect_err("too close"),
        now + second * 4
    );
}

#[test]
fn a_wish_is_over_when_its_time_has_come() {
    let (mut pace, now) = (one_a_second(), Instant::now());
    let until = now + Duration::from_secs(5);
    pace.shut_until(until);
    pace.shut_until(now);
    assert_eq!(pace.is_shut_until(now), Some(until));
    assert_eq!(pace.take(now).expect_err("shut"), until);
    assert_eq!(pace.is_shut_until(until), None);
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
