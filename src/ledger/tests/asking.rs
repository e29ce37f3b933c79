//! When invoices are due, what is remembered of nudges, and which document stands: through the ledger's own doors.

use super::*;
use crate::invoice::attention::Attention;

/// As [`said`], with the moment at which its question was sent.
fn answered(status: &str, at: i64, asked_ms: i64) -> Observation {
    let asked = Some(Asked {
        revision: i64::MAX,
        at_ms: asked_ms,
    });
    Observation {
        asked,
        ..said(Source::Poll, "id-a", status, at)
    }
}

pub(super) fn refused(key: InvoiceKey, at_ms: i64) -> Refusal {
    Refusal {
        invoice: Some(key),
        ref_hash: "ba7816bf".to_owned(),
        header_names: "host".to_owned(),
        reason: "token",
        at_ms,
        peer: "127.0.0.1".to_owned(),
        body_bytes: 1,
        body_sha256: String::new(),
    }
}

/// Closes the ledger, which writes what was gathered, and opens it again.
async fn reopened(directory: &tempfile::TempDir, ledger: Ledger) -> Ledger {
    ledger.close(PATIENCE).await;
    open(directory)
}

async fn due_ms(ledger: &Ledger) -> Option<i64> {
    let rows = ledger.reader().due(i64::MAX, 10).await;
    rows.expect("read").first().map(|row| row.due_ms)
}

#[tokio::test]
async fn a_nudge_while_a_question_is_under_way_asks_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    ledger.writer().refuse(refused(key, NOW + 1_500));
    let ledger = reopened(&directory, ledger).await;
    let answer = answered("new", 2_000, NOW + 1_000);
    ledger.writer().record(key, answer).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, Some(NOW + 1_500));
}

/// One poll at once, and one at the end of the minute for all that came within it; the same again from there on.
#[tokio::test]
async fn nudges_within_a_minute_leave_one_poll_at_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    // Paid: the plan asks no more, so what is due is due by nudges alone.
    let paid = answered("paid", 500, NOW + 400);
    ledger.writer().record(key, paid).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, None);
    let refused_at = async |ledger: Ledger, after: i64| {
        ledger.writer().refuse(refused(key, NOW + after));
        reopened(&directory, ledger).await
    };
    ledger = refused_at(ledger, 1_000).await;
    assert_eq!(due_ms(&ledger).await, Some(NOW + 1_000), "at once");
    let answer = answered("paid", 1_300, NOW + 1_200);
    ledger.writer().record(key, answer).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, None, "one poll answers it");

    for after in [2_000, 30_000, 60_999] {
        ledger = refused_at(ledger, after).await;
        assert_eq!(due_ms(&ledger).await, Some(NOW + 61_000), "{after}");
    }
    // As the poller counts, before and when the time has come.
    let row = ledger.reader().pollable(key).await.expect("read");
    let heard = row.expect("there").heard;
    for now_ms in [NOW + 40_000, NOW + 61_000] {
        let next = crate::invoice::silence::next(&rules().schedule, &heard, now_ms);
        assert_eq!(next, crate::invoice::silence::Due::At(NOW + 61_000));
    }
    let answer = answered("paid", 61_200, NOW + 61_100);
    ledger.writer().record(key, answer).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, None);
    ledger = refused_at(ledger, 62_000).await;
    assert_eq!(due_ms(&ledger).await, Some(NOW + 121_000));
    let answer = answered("paid", 121_200, NOW + 121_100);
    ledger.writer().record(key, answer).await.expect("stored");
    ledger = refused_at(ledger, 300_000).await;
    assert_eq!(due_ms(&ledger).await, Some(NOW + 300_000), "at once again");
}

#[tokio::test]
async fn a_question_that_failed_while_the_clock_was_set_back_is_asked_again_by_the_new_clock() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    let day = 86_400_000;
    let failed = PollFailed {
        key,
        asked_ms: NOW + day,
        now_ms: NOW + 90_000,
        why: NoAnswer::Other,
    };
    ledger.writer().poll_failed(failed).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, Some(NOW + 60_001));
}

