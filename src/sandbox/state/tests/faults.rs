//! What goes wrong with invoices as told, and what a test may dictate.

use std::collections::BTreeMap;

use super::*;
use crate::sandbox::state::asked::LONGEST_FIELD;
use crate::sandbox::state::faults::{Chance, Endpoint, Times};

/// A service whose clock is wrong tells of a later change with an earlier instant.
#[test]
fn a_clock_that_is_off_goes_back() {
    let plain = Rules {
        is_plain: true,
        ..rules(1)
    };
    let mut state = State::new(plain, 1);
    let page = made(&mut state, "a", "1", T0);
    let before = state.find_invoice("a").expect("a").updated_at.clone();
    state.faults.all.clock_skew_ms = -60 * MINUTE;
    assert!(state.happen(&page, Happening::Paid, T0 + 5));
    let after = state.find_invoice("a").expect("a").updated_at.clone();
    assert_eq!(
        (before.as_str(), after.as_str()),
        ("2026-11-28T10:00:00.000Z", "2026-11-28T09:00:00.005Z")
    );
    assert!(state.happen(&page, Happening::Refunded, T0 + 5));
    let told_apart = state.find_invoice("a").expect("a").updated_at.clone();
    assert_eq!(told_apart, "2026-11-28T09:00:00.006Z");
}

#[test]
fn gone_requisites_are_gone_for_one_order_alone_on_both_roads() {
    let mut state = state(5);
    state
        .faults
        .change(Some("a"), |own| own.no_requisites = Times::next(1));
    made(&mut state, "b", "1", T0);
    let refused = state.create_invoice(0, request("a", "1"), T0).err();
    assert_eq!(refused, Some(CreateRefusal::NoRequisites));
    made(&mut state, "a", "1", T0);
    let page = state.create_invoice(0, redirect("r"), T0).expect("made");
    let (id, page) = (page.id.clone(), page.opaque.clone());
    state
        .faults
        .change(Some(&id), |own| own.no_requisites = Times::next(1));
    let choose = |state: &mut State| state.choose_method(&page, Method::Sbp, T0);
    assert_eq!(choose(&mut state), Err(ChoiceError::NoRequisites));
    assert_eq!(choose(&mut state), Ok(()));
}

/// One seed replays one run though the orders come in another order.
#[test]
fn chance_goes_by_the_order_and_not_by_when_it_came() {
    let course = |orders: [&'static str; 3]| {
        let mut state = state(1_000);
        for chance in Chance::ALL {
            state.faults.rates.set(chance, 40);
        }
        let mut seen = BTreeMap::new();
        for number in 0..20 {
            for order in orders {
                let name = format!("{order}-{number}");
                let whose = state.asks(Endpoint::Create, &name);
                let answer = state.faults.api_answer(Endpoint::Create, &whose);
                let Ok(made) = state.create_invoice(0, request(&name, "1"), T0) else {
                    seen.insert(name, (answer, None));
                    continue;
                };
                let (id, updated_at) = (made.id.clone(), made.updated_at.clone());
                let whose = state.asks(Endpoint::Fetch, &id);
                let fetched = state.faults.api_answer(Endpoint::Fetch, &whose);
                let notice = state.notice_of(&id).expect("made");
                let treated = state.faults.treat(&notice);
                seen.insert(name, (answer, Some((updated_at, fetched, treated))));
            }
        }
        seen
    };
    let seen = course(["a", "b", "c"]);
    assert_eq!(seen, course(["c", "b", "a"]));
    assert!(seen.values().any(|(_, made)| made.is_none()));
    assert!(seen.values().any(|(answer, _)| answer.is_some()));
}

#[test]
fn what_is_opened_again_takes_its_requisite_and_a_window_again() {
    let mut state = state(1);
    let dictate = |state: &mut State, order: &str, status: &str, now| {
        let status = Some(status.to_owned());
        let change = Dictated {
            status,
            ..Dictated::default()
        };
        state.dictate(order, change, false, now)
    };
    made(&mut state, "a", "1", T0);
    assert_eq!(dictate(&mut state, "a", "paid", T0), Ok(()));
    assert_eq!(dictate(&mut state, "a", "new", T0 + 60 * MINUTE), Ok(()));
    assert_eq!((state.pool.free(), state.pool.busy()), (0, 1));
    state.tick(T0 + 89 * MINUTE);
    assert_eq!(status(&state, "a"), "new");
    state.tick(T0 + 90 * MINUTE);
    assert_eq!(status(&state, "a"), "expired");
    made(&mut state, "b", "1", T0 + 91 * MINUTE);
    let refused = dictate(&mut state, "a", "new", T0 + 91 * MINUTE);
    assert_eq!(refused, Err(DictateError::NoRequisites));
    assert_eq!(status(&state, "a"), "expired");
}

#[test]
fn what_is_dictated_has_a_bound() {
    let mut state = state(1);
    made(&mut state, "a", "1", T0);
    let mut refused = |dictated| state.dictate("a", dictated, true, T0).err();
    for status in [String::new(), "x".repeat(129)] {
        let status = Some(status);
        let dictated = Dictated {
            status,
            ..Dictated::default()
        };
        assert_eq!(refused(dictated), Some(DictateError::Status));
    }
    let amount = Some("1".repeat(LONGEST_FIELD + 1));
    let dictated = Dictated {
        amount,
        ..Dictated::default()
    };
    assert_eq!(refused(dictated), Some(DictateError::TooLong));
    assert!(state.take_notices().is_empty());
}
