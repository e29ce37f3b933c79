//! Names that the service chooses: a ledger notes so many of them, and the rest as a number.

use super::*;
use crate::invoice::observation::{How, Odd};

#[tokio::test]
async fn no_service_fills_the_ledger_with_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let mut new = (0, 0);
    for number in 0..120 {
        let status = format!("step-{number}");
        let mut said = said(Source::Notification, "id-a", &status, number + 10);
        said.report.odd.push(Odd {
            field: "direction",
            how: How::Unknown(status),
        });
        let recorded = writer.record(key, said).await.expect("stored");
        new.0 += usize::from(recorded.new_unsorted.is_some());
        new.1 += recorded.new_odd.len();
    }
    // Each is reported once, and the first beyond the bound as well.
    assert_eq!(new, (101, 100));
    let known = ledger.reader().overview(NOW, NOW).await.expect("read");
    assert_eq!((known.unsorted.len(), known.unsorted_others), (100, 20));
    // One that is known is counted as ever.
    let again = said(Source::Notification, "id-a", "step-7", 900);
    writer.record(key, again).await.expect("stored");
    let known = ledger.reader().overview(NOW, NOW).await.expect("read");
    assert!(known.unsorted.contains(&("step-7".to_owned(), 2)));
    assert_eq!(known.unsorted_others, 20);
}
