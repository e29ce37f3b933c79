//! Which fault shows where, and that chance does not depend on what came between.

use super::*;
use crate::sandbox::state::dice::Dice;
use crate::secret::Secret;

fn notice(order: &str, number: u64) -> Notice {
    Notice {
        invoice: 1,
        key: Dice::name(order),
        id: format!("id-{order}"),
        order: order.to_owned(),
        number,
        url: "http://127.0.0.1:9/".into(),
        token: Secret::new("t".repeat(40)),
        status: "paid".into(),
        body: "{}".into(),
        reordered: false,
        dated: None,
    }
}

fn whose(order: &str, number: u64) -> Whose {
    notice(order, number).whose()
}

fn hangs(endpoint: Endpoint, times: Times) -> ApiFault {
    ApiFault {
        endpoint,
        answer: StandIn::Hang,
        times,
    }
}

#[test]
fn a_lost_notification_uses_up_no_other_fault() {
    let mut faults = Faults {
        all: Wrongs {
            lose: Times::next(1),
            repeat: Times::next(1),
            wrong_token: Times::next(1),
            ..Wrongs::default()
        },
        ..Faults::default()
    };
    let mut next = || faults.treat(&notice("A-1", 1));
    let (first, second, third) = (next(), next(), next());
    assert!(first.lost && first.copies == 1 && first.token == Token::Right);
    assert!(!second.lost && second.copies == 2 && second.token == Token::Wrong);
    assert!(!third.lost && third.copies == 1 && third.token == Token::Right);
}

#[test]
fn a_fault_of_one_invoice_shows_with_that_one_alone() {
    let mut faults = Faults::default();
    faults.change(Some("A-1"), |own| {
        own.torn = Times::next(1);
        own.presentation = Some(Presentation::Bearer);
        own.give_up_ms = Some(50);
    });
    faults.change(Some("id-A-2"), |own| own.lose = Times::Always);
    let other = faults.treat(&notice("A-3", 1));
    assert!(other.flow == Flow::Whole && other.presentation == Presentation::default());
    assert_eq!(other.give_up_ms, None);
    assert!(faults.treat(&notice("A-2", 1)).lost);
    let one = faults.treat(&notice("A-1", 1));
    assert!(one.flow == Flow::Torn && one.presentation == Presentation::Bearer);
    assert_eq!(one.give_up_ms, Some(50));
    assert_eq!(faults.treat(&notice("A-1", 2)).flow, Flow::Whole);
    faults.reset(Some("id-A-2"));
    assert!(!faults.treat(&notice("A-2", 2)).lost);
    assert_eq!(faults.treat(&notice("A-1", 3)).give_up_ms, Some(50));
    faults.reset(None);
    assert_eq!(faults.treat(&notice("A-1", 4)).give_up_ms, None);
}

#[test]
fn the_service_too_goes_wrong_for_one_invoice_alone() {
    let mut faults = Faults::default();
    faults.change(Some("A"), |own| {
        own.set_api(hangs(Endpoint::Create, Times::next(1)));
        own.drop_create_answer = Times::next(1);
        own.no_requisites = Times::next(1);
        own.hold_create_ms = 5;
        own.clock_skew_ms = -7;
        own.same_instant = true;
    });
    let (a, b) = (whose("A", 1), whose("B", 1));
    let mut all = |whose: &Whose| {
        (
            faults.api_answer(Endpoint::Create, whose).is_some(),
            faults.drops_create_answer(whose),
            faults.no_requisites(whose),
            faults.hold_create_ms(whose),
            faults.clock_skew_ms(whose),
            faults.same_instant(whose),
        )
    };
    assert_eq!(all(&b), (false, false, false, 0, 0, false));
    assert_eq!(all(&a), (true, true, true, 5, -7, true));
    assert_eq!(all(&a), (false, false, false, 5, -7, true));
}

