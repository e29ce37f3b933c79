//! The gate in virtual time.

mod adapting;
mod lanes;
mod outage;
mod pace;

use super::outage::Verdict;
use super::*;

fn gate(per_second: u32, at_once: u32) -> Gate {
    let number = |n| NonZeroU32::new(n).expect("above zero");
    Gate::new(Limits {
        per_second: None,
        polls_per_second: number(per_second),
        polls_at_once: number(at_once),
    })
}

fn nobody() -> Verdict {
    Verdict::Outage("could not connect".to_owned())
}

/// A gate of a service that is out.
async fn out(gate: Gate) -> Gate {
    for _ in 0..3 {
        gate.admit().await.ended(nobody());
    }
    assert!(gate.view().outage.is_some());
    gate
}

#[tokio::test(start_paused = true)]
async fn requests_leave_evenly_spaced() {
    let gate = gate(5, 4);
    let start = Instant::now();
    for turn in 0..11_u32 {
        drop(gate.admit().await);
        let wanted = Duration::from_millis(200) * turn;
        let late = start.elapsed().abs_diff(wanted);
        assert!(
            late < Duration::from_millis(15),
            "turn {turn} after {:?}",
            start.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_than_the_limit_is_under_way() {
    let gate = gate(1_000, 2);
    let (first, _second) = (gate.admit().await, gate.admit().await);
    let closed = gate
        .admit_within(Caller::Operator, Duration::from_mins(1))
        .await;
    assert!(closed.is_err());
    drop(first);
    assert!(
        gate.admit_within(Caller::Operator, Duration::from_secs(1))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn the_services_wish_is_kept_even_by_those_already_waiting() {
    let gate = gate(1, 4);
    let _under_way = gate.admit().await;
    let start = Instant::now();
    let waiting = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit().await }
    });
    tokio::task::yield_now().await;
    gate.heed(Caller::Background, Duration::from_secs(30));
    gate.heed(Caller::Background, Duration::from_secs(1));
    assert!(
        gate.admit_within(Caller::Operator, Duration::from_secs(10))
            .await
            .is_err()
    );
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "a shut gate says so at once"
    );
    let _permit = waiting.await.expect("admitted");
    let waited = start.elapsed();
    assert!(
        (Duration::from_secs(30)..Duration::from_secs(38)).contains(&waited),
        "{waited:?}"
    );
    assert_eq!(gate.view().no_polls, None);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_costs_nobody_a_turn() {
    let gate = gate(1, 4);
    drop(gate.admit().await);
    for _ in 0..10 {
        assert!(
            gate.admit_within(Caller::Operator, Duration::from_millis(1))
                .await
                .is_err()
        );
    }
    let start = Instant::now();
    drop(gate.admit().await);
    assert!(start.elapsed() <= Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_turn_given_back_is_had_by_the_next_at_once() {
    let gate = gate(1, 1);
    let start = Instant::now();
    for _ in 0..10 {
        gate.admit().await.unused();
    }
    let used = gate.admit().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    drop(used);
    drop(gate.admit().await);
    assert!(start.elapsed() >= Duration::from_secs(1), "one was used");
}

/// Both kinds wait while the one place is taken; who came first is of no matter.
#[tokio::test(start_paused = true)]
async fn a_person_goes_before_the_background() {
    let gate = gate(1, 1);
    let held = gate.admit().await;
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for name in ["poll 1", "poll 2"] {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            let _permit = gate.admit().await;
            said.send(name).expect("the test listens");
        });
    }
    tokio::task::yield_now().await;
    for name in ["create 1", "create 2"] {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            let _permit = gate
                .admit_within(Caller::Operator, Duration::from_mins(1))
                .await;
            said.send(name).expect("the test listens");
        });
    }
    tokio::task::yield_now().await;
    drop(held);
    for wanted in ["create 1", "create 2", "poll 1", "poll 2"] {
        assert_eq!(heard.recv().await, Some(wanted));
    }
}

