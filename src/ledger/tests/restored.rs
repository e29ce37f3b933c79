//! A ledger that was restored: what is held until its invoices have been asked about, and for how long.

use super::*;
use crate::invoice::silence::Class;
use crate::invoice::transition::SECOND_POLL_AFTER_MS;
use crate::ledger::{NoAnswer, PollFailed};

/// Says in the mark that the ledger was further than it is, as after an older copy was put in its place.
async fn restored(directory: &tempfile::TempDir, ledger: Ledger, rules: Rules) -> Ledger {
    ledger.close(PATIENCE).await;
    let path = directory.path().join("state/ledger.mark");
    let text = fs::read_to_string(&path).expect("the mark is there");
    let mut mark: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let event = mark.get_mut("event").expect("a number");
    *event = (event.as_i64().expect("a number") + 1).into();
    fs::write(&path, mark.to_string()).expect("written");
    let ledger = open_with(directory, rules);
    assert!(ledger.restored().is_some(), "it is noticed");
    ledger
}

/// What a poll sent at `at` after [`NOW`] was told: `status` since `since`.
fn answer(order: &str, status: &str, since: i64, at: i64) -> Observation {
    let mut said = said(Source::Poll, &format!("id-{order}"), status, since);
    said.received_ms = NOW + at;
    said
}

async fn record(ledger: &Ledger, key: InvoiceKey, observation: Observation) {
    let recorded = ledger.writer().record(key, observation).await;
    recorded.expect("stored");
}

/// Kind and reason of what is held for the hook that wants all.
async fn held(ledger: &Ledger) -> Vec<(EventKind, String)> {
    let rows = ledger.reader().list_deliveries(None, 100).await;
    let mut rows = rows.expect("read");
    rows.sort_by_key(|row| row.seq);
    let all = rows.into_iter().filter(|row| row.hook == "log");
    all.filter_map(|row| Some((row.kind, row.held_why?)))
        .collect()
}

fn why(word: &str, kinds: &[EventKind]) -> Vec<(EventKind, String)> {
    kinds.iter().map(|kind| (*kind, word.to_owned())).collect()
}

/// Runs whatever is due to its end.
async fn run_all(ledger: &Ledger) {
    let writer = ledger.writer();
    loop {
        let own = ProcessMark::own();
        let claimed = writer
            .claim_deliveries(own, NOW + 1_000_000, lanes(8))
            .await;
        let claimed = claimed.expect("stored");
        if claimed.is_empty() {
            return;
        }
        for one in claimed {
            let record = AttemptRecord {
                started_ms: NOW,
                ended_ms: NOW,
                result: "exit 0".into(),
                stdout: vec![],
                stderr: vec![],
            };
            let ended = writer.finish_attempt(one.key, record, After::Done).await;
            ended.expect("stored");
        }
    }
}

#[tokio::test]
async fn an_answer_that_has_to_be_confirmed_does_not_end_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    record(&ledger, key, said(Source::Notification, "id-a", "paid", 9)).await;
    run_all(&ledger).await;
    let ledger = restored(&directory, ledger, rules()).await;
    assert_eq!(held(&ledger).await, []);
    // Leaving `paid` takes two answers that agree: both are about the time before.
    record(&ledger, key, answer("a", "failed", 20, 30)).await;
    let second = 30 + SECOND_POLL_AFTER_MS;
    record(&ledger, key, answer("a", "failed", 20, second)).await;
    let wanted = why("restored", &[EventKind::Reversed]);
    assert_eq!(held(&ledger).await, wanted);
    // Asked about and told: from now on it is as every other.
    let news = said(Source::Notification, "id-a", "paid", 40);
    record(&ledger, key, news).await;
    let later = second + 2 * SECOND_POLL_AFTER_MS;
    record(&ledger, key, answer("a", "paid", 40, later)).await;
    assert_eq!(held(&ledger).await, wanted);
}

#[tokio::test]
async fn an_answer_that_brings_nothing_ends_it_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    run_all(&ledger).await;
    let ledger = restored(&directory, ledger, rules()).await;
    record(&ledger, key, answer("a", "new", 1, 30)).await;
    record(&ledger, key, answer("a", "paid", -1_000_000, 60)).await;
    assert_eq!(held(&ledger).await, []);
}

#[tokio::test]
async fn a_notification_of_what_happened_before_or_nobody_knows_when_is_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let mut keys = Vec::new();
    for order in ["a", "b", "c"] {
        keys.push(opened(&writer, order).await);
    }
    drop(writer);
    run_all(&ledger).await;
    let ledger = restored(&directory, ledger, rules()).await;
    let told = |order: &str, at: Option<i64>| {
        let mut said = said(Source::Notification, &format!("id-{order}"), "paid", 9);
        said.report.updated_at = at.map(|at| Moment::from_ms(NOW + at));
        said
    };
    let notifications = [("a", Some(9)), ("b", Some(1)), ("c", None)];
    for (key, (order, at)) in keys.iter().zip(notifications) {
        record(&ledger, *key, told(order, at)).await;
    }
    // Without a time, or with the time of another status, it is no more than a reason to ask.
    assert_eq!(held(&ledger).await, []);
    for (key, order) in keys.iter().zip(["a", "b", "c"]) {
        record(&ledger, *key, answer(order, "paid", 1, 30)).await;
    }
    let both = [EventKind::Paid, EventKind::Paid];
    assert_eq!(held(&ledger).await, why("restored", &both));
}

#[tokio::test]
async fn giving_up_an_invoice_that_nobody_was_asked_about_is_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    run_all(&ledger).await;
    let ledger = restored(&directory, ledger, rules()).await;
    let late = ledger.writer().unresolve(key, NOW + 400_000_000).await;
    late.expect("stored");
    assert_eq!(
        held(&ledger).await,
        why("restored", &[EventKind::Unresolved])
    );
}

