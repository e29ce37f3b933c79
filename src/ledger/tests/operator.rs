//! What a person changes: tracking, adopting and accepting, through the ledger's own doors.

use super::*;

use crate::invoice::attention::Attention;
use crate::invoice::transition::SECOND_POLL_AFTER_MS;

const TOKEN: [u8; 32] = [7; 32];

fn rub(amount: &str) -> Sum {
    Sum::new(Amount::parse(amount).expect("plain"), "RUB").expect("a sum")
}

fn tracking(writer: &Writer, order: &str, id: &str, amount: &str) -> Tracking {
    let reference = InvoiceRef::from_entropy(crate::entropy::bytes());
    Tracking {
        order_id: OrderId::new(order).expect("an order id"),
        invoice_id: InvoiceId::new(id).expect("an id"),
        agreed: rub(amount),
        sealed: writer.seal(&NotifyToken::from_entropy(TOKEN), &reference),
        reference,
        now_ms: NOW,
    }
}

/// As [`said`], with another amount.
fn figures(source: Source, status: &str, at: i64, amount: Reported<Amount>) -> Observation {
    let mut observation = said(source, "id-a", status, at);
    observation.report.amount = amount;
    observation
}

fn amount(text: &str) -> Reported<Amount> {
    Reported::Value(Amount::parse(text).expect("plain"))
}

async fn row(ledger: &Ledger, key: InvoiceKey) -> InvoiceRow {
    let row = ledger.reader().invoice(key).await;
    row.expect("read").expect("there")
}

/// Accepts what the row shows.
async fn accept(ledger: &Ledger, key: InvoiceKey, at: i64) -> Operated {
    let shown = row(ledger, key).await;
    let wish = Acceptance {
        key,
        named: Amount::parse(shown.amount_reported.as_deref().unwrap_or("1500")).expect("plain"),
        amount: shown.amount_reported,
        currency: shown.currency_reported,
        now_ms: NOW + at,
    };
    ledger.writer().accept(wish).await.expect("stored")
}

#[track_caller]
fn done(operated: Operated) -> InvoiceRow {
    match operated {
        Operated::Done(row, _) => *row,
        other => panic!("not done: {other:?}"),
    }
}

#[track_caller]
fn objection(operated: Operated) -> Objection {
    match operated {
        Operated::Refused(_, objection) => objection,
        other => panic!("not refused: {other:?}"),
    }
}

/// The events of order `a`: kind, outcome, source.
async fn events(ledger: &Ledger) -> Vec<(EventKind, Outcome, Option<Source>)> {
    let rows = ledger.reader().events(Some("a"), 0, 10).await;
    let told = |event: EventRow| (event.kind, event.outcome, event.source);
    rows.expect("read").into_iter().map(told).collect()
}

async fn owed(ledger: &Ledger) -> Vec<(String, EventKind)> {
    let rows = ledger.reader().list_deliveries(None, 20).await;
    let mut owed: Vec<_> = rows
        .expect("read")
        .into_iter()
        .map(|delivery| (delivery.hook, delivery.kind))
        .filter(|(hook, _)| hook == "fulfil")
        .collect();
    owed.sort_by(|a, b| a.0.cmp(&b.0));
    owed
}

#[tokio::test]
async fn a_tracked_invoice_is_due_at_once_and_learns_what_a_create_would_have_known() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let tracked = done(
        writer
            .track(tracking(&writer, "a", "id-a", "1500"))
            .await
            .expect("stored"),
    );
    assert_eq!(
        (tracked.opening, tracked.mode, tracked.method.as_str()),
        (Opening::Tracked, Mode::Unknown, "")
    );
    assert!(tracked.creator.is_none());
    assert!(events(&ledger).await.is_empty(), "nothing is claimed yet");
    let due = ledger.reader().due(NOW, 10).await.expect("read");
    assert_eq!(due.first().map(|due| due.key), Some(tracked.key));
    let watched = ledger.reader().watched(tracked.reference).await;
    let token = watched.expect("read").and_then(|watched| watched.token);
    let own = NotifyToken::from_entropy(TOKEN);
    assert!(token.is_some_and(|token| token.matches(own.secret().expose().as_bytes())));

    let mut answer = said(Source::Poll, "id-a", "new", 1);
    answer.report.method = Some("SBP".into());
    answer.report.requisites = Some("{}".into());
    writer.record(tracked.key, answer).await.expect("stored");
    let now = row(&ledger, tracked.key).await;
    assert_eq!(
        (now.opening, now.mode, now.method.as_str()),
        (Opening::Tracked, Mode::H2h, "SBP")
    );
    assert!(now.attention.is_empty(), "{:?}", now.attention);
    assert_eq!(
        events(&ledger).await,
        [(EventKind::Opened, Outcome::Open, Some(Source::Poll))]
    );
}

