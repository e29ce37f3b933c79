//! What a person names counts, and nothing else changes.

use super::*;

fn sum(amount: &str) -> Sum {
    Sum::new(Amount::parse(amount).expect("plain"), "RUB").expect("a sum")
}

/// Paid with 0.05 by a poll: a mismatch.
fn mismatched() -> Invoice {
    let open = after(&[(NEW, 1)]);
    decide(&open, &cheap(answered(&open, PAID, 5, 0)), &policy()).after
}

#[test]
fn an_adopted_id_is_all_that_changes() {
    let lost = unopened();
    let id = InvoiceId::new("inv-1").expect("an id");
    let adopted = adopt(&lost, id.clone());
    let wanted = Invoice {
        id: Some(id),
        revision: lost.revision + 1,
        ..lost
    };
    assert_eq!(adopted, wanted);
}

#[test]
fn accepting_the_reported_figures_makes_the_payment_count() {
    let (paid, change) = accept(&mismatched(), &sum("0.050"), None);
    assert_eq!(paid.outcome, Outcome::Paid);
    assert_eq!(change.map(|change| change.kind), Some(EventKind::Paid));
    assert!(paid.paid_fired);
    // A repeat of the payment changes nothing, and one in the old sum is another sum.
    check(&paid, &cheap(told(PAID, 5)), Decision::Repeat, None);
    check(&paid, &told(PAID, 6), Decision::Doubt, None);
}

#[test]
fn accepting_other_figures_than_were_paid_changes_no_outcome() {
    let before = mismatched();
    let (still, change) = accept(&before, &sum("7"), None);
    assert_eq!((still.outcome, change), (Outcome::Mismatch, None));
    assert_eq!(still.agreed, sum("7"));
    assert_eq!(still.revision, before.revision + 1);
}

#[test]
fn what_waits_for_a_poll_is_judged_again_too() {
    let open = after(&[(NEW, 1)]);
    let doubted = decide(&open, &cheap(told(PAID, 5)), &policy()).after;
    let (accepted, change) = accept(&doubted, &sum("0.05"), None);
    assert_eq!(change, None);
    assert!(accepted.doubt, "only a poll ends it");
    check(
        &accepted,
        &cheap(answered(&accepted, PAID, 5, 0)),
        Decision::Advance,
        Some(EventKind::Paid),
    );
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let pending = decide(&paid, &cheap(answered(&paid, FAILED, 9, 0)), &policy()).after;
    let (accepted, _) = accept(&pending, &sum("0.05"), None);
    let waits = accepted.pending.expect("still pending").claim;
    assert_eq!(waits.verdict, Verdict::Agrees);
}
