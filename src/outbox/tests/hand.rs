//! What is claimed ahead: how much of it, for how long, and that it leaves no trace when it comes to nothing.

use std::time::Instant;

use super::*;

const ROOM: Room = Room {
    ordinary: 2,
    slow: 0,
};

const QUICKLY: Duration = Duration::from_millis(2);

#[test]
fn only_what_is_quick_is_claimed_ahead_and_again_when_half_of_it_is_left() {
    let mut hand = Hand::new(&[ROOM, ROOM]);
    let at_once = |hand: &Hand<u32>| hand.at_once(|_| true);
    assert_eq!((hand.wants(0), at_once(&hand)), (0, 0), "nothing is known");
    hand.ended(0, QUICKLY);
    assert_eq!((hand.wants(0), hand.wants(1), at_once(&hand)), (8, 0, 4));
    assert_eq!(
        hand.at_once(|hook| hook == 1),
        0,
        "an address has no process"
    );
    for number in 0..8 {
        hand.put(0, number, Instant::now());
    }
    let mut wanted = Vec::new();
    for number in 0..8 {
        wanted.push(hand.wants(0));
        assert_eq!(hand.take(0), Some(number), "the longest due first");
    }
    assert_eq!(wanted, [0, 0, 0, 0, 4, 5, 6, 7]);
    assert!(hand.is_empty() && hand.take(0).is_none() && hand.take(1).is_none());
    hand.ended(0, Duration::from_secs(1));
    assert_eq!((hand.wants(0), at_once(&hand)), (0, 0));
}

/// What is at stake: each that is in hand takes descriptors of the daemon, and there may be many hooks.
#[test]
fn however_many_hooks_there_are_not_too_many_are_in_hand() {
    let mut hand = Hand::new(&[ROOM; 20]);
    for hook in 0..20 {
        hand.ended(hook, QUICKLY);
    }
    assert_eq!((hand.room(), hand.at_once(|_| true)), (32, 16));
    for number in 0..40 {
        hand.put(number % 20, number, Instant::now());
    }
    assert_eq!(hand.room(), 0);
}

#[test]
fn what_no_place_comes_free_for_is_given_back_and_no_more_is_claimed() {
    let (mut hand, now) = (Hand::new(&[ROOM, ROOM]), Instant::now());
    let later = now + Duration::from_millis(100);
    for hook in 0..2 {
        hand.ended(hook, QUICKLY);
    }
    hand.put(0, "a", now);
    hand.put(0, "b", later);
    hand.put(1, "c", later);
    let late = hand.next_late().expect("some is in hand");
    assert!(late > later, "{late:?}");
    hand.give_late_back(later);
    assert_eq!(hand.next_late(), Some(late));
    hand.give_late_back(late);
    assert_eq!((hand.wants(0), hand.take(0)), (0, None));
    assert_eq!((hand.wants(1), hand.take(1)), (7, Some("c")));
    hand.put(1, "d", now);
    assert_eq!((hand.give_back(), hand.is_empty()), (1, true));
}

/// Twelve are due, two have places. Of those that were claimed ahead and had no turn nothing ran, and nothing is to be seen.
#[tokio::test]
async fn what_had_no_turn_waits_as_if_it_had_not_been_claimed() {
    let stage = Stage::new("echo begun >> $HOME/log; while [ ! -e $HOME/go ]; do sleep 0.02; done");
    for order in 0..12 {
        stage.ledger.owe(&format!("order{order}"), 1).await;
    }
    let mut outbox = stage.outbox(ROOM);
    outbox.hand.ended(0, QUICKLY);
    outbox.more = true;
    let running = async || {
        let running = stage.ledger.reader().running_deliveries().await;
        running.expect("read").len()
    };
    outbox.begin_due().await;
    assert_eq!((outbox.attempts.len(), running().await), (10, 10));
    wait_until(async || stage.log() == "begun\nbegun\n").await;
    // No place comes free for a while.
    let late = outbox.hand.next_late().expect("eight are in hand");
    outbox.hand.give_late_back(late);
    for _ in 0..8 {
        let joined = outbox.attempts.join_next_with_id().await;
        outbox.ended(joined.expect("it gave its delivery back"));
    }
    assert_eq!((running().await, outbox.rest_until), (2, None));
    // And once more, until the stop.
    outbox.hand.ended(0, QUICKLY);
    outbox.more = true;
    outbox.begin_due().await;
    assert_eq!((outbox.attempts.len(), running().await), (10, 10));
    stage.shutdown.request();
    fs::write(stage.dir.path().join("go"), "").expect("written");
    outbox.stop(&Shutdown::new()).await;
    assert_eq!(
        (running().await, stage.log().as_str()),
        (0, "begun\nbegun\n")
    );
    assert_eq!(stage.results().await, ["exit 0", "exit 0"]);
    let stage = Stage {
        shutdown: Shutdown::new(),
        ..stage
    };
    stage.until(&[DeliveryState::Done]).await;
    assert_eq!(stage.results().await, ["exit 0"; 12]);
}
