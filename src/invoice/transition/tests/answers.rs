//! Answers to questions of ours: when one is enough, when it takes two, and what it says about what was doubted.

use super::*;

#[test]
fn a_payment_is_not_made_a_mismatch_by_one_answer() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let cheaper = |invoice: &Invoice, now_ms| cheap(answered(invoice, PAID, 9, now_ms));
    let once = check(&paid, &cheaper(&paid, 0), Decision::Pending, None);
    assert_eq!(once.outcome, Outcome::Paid);
    check(
        &once,
        &cheaper(&once, 30_000),
        Decision::AdvanceAgreed,
        Some(EventKind::Mismatch),
    );
    // The other way round nothing is taken back.
    let open = after(&[(NEW, 1)]);
    let mismatched = decide(&open, &cheaper(&open, 0), &policy()).after;
    assert_eq!(mismatched.outcome, Outcome::Mismatch);
    check(
        &mismatched,
        &answered(&mismatched, PAID, 10, 0),
        Decision::Advance,
        Some(EventKind::Paid),
    );
}

#[test]
fn a_slow_answer_does_not_overwrite_what_came_meanwhile() {
    let open = after(&[(NEW, 1)]);
    let question = answered(&open, NEW, 1, 0);
    let paid = check(
        &open,
        &told(PAID, 5),
        Decision::Advance,
        Some(EventKind::Paid),
    );
    let made = decide(&paid, &question, &policy());
    assert_eq!((made.decision, made.ask), (Decision::Overtaken, Ask::Now));
    assert_eq!(made.after.outcome, Outcome::Paid);
}

#[test]
fn a_poll_that_goes_back_is_believed_the_second_time_and_marked() {
    let ahead = after(&[(NEW, 1), (ODD, 9)]);
    let first = check(
        &ahead,
        &answered(&ahead, NEW, 2, 0),
        Decision::Pending,
        None,
    );
    let made = decide(&first, &answered(&first, NEW, 2, 30_000), &policy());
    assert_eq!(made.decision, Decision::AdvanceAgreed);
    assert!(made.change.is_some_and(|change| change.rewound));
}

#[test]
fn an_answer_that_must_come_twice_is_asked_for_after_what_is_left_of_the_wait() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let ask = |invoice: &Invoice, now_ms| {
        let made = decide(invoice, &answered(invoice, FAILED, 9, now_ms), &policy());
        (made.after, made.decision, made.why, made.ask)
    };
    let (pending, decision, why, wait) = ask(&paid, 1_000);
    assert_eq!((decision, why), (Decision::Pending, Why::LeavesPaid));
    assert_eq!(wait, Ask::After(SECOND_POLL_AFTER_MS));
    let (still, decision, _, wait) = ask(&pending, 11_000);
    assert_eq!((decision, wait), (Decision::Pending, Ask::After(20_000)));
    assert_eq!(still, pending);
    let (_, decision, why, wait) = ask(&still, 31_000);
    assert_eq!(
        (decision, why),
        (Decision::AdvanceAgreed, Why::SecondAnswer)
    );
    assert_eq!(wait, Ask::AsPlanned);
    // A clock that was set back does not hold the answer for ever.
    let (_, decision, _, _) = ask(&pending, -3_600_000);
    assert_eq!(decision, Decision::AdvanceAgreed);
}

#[test]
fn a_question_sent_before_the_doubt_does_not_end_it() {
    let mut creating = answered(&unopened(), NEW, 1, 0);
    creating.source = Source::Create;
    let doubted = check(&unopened(), &cheap(told(PAID, 5)), Decision::Doubt, None);
    let made = decide(&doubted, &creating, &policy());
    assert_eq!((made.decision, made.ask), (Decision::Overtaken, Ask::Now));
    assert!(made.after.doubt && made.after.id.is_some());
    let open = after(&[(NEW, 1)]);
    let question = answered(&open, ODD, 3, 0);
    let doubted = check(&open, &cheap(told(PAID, 5)), Decision::Doubt, None);
    assert!(decide(&doubted, &question, &policy()).after.doubt);
}

#[test]
fn an_answer_with_the_doubted_word_ends_the_doubt_whatever_its_instant() {
    let doubted = check(
        &after(&[(NEW, 1)]),
        &cheap(told(PAID, 9)),
        Decision::Doubt,
        None,
    );
    let made = decide(&doubted, &cheap(answered(&doubted, PAID, 8, 0)), &policy());
    assert_eq!(
        (made.decision, made.ask),
        (Decision::Advance, Ask::AsPlanned)
    );
    assert!(!made.after.doubt && made.after.outcome == Outcome::Mismatch);
    // Another word that is older may come from a place that lags behind.
    let made = decide(&doubted, &answered(&doubted, NEW, 8, 0), &policy());
    assert!(made.after.doubt && made.after.doubted.len() == 1);
}

#[test]
fn a_payment_heard_of_late_counts_once_a_poll_has_spoken() {
    let failed = after(&[(NEW, 1), (FAILED, 9)]);
    let doubted = check(&failed, &told(PAID, 5), Decision::Doubt, None);
    assert!(!doubted.paid_counted, "not before");
    let made = decide(&doubted, &answered(&doubted, FAILED, 9, 0), &policy());
    assert_eq!(
        (made.decision, made.ask),
        (Decision::Confirmed, Ask::AsPlanned)
    );
    assert!(!made.after.doubt && made.after.doubted.is_empty());
    let change = made.change.expect("the money had come, and went back");
    assert_eq!(change.kind, EventKind::Reversed);
    let cause = change.cause.expect("the payment is behind it");
    assert_eq!(
        (cause.status.as_str(), cause.at),
        (PAID, Some(Moment::from_ms(5)))
    );
}

