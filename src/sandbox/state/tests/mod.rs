//! What the imitation service promises, in tables; no clock and no network.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

mod faults;
mod login;

use std::collections::BTreeSet;

use serde_json::Value;

use super::dictate::{DictateError, Dictated};
use super::invoice::{ChoiceError, CreateRefusal};
use super::notice::{Answer, MOST_ATTEMPTS, Sent};
use super::pool::Method;
use super::{Rules, State};
use crate::invoice::amount::Amount;
use crate::invoice::moment::Moment;
use crate::sandbox::statuses::Happening;
use crate::secret::Secret;
use crate::wire::create::{CreateRequest, ReturnUrls};

/// 2026-11-28T10:00:00Z
const T0: i64 = 1_795_860_000_000;
const MINUTE: i64 = 60_000;

fn state(pool: usize) -> State {
    State::new(rules(pool), 1)
}

fn rules(pool: usize) -> Rules {
    Rules {
        pool,
        is_plain: false,
        ..Rules::of_a_test()
    }
}

fn request(order: &str, amount: &str) -> CreateRequest {
    CreateRequest {
        internal_id: order.into(),
        amount: Amount::parse_payable(amount).expect(amount),
        currency: "RUB".into(),
        start_deal: true,
        method: "SBP".into(),
        notification_url: "http://127.0.0.1:9/n/ref".into(),
        notification_token: Secret::new("t".repeat(43)),
        return_urls: None,
    }
}

fn redirect(order: &str) -> CreateRequest {
    let url = |end: &str| format!("http://127.0.0.1:9/{end}");
    CreateRequest {
        return_urls: Some(ReturnUrls {
            success: url("ok"),
            cancel: url("no"),
            error: url("oops"),
        }),
        ..request(order, "10")
    }
}

/// Makes an invoice and gives its page segment.
fn made(state: &mut State, order: &str, amount: &str, now: i64) -> String {
    let invoice = state.create_invoice(0, request(order, amount), now);
    invoice.expect("made").opaque.clone()
}

fn status(state: &State, order: &str) -> String {
    state.find_invoice(order).expect(order).status.clone()
}

#[test]
fn an_h2h_invoice_has_requisites_and_a_redirect_one_a_page() {
    let plain = Rules {
        is_plain: true,
        ..rules(2)
    };
    let mut state = State::new(plain, 1);
    let h2h = state
        .create_invoice(0, request("a", "599.80"), T0)
        .expect("made");
    let body = h2h.body("http://p/pay");
    assert_eq!(body["amount"], "599.80");
    assert_eq!(body["expireAt"], "2026-11-28T10:30:00.000Z");
    let details: Value =
        serde_json::from_str(body["dealRequisites"].as_str().expect("a string")).expect("JSON");
    assert!(details["bankName"].is_string() && details["fullName"].is_string());
    let page = state.create_invoice(0, redirect("b"), T0).expect("made");
    let names: Vec<String> = page
        .body("http://p/pay")
        .as_object()
        .expect("an object")
        .keys()
        .cloned()
        .collect();
    let mut wanted = vec![
        "id",
        "direction",
        "status",
        "amount",
        "currency",
        "dealRate",
        "createdAt",
        "updatedAt",
        "internalId",
        "merchantName",
        "paymentUrl",
    ];
    wanted.sort_unstable();
    let mut sorted = names;
    sorted.sort_unstable();
    assert_eq!(sorted, wanted);
}

