//! Each rule of the moves with its case. That order does not matter is shown in [`orders`].

mod answers;
mod operator;
mod orders;
mod reassess;
mod unnamed;

use super::*;
use crate::invoice::amount::Amount;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::observation::{Asked, Reported};
use crate::invoice::status::Status;
use crate::invoice::sum::Sum;

const PAID: &str = "paid";
const FAILED: &str = "failed";
const NEW: &str = "new";
/// Stands on no list.
const ODD: &str = "processing";

fn policy() -> Policy {
    let lists = StatusLists {
        paid: vec![PAID.into()],
        failed: vec![FAILED.into()],
        reversed: vec!["refunded".into()],
        ..StatusLists::default()
    };
    Policy {
        lists,
        confirm_paid: false,
    }
}

fn unopened() -> Invoice {
    let agreed = Sum::new(Amount::parse("1500.00").expect("plain"), "RUB").expect("a sum");
    Invoice::unheard(OrderId::new("order-1").expect("an order id"), agreed)
}

fn report(status: &str, at: Option<i64>) -> Report {
    Report {
        id: InvoiceId::new("inv-1").expect("an id"),
        status: Status::new(status).expect("a status"),
        order_id: Reported::Value("order-1".into()),
        amount: Reported::Value(Amount::parse("1500").expect("plain")),
        currency: Some("RUB".into()),
        updated_at: at.map(Moment::from_ms),
        service_ms: None,
        expire_at: None,
        method: None,
        payment_url: None,
        requisites: None,
        updated_at_text: None,
        odd: Vec::new(),
        raw: String::new(),
    }
}

fn told(status: &str, at: i64) -> Observation {
    let report = report(status, Some(at));
    Observation {
        source: Source::Notification,
        report,
        asked: None,
        received_ms: 0,
    }
}

fn answered(invoice: &Invoice, status: &str, at: i64, received_ms: i64) -> Observation {
    let asked = Some(Asked {
        revision: invoice.revision,
        at_ms: received_ms,
    });
    Observation {
        source: Source::Poll,
        report: report(status, Some(at)),
        asked,
        received_ms,
    }
}

fn cheap(mut observation: Observation) -> Observation {
    observation.report.amount = Reported::Value(Amount::parse("0.05").expect("plain"));
    observation
}

/// The invoice after the given notifications.
fn after(claims: &[(&str, i64)]) -> Invoice {
    claims.iter().fold(unopened(), |invoice, (status, at)| {
        decide(&invoice, &told(status, *at), &policy()).after
    })
}

#[track_caller]
fn check(
    invoice: &Invoice,
    observation: &Observation,
    decision: Decision,
    kind: Option<EventKind>,
) -> Invoice {
    let made = decide(invoice, observation, &policy());
    assert_eq!(
        (
            made.decision,
            made.change.as_ref().map(|change| change.kind)
        ),
        (decision, kind),
        "{observation:?}"
    );
    assert_eq!(
        made.after.revision > invoice.revision,
        made.after != *invoice,
        "the revision counts changes"
    );
    made.after
}

#[test]
fn the_first_claim_advances_unless_it_cannot_be_trusted() {
    check(
        &unopened(),
        &told(NEW, 1),
        Decision::Advance,
        Some(EventKind::Opened),
    );
    check(
        &unopened(),
        &told(PAID, 1),
        Decision::Advance,
        Some(EventKind::Paid),
    );
    check(&unopened(), &cheap(told(PAID, 1)), Decision::Doubt, None);
    let careful = Policy {
        confirm_paid: true,
        ..policy()
    };
    assert_eq!(
        decide(&unopened(), &told(PAID, 1), &careful).decision,
        Decision::Doubt
    );
}

#[test]
fn repeats_change_nothing_but_a_newer_instant_is_kept() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let same = check(&paid, &told(PAID, 5), Decision::Repeat, None);
    assert_eq!(same, paid);
    let newer = check(&paid, &told(PAID, 9), Decision::Repeat, None);
    assert_eq!(newer.claim.and_then(|c| c.at), Some(Moment::from_ms(9)));
    check(&paid, &told(NEW, 1), Decision::Repeat, None);
}

#[test]
fn a_tie_is_never_settled_by_arrival() {
    for (first, second) in [(PAID, ODD), (ODD, PAID)] {
        let tied = check(
            &after(&[(NEW, 1), (first, 5)]),
            &told(second, 5),
            Decision::Doubt,
            None,
        );
        assert_eq!(tied.claim.map(|c| c.status), Status::new(first));
        assert!(tied.doubt);
    }
}

