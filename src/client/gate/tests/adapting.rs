//! How the pace of polls follows their answers.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use crate::client::gate::rate::{FIRST, Rate, SLOWEST};

fn below(ceiling: u32) -> Rate {
    Rate::below(NonZeroU32::new(ceiling).expect("not zero"))
}

#[test]
fn it_climbs_by_one_a_second_and_halves_at_once() {
    let mut rate = below(20);
    let mut course = vec![rate.per_second()];
    for _ in 0..20 {
        // A second of good answers.
        for _ in 0..rate.per_second() {
            rate.faster();
        }
        course.push(rate.per_second());
    }
    assert!(course.is_sorted());
    let each = |second: usize| course.get(second).copied().expect("one of 21");
    assert_eq!((each(0), each(20)), (FIRST, 20), "{course:?}");
    assert!((9..=10).contains(&each(5)), "{course:?}");
    let left = Instant::now();
    let now = left + Duration::from_millis(1);
    rate.slower(left, now);
    assert_eq!(rate.per_second(), 10);
    // Those that left with it say nothing more.
    rate.slower(left, now);
    assert_eq!(rate.per_second(), 10);
}

#[test]
fn it_stays_within_its_bounds() {
    let mut rate = below(3);
    assert_eq!(rate.per_second(), 3);
    rate.faster();
    assert_eq!(
        (rate.per_second(), rate.gap()),
        (3, Duration::from_secs(1) / 3)
    );
    let now = Instant::now();
    for _ in 0..100 {
        rate.slower(now, now);
    }
    assert_eq!(
        (rate.per_second(), rate.gap()),
        (SLOWEST, Duration::from_secs(1))
    );
    rate.faster();
    assert_eq!(rate.per_second(), 2);
}