#[test]
fn another_word_of_the_same_instant_is_denied_only_by_two_answers() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let tied = check(&paid, &told(FAILED, 5), Decision::Doubt, None);
    let deny =
        |invoice: &Invoice, now_ms| decide(invoice, &answered(invoice, PAID, 5, now_ms), &policy());
    // The place it came from may lag behind the one that told.
    let once = deny(&tied, 0);
    assert_eq!(once.ask, Ask::After(SECOND_POLL_AFTER_MS));
    assert!(once.after.doubt && once.after.doubted.len() == 1);
    let twice = deny(&once.after, SECOND_POLL_AFTER_MS);
    assert!(!twice.after.doubt && twice.after.outcome == Outcome::Paid);
    assert_eq!(twice.change, None);
}

#[test]
fn what_has_no_instant_never_counts_as_heard_before_an_answer() {
    let mut timeless = told(PAID, 0);
    timeless.report.updated_at = None;
    let doubted = check(&after(&[(NEW, 1)]), &timeless, Decision::Doubt, None);
    let answer = |invoice: &Invoice, now_ms| {
        decide(invoice, &answered(invoice, FAILED, 9, now_ms), &policy()).after
    };
    let once = answer(&doubted, 0);
    assert!(once.doubt && once.outcome == Outcome::Failed);
    let twice = answer(&once, SECOND_POLL_AFTER_MS);
    assert!(!twice.doubt && !twice.paid_counted);
    assert_eq!(twice.outcome, Outcome::Failed);
}

#[test]
fn an_answer_that_replaces_another_word_of_its_instant_is_asked_for_again() {
    let failed = after(&[(NEW, 1), (FAILED, 5)]);
    let made = decide(&failed, &answered(&failed, PAID, 5, 0), &policy());
    assert_eq!(
        (made.decision, made.ask),
        (Decision::Advance, Ask::After(SECOND_POLL_AFTER_MS))
    );
    assert_eq!(made.change.map(|change| change.kind), Some(EventKind::Late));
    assert!(made.after.doubt);
    let again = decide(
        &made.after,
        &answered(&made.after, PAID, 5, SECOND_POLL_AFTER_MS),
        &policy(),
    );
    assert_eq!(
        (again.decision, again.ask),
        (Decision::Confirmed, Ask::AsPlanned)
    );
    assert!(!again.after.doubt && again.after.outcome == Outcome::Paid);
}

#[test]
fn another_status_with_the_same_outcome_is_told_as_a_status() {
    let twice =
        |invoice: &Invoice, status: &str, at: i64, amount: fn(Observation) -> Observation| {
            let ask = |invoice: &Invoice, now_ms| {
                decide(
                    invoice,
                    &amount(answered(invoice, status, at, now_ms)),
                    &policy(),
                )
            };
            let once = ask(invoice, 0);
            let again = ask(&once.after, SECOND_POLL_AFTER_MS);
            let change = once.change.or(again.change).expect("an event");
            (again.after, change.kind, change.outcome)
        };
    let status = EventKind::Status;
    let failed = after(&[(NEW, 1), (FAILED, 5)]);
    let (_, kind, outcome) = twice(&failed, "refunded", 6, |o| o);
    assert_eq!((kind, outcome), (status, Outcome::Failed));
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let (still, kind, outcome) = twice(&paid, ODD, 6, |o| o);
    assert_eq!((kind, outcome), (status, Outcome::Paid));
    let (back, kind, outcome) = twice(&still, FAILED, 7, |o| o);
    assert_eq!((kind, outcome), (EventKind::Reversed, Outcome::Reversed));
    let (_, kind, outcome) = twice(&back, "refunded", 8, |o| o);
    assert_eq!((kind, outcome), (status, Outcome::Reversed));
    let (short, kind, outcome) = twice(&after(&[(NEW, 1)]), PAID, 5, cheap);
    assert_eq!((kind, outcome), (EventKind::Mismatch, Outcome::Mismatch));
    let (_, kind, outcome) = twice(&short, ODD, 6, |o| o);
    assert_eq!((kind, outcome), (status, Outcome::Mismatch));
}

#[test]
fn of_two_payments_heard_of_late_the_later_one_is_the_cause() {
    let odd = after(&[(NEW, 1), (ODD, 9), (PAID, 3), (PAID, 6)]);
    assert!(odd.doubt && odd.doubted.len() == 2);
    let change = decide(&odd, &answered(&odd, ODD, 9, 0), &policy()).change;
    let change = change.expect("the money had come");
    assert_eq!(change.kind, EventKind::Paid);
    let at = change.cause.and_then(|cause| cause.at);
    assert_eq!(at, Some(Moment::from_ms(6)));
}

#[test]
fn an_answer_given_before_a_doubt_arose_does_not_deny_it() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let refund = |invoice: &Invoice, now_ms| {
        decide(
            invoice,
            &answered(invoice, "refunded", 9, now_ms),
            &policy(),
        )
        .after
    };
    let pending = refund(&paid, 0);
    let told_again = check(&pending, &told(ODD, 9), Decision::Doubt, None);
    // It may lag behind what was told meanwhile: the first answer of two.
    let once = refund(&told_again, SECOND_POLL_AFTER_MS);
    assert!(once.doubt && once.outcome == Outcome::Paid);
    // The same doubt again takes nothing back.
    let repeated = check(&once, &told(ODD, 9), Decision::Doubt, None);
    let twice = refund(&repeated, 2 * SECOND_POLL_AFTER_MS);
    assert!(!twice.doubt && twice.outcome == Outcome::Reversed);
}
