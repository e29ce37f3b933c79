//! The service's document that stands for an invoice. It is written once, with the event that it made where it made one, and
//! shown all the same; what is at stake is what a person and the shop's scripts are shown.

use super::*;

/// What stands in the invoice's own row: pages of it are what a rush of notifications writes.
const IN_ROWS: &str = "(SELECT 1 FROM invoice WHERE raw IS NOT NULL)";

#[tokio::test]
async fn a_document_stands_with_its_event_or_with_the_invoice_and_is_the_newest_word() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let path = directory.path().join("state").join(FILE_NAME);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    for (status, at, raw, stands, in_row) in [
        // Another status is an event, which has the document.
        ("wip", 10, "[1]", "[1]", 0),
        // The same again is none, and what it says of the rest stands.
        ("wip", 20, "[2]", "[2]", 1),
        // What is late tells a person nothing new.
        ("new", 15, "[3]", "[2]", 1),
        ("new", 30, "[4]", "[4]", 0),
        ("wip", 25, "[5]", "[4]", 0),
        ("failed", 40, "[6]", "[6]", 0),
        ("paid", 50, "[7]", "[7]", 0),
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
        let rows = sqlite::count_for_tests(&path, IN_ROWS);
        assert_eq!(rows, in_row, "{status} at {at}");
    }
    let found = reader.invoice_by_id("id-a").await.expect("read");
    assert_eq!(found.and_then(|row| row.raw).as_deref(), Some("[7]"));
}
