//! Payments that name no amount, and refunds that the service dates before the payment.
//! Relies on the helpers of this module.
//! Promises the rules of design 4 for both: a poll decides, and a known amount stays known.

use proptest::prelude::*;

use super::*;

/// The same, but that it names no amount, or none that can be read.
fn unnamed(mut observation: Observation, amount: Reported<Amount>) -> Observation {
    observation.report.amount = amount;
    observation
}

const FORMS: [Reported<Amount>; 2] = [Reported::Missing, Reported::Unreadable];

#[test]
fn a_payment_without_an_amount_is_doubt_until_a_poll_names_one() {
    for form in FORMS {
        let told_unnamed = unnamed(told(PAID, 5), form.clone());
        let made = decide(&after(&[(NEW, 1)]), &told_unnamed, &policy());
        assert_eq!(
            (made.decision, made.why, made.ask, made.change),
            (Decision::Doubt, Why::NoAmount, Ask::Now, None),
            "{form:?}"
        );
        let paid = answered(&made.after, PAID, 5, 0);
        let settled = check(&made.after, &paid, Decision::Advance, Some(EventKind::Paid));
        assert!(!settled.doubt && settled.doubted.is_empty());
        let less = cheap(answered(&made.after, PAID, 5, 0));
        check(
            &made.after,
            &less,
            Decision::Advance,
            Some(EventKind::Mismatch),
        );
        // Denied twice, it is dropped.
        let mut denied = made.after;
        for at in [0, SECOND_POLL_AFTER_MS] {
            denied = decide(&denied, &answered(&denied, NEW, 1, at), &policy()).after;
        }
        assert!(!denied.doubt && denied.outcome == Outcome::Open);
    }
}

#[test]
fn answers_without_an_amount_never_settle_it_and_are_polled_ever_more_seldom() {
    for form in FORMS {
        for mut invoice in [unopened(), after(&[(NEW, 1)]), after(&[(FAILED, 1)])] {
            let outcome = invoice.outcome;
            let mut waits = Vec::new();
            let mut now_ms = 0;
            for _ in 0..15 {
                let answer = unnamed(answered(&invoice, PAID, 5, now_ms), form.clone());
                let made = decide(&invoice, &answer, &policy());
                assert_eq!((made.decision, made.why), (Decision::Doubt, Why::NoAmount));
                assert_eq!(made.change, None, "{form:?}");
                invoice = made.after;
                assert!(invoice.doubt && invoice.outcome == outcome);
                let Ask::After(wait) = made.ask else {
                    panic!("it is polled again");
                };
                waits.push(wait);
                now_ms += wait;
            }
            assert_eq!(waits.first(), Some(&SECOND_POLL_AFTER_MS));
            assert!(waits.is_sorted() && waits.last() == Some(&SELDOM_MS));
            let named = decide(&invoice, &answered(&invoice, PAID, 5, now_ms), &policy());
            assert_eq!(named.after.outcome, Outcome::Paid);
            assert!(!named.after.doubt);
        }
    }
}

#[test]
fn a_known_amount_is_not_lost_by_words_without_one() {
    let mismatch = {
        let open = after(&[(NEW, 1)]);
        decide(&open, &cheap(answered(&open, PAID, 5, 0)), &policy()).after
    };
    for form in FORMS {
        for mut invoice in [after(&[(NEW, 1), (PAID, 5)]), mismatch.clone()] {
            let outcome = invoice.outcome;
            for (number, at) in [5, 4, 9].into_iter().enumerate() {
                let heard = unnamed(told(PAID, at), form.clone());
                invoice = check(&invoice, &heard, Decision::Repeat, None);
                let now_ms = i64::try_from(number).expect("small") * SECOND_POLL_AFTER_MS;
                let polled = unnamed(answered(&invoice, PAID, at, now_ms), form.clone());
                invoice = check(&invoice, &polled, Decision::Confirmed, None);
                assert!(invoice.outcome == outcome && !invoice.doubt, "{form:?}");
            }
        }
    }
}

#[test]
fn another_currency_without_an_amount_is_no_word_about_the_payment() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let mut foreign = unnamed(told(PAID, 9), Reported::Missing);
    foreign.report.currency = Some("VND".to_owned());
    let doubted = check(&paid, &foreign, Decision::Doubt, None);
    assert_eq!(doubted.outcome, Outcome::Paid);
}

#[test]
fn an_open_status_needs_no_amount_and_garbles_none() {
    let silent = unnamed(told(ODD, 5), Reported::Missing);
    check(
        &after(&[(NEW, 1)]),
        &silent,
        Decision::Advance,
        Some(EventKind::Status),
    );
    let again = unnamed(told(NEW, 1), Reported::Missing);
    check(&after(&[(NEW, 1)]), &again, Decision::Repeat, None);
    let garbled = unnamed(told(ODD, 5), Reported::Unreadable);
    check(&after(&[(NEW, 1)]), &garbled, Decision::Doubt, None);
}