/// Else a thousand used-up ones would keep the next from being set.
#[test]
fn what_is_used_up_is_forgotten() {
    let mut faults = Faults::default();
    faults.change(Some("A"), |own| own.lose = Times::next(1));
    faults.change(Some("B"), |own| {
        own.set_api(hangs(Endpoint::Fetch, Times::next(1)));
    });
    faults.change(Some("C"), |own| own.lose = Times::Never);
    let names = |faults: &Faults| -> Vec<String> {
        faults.owners().map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(names(&faults), ["A", "B"]);
    assert!(faults.treat(&notice("A", 1)).lost);
    assert!(faults.api_answer(Endpoint::Fetch, &whose("B", 1)).is_some());
    assert_eq!(names(&faults), Vec::<String>::new());
}

#[test]
fn what_chance_brings_is_the_same_for_the_same_seed_whatever_came_between() {
    let course = |between: bool| {
        let mut faults = Faults::new(11);
        for chance in Chance::ALL {
            faults.rates.set(chance, 30);
        }
        faults
            .rates
            .set_of(&RateOf::parse("fetch.hang").expect("a rate"), 30);
        let mut all = Vec::new();
        for number in 1..=50 {
            if between {
                drop(faults.treat(&notice("B", number + 100)));
                drop(faults.api_answer(Endpoint::Fetch, &whose("B", number)));
            }
            let own = whose("A", number);
            let answer = faults.api_answer(Endpoint::Fetch, &own);
            let skew_ms = faults.clock_skew_ms(&own);
            let refused = faults.no_requisites(&own);
            let same = faults.same_instant(&own);
            all.push((
                faults.treat(&notice("A", number)),
                answer,
                skew_ms,
                refused,
                same,
            ));
        }
        all
    };
    assert_eq!(course(false), course(true));
    let seen = course(false);
    assert!(seen.iter().any(|(one, ..)| one.lost));
    assert!(seen.iter().any(|(one, ..)| one.delay_ms > 0));
    assert!(
        seen.iter()
            .any(|(one, ..)| one.give_up_ms == Some(GIVES_UP_MS))
    );
    assert!(
        seen.iter()
            .any(|(one, ..)| one.presentation != Presentation::default())
    );
    assert!(
        seen.iter()
            .any(|(_, answer, ..)| *answer == Some(StandIn::Hang))
    );
    assert!(seen.iter().any(|(_, _, skew_ms, ..)| *skew_ms < 0));
    assert!(seen.iter().any(|(_, _, skew_ms, ..)| *skew_ms > 0));
    assert!(
        seen.iter()
            .any(|(_, _, _, refused, same)| *refused && !same)
    );
}

#[test]
fn what_is_set_for_an_endpoint_comes_before_chance() {
    let mut faults = Faults::new(3);
    faults.rates.set(Chance::Api, 100);
    faults.all.set_api(hangs(Endpoint::Fetch, Times::next(1)));
    let mut next = |number| faults.api_answer(Endpoint::Fetch, &whose("A", number));
    assert_eq!(next(1), Some(StandIn::Hang));
    assert!(next(2).is_some_and(|drawn| drawn != StandIn::Hang));
}

#[test]
fn no_more_wait_than_may_and_a_reset_lets_them_go() {
    let mut faults = Faults::new(1);
    let begin = |faults: &mut Faults, order: &str| faults.begin_waiting(&whose(order, 1));
    let first = begin(&mut faults, "A").expect("room");
    let other = begin(&mut faults, "B").expect("room");
    for _ in 2..MOST_WAITING {
        assert!(begin(&mut faults, "C").is_some());
    }
    assert_eq!(begin(&mut faults, "C"), None);
    faults.end_waiting(other);
    let other = begin(&mut faults, "B").expect("room");
    let before = faults.releases();
    faults.reset(Some("A"));
    assert!(!faults.waits(first) && faults.waits(other));
    faults.reset(None);
    assert!(!faults.waits(other) && faults.releases() > before);
    let next = begin(&mut faults, "A").expect("room");
    assert_ne!(next, first);
}
