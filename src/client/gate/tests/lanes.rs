//! Creates and polls beside each other.

use super::super::*;
use super::{gate, nobody};

fn capped(per_second: u32) -> Gate {
    Gate::new(Limits {
        per_second: NonZeroU32::new(per_second),
        ..Limits::default()
    })
}

async fn create(gate: &Gate) -> Permit {
    let create = gate.admit_within(Caller::Create, Duration::from_mins(10));
    create.await.expect("within its patience")
}

#[tokio::test(start_paused = true)]
async fn creates_wait_for_no_poll_and_for_no_pace() {
    let gate = gate(1, 1);
    let _poll = gate.admit().await;
    let start = Instant::now();
    let mut under_way = Vec::new();
    for _ in 0..CREATES_AT_ONCE.get() {
        under_way.push(create(&gate).await);
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    let full = gate.admit_within(Caller::Create, Duration::from_secs(1));
    let closed = full.await.expect_err("no place");
    assert_eq!(
        closed.to_string(),
        "too many requests to the payment service wait before it"
    );
    under_way.pop();
    assert!(
        gate.admit_within(Caller::Create, Duration::from_secs(1))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn a_wish_shuts_the_lane_it_was_answered_to_and_no_other() {
    let minute = Duration::from_mins(1);
    for (wished, other) in [
        (Caller::Create, Caller::Operator),
        (Caller::Operator, Caller::Create),
    ] {
        let gate = gate(100, 4);
        let permit = gate.admit_within(wished, minute).await.expect("open");
        permit.heed(wished, minute);
        permit.ended(Verdict::Busy);
        assert!(gate.shut_for(wished) >= minute, "{wished:?}");
        assert_eq!(gate.shut_for(other), Duration::ZERO);
        let start = Instant::now();
        let soon = Duration::from_secs(10);
        assert!(gate.admit_within(wished, soon).await.is_err());
        assert!(gate.admit_within(other, soon).await.is_ok());
        assert!(start.elapsed() < Duration::from_secs(2), "{other:?}");
    }
}

/// Turns in the order they are had, while both lanes always want one.
async fn turns(gate: &Gate, creates: usize, polls: usize) -> String {
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..creates {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            create(&gate).await.ended(Verdict::Alive);
            said.send('c').expect("the test listens");
        });
    }
    for _ in 0..polls {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            gate.admit().await.ended(Verdict::Alive);
            said.send('p').expect("the test listens");
        });
    }
    drop(said);
    let mut all = String::new();
    while let Some(one) = heard.recv().await {
        all.push(one);
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_everything_is_kept_and_creates_go_first_under_it() {
    let gate = capped(2);
    let start = Instant::now();
    let all = turns(&gate, 12, 4).await;
    let took = start.elapsed().as_millis();
    assert!((7_500..7_600).contains(&took), "16 turns at 2/s: {took} ms");
    // The first may come before the others wait; of any five turns one is a poll's.
    assert!(all.starts_with('c'), "{all}");
    let polls: Vec<usize> = all.match_indices('p').map(|(at, _)| at).collect();
    assert_eq!(polls.len(), 4);
    for (one, next) in polls.iter().zip(polls.iter().skip(1)) {
        assert!(next - one <= 5, "{all}");
    }
    let (creates, _) = all.split_at(4);
    assert!(creates.matches('c').count() >= 3, "{all}");
}

#[tokio::test(start_paused = true)]
async fn under_a_cap_no_lane_waits_for_one_that_is_shut() {
    for (shut, open) in [
        (Caller::Create, Caller::Background),
        (Caller::Background, Caller::Create),
    ] {
        let gate = capped(10);
        gate.heed_still(shut, Duration::from_mins(30));
        let waits = gate.clone();
        tokio::spawn(async move { drop(waits.wait(shut).await) });
        tokio::task::yield_now().await;
        let start = Instant::now();
        for _ in 0..20 {
            drop(gate.wait(open).await);
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{open:?}");
    }
}

/// What each poll of a second got, at the pace there is: good answers raise it, anything else lowers it at once.
#[tokio::test(start_paused = true)]
async fn the_pace_of_polls_follows_the_answers() {
    let gate = gate(20, 4);
    let per_second = || gate.view().polls_per_second;
    assert_eq!(per_second(), rate::FIRST);
    let start = Instant::now();
    while per_second() < 20 {
        gate.admit().await.ended(Verdict::Alive);
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{}",
            per_second()
        );
    }
    assert!(start.elapsed() > Duration::from_secs(10), "one a second");
    gate.admit().await.ended(Verdict::Busy);
    assert_eq!(per_second(), 10);
    gate.admit().await.ended(nobody());
    assert_eq!(per_second(), 5);
    // Creates say nothing about it.
    for _ in 0..3 {
        create(&gate).await.ended(Verdict::Busy);
    }
    assert_eq!(per_second(), 5);
    let start = Instant::now();
    for _ in 0..10 {
        gate.admit().await.ended(Verdict::Busy);
    }
    assert_eq!(per_second(), rate::SLOWEST);
    assert!(start.elapsed() > Duration::from_secs(6), "one a second");
}

/// A rush of callers that wait: each end wakes those who can go, and the lines are left empty.
#[tokio::test(start_paused = true)]
async fn a_thousand_that_wait_have_their_turns_in_their_order() {
    let gate = gate(1, 1);
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for number in 0..1_000 {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            let permit = create(&gate).await;
            said.send(number).expect("the test listens");
            tokio::time::sleep(Duration::from_millis(50)).await;
            permit.ended(Verdict::Alive);
        });
    }
    drop(said);
    let start = Instant::now();
    let mut order = Vec::new();
    while let Some(number) = heard.recv().await {
        order.push(number);
    }
    assert!(order.is_sorted() && order.len() == 1_000);
    // 64 at once of 50 ms each.
    let rounds = start.elapsed().as_millis().div_ceil(50);
    assert!((15..=17).contains(&rounds), "{:?}", start.elapsed());
}