#[tokio::test]
async fn an_outage_puts_an_invoice_back_by_no_more_than_it_takes_to_notice_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    ledger.writer().refuse(refused(key, NOW + 1_000));
    let ledger = reopened(&directory, ledger).await;
    let asked = async |times: i64, why: NoAnswer| {
        for number in 1..=times {
            let failed = PollFailed {
                key,
                asked_ms: NOW + number * 60_000,
                now_ms: NOW + number * 60_000,
                why,
            };
            ledger.writer().poll_failed(failed).await.expect("stored");
        }
        due_ms(&ledger).await.map(|due| due - times * 60_000 - NOW)
    };
    assert_eq!(asked(20, NoAnswer::Outage).await, Some(40_000));
    // An invoice of which the service alone keeps silent is put back further each time, before and after an outage.
    assert_eq!(asked(4, NoAnswer::Other).await, Some(600_000));
    assert_eq!(asked(1, NoAnswer::Outage).await, Some(600_000));
}

/// Money may hang on its doubt, and only an answer would end it.
#[tokio::test]
async fn one_in_doubt_that_the_service_does_not_know_is_shown_to_a_person() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let doubtful = opened(&writer, "a").await;
    let odd = said(Source::Notification, "id-a", "odd", 1);
    writer.record(doubtful, odd).await.expect("stored");
    let payable = opened(&writer, "b").await;
    // A service may drop what was not paid in time.
    let plain = opened(&writer, "c").await;
    for (key, from, wanted) in [(doubtful, 0, true), (payable, 0, true), (plain, 40, false)] {
        for minutes in [1, 2, 10, 11].map(|minutes| from + minutes) {
            let row = reader.invoice(key).await.expect("read").expect("there");
            assert!(!row.needs(Attention::NotFound), "{minutes}");
            let failed = PollFailed {
                key,
                asked_ms: NOW + minutes * 60_000,
                now_ms: NOW + minutes * 60_000,
                why: NoAnswer::NotFound { service_ms: None },
            };
            writer.poll_failed(failed).await.expect("stored");
        }
        let row = reader.invoice(key).await.expect("read").expect("there");
        let is_shown = row.needs(Attention::NotFound);
        assert_eq!(is_shown, wanted, "{:?}", row.attention);
    }
}

#[tokio::test]
async fn a_nudge_before_the_id_is_known_is_remembered() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = fresh(&ledger.writer(), "a").await;
    ledger.writer().refuse(refused(key, NOW + 500));
    let ledger = reopened(&directory, ledger).await;
    assert_eq!(due_ms(&ledger).await, None);
    let answer = Settled::Answered(Box::new(said(Source::Create, "id-a", "new", 1_000)));
    ledger
        .writer()
        .settle_opening(key, answer)
        .await
        .expect("stored");
    assert_eq!(due_ms(&ledger).await, Some(NOW + 500));
}

#[tokio::test]
async fn a_doubt_and_an_overtaken_answer_are_due_at_once_for_the_poller_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    writer
        .record(key, said(Source::Notification, "id-a", "odd", 9))
        .await
        .expect("stored");
    let stale = Asked {
        revision: 0,
        at_ms: NOW,
    };
    let late = Observation {
        asked: Some(stale),
        received_ms: NOW + 10,
        ..said(Source::Poll, "id-a", "new", 5)
    };
    let made = writer.record(key, late).await.expect("stored");
    assert_eq!(made.decision, Decision::Overtaken);
    let row = ledger
        .reader()
        .pollable(key)
        .await
        .expect("read")
        .expect("there");
    let next = crate::invoice::silence::next(&rules().schedule, &row.heard, NOW + 20);
    assert_eq!(next, crate::invoice::silence::Due::At(NOW + 10));
}

