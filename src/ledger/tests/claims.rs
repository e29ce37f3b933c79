//! Which deliveries a claim takes: one run of an invoice at a time, each hook's events in order, as many of each lane as it
//! wants and the longest due first.

use std::fs;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::task::Poll;

use tokio::time::timeout;

use super::*;

#[tokio::test]
async fn deliveries_of_an_invoice_run_one_after_another_and_in_event_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let (a, b) = (opened(&writer, "a").await, opened(&writer, "b").await);
    writer
        .record(a, said(Source::Notification, "id-a", "paid", 9))
        .await
        .expect("stored");
    writer
        .record(b, said(Source::Notification, "id-b", "paid", 9))
        .await
        .expect("stored");
    let own = ProcessMark::own();
    let first = writer
        .claim_deliveries(own.clone(), NOW + 10, lanes(8))
        .await
        .expect("stored");
    let shown: Vec<_> = first
        .iter()
        .map(|c| (c.invoice.order_id.as_str(), c.event.kind, c.attempt))
        .collect();
    assert_eq!(
        shown,
        [("a", EventKind::Opened, 1), ("b", EventKind::Opened, 1)],
        "one per invoice"
    );
    assert!(
        writer
            .claim_deliveries(own.clone(), NOW + 10, lanes(8))
            .await
            .expect("stored")
            .is_empty()
    );
    let claimed = first.first().expect("two were claimed");
    writer
        .name_child(claimed.key, own.clone())
        .await
        .expect("stored");
    assert_eq!(
        reader
            .running_deliveries()
            .await
            .expect("read")
            .iter()
            .filter(|r| r.child.is_some())
            .count(),
        1
    );
    let record = AttemptRecord {
        started_ms: NOW,
        ended_ms: NOW,
        result: "exit 1".into(),
        stdout: vec![0xff],
        stderr: vec![],
    };
    writer
        .finish_attempt(
            claimed.key,
            record.clone(),
            After::Retry {
                at_ms: NOW + 60_000,
            },
        )
        .await
        .expect("stored");
    // A retry that waits holds back only later deliveries of the same invoice and hook.
    let next = writer
        .claim_deliveries(own.clone(), NOW + 10, lanes(8))
        .await
        .expect("stored");
    let shown: Vec<_> = next
        .iter()
        .map(|c| (c.invoice.order_id.as_str(), c.hook.as_str()))
        .collect();
    assert_eq!(shown, [("a", "fulfil")]);
}

#[tokio::test]
async fn an_abandoned_delivery_is_retried_with_a_fresh_schedule() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    opened(&writer, "a").await;
    let own = ProcessMark::own();
    let next = writer
        .claim_deliveries(own.clone(), NOW + 10, lanes(1))
        .await
        .expect("stored");
    let record = AttemptRecord {
        started_ms: NOW,
        ended_ms: NOW,
        result: "exit 65".into(),
        stdout: vec![],
        stderr: vec![],
    };
    for claimed in &next {
        writer
            .finish_attempt(claimed.key, record.clone(), After::Abandoned)
            .await
            .expect("stored");
    }
    let event_id = next.first().map(|c| c.event.event_id.clone());
    let whose = Whose::Event(event_id.expect("one was claimed"));
    let wish = acts::of(whose, Some("log"));
    assert_eq!(acts::act(&ledger, Act::Retry, wish, NOW + 20).await, 1);
    let again = writer
        .claim_deliveries(own, NOW + 20, lanes(8))
        .await
        .expect("stored");
    assert_eq!(
        again
            .iter()
            .map(|c| (c.attempt, c.round_attempt))
            .collect::<Vec<_>>(),
        [(2, 1)]
    );
}

/// Nothing of it was begun: it is as if it had not been claimed, and the next claim finds it where it was.
#[tokio::test]
async fn what_is_given_back_waits_as_before_and_was_no_attempt() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    opened(&writer, "a").await;
    opened(&writer, "b").await;
    let claim = || writer.claim_deliveries(ProcessMark::own(), NOW + 10, lanes(1));
    let told = |claimed: &Claimed| {
        let Claimed { key, attempt, .. } = claimed;
        (*key, *attempt, claimed.round_attempt)
    };
    let first = claim().await.expect("stored").pop().expect("one is due");
    writer.give_back(first.key).await.expect("stored");
    assert!(writer.give_back(first.key).await.is_err(), "not running");
    let again = claim().await.expect("stored").pop().expect("it is due");
    assert_eq!(told(&again), told(&first));
    let reader = ledger.reader();
    let running = reader.running_deliveries().await.expect("read");
    assert_eq!(running.len(), 1);
}

/// Commits in the log: frames that name the size of the database (SQLite's file format, section 4.1).
fn commits(directory: &Path) -> usize {
    let log = fs::read(directory.join("state/ledger.db-wal")).expect("a log");
    let (_, frames) = log.split_at_checked(32).expect("a head");
    let sizes = frames.chunks_exact(24 + 4096).map(|frame| frame.get(4..8));
    sizes.filter(|size| *size != Some(&[0; 4])).count()
}

/// An end waits for the claim of the next run: it must not matter which way it is stored, and whether anybody still waits.
#[tokio::test]
async fn an_end_that_waits_for_a_claim_is_stored_whatever_comes() {
    const PATIENCE: Duration = Duration::from_secs(10);
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    for (status, at) in [("paid", 9), ("wip", 10)] {
        let said = said(Source::Notification, "id-a", status, at);
        writer.record(key, said).await.expect("stored");
    }
    let claim = || writer.claim_deliveries(ProcessMark::own(), NOW + 10, lanes(1));
    let one = |claimed: Result<Vec<Claimed>, _>| claimed.expect("stored").pop();
    let finish = |claimed: &Claimed, within| {
        let record = AttemptRecord {
            started_ms: NOW,
            ended_ms: NOW,
            result: "exit 0".into(),
            stdout: vec![],
            stderr: vec![],
        };
        writer.finish_with_claim(claimed.key, record, After::Done, within)
    };
    let for_ever = Duration::from_hours(1);
    let first = one(claim().await).expect("one is due");
    // With a claim: that finds the invoice free.
    let before = commits(directory.path());
    let both = async { tokio::join!(finish(&first, for_ever), claim()) };
    let (ended, next) = timeout(PATIENCE, both).await.expect("in time");
    ended.expect("stored");
    assert_eq!(commits(directory.path()) - before, 1, "one for both");
    let second = one(next).expect("the next of the invoice");
    // By itself, when told so.
    let told = async { writer.finish_waiting() };
    let both = async { tokio::join!(finish(&second, for_ever), told) };
    let (ended, ()) = timeout(PATIENCE, both).await.expect("in time");
    ended.expect("stored");
    let third = one(claim().await).expect("the last of the invoice");
    // And when nobody comes.
    let ended = finish(&third, Duration::from_millis(1)).await;
    ended.expect("stored");
    // And when whoever asked is gone.
    let other = opened(&writer, "b").await;
    let last = one(claim().await).expect("another invoice's");
    {
        let mut ended = pin!(finish(&last, for_ever));
        let first = poll_fn(|context| Poll::Ready(ended.as_mut().poll(context))).await;
        assert!(first.is_pending());
    }
    // Comes behind it.
    let next = said(Source::Notification, "id-b", "paid", 9);
    writer.record(other, next).await.expect("stored");
    let row = ledger.reader().running_deliveries().await.expect("read");
    assert!(row.is_empty(), "{row:?}");
}