#[tokio::test]
async fn lists_that_changed_beside_it_hold_for_their_own_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    record(
        &ledger,
        key,
        said(Source::Notification, "id-a", "settled", 9),
    )
    .await;
    run_all(&ledger).await;
    let mut rules = rules();
    rules.policy.lists.paid.push("settled".into());
    let ledger = restored(&directory, ledger, rules).await;
    let done = ledger.writer().reassess(NOW + 20).await.expect("stored");
    assert_eq!(done.changed, 1);
    let mut wanted = why("newly_sorted", &[EventKind::Paid]);
    assert_eq!(held(&ledger).await, wanted);
    record(&ledger, key, answer("a", "failed", 20, 30)).await;
    let second = 30 + SECOND_POLL_AFTER_MS;
    record(&ledger, key, answer("a", "failed", 20, second)).await;
    wanted.extend(why("restored", &[EventKind::Reversed]));
    assert_eq!(held(&ledger).await, wanted);
}

#[tokio::test]
async fn what_an_operator_settles_before_it_was_asked_about_is_held() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    let mut more = said(Source::Notification, "id-a", "paid", 9);
    more.report.amount = Reported::Value(Amount::parse("1600").expect("plain"));
    record(&ledger, key, more.clone()).await;
    more.source = Source::Poll;
    record(&ledger, key, more).await;
    run_all(&ledger).await;
    let ledger = restored(&directory, ledger, rules()).await;
    let writer = ledger.writer();
    let accepted = writer.accept(Acceptance {
        key,
        amount: Some("1600".into()),
        named: Amount::parse("1600").expect("plain"),
        currency: Some("RUB".into()),
        now_ms: NOW + 50,
    });
    let accepted = accepted.await.expect("stored");
    assert!(matches!(accepted, Operated::Done(..)), "{accepted:?}");
    assert_eq!(
        held(&ledger).await,
        why("restored", &[EventKind::Operator, EventKind::Paid])
    );
}

/// Class and failures of what is due within two days after [`NOW`].
async fn due(ledger: &Ledger) -> Vec<(Class, u32)> {
    let end_ms = NOW + 172_800_000;
    let due = ledger.reader().due(end_ms, 9).await.expect("read");
    let due = due.iter().map(|row| (row.class, row.heard.failures));
    due.collect()
}

/// A ledger in which a paid invoice is counted again after a restore.
async fn paid_and_restored(directory: &tempfile::TempDir) -> (Ledger, InvoiceKey) {
    let ledger = open(directory);
    let key = opened(&ledger.writer(), "a").await;
    record(&ledger, key, said(Source::Notification, "id-a", "paid", 9)).await;
    run_all(&ledger).await;
    ledger
        .writer()
        .redate(&[key], NOW + 60)
        .await
        .expect("stored");
    assert_eq!(due(&ledger).await, [], "nothing more is expected of it");
    let ledger = restored(directory, ledger, rules()).await;
    ledger
        .writer()
        .redate(&[key], NOW + 70)
        .await
        .expect("stored");
    assert_eq!(due(&ledger).await, [(Class::Restored, 0)]);
    (ledger, key)
}

/// What the lost ledger gave out is not known. A script that goes by the number takes none for one that it has seen.
#[tokio::test]
async fn deliveries_of_a_restored_ledger_have_numbers_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let (mut ledger, _) = paid_and_restored(&directory).await;
    let mut seen = Vec::new();
    for (generation, order) in [(1, "b"), (2, "c")] {
        let key = opened(&ledger.writer(), order).await;
        let id = format!("id-{order}");
        record(&ledger, key, said(Source::Notification, &id, "paid", 9)).await;
        let rows = ledger.reader().list_deliveries(None, 100).await;
        let rows = rows.expect("read");
        let own = rows.iter().filter(|row| row.order_id == order);
        let own: Vec<i64> = own.map(|row| row.key.0).collect();
        assert!(!own.is_empty());
        let begin = generation * 1_000_000_000;
        assert!(own.iter().all(|number| *number > begin), "{own:?}");
        assert!(own.iter().all(|number| !seen.contains(number)), "{own:?}");
        seen.extend(own);
        ledger = restored(&directory, ledger, rules()).await;
    }
}

#[tokio::test]
async fn what_is_paid_is_owed_one_answer_after_a_restore() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ledger, key) = paid_and_restored(&directory).await;
    record(&ledger, key, answer("a", "paid", 9, 30)).await;
    assert_eq!(due(&ledger).await, []);
    ledger
        .writer()
        .redate(&[key], NOW + 90)
        .await
        .expect("stored");
    assert_eq!(due(&ledger).await, [], "it was polled once");
}

#[tokio::test]
async fn without_an_answer_it_stays_owed_and_a_404_is_an_answer() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ledger, key) = paid_and_restored(&directory).await;
    let failed = |after: i64, why| PollFailed {
        key,
        asked_ms: NOW + after,
        now_ms: NOW + after,
        why,
    };
    for failures in 1..=9 {
        let after = i64::from(failures) * 100_000;
        let stored = ledger
            .writer()
            .poll_failed(failed(after, NoAnswer::Other))
            .await;
        stored.expect("stored");
        assert_eq!(due(&ledger).await, [(Class::Restored, failures)]);
    }
    let service_ms = None;
    let gone = failed(1_000_000, NoAnswer::NotFound { service_ms });
    ledger.writer().poll_failed(gone).await.expect("stored");
    assert_eq!(due(&ledger).await, []);
}
