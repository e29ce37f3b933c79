//! The service's document that stands for an invoice: what is at stake is what the shop's scripts are shown.

use super::*;

#[tokio::test]
async fn the_document_is_that_of_the_newest_word() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    for (status, at, raw, stands) in [
        ("wip", 10, "[1]", "[1]"),
        // The same again is no event, and what it says of the rest stands.
        ("wip", 20, "[2]", "[2]"),
        // What is late tells a person nothing new.
        ("new", 15, "[3]", "[2]"),
        ("new", 30, "[4]", "[4]"),
        ("wip", 25, "[5]", "[4]"),
        ("failed", 40, "[6]", "[6]"),
        ("paid", 50, "[7]", "[7]"),
    ] {
        let mut told = said(Source::Notification, "id-a", status, at);
        told.report.raw = raw.to_owned();
        writer.record(key, told).await.expect("stored");
        let shown = reader
            .invoice(key)
            .await
            .expect("read")
            .expect("it is there");
        assert_eq!(shown.raw.as_deref(), Some(stands), "{status} at {at}");
    }
    let found = reader.invoice_by_id("id-a").await.expect("read");
    assert_eq!(found.and_then(|row| row.raw).as_deref(), Some("[7]"));
}
