//! A clock that was ahead when something was written, and was then set back.

use super::*;

/// What the rules of the tests allow between two runs of a delivery.
const LONGEST_MS: i64 = 60_000;

async fn claimed(ledger: &Ledger, now_ms: i64) -> Vec<String> {
    let claimed = ledger
        .writer()
        .claim_deliveries(ProcessMark::own(), now_ms, 8)
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