#[test]
fn an_older_claim_is_stale_and_does_not_undo_a_payment() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let still = check(&paid, &told(ODD, 3), Decision::Stale, None);
    assert_eq!(still.outcome, Outcome::Paid);
    check(
        &after(&[(NEW, 1), (ODD, 9)]),
        &told(FAILED, 5),
        Decision::Stale,
        Some(EventKind::Failed),
    );
    let stale = decide(&after(&[(NEW, 1), (ODD, 9)]), &told(FAILED, 5), &policy());
    assert!(stale.change.is_some_and(|change| !change.rewound));
}

#[test]
fn paid_is_never_undone_by_a_notification() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let doubted = check(&paid, &told(FAILED, 9), Decision::Doubt, None);
    assert_eq!(doubted.outcome, Outcome::Paid);
    // The service takes it back twice: only then it is believed, and as money that went back, not as a failure.
    let first = check(
        &doubted,
        &answered(&doubted, FAILED, 9, 0),
        Decision::Pending,
        None,
    );
    check(
        &first,
        &answered(&first, FAILED, 9, 1_000),
        Decision::Pending,
        None,
    );
    let second = check(
        &first,
        &answered(&first, FAILED, 9, 30_000),
        Decision::AdvanceAgreed,
        Some(EventKind::Reversed),
    );
    assert!(!second.doubt && second.outcome == Outcome::Reversed);
    // Or it denies it. The answer is older than what it denies, so it is asked for twice.
    let deny =
        |invoice: &Invoice, now_ms| decide(invoice, &answered(invoice, PAID, 5, now_ms), &policy());
    let once = deny(&doubted, 0);
    assert_eq!(
        (once.decision, once.ask),
        (Decision::Confirmed, Ask::After(SECOND_POLL_AFTER_MS))
    );
    assert!(once.after.doubt && once.after.outcome == Outcome::Paid);
    let soon = deny(&once.after, 10_000);
    assert_eq!(soon.ask, Ask::After(20_000));
    let twice = deny(&soon.after, 30_000);
    assert_eq!(
        (twice.decision, twice.ask, twice.change),
        (Decision::Confirmed, Ask::AsPlanned, None)
    );
    assert!(!twice.after.doubt && twice.after.doubted.is_empty() && twice.after.pending.is_none());
    assert_eq!(twice.after.outcome, Outcome::Paid);
}

#[test]
fn every_rule_says_that_it_decided() {
    let new = || after(&[(NEW, 1)]);
    let paid = || after(&[(NEW, 1), (PAID, 5)]);
    let odd = || after(&[(NEW, 1), (PAID, 5)]).with_odd_agreed();
    let timeless = |mut observation: Observation| {
        observation.report.updated_at = None;
        observation
    };
    for (invoice, observation, why) in [
        (unopened(), told(NEW, 1), Why::First),
        (paid(), told(NEW, 1), Why::Known),
        (new(), told(NEW, 2), Why::Same),
        (new(), timeless(told(PAID, 0)), Why::NoInstant),
        (unopened(), timeless(told(NEW, 0)), Why::NoInstant),
        (new(), told(ODD, 1), Why::SameInstant),
        (new(), told(PAID, 5), Why::Newer),
        (new(), cheap(told(PAID, 5)), Why::SumDiffers),
        (paid(), told(ODD, 9), Why::LeavesPaid),
        (after(&[(ODD, 9)]), told(PAID, 5), Why::OlderPaid),
        (odd(), told(FAILED, 7), Why::LeavesPaid),
        (after(&[(ODD, 9)]), told(NEW, 5), Why::Older),
        (new(), answered(&new(), ODD, 2, 0), Why::Answered),
        (paid(), answered(&new(), NEW, 1, 0), Why::AskedBefore),
        (
            after(&[(ODD, 9)]),
            answered(&after(&[(ODD, 9)]), NEW, 1, 0),
            Why::Older,
        ),
    ] {
        assert_eq!(
            decide(&invoice, &observation, &policy()).why,
            why,
            "{observation:?}"
        );
    }
}

impl Invoice {
    /// Paid, and then an odd status that a poll stood by twice: the payment still stands behind it.
    fn with_odd_agreed(self) -> Self {
        [0, 30_000].into_iter().fold(self, |invoice, now_ms| {
            decide(&invoice, &answered(&invoice, ODD, 9, now_ms), &policy()).after
        })
    }
}

#[test]
fn paid_with_another_sum_is_mismatch_once_per_sum_and_never_paid() {
    let open = after(&[(NEW, 1)]);
    let doubted = check(&open, &cheap(told(PAID, 5)), Decision::Doubt, None);
    let polled = check(
        &doubted,
        &cheap(answered(&doubted, PAID, 5, 0)),
        Decision::Advance,
        Some(EventKind::Mismatch),
    );
    assert_eq!(polled.outcome, Outcome::Mismatch);
    let again = check(
        &polled,
        &cheap(answered(&polled, PAID, 5, 0)),
        Decision::Confirmed,
        None,
    );
    let mut other = answered(&again, PAID, 6, 0);
    other.report.currency = Some("VND".into());
    let other = check(&again, &other, Decision::Advance, Some(EventKind::Mismatch));
    check(
        &other,
        &answered(&other, PAID, 7, 0),
        Decision::Advance,
        Some(EventKind::Paid),
    );
}