/// Else a shop's program that asks without end would keep the daemon from its own questions.
#[tokio::test(start_paused = true)]
async fn the_background_has_a_turn_among_persons_without_end() {
    let gate = gate(5, 4);
    for _ in 0..8 {
        let gate = gate.clone();
        tokio::spawn(async move {
            while gate
                .admit_within(Caller::Operator, Duration::from_mins(1))
                .await
                .is_ok()
            {}
        });
    }
    tokio::task::yield_now().await;
    let start = Instant::now();
    for _ in 0..10 {
        let turn = tokio::time::timeout(Duration::from_mins(1), gate.admit()).await;
        assert!(turn.is_ok(), "after {:?}", start.elapsed());
    }
    // One of five, of five a second.
    let (took, wanted) = (start.elapsed(), Duration::from_secs(10));
    assert!(took <= wanted + Duration::from_millis(500), "{took:?}");
    assert!(took >= wanted / 2, "persons go first: {took:?}");
}

/// What an outage holds is waited for by no other.
#[tokio::test(start_paused = true)]
async fn persons_do_not_wait_for_a_background_that_an_outage_holds() {
    let gate = gate(100, 4);
    // Creates say nothing about the pace of polls.
    for _ in 0..3 {
        let create = gate.admit_within(Caller::Create, Duration::from_secs(1));
        create.await.expect("open").ended(nobody());
    }
    assert!(gate.view().outage.is_some());
    let waits = gate.clone();
    tokio::spawn(async move { waits.admit().await });
    tokio::task::yield_now().await;
    let start = Instant::now();
    for _ in 0..20 {
        let person = gate
            .admit_within(Caller::Operator, Duration::from_secs(1))
            .await;
        person.expect("not held").ended(Verdict::Nothing);
    }
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "the pace alone: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_holds_the_background_and_no_person() {
    let gate = out(gate(1_000, 8)).await;
    let start = Instant::now();
    let person = gate
        .admit_within(Caller::Operator, Duration::from_secs(1))
        .await;
    person.expect("not held").ended(nobody());
    assert!(start.elapsed() < Duration::from_secs(1));
    let probe = gate.admit().await;
    let waited = start.elapsed();
    let around_five = Duration::from_millis(4_900)..Duration::from_millis(6_300);
    assert!(around_five.contains(&waited), "{waited:?}");
    // Exactly one: nobody else in the background passes before its end, and then all do, at the pace.
    let other = tokio::time::timeout(Duration::from_mins(10), gate.admit()).await;
    assert!(other.is_err(), "one tries");
    probe.ended(Verdict::Alive);
    let answered = View {
        polls_per_second: rate::SLOWEST,
        answered: true,
        ..View::default()
    };
    assert_eq!(gate.view(), answered);
    let other = tokio::time::timeout(Duration::from_secs(1), gate.admit()).await;
    assert!(other.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_person_is_held_by_the_services_wish_in_an_outage_too() {
    let gate = out(gate(1_000, 8)).await;
    gate.heed(Caller::Background, Duration::from_secs(20));
    let start = Instant::now();
    let permit = gate
        .admit_within(Caller::Operator, Duration::from_secs(30))
        .await;
    permit.expect("within its patience").ended(nobody());
    assert!(start.elapsed() >= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_is_dropped_admits_another_at_once() {
    let gate = out(gate(1_000, 8)).await;
    drop(gate.admit().await);
    gate.admit().await.unused();
    let start = Instant::now();
    gate.admit().await.ended(Verdict::Alive);
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(gate.view().outage, None);
}

/// A29: whatever waited through an outage leaves one by one.
#[tokio::test(start_paused = true)]
async fn no_crowd_leaves_when_an_outage_ends() {
    let gate = out(gate(5, 50)).await;
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..20 {
        let (gate, said) = (gate.clone(), said.clone());
        tokio::spawn(async move {
            let permit = gate.admit().await;
            said.send(Instant::now()).expect("the test listens");
            permit.ended(Verdict::Alive);
        });
    }
    drop(said);
    let mut left = Vec::new();
    while let Some(at) = heard.recv().await {
        left.push(at);
    }
    assert_eq!(left.len(), 20);
    for (one, next) in left.iter().zip(left.iter().skip(1)) {
        let gap = next.duration_since(*one);
        assert!(gap >= Duration::from_millis(200), "{gap:?}");
    }
}
