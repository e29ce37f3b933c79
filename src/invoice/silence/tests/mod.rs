//! When an invoice is due, case by case.

use super::*;

mod over;

const MINUTE: i64 = 60_000;

fn schedule() -> Schedule {
    let steps = vec![
        Step {
            until_ms: 30 * MINUTE,
            every_ms: MINUTE,
        },
        Step {
            until_ms: 120 * MINUTE,
            every_ms: 5 * MINUTE,
        },
    ];
    Schedule {
        steps,
        after_expiry_ms: 5_000,
        horizon_ms: 72 * 60 * MINUTE,
    }
}

fn silent() -> Heard {
    Heard {
        created_ms: 0,
        expire_ms: None,
        heard_ms: None,
        asked_ms: None,
        service_ms: None,
        ended: Ended::default(),
        nudged_ms: None,
        failures: 0,
        doubt: false,
        pending_since_ms: None,
        outcome: Outcome::Open,
        outcome_ms: 0,
        unresolved: false,
        restored: false,
    }
}

fn check(heard: Heard, now_ms: i64, wanted: Due) {
    assert_eq!(
        next(&schedule(), &heard, now_ms),
        wanted,
        "{heard:?} at {now_ms}"
    );
}

#[test]
fn the_young_are_asked_often_and_the_old_rarely() {
    check(silent(), 0, Due::At(MINUTE));
    check(
        Heard {
            asked_ms: Some(10 * MINUTE),
            ..silent()
        },
        10 * MINUTE,
        Due::At(11 * MINUTE),
    );
    check(
        Heard {
            asked_ms: Some(40 * MINUTE),
            ..silent()
        },
        40 * MINUTE,
        Due::At(45 * MINUTE),
    );
    check(
        Heard {
            asked_ms: Some(900 * MINUTE),
            ..silent()
        },
        900 * MINUTE,
        Due::At(905 * MINUTE),
    );
}

#[test]
fn a_notification_pushes_the_due_time_back() {
    check(
        Heard {
            heard_ms: Some(50_000),
            ..silent()
        },
        55_000,
        Due::At(110_000),
    );
}

#[test]
fn the_closed_window_is_asked_about_once() {
    let heard = Heard {
        expire_ms: Some(60 * MINUTE),
        asked_ms: Some(58 * MINUTE),
        ..silent()
    };
    check(heard, 58 * MINUTE, Due::At(60 * MINUTE + 5_000));
    check(
        Heard {
            asked_ms: Some(60 * MINUTE + 5_000),
            ..heard
        },
        61 * MINUTE,
        Due::At(65 * MINUTE + 5_000),
    );
}

#[test]
fn doubt_is_due_at_once_and_a_second_poll_after_its_gap() {
    check(
        Heard {
            doubt: true,
            heard_ms: Some(7_000),
            ..silent()
        },
        9_000,
        Due::At(7_000),
    );
    check(
        Heard {
            pending_since_ms: Some(9_000),
            doubt: true,
            ..silent()
        },
        9_500,
        Due::At(39_000),
    );
    check(
        Heard {
            doubt: true,
            outcome: Outcome::Paid,
            heard_ms: Some(1),
            ..silent()
        },
        2,
        Due::At(1),
    );
}

#[test]
fn what_fails_moves_back_and_never_to_the_front() {
    let heard = Heard {
        doubt: true,
        heard_ms: Some(0),
        asked_ms: Some(10_000),
        failures: 1,
        ..silent()
    };
    check(heard, 10_000, Due::At(15_000));
    check(
        Heard {
            failures: 4,
            ..heard
        },
        10_000,
        Due::At(50_000),
    );
    check(
        Heard {
            failures: 400,
            ..heard
        },
        10_000,
        Due::At(610_000),
    );
}

#[test]
fn a_question_without_an_answer_is_made_up_for_soon_and_not_for_ever() {
    let hour = 60 * MINUTE;
    // A late payment is looked for at five minutes; the service was away just then.
    let failed = Heard {
        outcome: Outcome::Failed,
        heard_ms: Some(0),
        asked_ms: Some(5 * MINUTE),
        failures: 1,
        ..silent()
    };
    // So was it when a refused notification asked for a poll, and when a whole day had passed in silence.
    let nudged = Heard {
        nudged_ms: Some(5 * MINUTE - 1),
        outcome: Outcome::Open,
        ..failed
    };
    for heard in [failed, nudged] {
        check(heard, 5 * MINUTE, Due::At(5 * MINUTE + 5_000));
    }
    let old = Heard {
        asked_ms: Some(24 * hour),
        heard_ms: Some(20 * hour),
        failures: 3,
        ..silent()
    };
    check(old, 24 * hour, Due::At(24 * hour + 20_000));
    let end = 72 * hour;
    let at_the_end = Heard {
        asked_ms: Some(end),
        ..old
    };
    check(at_the_end, end, Due::At(end + 20_000));
    // Often enough: the plan goes on.
    let failures = MADE_UP_FOR + 1;
    check(
        Heard { failures, ..failed },
        5 * MINUTE,
        Due::At(30 * MINUTE),
    );
    // Beyond the horizon it is not given up without an answer: it goes on by the last gap, stepped back.
    check(
        Heard {
            failures,
            ..at_the_end
        },
        end,
        Due::At(end + 10 * MINUTE),
    );
}