#[tokio::test]
async fn an_id_is_tracked_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let track = |order: &'static str, amount: &'static str| {
        let wish = tracking(&writer, order, "id-a", amount);
        let writer = writer.clone();
        async move { writer.track(wish).await.expect("stored") }
    };
    // The same sum in another spelling is the same sum.
    match track("a", "1500.0").await {
        Operated::Already(row) => assert_eq!(row.key, key),
        other => panic!("{other:?}"),
    }
    assert_eq!(objection(track("a", "1501").await), Objection::OtherSum);
    assert_eq!(objection(track("b", "1500").await), Objection::Taken);
    let all = ledger
        .reader()
        .list_invoices(Filter::All, InvoiceKey(i64::MAX), 10)
        .await;
    assert_eq!(all.expect("read").rows.len(), 1);
}

#[tokio::test]
async fn a_tracked_sum_that_the_service_does_not_report_stands_under_attention() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let wish = tracking(&writer, "a", "id-a", "1400");
    let key = done(writer.track(wish).await.expect("stored")).key;
    let answer = said(Source::Poll, "id-a", "new", 1);
    writer.record(key, answer).await.expect("stored");
    assert_eq!(
        row(&ledger, key).await.attention,
        [Attention::AmountDiffers]
    );
    let accepted = done(accept(&ledger, key, 2).await);
    assert_eq!(
        (
            accepted.amount_agreed.as_str(),
            accepted.amount_asked.as_str()
        ),
        ("1500", "1400")
    );
    assert!(accepted.attention.is_empty(), "{:?}", accepted.attention);
    let paid = said(Source::Notification, "id-a", "paid", 9);
    writer.record(key, paid).await.expect("stored");
    assert_eq!(row(&ledger, key).await.outcome, Outcome::Paid);
}

#[tokio::test]
async fn an_adopted_invoice_stands_right_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = fresh(&writer, "a").await;
    let answer = |order: Option<&str>| {
        let mut answer = said(Source::Poll, "id-a", "paid", 9);
        answer.asked = Some(Asked {
            revision: 0,
            at_ms: NOW + 8,
        });
        answer.report.order_id =
            order.map_or(Reported::Missing, |order| Reported::Value(order.to_owned()));
        answer
    };
    let adopt = |order: Option<&'static str>| {
        let (writer, answer) = (writer.clone(), answer(order));
        async move { writer.adopt(key, answer).await.expect("stored") }
    };
    assert_eq!(
        objection(adopt(None).await),
        Objection::NotLost,
        "its answer may still come"
    );
    let lost = Settled::Unknown("timed out".into());
    writer.settle_opening(key, lost).await.expect("stored");
    assert_eq!(objection(adopt(Some("b")).await), Objection::OtherOrder);
    assert!(events(&ledger).await.is_empty());

    let adopted = done(adopt(Some("a")).await);
    assert_eq!(
        (
            adopted.opening,
            adopted.invoice_id.as_deref(),
            adopted.outcome
        ),
        (Opening::Answered, Some("id-a"), Outcome::Paid)
    );
    assert!(adopted.attention.is_empty() && adopted.opening_note.is_none());
    assert_eq!(
        events(&ledger).await,
        [
            (EventKind::Operator, Outcome::Open, Some(Source::Operator)),
            (EventKind::Paid, Outcome::Paid, Some(Source::Poll))
        ]
    );
    assert!(matches!(adopt(Some("a")).await, Operated::Already(_)));
    assert_eq!(events(&ledger).await.len(), 2);

    // What one invoice has, no other gets.
    let other = fresh(&writer, "c").await;
    let lost = Settled::Unknown("timed out".into());
    writer.settle_opening(other, lost).await.expect("stored");
    let taken = writer.adopt(other, answer(None)).await.expect("stored");
    assert_eq!(objection(taken), Objection::Taken);
}

