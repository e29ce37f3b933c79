//! An order with several invoices: what stands for it, through creates that are refused or refused by mistake.
//!
//! Relies on the ledger's own doors. Promises that an order is told each of its ends once.

use super::*;

/// Begins another invoice of the order, whatever it has.
async fn begin_new(writer: &Writer, order: &str) -> InvoiceKey {
    let mut wish = intent(writer, order);
    wish.wanted.anew = true;
    match writer.begin_opening(wish).await {
        Ok(Begun::Fresh(key)) => key,
        other => panic!("not fresh: {other:?}"),
    }
}

async fn refuse(writer: &Writer, key: InvoiceKey) {
    let refused = Settled::Refused("no".into());
    writer.settle_opening(key, refused).await.expect("stored");
}

/// The kinds of an order's events, oldest first.
async fn kinds(reader: &Reader, order: &str) -> Vec<EventKind> {
    let events = reader.events_of_order(order, 100).await.expect("read");
    events.iter().rev().map(|event| event.kind).collect()
}

#[tokio::test]
async fn the_order_fails_when_the_newer_invoice_was_not_opened() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let first = opened(&writer, "a").await;
    let newer = begin_new(&writer, "a").await;
    let failed = said(Source::Notification, "id-a", "failed", 2);
    writer.record(first, failed).await.expect("stored");
    assert_eq!(
        kinds(&reader, "a").await,
        [EventKind::Opened, EventKind::Status]
    );
    refuse(&writer, newer).await;
    let told = [EventKind::Opened, EventKind::Status, EventKind::Failed];
    assert_eq!(kinds(&reader, "a").await, told);
    refuse(&writer, begin_new(&writer, "a").await).await;
    assert_eq!(kinds(&reader, "a").await, told, "once");
}

#[tokio::test]
async fn one_that_was_refused_and_exists_pays_no_order_that_is_paid() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let refused = begin_new(&writer, "a").await;
    refuse(&writer, refused).await;
    let other = begin_new(&writer, "a").await;
    refuse(&writer, other).await;
    let last = begin_new(&writer, "a").await;
    for (key, id) in [(last, "id-3"), (refused, "id-1"), (other, "id-2")] {
        let paid = said(Source::Notification, id, "paid", 2);
        writer.record(key, paid).await.expect("stored");
    }
    let rows = reader.invoices_of_order("a").await.expect("read");
    let outcomes: Vec<_> = rows.iter().map(|row| (row.key, row.outcome)).collect();
    assert_eq!(outcomes.first(), Some(&(last, Outcome::Paid)));
    assert_eq!(
        kinds(&reader, "a").await,
        [
            EventKind::Paid,
            EventKind::SecondPayment,
            EventKind::SecondPayment
        ]
    );
}
