//! What is owed to whom: every selector over a whole life of an invoice, with the ledger closed and opened again between
//! any two claims.

use super::*;

fn subscription(hook: &str, on: &[&str]) -> Subscription {
    let on = on.iter().map(|word| Selector::parse(word).expect("known"));
    Subscription {
        hook: hook.to_owned(),
        on: on.collect(),
    }
}

/// A hook for each selector, named after it, and two with several that match the same events.
fn everybody() -> Rules {
    let words = [
        "paid",
        "paid_again",
        "failed",
        "reversed",
        "late",
        "mismatch",
        "unresolved",
        "status:paid",
        "*",
    ];
    let mut subscriptions: Vec<Subscription> = words
        .iter()
        .map(|word| subscription(word, &[word]))
        .collect();
    subscriptions.push(subscription(
        "several",
        &["paid", "late", "status:paid", "*", "paid"],
    ));
    subscriptions.push(subscription("paid-too", &["paid"]));
    let mut rules = rules();
    rules.policy.lists.reversed = vec!["refunded".into()];
    rules.subscriptions = subscriptions;
    rules
}

/// Three polls that say this, a minute apart: the first may leave doubt, the second settles it, the third is no news.
async fn poll(ledger: &Ledger, key: InvoiceKey, said: Observation) {
    for minute in 0..3 {
        let row = ledger.reader().invoice(key).await.expect("read");
        let received_ms = said.received_ms + minute * 60_000;
        let asked = row.map(|row| Asked {
            revision: row.revision,
            at_ms: received_ms,
        });
        let polled = Observation {
            asked,
            received_ms,
            ..said.clone()
        };
        ledger.writer().record(key, polled).await.expect("stored");
    }
}

/// Lives a life of these statuses and gives the kinds of events each hook was owed, in their order.
async fn owed_in(life: &[&str]) -> impl Fn(&str) -> Vec<&'static str> {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || open_with(&directory, everybody());
    let ledger = open();
    let key = opened(&ledger.writer(), "a").await;
    ledger.close(PATIENCE).await;
    for (place, status) in life.iter().enumerate() {
        let at = 10 * i64::try_from(place + 1).expect("small");
        let ledger = open();
        poll(&ledger, key, said(Source::Poll, "id-a", status, at)).await;
        ledger.close(PATIENCE).await;
    }
    let ledger = open();
    let mut rows = ledger
        .reader()
        .list_deliveries(None, 1_000)
        .await
        .expect("read");
    rows.sort_by_key(|row| row.seq);
    ledger.close(PATIENCE).await;
    move |hook| {
        let own = rows.iter().filter(|row| row.hook == hook);
        own.map(|row| row.kind.as_str()).collect()
    }
}

#[tokio::test]
async fn a_payment_is_owed_once_in_a_life_and_every_return_to_paid_is_another_event() {
    let owed = owed_in(&["paid", "refunded", "paid", "refunded", "paid"]).await;
    let whole = [
        "opened",
        "paid",
        "reversed",
        "paid_again",
        "reversed",
        "paid_again",
    ];
    for (hook, wanted) in [
        ("paid", &["paid"][..]),
        ("paid-too", &["paid"]),
        ("paid_again", &["paid_again", "paid_again"]),
        ("reversed", &["reversed", "reversed"]),
        ("late", &[]),
        ("failed", &[]),
        ("mismatch", &[]),
        ("unresolved", &[]),
        ("status:paid", &["paid", "paid_again", "paid_again"]),
        ("*", &whole),
        ("several", &whole),
    ] {
        assert_eq!(owed(hook), wanted, "{hook}");
    }
}

#[tokio::test]
async fn a_late_payment_is_the_one_payment_of_its_life() {
    let owed = owed_in(&["failed", "paid", "refunded", "paid"]).await;
    for (hook, wanted) in [
        ("paid", &["late"][..]),
        ("paid-too", &["late"]),
        ("late", &["late"]),
        ("failed", &["failed"]),
        ("paid_again", &["paid_again"]),
        ("reversed", &["reversed"]),
        ("status:paid", &["late", "paid_again"]),
        (
            "several",
            &["opened", "failed", "late", "reversed", "paid_again"],
        ),
    ] {
        assert_eq!(owed(hook), wanted, "{hook}");
    }
}

#[tokio::test]
async fn what_was_paid_with_another_sum_is_owed_to_those_who_want_that() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open_with(&directory, everybody());
    let key = opened(&ledger.writer(), "a").await;
    let mut paid = said(Source::Poll, "id-a", "paid", 10);
    paid.report.amount = Reported::Value(Amount::parse("15").expect("plain"));
    poll(&ledger, key, paid).await;
    let writer = ledger.writer();
    let other = opened(&writer, "b").await;
    writer
        .unresolve(other, NOW + 300_000_000)
        .await
        .expect("stored");
    let rows = ledger
        .reader()
        .list_deliveries(None, 1_000)
        .await
        .expect("read");
    let owed = |kind: EventKind| {
        let own = rows.iter().filter(|row| row.kind == kind);
        let mut hooks: Vec<&str> = own.map(|row| row.hook.as_str()).collect();
        hooks.sort_unstable();
        hooks
    };
    assert_eq!(
        owed(EventKind::Mismatch),
        ["*", "mismatch", "several", "status:paid"]
    );
    assert_eq!(owed(EventKind::Unresolved), ["*", "several", "unresolved"]);
}