/// A status that was on no list when it was heard without an amount makes no payment when it is mapped.
#[test]
fn a_status_mapped_later_is_no_payment_without_an_amount() {
    let silent = unnamed(told(ODD, 5), Reported::Missing);
    let shown = decide(&after(&[(NEW, 1)]), &silent, &policy()).after;
    let mut mapped = policy();
    mapped.lists.paid.push(ODD.into());
    let (after, change) = reassess(&shown, &[], &mapped);
    assert!(after.doubt && change.is_none() && after.outcome == Outcome::Open);
    let poll = answered(&after, ODD, 5, 0);
    let still = decide(&after, &unnamed(poll.clone(), Reported::Missing), &mapped);
    assert_eq!(still.decision, Decision::Doubt);
    let named = decide(&after, &poll, &mapped).after;
    assert!(named.outcome == Outcome::Paid && !named.doubt);
}

#[test]
fn a_person_names_the_amount_of_a_payment_without_one() {
    for form in FORMS {
        let open = after(&[(NEW, 1)]);
        let polled = unnamed(answered(&open, PAID, 5, 0), form.clone());
        let doubted = decide(&open, &polled, &policy()).after;
        let unnamed_one = unnamed_payment(&doubted, &policy().lists).cloned();
        let claim = unnamed_one.expect("it is doubted");
        let (paid, change) = accept(&doubted, &doubted.agreed, Some(&claim));
        assert_eq!(change.map(|change| change.kind), Some(EventKind::Paid));
        assert!(paid.outcome == Outcome::Paid && !paid.doubt);
        let again = unnamed(answered(&paid, PAID, 9, 0), form);
        check(&paid, &again, Decision::Confirmed, None);
    }
}

#[test]
fn a_refund_dated_before_the_payment_is_polled_and_the_poll_decides() {
    let paid = after(&[(NEW, 1), (PAID, 5)]);
    let made = decide(&paid, &told("refunded", 3), &policy());
    assert_eq!(
        (made.decision, made.why, made.ask),
        (Decision::Doubt, Why::LeavesPaid, Ask::Now)
    );
    assert_eq!(made.after.outcome, Outcome::Paid, "not believed");
    // The poll says paid: settled, and the doubt ends.
    let confirmed = answered(&made.after, PAID, 5, 0);
    let stays = check(&made.after, &confirmed, Decision::Confirmed, None);
    assert!(stays.outcome == Outcome::Paid && !stays.doubt && stays.pending.is_none());
    // The poll says refunded, twice.
    let first = answered(&made.after, "refunded", 3, 0);
    let pending = check(&made.after, &first, Decision::Pending, None);
    let second = answered(&pending, "refunded", 3, SECOND_POLL_AFTER_MS);
    let back = check(
        &pending,
        &second,
        Decision::AdvanceAgreed,
        Some(EventKind::Reversed),
    );
    assert!(back.outcome == Outcome::Reversed && !back.doubt);
    // A failure before the payment is what it was: outdated.
    check(&paid, &told(FAILED, 3), Decision::Stale, None);
}

proptest! {
    /// Whatever is heard: no payment rests on a claim without an amount, and no payment without one changes an outcome.
    #[test]
    fn no_outcome_rests_on_a_payment_without_an_amount(
        steps in prop::collection::vec((
            prop::sample::select(vec![NEW, ODD, PAID, FAILED, "refunded"]),
            prop_oneof![9 => (1_i64..6).prop_map(Some), 1 => Just(None)],
            0..5_u8,
            any::<bool>(),
            prop::sample::select(vec![0_i64, 10_000, 31_000]),
        ), 0..16),
        careful in any::<bool>(),
    ) {
        let policy = Policy { confirm_paid: careful, ..policy() };
        let (mut invoice, mut now_ms) = (unopened(), 0);
        for (status, at, amount, asked, wait_ms) in steps {
            now_ms += wait_ms;
            let mut heard = if asked { answered(&invoice, status, 0, now_ms) } else { told(status, 0) };
            heard.received_ms = now_ms;
            heard.report.updated_at = at.map(Moment::from_ms);
            let heard = match amount {
                0 => unnamed(heard, Reported::Missing),
                1 => unnamed(heard, Reported::Unreadable),
                2 => cheap(heard),
                _ => heard,
            };
            let made = decide(&invoice, &heard, &policy);
            if status == PAID && amount < 2 {
                prop_assert_eq!(made.after.outcome, invoice.outcome, "{:?} on {:?}", heard, invoice);
            }
            let rests_on = made.after.sorted.as_ref();
            let paid = rests_on.filter(|sorted| sorted.meaning == Meaning::Paid);
            prop_assert!(paid.is_none_or(|paid| paid.claim.verdict.names_amount()), "{:?}", made);
            invoice = made.after;
        }
    }
}