#[test]
fn late_money_and_money_that_comes_again() {
    let failed = after(&[(NEW, 1), (FAILED, 5)]);
    let late = check(
        &failed,
        &told(PAID, 9),
        Decision::Advance,
        Some(EventKind::Late),
    );
    let back = decide(&late, &answered(&late, "refunded", 10, 0), &policy()).after;
    let back = check(
        &back,
        &answered(&back, "refunded", 10, 30_000),
        Decision::AdvanceAgreed,
        Some(EventKind::Reversed),
    );
    check(
        &back,
        &told(PAID, 11),
        Decision::Advance,
        Some(EventKind::PaidAgain),
    );
}

#[test]
fn a_name_learned_later_counts_when_it_is_heard_again() {
    let odd = after(&[(NEW, 1), (ODD, 5)]);
    let mut learned = policy();
    learned.lists.paid.push(ODD.into());
    let made = decide(&odd, &answered(&odd, ODD, 5, 0), &learned);
    assert_eq!(made.change.map(|change| change.kind), Some(EventKind::Paid));
}

#[test]
fn under_confirm_paid_a_name_learned_later_counts_from_a_poll_alone() {
    let odd = after(&[(NEW, 1), (ODD, 5)]);
    let mut careful = policy();
    careful.confirm_paid = true;
    careful.lists.paid.push(ODD.into());
    let pushed = decide(&odd, &told(ODD, 6), &careful);
    assert_eq!((pushed.decision, pushed.change), (Decision::Repeat, None));
    assert_eq!(pushed.after.outcome, Outcome::Open);
    let polled = decide(&odd, &answered(&odd, ODD, 6, 0), &careful);
    assert_eq!(polled.decision, Decision::Confirmed);
    assert_eq!(
        polled.change.map(|change| change.kind),
        Some(EventKind::Paid)
    );
}

#[test]
fn another_invoice_or_order_is_not_this_one() {
    let open = after(&[(NEW, 1)]);
    let mut other = told(PAID, 5);
    other.report.id = InvoiceId::new("inv-2").expect("an id");
    check(&open, &other, Decision::NotThisInvoice, None);
    other.source = Source::Create;
    check(&open, &other, Decision::OtherId, None);
    let mut foreign = told(PAID, 5);
    foreign.report.order_id = Reported::Value("order-2".into());
    check(&open, &foreign, Decision::NotThisInvoice, None);
}

#[test]
fn a_time_that_cannot_be_read_is_doubt_and_one_answer_more() {
    let open = after(&[(NEW, 1)]);
    let mut timeless = told(PAID, 0);
    timeless.report.updated_at = None;
    let doubted = check(&open, &timeless, Decision::Doubt, None);
    let mut answer = answered(&doubted, PAID, 0, 0);
    answer.report.updated_at = None;
    let pending = check(&doubted, &answer, Decision::Pending, None);
    answer.received_ms = 30_000;
    answer.asked = Some(Asked {
        revision: pending.revision,
        at_ms: 30_000,
    });
    check(
        &pending,
        &answer,
        Decision::AdvanceAgreed,
        Some(EventKind::Paid),
    );
}

#[test]
fn under_confirm_paid_no_push_makes_a_payment() {
    let careful = Policy {
        confirm_paid: true,
        ..policy()
    };
    let step =
        |invoice: &Invoice, observation: &Observation| decide(invoice, observation, &careful);
    for (status, at) in [(ODD, 6), (ODD, 5), (NEW, 6)] {
        let odd = step(&unopened(), &told(ODD, 3)).after;
        let doubted = step(&odd, &told(PAID, 5));
        assert_eq!(doubted.decision, Decision::Doubt);
        let denied = step(&doubted.after, &answered(&doubted.after, status, at, 0)).after;
        assert_eq!(
            denied.outcome,
            Outcome::Open,
            "the poll says {status} at {at}"
        );
        // The denied payment leaves no trace: a failure after it is a plain failure.
        let failed = step(&denied, &answered(&denied, FAILED, 9, 0));
        assert_eq!(failed.change.map(|c| c.kind), Some(EventKind::Failed));
    }
    let doubted = step(&unopened(), &told(PAID, 5)).after;
    let confirmed = step(&doubted, &answered(&doubted, PAID, 5, 0));
    assert_eq!(confirmed.change.map(|c| c.kind), Some(EventKind::Paid));
}