#[tokio::test]
async fn what_was_not_to_be_asked_any_more_is_dated_again_when_it_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let horizon = NOW + 1_800_000 + 259_200_000;
    writer.unresolve(key, horizon).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, None);
    let failed = said(Source::Notification, "id-a", "failed", horizon - NOW + 9);
    writer.record(key, failed).await.expect("stored");
    assert_eq!(
        due_ms(&ledger).await,
        Some(horizon + 9 + 300_000),
        "late money is asked for"
    );
}

#[tokio::test]
async fn a_repeat_of_an_older_claim_does_not_replace_the_document() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let mut paid = answered("paid", 50, NOW + 40);
    paid.report.amount = Reported::Value(Amount::parse("5").expect("plain"));
    writer.record(key, paid).await.expect("stored");
    let again = writer
        .record(key, said(Source::Notification, "id-a", "new", 1))
        .await
        .expect("stored");
    assert_eq!(again.decision, Decision::Repeat);
    let row = ledger
        .reader()
        .invoice(key)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(
        (row.outcome, row.amount_reported.as_deref()),
        (Outcome::Mismatch, Some("5"))
    );
}

#[tokio::test]
async fn an_id_belongs_to_one_invoice() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    opened(&writer, "a").await;
    let other = fresh(&writer, "b").await;
    let told = writer
        .record(other, said(Source::Notification, "id-a", "paid", 9))
        .await
        .expect("stored");
    assert_eq!(told.decision, Decision::NotThisInvoice);
    let answer = Settled::Answered(Box::new(said(Source::Create, "id-a", "new", 1)));
    let (row, _) = writer.settle_opening(other, answer).await.expect("stored");
    assert_eq!(
        (row.opening, row.attention),
        (Opening::Refused, vec![Attention::OtherId])
    );
}

#[tokio::test]
async fn a_long_queue_does_not_hide_one_in_doubt() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    for number in 0..30 {
        opened(&writer, &format!("old-{number}")).await;
    }
    let key = opened(&writer, "a").await;
    let doubtful = said(Source::Notification, "id-a", "odd", 1);
    writer.record(key, doubtful).await.expect("stored");
    let late = NOW + 300_000;
    let nudge = refused(key, late);
    writer.refuse(nudge);
    drop((writer, reader));
    let ledger = reopened(&directory, ledger).await;
    let rows = ledger.reader().due(late, 10).await.expect("read");
    assert!(rows.len() == 11 && rows.first().is_some_and(|row| row.key == key));
}

/// A refusal that comes while the queue is full has no room for its word to the writer. It is written all the same.
#[tokio::test]
async fn a_refusal_beside_a_full_queue_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let ledger = Ledger::open(Options {
        state_dir: state_dir.clone(),
        busy_budget: PATIENCE,
        queue: 1,
        batch: 256,
        checkpoint: Checkpoint::AfterAnswers,
        log_limits: LogLimits::WIDE,
        network: Network::Refused,
        bounds: Bounds {
            history_per_invoice: 5,
            history_rows: 1_000,
            refusal_rows: 10,
        },
        rules: rules(),
    })
    .expect("it opens");
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let held = HeldLock::take(&state_dir);
    let mut asking = tokio::task::JoinSet::new();
    for at in 2..100 {
        let writer = writer.clone();
        let told = said(Source::Notification, "id-a", "new", at);
        asking.spawn(async move { writer.record(key, told).await.is_ok() });
        tokio::task::yield_now().await;
    }
    writer.refuse(refused(key, NOW));
    drop(held);
    let stored = asking.join_all().await;
    assert!(
        stored.contains(&true) && stored.contains(&false),
        "the queue was full"
    );
    let reader = ledger.reader();
    let written = async {
        let list = async || reader.refusals(RefusalFilter::default(), 10).await;
        while list().await.expect("read").is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written)
        .await
        .expect("written");
}
