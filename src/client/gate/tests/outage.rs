//! When the service counts as out, as a table of what requests met.

use std::time::{Duration, Instant};

use crate::client::gate::outage::{Change, EVIDENCES, FIRST, Outage, Ticket, Verdict};
use crate::client::gate::pace::jittered;
use crate::client::gate::{Caller, Hold};

const SECOND: Duration = Duration::from_secs(1);

fn nobody() -> Verdict {
    Verdict::Outage("could not connect".to_owned())
}

fn asks(outage: &mut Outage, now: Instant) -> Ticket {
    outage.admit(Caller::Background, now).expect("admitted")
}

/// An outage that began now, with the longest wait jitter gives.
fn out(now: Instant) -> Outage {
    let mut outage = Outage::new();
    for _ in 0..EVIDENCES {
        let ticket = asks(&mut outage, now);
        outage.ended(ticket, nobody(), now, u16::MAX);
    }
    assert!(outage.since().is_some());
    outage
}

#[test]
fn three_in_a_row_are_an_outage_and_an_answer_between_them_is_none() {
    let (mut outage, now) = (Outage::new(), Instant::now());
    let mut course = Vec::new();
    for verdict in [
        nobody(),
        nobody(),
        Verdict::Alive,
        nobody(),
        Verdict::Nothing,
        nobody(),
        nobody(),
    ] {
        let ticket = asks(&mut outage, now);
        course.push(outage.ended(ticket, verdict, now, 0));
    }
    assert_eq!(course.pop(), Some(Change::Began(FIRST)));
    assert!(course.iter().all(|change| *change == Change::None));
    assert_eq!(outage.since(), Some((now, "could not connect")));
}

#[test]
fn one_tries_after_each_wait_and_the_waits_double() {
    let mut now = Instant::now();
    let mut outage = out(now);
    for wanted in [5, 10, 20, 40, 60, 60] {
        let wait = jittered(SECOND * wanted, u16::MAX);
        let opens = now + wait;
        let early = now + wait / 1_000 * 999;
        let early = outage.admit(Caller::Background, early);
        assert_eq!(early, Err(Hold::Until(opens)));
        now = opens;
        let probe = asks(&mut outage, now);
        let second = outage.admit(Caller::Background, now);
        assert_eq!(second, Err(Hold::Change), "exactly one");
        let change = outage.ended(probe, nobody(), now, u16::MAX);
        assert!(matches!(change, Change::GoesOn(_)), "{change:?}");
    }
}

#[test]
fn an_answer_ends_it_and_the_next_one_begins_anew() {
    let began = Instant::now();
    let mut outage = out(began);
    let now = began + SECOND * 7;
    let probe = asks(&mut outage, now);
    let ended = outage.ended(probe, Verdict::Alive, now, 0);
    assert_eq!(ended, Change::Ended(SECOND * 7));
    let (one, other) = (asks(&mut outage, now), asks(&mut outage, now));
    for ticket in [one, other] {
        assert_eq!(outage.ended(ticket, nobody(), now, 0), Change::None);
    }
    let third = asks(&mut outage, now);
    assert_eq!(outage.ended(third, nobody(), now, 0), Change::Began(FIRST));
}

#[test]
fn a_try_that_comes_to_nothing_admits_another() {
    let began = Instant::now();
    let mut outage = out(began);
    let now = began + SECOND * 7;
    let dropped = asks(&mut outage, now);
    outage.dropped(dropped);
    let unsent = asks(&mut outage, now);
    let change = outage.ended(unsent, Verdict::Nothing, now, 0);
    assert_eq!(change, Change::None);
    let probe = asks(&mut outage, now);
    let change = outage.ended(probe, Verdict::Alive, now, 0);
    assert!(matches!(change, Change::Ended(_)), "{change:?}");
}

#[test]
fn what_was_under_way_counts_nothing_further() {
    let began = Instant::now();
    let mut outage = Outage::new();
    let before: Vec<Ticket> = (0..6).map(|_| asks(&mut outage, began)).collect();
    let mut ends = before.into_iter();
    for ticket in ends.by_ref().take(3) {
        outage.ended(ticket, nobody(), began, u16::MAX);
    }
    for verdict in [nobody(), Verdict::Alive, Verdict::Nothing] {
        let ticket = ends.next().expect("one more");
        assert_eq!(outage.ended(ticket, verdict, began, 0), Change::None);
    }
    assert!(outage.since().is_some());
    // And what was sent during the outage says nothing about the time after it.
    let operator = outage.admit(Caller::Operator, began).expect("not held");
    let probe = asks(&mut outage, began + SECOND * 7);
    outage.ended(probe, Verdict::Alive, began + SECOND * 7, 0);
    for _ in 0..EVIDENCES {
        outage.ended(operator, nobody(), began + SECOND * 8, 0);
    }
    assert!(outage.since().is_none());
}