#[test]
fn a_bad_field_is_named_and_takes_no_requisite() {
    type Spoil = fn(&mut CreateRequest);
    let cases: [(&str, Spoil); 9] = [
        ("paymentMethod", |r| r.method = "CASH".into()),
        ("notificationToken", |r| {
            r.notification_token = Secret::new("x".repeat(31));
        }),
        ("notificationUrl", |r| r.notification_url = "ftp://x".into()),
        ("notificationUrl", |r| {
            r.notification_url = "http:// ".into();
        }),
        ("notificationUrl", |r| r.notification_url = "http://".into()),
        ("notificationUrl", |r| {
            r.notification_url = format!("http://x/{}", "x".repeat(2_048));
        }),
        ("successUrl", |r| {
            let mut urls = redirect("a").return_urls.expect("three");
            urls.success = "http://".into();
            r.return_urls = Some(urls);
        }),
        ("internalId", |r| r.internal_id = "x".repeat(5_000)),
        ("currency", |r| r.currency = "x".repeat(17)),
    ];
    let mut state = state(1);
    for (field, spoil) in cases {
        let mut asked = request("a", "1");
        spoil(&mut asked);
        let refused = state.create_invoice(0, asked, T0).err();
        assert_eq!(refused, Some(CreateRefusal::Field(field)));
    }
    assert_eq!(state.pool.free(), 1);
}

#[test]
fn the_pool_is_finite_and_an_end_frees_one() {
    let mut state = state(2);
    let first = made(&mut state, "a", "1", T0);
    made(&mut state, "b", "1", T0 + 1);
    let refused = state.create_invoice(0, request("c", "1"), T0).err();
    assert_eq!(refused, Some(CreateRefusal::NoRequisites));
    assert!(state.happen(&first, Happening::Paid, T0 + 2));
    assert!(state.create_invoice(0, request("c", "1"), T0 + 3).is_ok());
    // The window of `b` closes: it expires by time alone, once, and says so.
    state.take_notices();
    state.tick(T0 + 30 * MINUTE);
    assert_eq!(
        (status(&state, "b").as_str(), state.pool.free()),
        ("new", 0)
    );
    state.tick(T0 + 30 * MINUTE + 1);
    state.tick(T0 + 30 * MINUTE + 2);
    assert_eq!(
        (status(&state, "b").as_str(), state.pool.free()),
        ("expired", 1)
    );
    let told: Vec<String> = state.take_notices().into_iter().map(|n| n.status).collect();
    assert_eq!(told, ["expired"]);
}

/// Contract 1: in Redirect mode the customer gets the requisites on the payment page.
#[test]
fn a_payment_page_needs_a_requisite_only_when_its_customer_has_chosen() {
    let mut state = state(1);
    // Of the same amount as those of the pages.
    let first = made(&mut state, "a", "10", T0);
    let page = state.create_invoice(0, redirect("b"), T0).expect("opened");
    let page = page.opaque.clone();
    let choose = |state: &mut State| state.choose_method(&page, Method::Sbp, T0 + 1);
    assert_eq!(choose(&mut state), Err(ChoiceError::NoRequisites));
    assert!(state.happen(&first, Happening::Paid, T0 + 2));
    assert_eq!(choose(&mut state), Ok(()));
    assert_eq!(choose(&mut state), Err(ChoiceError::Over));
    assert_eq!(state.pool.free(), 0);
    assert!(state.happen(&page, Happening::Canceled, T0 + 3));
    assert_eq!(state.pool.free(), 1);
    // One that ends before the choice gives nothing back.
    let page = state
        .create_invoice(0, redirect("c"), T0 + 4)
        .expect("opened");
    let page = page.opaque.clone();
    for paid in [Happening::Paid, Happening::PaidLess, Happening::PaidMore] {
        assert!(!state.happen(&page, paid, T0 + 5), "nobody knows where to");
    }
    assert!(state.happen(&page, Happening::Canceled, T0 + 6));
    assert!(!state.happen(&page, Happening::Paid, T0 + 7));
    assert_eq!((state.pool.free(), state.pool.busy()), (1, 0));
}

