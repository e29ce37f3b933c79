//! How far a connection has come, and by when it must have come further: without a socket, in a time that is moved.

use tokio::time::Instant;

use super::super::head::Length;
use super::super::progress::{Late, Progress, Stand};
use super::*;

const NONE: Length = Length::Known(0);

fn makes_room(progress: &Progress) -> bool {
    progress.ask();
    progress.gives_way()
}

#[test]
fn a_request_makes_room_until_its_body_is_whole_and_again_when_it_is_answered() {
    let progress = Progress::new();
    progress.received(b"GET / HTTP");
    progress.begin(true, NONE);
    assert!(progress.may_leave_at().is_some());
    progress.whole();
    assert!(progress.may_leave_at().is_none());
    assert!(!makes_room(&progress));
    progress.answered(false);
    assert!(progress.may_leave_at() > Some(Instant::now()));
    assert!(progress.flushed(0));
    assert!(makes_room(&progress));
    assert!(progress.is_evicted());

    let half = Progress::new();
    half.begin(true, NONE);
    assert!(makes_room(&half));
}

#[test]
fn a_request_that_begins_after_the_asking_is_not_what_was_asked() {
    let progress = Progress::new();
    progress.begin(false, NONE);
    progress.answered(false);
    assert!(progress.flushed(0));
    progress.ask();
    progress.received(b"GET / HTTP");
    progress.begin(true, NONE);
    assert!(!progress.gives_way());
    assert!(!progress.is_asked());
}

#[test]
fn a_newcomer_is_left_alone_for_a_moment_and_an_idle_one_is_not() {
    let before = Instant::now();
    let progress = Progress::new();
    let moment = Duration::from_millis(1);
    assert!(progress.may_leave_at() > Some(before + moment));
    progress.begin(true, NONE);
    assert!(progress.may_leave_at() > Some(before + moment));
    progress.answered(false);
    assert!(progress.flushed(0));
    assert!(progress.may_leave_at() <= Some(Instant::now()));
}

#[test]
fn a_client_that_asks_and_never_reads_does_not_renew_its_time() {
    let limits = Limits::default();
    let progress = Progress::new();
    progress.begin(false, NONE);
    progress.answered(false);
    let first = progress.deadline(&limits);
    assert!(matches!(first, Some((_, Late::Write))));
    progress.begin(false, NONE);
    progress.answered(false);
    assert_eq!(progress.deadline(&limits), first);
}

/// A page of what happens is open for hours: it is neither idle nor in nobody's use, and what counts is whether it is read.
#[test]
fn an_answer_that_goes_on_is_in_progress_until_it_has_flowed_out() {
    let limits = Limits::default();
    let progress = Progress::new();
    progress.begin(false, NONE);
    progress.flows();
    progress.answered(false);
    assert!(matches!(progress.deadline(&limits), Some((_, Late::Write))));
    assert!(!progress.flushed(0), "it goes on");
    assert_eq!(progress.deadline(&limits), None, "all of it is read");
    assert!(!makes_room(&progress));
    assert_eq!(progress.stand(), Stand::Request);

    progress.flows_on();
    let first = progress.deadline(&limits);
    assert!(matches!(first, Some((_, Late::Write))));
    progress.flows_on();
    assert_eq!(progress.deadline(&limits), first, "its time is not renewed");

    progress.flowed_out();
    assert!(progress.flushed(0));
    assert!(matches!(progress.deadline(&limits), Some((_, Late::Idle))));
    assert!(makes_room(&progress));
}

/// One answer behind the other, each of them read just in time: what waits is all of them together.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_a_little_now_and_then_does_not_renew_its_time() {
    let limits = Limits::default();
    let progress = Progress::new();
    let began = Instant::now();
    for _ in 0..2 {
        progress.begin(false, NONE);
        progress.answered(false);
        tokio::time::advance(limits.write_time / 5 * 3).await;
        assert!(
            progress.may_leave_at() < Some(Instant::now()),
            "it is stuck"
        );
        progress.flushed(4 * 1024);
    }
    progress.begin(false, NONE);
    progress.answered(false);
    let (at, late) = progress.deadline(&limits).expect("an answer is unread");
    assert!(
        at <= Instant::now() && late == Late::Write,
        "{:?}",
        at - began
    );
    assert!(makes_room(&progress));
}

/// A page of the sandbox over a slow line, again and again on one connection.
#[tokio::test(start_paused = true)]
async fn a_client_that_reads_on_has_its_time_each_time() {
    let limits = Limits::default();
    let progress = Progress::new();
    for _ in 0..100 {
        progress.begin(false, NONE);
        progress.answered(false);
        let fresh = Instant::now() + limits.write_time;
        assert_eq!(progress.deadline(&limits), Some((fresh, Late::Write)));
        tokio::time::advance(limits.write_time / 2).await;
        progress.flushed(400 * 1024);
    }
}

#[test]
fn the_first_byte_does_not_renew_the_time_for_the_head() {
    let limits = Limits::default();
    let progress = Progress::new();
    let silent = progress.deadline(&limits);
    progress.received(b"G");
    assert_eq!(progress.deadline(&limits), silent);
}
