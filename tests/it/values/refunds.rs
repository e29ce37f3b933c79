//! A refund that the service dates before the payment leads to a poll, which decides.
//! Relies on `till`.
//! Promises that such a refund is neither believed nor dropped.

use super::till::{Till, status};
use crate::harness::{PATIENCE, wait_until};

/// Picks the lines of one order.
fn of(order: &str) -> String {
    format!("invoice = (SELECT id FROM invoice WHERE order_id = '{order}')")
}

#[test]
fn a_refund_dated_before_the_payment_is_polled() {
    let till = Till::start();
    for (order, says) in [("A-1", status("paid", 9)), ("A-2", status("refunded", 5))] {
        till.open(order, "1000");
        till.says_and_tells(order, &status("paid", 9), "\"1000\"");
        till.becomes(order, &["outcome", "doubt"], "paid 0");
        let refund = till.says(order, &status("refunded", 5), "\"1000\"");
        till.says(order, &says, "\"1000\"");
        assert_eq!(till.tell(order, &refund).status, 200);
        let heard = format!(
            "SELECT decision FROM heard WHERE status = 'refunded' AND source = 'notification' AND {}",
            of(order)
        );
        assert_eq!(till.world.value(&heard), "doubt");
    }
    // The poll said paid: it stays so, and the doubt has ended.
    till.becomes("A-1", &["outcome", "doubt"], "paid 0");
    // The poll said refunded, and a second one is awaited.
    till.becomes("A-2", &["outcome", "doubt"], "paid 1");
    let polled = format!(
        "SELECT count(*) FROM heard WHERE source = 'poll' AND decision = 'pending' AND {}",
        of("A-2")
    );
    wait_until(PATIENCE, "the poll", || till.world.value(&polled) == "1");
}