/// One name may stand for several things: what happened is remembered, not read from it.
#[test]
fn what_happened_is_remembered() {
    let mut rules = rules(4);
    rules.statuses.failed = vec!["over".into()];
    let mut state = State::new(rules, 1);
    let (gone, late) = (
        made(&mut state, "a", "10", T0),
        made(&mut state, "b", "10", T0),
    );
    assert!(state.happen(&gone, Happening::Canceled, T0 + 1));
    state.tick(T0 + 30 * MINUTE);
    let happened = |state: &State, order| state.find_invoice(order).expect(order).happened;
    assert_eq!(happened(&state, "a"), Some(Happening::Canceled));
    assert_eq!(happened(&state, "b"), Some(Happening::Expired));
    assert_eq!(status(&state, "a"), status(&state, "b"));
    assert!(state.happen(&late, Happening::PaidLess, T0 + 30 * MINUTE + 1));
    assert_eq!(happened(&state, "b"), Some(Happening::PaidLess));
}

#[test]
fn only_what_can_happen_happens() {
    use Happening::{Canceled, Expired, Paid, PaidLess, Refunded, Waiting};
    // (what happened before, what is tried, the status after it)
    let cases: [(&[Happening], Happening, Option<&str>); 10] = [
        (&[], Waiting, Some("waiting")),
        (&[Waiting], Waiting, None),
        (&[], Paid, Some("paid")),
        (&[Paid], Paid, None),
        (&[Paid], Canceled, None),
        (&[Canceled], Expired, None),
        (&[Expired], PaidLess, Some("paid")),
        (&[], Refunded, None),
        (&[Paid], Refunded, Some("refunded")),
        (&[Paid, Refunded], Paid, None),
    ];
    for (before, tried, wanted) in cases {
        let mut state = state(1);
        let page = made(&mut state, "a", "10", T0);
        for one in before {
            assert!(state.happen(&page, *one, T0), "{before:?}");
        }
        let done = state.happen(&page, tried, T0);
        assert_eq!(done, wanted.is_some(), "{tried:?} after {before:?}");
        if let Some(wanted) = wanted {
            assert_eq!(status(&state, "a"), wanted);
        }
        assert_eq!(state.take_notices().len(), before.len() + usize::from(done));
    }
}

#[test]
fn paid_too_little_reports_less() {
    for (asked, reported) in [("1500.00", "1499.00"), ("1", "0.5"), ("0.01", "0.005")] {
        let plain = Rules {
            is_plain: true,
            ..rules(1)
        };
        let mut state = State::new(plain, 1);
        let page = made(&mut state, "a", asked, T0);
        assert!(state.happen(&page, Happening::PaidLess, T0));
        let notices = state.take_notices();
        let body: Value = serde_json::from_str(&notices.first().expect("one").body).expect("JSON");
        assert_eq!(
            (&body["status"], &body["amount"]),
            (&"paid".into(), &reported.into())
        );
    }
    // What cannot be told is not played.
    let mut state = state(2);
    let least = made(&mut state, "a", "0.0000000000000000000000000001", T0);
    let most = made(&mut state, "b", "79228162514264337593543950335", T0);
    assert!(!state.happen(&least, Happening::PaidLess, T0));
    assert!(!state.happen(&most, Happening::PaidMore, T0));
    assert!(state.take_notices().is_empty());
}

/// What the contract leaves open, each time another way: a fetch and a notification say the same in other words.
#[test]
fn an_invoice_is_told_in_many_spellings_of_the_same() {
    let (mut amounts, mut times, mut absent, mut nulls) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
    let mut state = state(100);
    for order in 0..40 {
        let order = order.to_string();
        made(&mut state, &order, "150.00", T0 + 120);
        let id = state.find_invoice(&order).expect("made").id.clone();
        let plain = state.find_invoice(&order).expect("made").body("p");
        for _ in 0..10 {
            let told = state.tell(&id).expect("it is there");
            let told: Value = serde_json::from_str(&told).expect("JSON");
            assert_eq!(told["id"], plain["id"]);
            let moment = |text: &Value| Moment::parse(text.as_str().expect("a time"));
            assert_eq!(moment(&told["updatedAt"]), moment(&plain["updatedAt"]));
            assert!(told["expireAt"].as_str().is_some_and(|at| at.contains('.')));
            amounts.insert(told["amount"].as_str().expect("a decimal").to_owned());
            times.insert(told["updatedAt"].as_str().expect("a time").to_owned());
            absent += usize::from(told.get("merchantName").is_none());
            nulls += usize::from(told.get("merchantName").is_some_and(Value::is_null));
        }
    }
    let wanted = ["150", "150.0", "150.00", "150.000", "150.000000"];
    assert!(amounts.iter().eq(wanted), "{amounts:?}");
    assert_eq!(times.len(), 12, "{times:?}");
    assert!(absent > 20 && nulls > 20, "{absent} {nulls}");
}

