//! When an open invoice is given up, whatever our clock shows; and what a failing one may not do to the others.

use proptest::prelude::*;

use super::*;

/// Without a payment window the end is the horizon after the opening.
const END: i64 = 72 * 60 * MINUTE;
const GAP: i64 = 5 * MINUTE;

/// Asked at this time, and answered.
fn answered(asked_ms: i64, service_ms: Option<i64>, ended: Ended) -> Heard {
    Heard {
        asked_ms: Some(asked_ms),
        heard_ms: Some(asked_ms),
        service_ms,
        ended,
        ..silent()
    }
}

#[test]
fn beyond_the_horizon_it_is_asked_once_more_and_then_unresolved() {
    let before = answered(END - 1, Some(END - 1), Ended::default());
    check(before, END + 9, Due::At(END));
    let after = answered(END + 20, Some(END), Ended::default());
    check(after, END + 30, Due::Unresolved);
    let told = Heard {
        unresolved: true,
        restored: false,
        ..after
    };
    check(told, END + 30, Due::Never);
}

#[test]
fn a_clock_of_ours_that_is_ahead_gives_nobody_up() {
    for service_ms in [0, END - 60_001] {
        let heard = answered(END + 20, Some(service_ms), Ended::default());
        check(heard, END + 30, Due::At(END + 20 + GAP));
    }
    // Two clocks never agree to the second, and the service's shows whole ones.
    let heard = answered(END, Some(END - 60_000), Ended::default());
    check(heard, END, Due::Unresolved);
}

#[test]
fn without_dates_three_answers_over_an_hour_are_wanted() {
    let since = |answers, since| Ended {
        answers,
        since_ms: Some(since),
    };
    let asked = END + 60 * MINUTE;
    check(answered(asked, None, since(3, END)), asked, Due::Unresolved);
    for ended in [since(2, END), since(3, END + 1), since(3, asked + 5)] {
        check(answered(asked, None, ended), asked, Due::At(asked + GAP));
    }
    let mut ended = Ended::default();
    for (asked_ms, answers, since_ms) in [
        (END - 1, 0, None),
        (END + 5, 1, Some(END + 5)),
        (END + 9, 2, Some(END + 5)),
        // The clock was set back behind the end, or within it.
        (END - 9, 0, None),
        (END + 9, 1, Some(END + 9)),
        (END + 3, 1, Some(END + 3)),
    ] {
        ended = ended.answered(&schedule(), &silent(), asked_ms);
        assert_eq!(ended, Ended { answers, since_ms });
    }
}

/// So many questions failed that the plan goes on without their answers. A refusal counts, and one alone is not enough.
#[test]
fn refusals_are_believed_when_they_are_many_and_time_outs_never() {
    let asked = END + 60 * MINUTE;
    let failing = |answers, service_ms| Heard {
        failures: 9,
        ..answered(
            asked,
            service_ms,
            Ended {
                answers,
                since_ms: Some(END).filter(|_| answers > 0),
            },
        )
    };
    let later = asked + 10 * MINUTE;
    for service_ms in [None, Some(END)] {
        check(failing(3, service_ms), later, Due::Unresolved);
        // Only a poll could end its doubt, and none will.
        let doubtful = Heard {
            doubt: true,
            ..failing(3, service_ms)
        };
        check(doubtful, later, Due::Unresolved);
        let told = Heard {
            unresolved: true,
            restored: false,
            ..doubtful
        };
        check(told, later, Due::Never);
        // A new doubt is a wish as well, and is asked about.
        let nudged_ms = Some(later);
        check(Heard { nudged_ms, ..told }, later, Due::At(later));
    }
    let doubtful = Heard {
        doubt: true,
        ..failing(2, None)
    };
    check(doubtful, later, Due::At(later));
    for (answers, service_ms) in [
        (2, None),
        (1, Some(END)),
        (3, Some(END - 60_001)),
        (0, None),
    ] {
        check(failing(answers, service_ms), later, Due::At(later));
    }
}

#[test]
fn no_due_time_lies_further_ahead_than_the_longest_gap() {
    assert_eq!(longest_gap_ms(&schedule()), 48 * 60 * MINUTE);
    let mut slow = schedule();
    slow.steps.extend([Step {
        until_ms: i64::MAX,
        every_ms: 96 * 60 * MINUTE,
    }]);
    assert_eq!(longest_gap_ms(&slow), 96 * 60 * MINUTE);
}

fn any_heard() -> impl Strategy<Value = Heard> {
    let time = || 0..400 * 60 * MINUTE;
    let maybe = || proptest::option::of(time());
    let outcome = prop_oneof![
        Just(Outcome::Open),
        Just(Outcome::Failed),
        Just(Outcome::Paid)
    ];
    let times = (time(), maybe(), maybe(), maybe(), maybe(), time());
    let rest = (any::<bool>(), 0..12_u32, 0..4_u32, outcome, any::<bool>());
    (times, rest).prop_map(|(times, rest)| {
        let (created_ms, expire_ms, heard_ms, asked_ms, service_ms, outcome_ms) = times;
        let (doubt, failures, answers, outcome, nudged) = rest;
        Heard {
            created_ms,
            expire_ms,
            heard_ms,
            asked_ms,
            service_ms,
            ended: Ended {
                answers,
                since_ms: asked_ms.filter(|_| answers > 0),
            },
            nudged_ms: heard_ms.filter(|_| nudged),
            failures,
            doubt,
            pending_since_ms: None,
            outcome,
            outcome_ms,
            unresolved: false,
            restored: false,
        }
    })
}

proptest! {
    /// A question that brought nothing puts its invoice behind the present, and the next one further.
    #[test]
    fn what_fails_moves_back_and_never_to_the_front(heard in any_heard(), now in 0..500 * 60 * MINUTE) {
        let mut heard = Heard { asked_ms: Some(now), failures: heard.failures + 1, ..heard };
        let mut step = 0;
        for _ in 0..20 {
            let Due::At(at) = next(&schedule(), &heard, now) else {
                return Ok(());
            };
            prop_assert!(at >= now + back_off(heard.failures));
            prop_assert!(back_off(heard.failures) >= step);
            step = back_off(heard.failures);
            heard.failures += 1;
        }
    }

    /// Due times lie within the longest gap, or the check at the start would miss what a wrong clock wrote.
    #[test]
    fn nobody_is_dated_further_ahead_than_the_longest_gap(heard in any_heard(), now in 0..500 * 60 * MINUTE) {
        if let Due::At(at) = next(&schedule(), &heard, now) {
            prop_assert!(at <= now + longest_gap_ms(&schedule()));
        }
    }

    /// Whatever our clock shows, an open invoice is due unless the service's clock, or undated answers, say it is over.
    #[test]
    fn an_open_invoice_is_given_up_by_the_services_clock_alone(heard in any_heard(), now in any::<i64>()) {
        let heard = Heard { outcome: Outcome::Open, ..heard };
        let over = match heard.service_ms {
            Some(at) => at + 60_000 >= end_ms(&schedule(), &heard),
            None => heard.ended.answers >= 3,
        };
        if !over && heard.created_ms <= now {
            prop_assert!(matches!(next(&schedule(), &heard, now), Due::At(_)));
        }
    }
}