#[test]
fn a_failed_invoice_is_asked_again_since_money_may_come_late() {
    let failed = Heard {
        outcome: Outcome::Failed,
        outcome_ms: 1_000,
        heard_ms: Some(1_000),
        ..silent()
    };
    check(failed, 2_000, Due::At(301_000));
    check(
        Heard {
            asked_ms: Some(301_000),
            ..failed
        },
        301_000,
        Due::At(1_801_000),
    );
    check(
        Heard {
            asked_ms: Some(259_201_000),
            ..failed
        },
        259_202_000,
        Due::Never,
    );
}

#[test]
fn times_of_a_clock_that_was_ahead_do_not_silence_it() {
    const AHEAD: i64 = 1_000_000_000_000;
    let now = 10 * MINUTE;
    let wrong = Heard {
        created_ms: AHEAD,
        outcome_ms: AHEAD,
        ..silent()
    };
    let due_now = |heard: Heard| matches!(next(&schedule(), &heard, now), Due::At(at) if at <= now);
    assert!(due_now(wrong));
    assert!(due_now(Heard {
        heard_ms: Some(AHEAD),
        asked_ms: Some(AHEAD),
        ..wrong
    }));
    assert!(due_now(Heard {
        pending_since_ms: Some(AHEAD),
        doubt: true,
        ..wrong
    }));
    assert!(due_now(Heard {
        doubt: true,
        heard_ms: Some(AHEAD),
        ..silent()
    }));
    // Once it was asked by the right clock, it waits like any other.
    check(
        Heard {
            asked_ms: Some(now),
            ..wrong
        },
        now,
        Due::At(now + MINUTE),
    );
    check(
        Heard {
            heard_ms: Some(AHEAD),
            asked_ms: Some(now),
            ..silent()
        },
        now,
        Due::At(now + MINUTE),
    );
    let failed = Heard {
        outcome: Outcome::Failed,
        asked_ms: Some(now),
        ..wrong
    };
    check(failed, now, Due::At(now + 5 * MINUTE));
}

#[test]
fn a_question_without_an_answer_is_not_the_last_one() {
    let end = 72 * 60 * MINUTE;
    let unanswered = Heard {
        asked_ms: Some(end + 20),
        failures: 1,
        ..silent()
    };
    check(unanswered, end + 30, Due::At(end + 5_020));
    let failed = Heard {
        outcome: Outcome::Failed,
        heard_ms: Some(0),
        asked_ms: Some(259_200_001),
        failures: 1,
        ..silent()
    };
    assert_ne!(next(&schedule(), &failed, 259_200_002), Due::Never);
}

#[test]
fn what_is_paid_is_left_alone() {
    check(
        Heard {
            outcome: Outcome::Paid,
            ..silent()
        },
        9,
        Due::Never,
    );
}

#[test]
fn a_nudge_is_pressing_until_a_question_that_came_after_it_is_done_with() {
    let at = 90 * MINUTE;
    let of = |asked: Option<i64>, heard: Option<i64>, failures| {
        let heard = Heard {
            nudged_ms: Some(80 * MINUTE),
            asked_ms: asked.map(|minute| minute * MINUTE),
            heard_ms: heard.map(|minute| minute * MINUTE),
            failures,
            ..silent()
        };
        class(&heard, at)
    };
    assert_eq!(of(None, None, 0), Class::Urgent);
    assert_eq!(of(Some(79), Some(79), 0), Class::Urgent);
    assert_eq!(of(Some(81), Some(81), 0), Class::Old, "answered");
    // Asked in vain: owed, as the plan has it, until it was made up for often enough.
    assert_eq!(of(Some(81), Some(79), 1), Class::Urgent);
    assert_eq!(of(Some(81), None, MADE_UP_FOR), Class::Urgent);
    assert_eq!(of(Some(89), Some(79), MADE_UP_FOR + 1), Class::Old);
    assert_eq!(of(Some(89), Some(82), 3), Class::Old, "heard of since");
}

#[test]
fn after_a_restore_it_is_due_at_once_and_rarely_when_nobody_answers() {
    let at = 900 * MINUTE;
    let paid = Heard {
        outcome: Outcome::Paid,
        asked_ms: Some(800 * MINUTE),
        restored: true,
        ..silent()
    };
    check(paid, at, Due::At(at));
    let asked = |failures| Heard {
        asked_ms: Some(at),
        failures,
        ..paid
    };
    check(asked(1), at, Due::At(at + BACK_OFF_MS));
    check(asked(MADE_UP_FOR), at, Due::At(at + BACK_OFF_MOST_MS));
    // The last gap of this schedule is shorter than the longest step back.
    check(asked(MADE_UP_FOR + 1), at, Due::At(at + BACK_OFF_MOST_MS));
    assert_eq!(class(&paid, at), Class::Restored);
    let doubted = Heard {
        doubt: true,
        ..paid
    };
    assert_eq!(class(&doubted, at), Class::Urgent);
}