#[test]
fn updated_at_always_increases() {
    let mut state = state(1);
    made(&mut state, "a", "1", T0);
    let mut seen = vec![state.find_invoice("a").expect("a").updated_at.clone()];
    // The clock stands still, goes back, and a test has dictated an instant ahead of it.
    for (now, dictated) in [
        (T0, None),
        (T0 - 5_000, None),
        (T0, Some("2026-11-28T10:05:00.000Z")),
        (T0, None),
    ] {
        let change = Dictated {
            status: Some("waiting".into()),
            updated_at: dictated.map(str::to_owned),
            ..Dictated::default()
        };
        assert_eq!(state.dictate("a", change, false, now), Ok(()));
        seen.push(state.find_invoice("a").expect("a").updated_at.clone());
    }
    assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
    assert!(state.take_notices().is_empty());
    let odd = Dictated {
        updated_at: Some("soon".into()),
        amount: Some("1e3".into()),
        ..Dictated::default()
    };
    assert_eq!(state.dictate("a", odd, true, T0), Ok(()));
    let notices = state.take_notices();
    let body: Value = serde_json::from_str(&notices.first().expect("one").body).expect("JSON");
    assert_eq!(
        (&body["updatedAt"], &body["amount"]),
        (&"soon".into(), &"1e3".into())
    );
    let unknown = state.dictate("no such order", Dictated::default(), true, T0);
    assert_eq!(unknown, Err(DictateError::NoInvoice));
}

#[test]
fn the_method_is_chosen_once_and_only_in_redirect_mode() {
    let mut state = state(2);
    let h2h = made(&mut state, "a", "1", T0);
    assert_eq!(
        state.choose_method(&h2h, Method::ToCard, T0),
        Err(ChoiceError::Over)
    );
    let page = state
        .create_invoice(0, redirect("b"), T0)
        .expect("made")
        .opaque
        .clone();
    assert_eq!(state.choose_method(&page, Method::ToCard, T0), Ok(()));
    assert_eq!(
        state.choose_method(&page, Method::Sbp, T0),
        Err(ChoiceError::Over)
    );
    assert_eq!(status(&state, "b"), "waiting");
}

#[test]
fn a_foreign_invoice_is_not_found() {
    let mut state = state(1);
    let id = state
        .create_invoice(0, request("a", "1"), T0)
        .expect("made")
        .id
        .clone();
    assert!(state.fetch_invoice(0, &id).is_some());
    assert!(state.fetch_invoice(1, &id).is_none());
    assert!(state.fetch_invoice(0, "a").is_none());
}

#[test]
fn the_book_of_attempts_has_an_end() {
    let mut state = state(1);
    made(&mut state, "a", "1", T0);
    let notice = state.notice_of("a").expect("a notice");
    for n in 0..200 {
        state.record_attempt(&notice, n, Sent::default(), Answer::Code(500), T0);
    }
    let invoice = state.find_invoice("a").expect("a");
    assert_eq!(invoice.attempts.len(), MOST_ATTEMPTS);
    assert_eq!(invoice.attempts.back().map(|a| a.number), Some(199));
    assert!(!format!("{notice:?}{invoice:?}").contains("tttt"));
}

#[test]
fn one_seed_gives_the_same_ids() {
    let ids = || {
        let mut state = state(1);
        let login = state.start_login("test", T0).expect("named");
        let invoice = state
            .create_invoice(0, request("a", "1"), T0)
            .expect("made");
        (login.user_code, invoice.id.clone())
    };
    assert_eq!(ids(), ids());
}
