//! Lists that changed: what the same claims amount to now.

use super::*;

fn counted(status: &str, at: i64, answered: bool) -> Counted {
    let claim = claim_of(&report(status, Some(at)), &unopened(), &policy());
    Counted {
        claim,
        answered,
        cleared: false,
    }
}

fn learned() -> Policy {
    let mut policy = policy();
    policy.lists.paid.push(ODD.into());
    policy
}

#[test]
fn a_name_put_on_a_list_makes_the_outcome_it_stands_for() {
    let odd = after(&[(NEW, 1), (ODD, 5)]);
    let heard = [counted(NEW, 1, false), counted(ODD, 5, false)];
    let (paid, change) = reassess(&odd, &heard, &learned());
    assert_eq!(paid.outcome, Outcome::Paid);
    let change = change.expect("an event");
    assert_eq!(
        (change.kind, change.cause),
        (EventKind::Paid, odd.claim.clone())
    );
    // The history may be gone: what is shown counts all the same, and a second time nothing changes.
    assert_eq!(reassess(&odd, &[], &learned()).0.outcome, Outcome::Paid);
    let (again, change) = reassess(&paid, &heard, &learned());
    assert_eq!((again, change), (paid, None));
}

#[test]
fn a_name_put_on_a_list_counts_although_it_is_not_the_latest() {
    let failed = after(&[(NEW, 1), (ODD, 5), (FAILED, 9)]);
    let heard = [(NEW, 1), (ODD, 5), (FAILED, 9)].map(|(status, at)| counted(status, at, false));
    let (reversed, change) = reassess(&failed, &heard, &learned());
    assert_eq!(reversed.outcome, Outcome::Reversed);
    assert_eq!(change.map(|change| change.kind), Some(EventKind::Reversed));
}

#[test]
fn a_name_taken_off_a_list_gives_the_outcome_back_and_paid_never_happens_twice() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let heard = [counted(NEW, 1, true), counted(PAID, 5, false)];
    let mut without = policy();
    without.lists.paid.clear();
    let (open, change) = reassess(&paid, &heard, &without);
    assert_eq!(open.outcome, Outcome::Open);
    assert_eq!(change.map(|change| change.kind), Some(EventKind::Status));
    assert!(!open.paid_counted);
    let (back, change) = reassess(&open, &heard, &policy());
    assert_eq!(back.outcome, Outcome::Paid);
    assert_eq!(change.map(|change| change.kind), Some(EventKind::PaidAgain));
}

#[test]
fn what_a_poll_stood_behind_is_settled() {
    let odd = after(&[(NEW, 1), (ODD, 5)]);
    let heard = [counted(ODD, 5, false), counted(FAILED, 5, true)];
    let (failed, _) = reassess(&odd, &heard, &policy());
    assert_eq!(failed.outcome, Outcome::Failed);
    let sorted = failed.sorted.expect("sorted");
    assert!(sorted.settled);
    let (still, _) = reassess(&odd, &heard, &learned());
    assert_eq!(
        still.outcome,
        Outcome::Reversed,
        "the shown name counts as a payment before it"
    );
}

#[test]
fn under_confirm_paid_a_name_put_on_a_list_is_doubt_until_a_poll_agrees() {
    let careful = Policy {
        confirm_paid: true,
        ..learned()
    };
    let odd = after(&[(NEW, 1), (ODD, 5)]);
    let heard = [counted(ODD, 5, false)];
    let (doubted, change) = reassess(&odd, &heard, &careful);
    assert_eq!((doubted.outcome, change), (Outcome::Open, None));
    assert!(doubted.doubt);
    assert_eq!(doubted.doubted.len(), 1);
    let made = decide(&doubted, &answered(&doubted, ODD, 5, 0), &careful);
    assert_eq!(made.change.map(|change| change.kind), Some(EventKind::Paid));
    // A poll stood behind it before: it counts at once. So does a payment that stands already.
    let polled = [counted(ODD, 5, true)];
    assert_eq!(reassess(&odd, &polled, &careful).0.outcome, Outcome::Paid);
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let pushed = [counted(PAID, 5, false)];
    let (still, change) = reassess(&paid, &pushed, &careful);
    assert_eq!(
        (still.outcome, still.doubt, change),
        (Outcome::Paid, false, None)
    );
}

#[test]
fn a_doubted_name_taken_off_the_lists_is_forgotten() {
    let open = after(&[(NEW, 1)]);
    let doubted = decide(&open, &cheap(told(PAID, 5)), &policy()).after;
    let mut without = policy();
    without.lists.paid.clear();
    let (after, _) = reassess(&doubted, &[], &without);
    assert!(after.doubt && after.doubted.is_empty());
}