#[test]
fn an_operator_is_not_held_and_does_not_push_the_next_try_away() {
    let began = Instant::now();
    let mut outage = out(began);
    for _ in 0..10 {
        let ticket = outage.admit(Caller::Operator, began).expect("not held");
        let change = outage.ended(ticket, nobody(), began, u16::MAX);
        assert_eq!(change, Change::None);
    }
    let now = began + SECOND * 7;
    let probe = outage.admit(Caller::Operator, now).expect("the try");
    let held = outage.admit(Caller::Background, now);
    assert_eq!(held, Err(Hold::Change), "an operator's is the one try");
    let change = outage.ended(probe, nobody(), now, 0);
    assert_eq!(change, Change::GoesOn(FIRST * 2));
    let ticket = outage.admit(Caller::Operator, now).expect("not held");
    let change = outage.ended(ticket, Verdict::Alive, now, 0);
    assert_eq!(change, Change::Ended(SECOND * 7));
}

fn creates(outage: &mut Outage, now: Instant, times: u32, verdict: &Verdict) -> Vec<Change> {
    let once = |_| {
        let ticket = outage.admit(Caller::Create, now).expect("not held");
        outage.ended(ticket, verdict.clone(), now, 0)
    };
    (0..times).map(once).collect()
}

#[test]
fn creates_that_fail_alone_hold_polls_once_and_never_take_their_try() {
    let mut now = Instant::now();
    let mut outage = Outage::new();
    let began = creates(&mut outage, now, EVIDENCES, &nobody());
    assert_eq!(began.last(), Some(&Change::Began(FIRST)));
    now += FIRST;
    creates(&mut outage, now, 10, &nobody());
    let probe = asks(&mut outage, now);
    creates(&mut outage, now, 10, &nobody());
    let ended = outage.ended(probe, Verdict::Alive, now, 0);
    assert_eq!(ended, Change::Ended(FIRST));
    // Polls are answered, so the creates are the service's own affair; what polls meet still counts.
    let changes = creates(&mut outage, now, 100, &nobody());
    assert!(changes.iter().all(|change| *change == Change::None));
    creates(&mut outage, now, 1, &Verdict::Alive);
    let began = creates(&mut outage, now, EVIDENCES, &nobody());
    assert_eq!(began.last(), Some(&Change::Began(FIRST)));
    now += FIRST;
    let probe = asks(&mut outage, now);
    assert!(matches!(
        outage.ended(probe, nobody(), now, 0),
        Change::GoesOn(_)
    ));
    now += FIRST * 2;
    let probe = asks(&mut outage, now);
    let ended = outage.ended(probe, Verdict::Alive, now, 0);
    assert_eq!(ended, Change::Ended(FIRST * 3));
    let began = creates(&mut outage, now, EVIDENCES, &nobody());
    assert_eq!(began.last(), Some(&Change::Began(FIRST)), "all failed");
}

#[test]
fn polls_that_fail_alone_are_an_outage_and_creates_bring_the_next_try_nearer() {
    let mut now = Instant::now();
    let mut outage = Outage::new();
    let mut changes = Vec::new();
    for _ in 0..EVIDENCES {
        let poll = asks(&mut outage, now);
        changes.push(outage.ended(poll, nobody(), now, 0));
        changes.extend(creates(&mut outage, now, 1, &Verdict::Alive));
    }
    assert!(changes.contains(&Change::Began(FIRST)), "{changes:?}");
    for _ in 0..5 {
        now += FIRST * 12;
        let probe = asks(&mut outage, now);
        let change = outage.ended(probe, nobody(), now, 0);
        assert!(matches!(change, Change::GoesOn(_)), "{change:?}");
    }
    assert_eq!(
        creates(&mut outage, now, 1, &Verdict::Alive),
        [Change::None]
    );
    let early = outage.admit(Caller::Background, now);
    assert_eq!(early, Err(Hold::Until(now + FIRST)));
    now += FIRST;
    let probe = asks(&mut outage, now);
    let ended = outage.ended(probe, Verdict::Alive, now, 0);
    assert!(matches!(ended, Change::Ended(_)), "{ended:?}");
}
