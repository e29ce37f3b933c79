//! A clock that was ahead when something was written, and was then set back. The whole play of jumps is in
//! `simulation/jumps.rs`.

use super::*;
use crate::invoice::attention::Attention;
use crate::invoice::silence;
use crate::invoice::transition::Why;

/// What the rules of the tests allow between two runs of a delivery.
const LONGEST_MS: i64 = 60_000;

async fn claimed(ledger: &Ledger, now_ms: i64) -> Vec<String> {
    let claimed = ledger
        .writer()
        .claim_deliveries(ProcessMark::own(), now_ms, lanes(8))
        .await;
    let claimed = claimed.expect("stored");
    claimed
        .iter()
        .map(|claimed| claimed.invoice.order_id.clone())
        .collect()
}

/// The money came while the clock was a year ahead: nobody waits a year for its hook.
#[tokio::test]
async fn a_delivery_planned_by_a_clock_that_was_ahead_is_due() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    for (order, ahead_ms) in [("soon", LONGEST_MS), ("wrong", 31_536_000_000)] {
        let key = fresh(&ledger.writer(), order).await;
        let mut heard = said(Source::Notification, order, "new", 9);
        heard.received_ms = NOW + ahead_ms;
        ledger.writer().record(key, heard).await.expect("stored");
    }
    assert_eq!(claimed(&ledger, NOW).await, ["wrong"]);
    assert_eq!(claimed(&ledger, NOW + LONGEST_MS).await, ["soon"]);
}

const DAY: i64 = 86_400_000;

/// An answer at this time by our clock; the service's clock is where it was at the beginning.
fn answered(status: &str, asked_ms: i64) -> Observation {
    let mut answer = said(Source::Poll, "id-a", status, 1);
    answer.asked = Some(Asked {
        revision: i64::MAX,
        at_ms: asked_ms,
    });
    answer.received_ms = asked_ms;
    answer
}

async fn due_ms(ledger: &Ledger) -> Option<i64> {
    let rows = ledger.reader().due(i64::MAX, 10).await.expect("read");
    rows.first().map(|row| row.due_ms)
}

/// The invoices retired later than at this time.
async fn retired(ledger: &Ledger, since_ms: i64) -> Vec<i64> {
    let place = (since_ms, InvoiceKey(i64::MAX));
    let found = ledger.reader().retired_after(place, 10).await;
    found
        .expect("read")
        .iter()
        .map(|(since, _)| *since)
        .collect()
}

/// Late money is asked for until three days after the failure: four days ahead, the last question seemed to be over.
#[tokio::test]
async fn a_failed_invoice_retired_by_a_clock_that_was_ahead_is_dated_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let failed = said(Source::Notification, "id-a", "failed", 9);
    let at = failed.received_ms;
    writer.record(key, failed).await.expect("stored");
    let ahead = at + 4 * DAY;
    let answer = answered("failed", ahead);
    writer.record(key, answer).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, None);
    assert_eq!(retired(&ledger, at).await, [ahead]);
    let mark = ledger.reader().fact(&CLOCK_MARK).await.expect("read");
    assert_eq!(mark, Some(ahead), "a start sees that the clock was ahead");

    writer.redate(&[key], at + 1_000).await.expect("stored");
    assert_eq!(due_ms(&ledger).await, Some(at + 300_000));
    assert!(retired(&ledger, at).await.is_empty());
}

#[tokio::test]
async fn an_invoice_given_up_by_a_clock_that_was_ahead_is_taken_back_and_told_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    let ahead = NOW + 10 * DAY;
    writer.unresolve(key, ahead).await.expect("stored");
    assert_eq!(retired(&ledger, NOW).await, [ahead]);
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!((row.unresolved, row.attention.len()), (true, 1));

    writer.redate(&[key], NOW + 90_000).await.expect("stored");
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert!(!row.unresolved && row.attention.is_empty());
    assert!(due_ms(&ledger).await.is_some_and(|due| due <= NOW + 90_000));
    let story = reader
        .story(key, StoryOutput::Full)
        .await
        .expect("read")
        .expect("there");
    let last = story.history.last().map(|line| line.why);
    assert_eq!(last, Some(Why::ClockWasAhead));

    // Its time comes: attention, and no second event.
    let end = NOW + 5 * DAY;
    writer.unresolve(key, end).await.expect("stored");
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!(
        (row.unresolved, row.attention),
        (true, vec![Attention::Unresolved])
    );
    assert_eq!(due_ms(&ledger).await, None);
    let events = reader.events(None, 0, 100).await.expect("read");
    let told = events
        .iter()
        .filter(|event| event.kind == EventKind::Unresolved);
    assert_eq!(told.count(), 1);
}

/// The service has removed what is long over, or keeps it from this shop, and says so for ever.
#[tokio::test]
async fn one_that_is_refused_for_ever_past_its_end_is_given_up_and_one_without_an_answer_is_not() {
    let end = NOW + 1_800_000 + 3 * DAY;
    let refused = |service_ms| NoAnswer::NotFound { service_ms };
    for (why, wanted) in [
        (refused(None), true),
        (refused(Some(end)), true),
        // Our clock is ahead.
        (refused(Some(NOW + DAY)), false),
        (NoAnswer::Other, false),
        (NoAnswer::Outage, false),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = open(&directory);
        let (writer, reader) = (ledger.writer(), ledger.reader());
        let key = opened(&writer, "a").await;
        let (mut now_ms, mut given_up_ms) = (end, None);
        for _question in 0..14 {
            let failed = PollFailed {
                key,
                asked_ms: now_ms,
                now_ms,
                why,
            };
            writer.poll_failed(failed).await.expect("stored");
            let row = reader.pollable(key).await.expect("read").expect("there");
            match silence::next(&rules().schedule, &row.heard, now_ms) {
                silence::Due::At(at) => now_ms = at.max(now_ms + DAY / 144),
                silence::Due::Unresolved => {
                    given_up_ms = Some(now_ms);
                    break;
                }
                silence::Due::Never => panic!("nobody gave it up"),
            }
        }
        assert_eq!(given_up_ms.is_some(), wanted, "{why:?}");
        assert!(given_up_ms.is_none_or(|at| at >= end + DAY / 24), "{why:?}");
    }
}

/// A machine without a battery started in 1970, and was set while an invoice of that time was open.
#[tokio::test]
async fn an_invoice_opened_in_1970_is_as_old_as_the_services_clock_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let mut intent = intent(&writer, "a");
    (intent.now_ms, intent.deadline_ms) = (5_000, 40_000);
    let Ok(Begun::Fresh(key)) = writer.begin_opening(intent).await else {
        panic!("not fresh");
    };
    let mut answer = said(Source::Create, "id-a", "new", 1);
    (answer.report.expire_at, answer.report.service_ms) = (None, Some(NOW));
    answer.received_ms = 6_000;
    let answer = Settled::Answered(Box::new(answer));
    writer.settle_opening(key, answer).await.expect("stored");
    let row = ledger.reader().pollable(key).await.expect("read");
    let heard = row.expect("there").heard;
    assert_eq!(heard.created_ms, NOW);
    let schedule = &rules().schedule;
    let young = silence::class(&heard, NOW + 60_000);
    assert_eq!(young, silence::Class::Young);
    assert!(silence::end_ms(schedule, &heard) > NOW + DAY);
}