#[tokio::test]
async fn accepting_the_reported_sum_makes_a_mismatch_paid_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let paid = figures(Source::Poll, "paid", 9, amount("1499.9"));
    writer.record(key, paid).await.expect("stored");
    let before = row(&ledger, key).await;
    assert_eq!(
        (before.outcome, before.attention.as_slice()),
        (Outcome::Mismatch, [Attention::Mismatch].as_slice())
    );
    assert!(owed(&ledger).await.is_empty());

    // Somebody was shown other figures than those that stand.
    let stale = Acceptance {
        key,
        amount: Some("1500".into()),
        named: Amount::parse("1500").expect("plain"),
        currency: Some("RUB".into()),
        now_ms: NOW + 10,
    };
    let refused = writer.accept(stale).await.expect("stored");
    assert_eq!(objection(refused), Objection::ReportedSince);

    let after = done(accept(&ledger, key, 11).await);
    assert_eq!(
        (after.outcome, after.found_by, after.amount_agreed.as_str()),
        (Outcome::Paid, Some(Source::Operator), "1499.9")
    );
    assert!(after.attention.is_empty(), "{:?}", after.attention);
    let told = events(&ledger).await;
    assert_eq!(
        told.get(2..),
        Some(
            [
                (
                    EventKind::Operator,
                    Outcome::Mismatch,
                    Some(Source::Operator)
                ),
                (EventKind::Paid, Outcome::Paid, Some(Source::Operator))
            ]
            .as_slice()
        )
    );
    assert_eq!(owed(&ledger).await, [("fulfil".into(), EventKind::Paid)]);

    // Told and asked again, nothing more comes of it.
    assert!(matches!(
        accept(&ledger, key, 12).await,
        Operated::Already(_)
    ));
    for source in [Source::Notification, Source::Poll] {
        let again = figures(source, "paid", 9, amount("1499.90"));
        writer.record(key, again).await.expect("stored");
    }
    assert_eq!(events(&ledger).await.len(), 4);
    assert_eq!(row(&ledger, key).await.outcome, Outcome::Paid);
}

#[tokio::test]
async fn what_cannot_be_agreed_to_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let silent = fresh(&writer, "b").await;
    assert_eq!(
        objection(accept(&ledger, silent, 1).await),
        Objection::NothingReported
    );
    let key = opened(&writer, "a").await;
    assert!(matches!(
        accept(&ledger, key, 2).await,
        Operated::Already(_)
    ));
    // What cannot be read is not reported: the amount before it stands.
    let garbled = figures(Source::Poll, "new", 2, Reported::Unreadable);
    writer.record(key, garbled).await.expect("stored");
    assert!(matches!(
        accept(&ledger, key, 2).await,
        Operated::Already(_)
    ));
    for text in ["0", "-5"] {
        let answer = figures(Source::Poll, "new", 3, amount(text));
        writer.record(key, answer).await.expect("stored");
        assert_eq!(
            objection(accept(&ledger, key, 4).await),
            Objection::Unreadable,
            "{text}"
        );
    }
    // Paid as agreed, and then the service reports another sum, twice.
    let paid = said(Source::Poll, "id-a", "paid", 9);
    writer.record(key, paid).await.expect("stored");
    for at in [10, 10 + SECOND_POLL_AFTER_MS] {
        let other = figures(Source::Poll, "archived", at, amount("1"));
        writer.record(key, other).await.expect("stored");
    }
    let now = row(&ledger, key).await;
    assert_eq!(
        (now.outcome, now.amount_reported.as_deref()),
        (Outcome::Paid, Some("1"))
    );
    let count = events(&ledger).await.len();
    assert_eq!(
        objection(accept(&ledger, key, 2 * SECOND_POLL_AFTER_MS).await),
        Objection::Paid
    );
    assert_eq!(events(&ledger).await.len(), count);
}

#[tokio::test]
async fn an_answer_asked_for_before_the_acceptance_cannot_undo_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let paid = figures(Source::Poll, "paid", 9, amount("1499.9"));
    writer.record(key, paid).await.expect("stored");
    let asked = Asked {
        revision: row(&ledger, key).await.revision,
        at_ms: NOW + 10,
    };
    done(accept(&ledger, key, 11).await);
    let mut slow = figures(Source::Poll, "paid", 9, amount("1500"));
    slow.asked = Some(asked);
    let recorded = writer.record(key, slow).await.expect("stored");
    assert_eq!(recorded.decision, Decision::Overtaken);
    assert_eq!(row(&ledger, key).await.outcome, Outcome::Paid);
}

/// The history tells of the acceptance in a line without a claim, and the claims are measured against the accepted sum.
#[tokio::test]
async fn a_status_sorted_after_the_acceptance_is_measured_against_what_was_accepted() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    let unsorted = figures(Source::Poll, "settled", 9, amount("1499.9"));
    ledger.writer().record(key, unsorted).await.expect("stored");
    assert_eq!(done(accept(&ledger, key, 10).await).outcome, Outcome::Open);
    ledger.close(PATIENCE).await;

    let mut rules = rules();
    rules.policy.lists.paid.push("settled".into());
    let ledger = open_with(&directory, rules);
    while ledger
        .writer()
        .reassess(NOW + 1_000)
        .await
        .expect("stored")
        .more
    {}
    assert_eq!(row(&ledger, key).await.outcome, Outcome::Paid);
}
