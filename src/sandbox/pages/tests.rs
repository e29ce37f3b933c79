//! What the pages say of a state, and what their forms make of it; no clock, no network.

use hyper::StatusCode;
use serde_json::json;

use super::frame::Look;
use super::lang::Lang;
use super::{Posted, activate, cabinet, faults, home, invoice, pay};
use crate::invoice::amount::Amount;
use crate::sandbox::control::fault;
use crate::sandbox::form::Form;
use crate::sandbox::state::faults::{Presentation, Times, Wrongs};
use crate::sandbox::state::invoice::Invoice;
use crate::sandbox::state::notice::{Answer, Sent};
use crate::sandbox::state::pool::Method;
use crate::sandbox::state::{Rules, State};
use crate::sandbox::statuses::Happening;
use crate::secret::Secret;
use crate::wire::create::{CreateRequest, ReturnUrls};
use crate::wire::login::LoginStarted;

/// 2026-11-28T10:00:00Z
const T0: i64 = 1_795_860_000_000;
/// Past the life of a login.
const LATE: i64 = T0 + 700_000;

fn state() -> State {
    State::new(Rules::of_a_test(), 1)
}

fn look(now: i64) -> Look<'static> {
    Look {
        lang: Lang::En,
        token: "",
        now,
    }
}

/// An H2H invoice; its opaque segment.
fn opened(state: &mut State) -> String {
    opened_in(state, None)
}

/// One whose customer chooses the method; its opaque segment.
fn redirected(state: &mut State) -> String {
    let [success, cancel, error] = ["a", "b", "c"].map(|path| format!("http://127.0.0.1:9/{path}"));
    opened_in(
        state,
        Some(ReturnUrls {
            success,
            cancel,
            error,
        }),
    )
}

fn opened_in(state: &mut State, return_urls: Option<ReturnUrls>) -> String {
    let request = CreateRequest {
        internal_id: "A-1".into(),
        amount: Amount::parse_payable("150.00").expect("an amount"),
        currency: "RUB".into(),
        start_deal: true,
        method: "SBP".into(),
        notification_url: "http://127.0.0.1:9/n/ref".into(),
        notification_token: Secret::new("t".repeat(43)),
        return_urls,
    };
    let made = state.create_invoice(0, request, T0).expect("made");
    made.opaque.clone()
}

fn of<'s>(state: &'s State, opaque: &str) -> &'s Invoice {
    state.invoice_of_page(opaque).expect("it was made")
}

fn started(state: &mut State) -> LoginStarted {
    state.start_login("laptop", T0).expect("it has a name")
}

fn activation(state: &State, login: &LoginStarted, now: i64) -> (String, Option<u64>) {
    let code = Some(login.user_code.as_str());
    let page = activate::page(state, code, &look(now)).into_string();
    (page, activate::again_after_s(state, code, now))
}

#[track_caller]
fn decide(state: &mut State, login: &LoginStarted, decision: &str) {
    let form = format!("code={}&decision={decision}", login.user_code);
    let posted = activate::decide(state, &Form::parse(&form), T0);
    assert!(matches!(posted, Posted::Done(_)), "{decision}");
}

#[test]
fn no_shop_is_granted_unless_it_was_chosen() {
    let mut state = state();
    let login = started(&mut state);
    let (page, again) = activation(&state, &login, T0);
    assert!(!page.contains(" checked") && page.contains(" required"));
    // Nobody who fills in a form is interrupted, and who refuses need fill in nothing.
    assert!(again.is_none() && page.contains(" formnovalidate"));
    let blind = format!("code={}&decision=confirm", login.user_code);
    let posted = activate::decide(&mut state, &Form::parse(&blind), T0);
    let status = StatusCode::BAD_REQUEST;
    assert!(matches!(posted, Posted::Refused(refused, _) if refused == status));
    decide(&mut state, &login, "confirm&shop=Night+Bakery");
}

#[test]
fn what_became_of_a_login_is_told_also_when_its_code_is_over() {
    let mut state = state();
    let (pending, refused) = (started(&mut state), started(&mut state));
    let (fetched, left) = (started(&mut state), started(&mut state));
    decide(&mut state, &refused, "refuse");
    for login in [&fetched, &left] {
        decide(&mut state, login, "confirm&shop=Night+Bakery");
        let (page, again) = activation(&state, login, T0);
        assert!(page.contains(" gets a token for the shop "));
        assert_eq!(again, Some(5));
    }
    let issued = state.poll_login(&fetched.device_code, T0);
    assert!(issued.is_ok());
    for (login, now, wanted) in [
        (&fetched, T0, " has its token for the shop "),
        (&fetched, LATE, " has its token for the shop "),
        (&left, LATE, " did not fetch its token in time."),
        (&refused, T0, " gets no token."),
        (&refused, LATE, " gets no token."),
        (&pending, LATE, "unknown or has expired"),
    ] {
        let (page, again) = activation(&state, login, now);
        assert!(page.contains(wanted), "{wanted}: {page}");
        assert_eq!(again, None, "{wanted}");
    }
    let (page, _) = activation(&state, &refused, LATE);
    assert!(page.contains("<p><a href=\"/activate\">"), "a way on");
}

#[test]
fn every_token_in_use_can_be_revoked() {
    let mut state = state();
    for number in 0..60 {
        drop(state.issue_token(0, format!("laptop {number}"), T0));
    }
    let buttons = |page: &str| page.matches("name=\"token\" value=").count();
    let shown = |state: &State| cabinet::page(state, &look(T0)).into_string();
    assert_eq!(buttons(&shown(&state)), 60);
    let oldest: Vec<String> = state.tokens().take(2).map(|one| one.id.clone()).collect();
    for id in oldest {
        assert_eq!(state.revoke_tokens(Some(&id), T0), 1);
    }
    let page = shown(&state);
    assert_eq!(buttons(&page), 58);
    assert!(page.contains("not shown: 2."));
}

#[test]
fn what_is_set_is_shown_and_stays_when_something_else_is_set() {
    let mut state = state();
    let set = json!({ "presentation": "query:key", "give_up_ms": 3000, "reorder": true, "copies": 4,
        "hold_create_ms": 70, "rates": { "late": 5 } });
    let asked = serde_json::from_value(set).expect("words");
    fault::apply(&mut state, asked).expect("they can be meant");
    let page = faults::page(&state, None, &look(T0)).into_string();
    for shown in [
        "value=\"query:key\" selected",
        "name=\"give_up_ms\" min=\"0\" max=\"600000\" value=\"3000\"",
        "name=\"reorder\" value=\"true\" checked",
        "name=\"copies\" min=\"1\" max=\"100\" value=\"4\"",
        "name=\"hold_create_ms\" min=\"0\" max=\"60000\" value=\"70\"",
        "name=\"was.late\" value=\"5\"",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
    // What a browser sends of a page on which nothing but the delay was touched.
    let left = [
        ("presentation", "query:key"),
        ("give_up_ms", "3000"),
        ("copies", "4"),
        ("reorder", "true"),
    ];
    let left = left.map(|(name, value)| format!("was.{name}={value}&{name}={value}"));
    let sent = format!("act=set&was.delay_ms=0&delay_ms=250&{}", left.join("&"));
    // Meanwhile, somewhere else.
    state.faults.all.copies = 9;
    let posted = faults::act(&mut state, &Form::parse(&sent), &look(T0));
    assert!(matches!(posted, Posted::Done(next) if next == "/cabinet/faults"));
    let all = &state.faults.all;
    assert_eq!((all.delay_ms, all.give_up_ms), (250, Some(3_000)));
    assert!(all.reorder && all.copies == 9 && all.hold_create_ms == 70);
    let place = all.presentation.as_ref().map(Presentation::word);
    assert_eq!(place.as_deref(), Some("query:key"));
}

#[test]
fn faults_of_one_invoice_leave_those_of_all_alone() {
    let mut state = state();
    state.faults.all.delay_ms = 10;
    let page = faults::page(&state, Some("A/1"), &look(T0)).into_string();
    assert!(page.contains("name=\"delay_ms\" min=\"0\" max=\"600000\" value=\"0\""));
    for of_all in ["name=\"free\"", "name=\"late\"", "value=\"login\""] {
        assert!(!page.contains(of_all), "{of_all}");
    }
    let form = Form::parse("act=count&invoice=A/1&what=no_requisites&times=3");
    let posted = faults::act(&mut state, &form, &look(T0));
    assert!(matches!(posted, Posted::Done(next) if next == "/cabinet/faults?invoice=A%2F1"));
    let own: Vec<(&str, Times)> = state
        .faults
        .owners()
        .map(|(name, own)| (name, own.no_requisites))
        .collect();
    assert_eq!(own, [("A/1", Times::Next(3))]);
    assert_eq!(state.faults.all.no_requisites, Times::Never);
    let page = faults::page(&state, Some("A/1"), &look(T0)).into_string();
    assert!(page.contains("Take off those of this one"));
    let form = Form::parse("act=reset&invoice=A/1");
    assert!(matches!(
        faults::act(&mut state, &form, &look(T0)),
        Posted::Done(_next)
    ));
    assert!(state.faults.owners().next().is_none() && state.faults.all.delay_ms == 10);
}

/// What is at stake: a shop that refuses a wrong token does right, and is not to be taken for one that does wrong.
#[test]
fn what_was_done_to_a_notification_stands_beside_the_answer() {
    let mut state = state();
    let opaque = opened(&mut state);
    assert!(state.happen(&opaque, Happening::Paid, T0));
    let notice = state.take_notices().pop().expect("a notification");
    let sent = Sent {
        presentation: Some(Presentation::Bearer),
        faults: vec!["wrong_token".into(), "copies 2".into()],
    };
    state.record_attempt(&notice, 1, sent, Answer::Code(401), T0);
    let page = invoice::page(&state, of(&state, &opaque), &look(T0)).into_string();
    let rows = cabinet::page(&state, &look(T0)).into_string();
    for page in [&page, &rows] {
        assert!(page.contains("with a wrong token, with 2 more at once"));
        assert!(page.contains("refused (401)") && !page.contains(&"t".repeat(43)));
    }
    assert!(page.contains("<code>bearer</code>, not shown here"));
    let status = "&quot;status&quot;:&quot;paid&quot;";
    assert!(page.contains(status), "the body: {page}");
}

#[test]
fn everything_that_can_happen_is_offered() {
    let mut state = state();
    let opaque = opened(&mut state);
    for (happening, wanted) in [
        (None, "waiting paid paid-less paid-more cancel expire"),
        (
            Some(Happening::Waiting),
            "paid paid-less paid-more cancel expire",
        ),
        (Some(Happening::Expired), "paid paid-less paid-more"),
        (Some(Happening::PaidMore), "refund"),
        (Some(Happening::Refunded), ""),
    ] {
        if let Some(happening) = happening {
            assert!(state.happen(&opaque, happening, T0), "{happening:?}");
        }
        let page = pay::page(&state, of(&state, &opaque), &look(T0)).into_string();
        let offered = page.split("name=\"happening\" value=\"").skip(1);
        let offered = offered.filter_map(|rest| rest.split('"').next());
        assert_eq!(offered.collect::<Vec<_>>().join(" "), wanted);
    }
}

#[test]
fn who_was_never_told_where_to_pay_reads_that_no_money_can_come() {
    let mut state = state();
    let said = "nobody was told where to pay";
    let shown = |state: &State, opaque: &str| {
        let page = pay::page(state, of(state, opaque), &look(T0));
        page.into_string()
    };
    let opaque = redirected(&mut state);
    assert!(!shown(&state, &opaque).contains(said));
    assert!(state.happen(&opaque, Happening::Canceled, T0));
    let page = shown(&state, &opaque);
    assert!(page.contains(said) && !page.contains("name=\"happening\""));
    assert!(!state.happen(&opaque, Happening::Paid, T0));
    // Who has chosen before the end was told, and can pay late.
    let opaque = redirected(&mut state);
    assert!(state.choose_method(&opaque, Method::Sbp, T0).is_ok());
    assert!(state.happen(&opaque, Happening::Canceled, T0));
    let page = shown(&state, &opaque);
    assert!(!page.contains(said) && page.contains("Pay late"));
    assert!(state.happen(&opaque, Happening::Paid, T0));
}

#[test]
fn what_came_stands_beside_what_was_ordered_where_they_differ() {
    for (happening, amount, said) in [
        (Happening::Paid, "150.00", None),
        (Happening::PaidLess, "149.00", Some("less than asked")),
        (Happening::PaidMore, "151.00", Some("more than asked")),
    ] {
        let mut state = state();
        let opaque = opened(&mut state);
        assert!(state.happen(&opaque, happening, T0));
        let found = of(&state, &opaque);
        let pages = [
            pay::page(&state, found, &look(T0)),
            invoice::page(&state, found, &look(T0)),
            cabinet::page(&state, &look(T0)),
            home::page(&state, &look(T0)),
        ];
        for page in pages.map(maud::Markup::into_string) {
            assert!(page.contains("150.00") && page.contains(amount), "{page}");
            let differs = page.contains(" than asked");
            assert_eq!(differs, said.is_some(), "{page}");
            assert!(said.is_none_or(|said| page.contains(said)), "{page}");
        }
        let page = pay::page(&state, of(&state, &opaque), &look(T0)).into_string();
        let plain = page.contains("The payment has arrived.");
        assert_eq!(plain, said.is_none(), "{page}");
    }
}

/// What is at stake: "as usual" beside what was not would have the shop searched for the mistake.
#[test]
fn a_place_and_a_time_that_are_wrong_on_purpose_are_said_to_be() {
    for (words, said) in [
        (json!({ "presentation": "bearer" }), "token as bearer"),
        (json!({ "presentation": "none" }), "without a token"),
        (json!({ "missing_token": true }), "without a token<"),
        (json!({ "clock_skew_ms": -9 }), "updatedAt off by -9 ms"),
        (json!({ "same_instant": true }), "updatedAt left as it was"),
        (json!({}), "as usual"),
    ] {
        let mut state = state();
        let asked = serde_json::from_value(words).expect("words");
        fault::apply(&mut state, asked).expect("they can be meant");
        let opaque = opened(&mut state);
        assert!(state.happen(&opaque, Happening::Paid, T0));
        let notice = state.take_notices().pop().expect("a notification");
        let sent = state.faults.treat(&notice).sent(1);
        state.record_attempt(&notice, 1, sent, Answer::Code(200), T0);
        let page = invoice::page(&state, of(&state, &opaque), &look(T0)).into_string();
        assert!(page.contains(said), "{said}: {page}");
        assert_eq!(page.contains("On purpose: "), said != "as usual", "{said}");
    }
}

#[test]
fn a_field_that_cannot_be_meant_is_named() {
    let mut state = state();
    for (form, said) in [
        (
            "act=set&was.delay_ms=0&delay_ms=soon",
            "\u{201c}Delay before each, ms\u{201d} takes a whole number from 0 to 600000.",
        ),
        (
            "act=rates&was.lose=0&lose=101",
            "\u{201c}never sent\u{201d} takes a whole number from 0 to 100.",
        ),
        ("act=pool&free=-1", "Free requisites"),
        ("act=nothing", "the sandbox does not know it"),
    ] {
        match faults::act(&mut state, &Form::parse(form), &look(T0)) {
            Posted::Unfit(why) => assert!(why.contains(said), "{why}"),
            Posted::Done(_) | Posted::Refused(..) => panic!("{form}"),
        }
    }
    assert_eq!(state.faults.all, Wrongs::default());
}

#[test]
fn a_place_is_taken_back_on_the_page_too() {
    let mut state = state();
    let mut set = |word: &str| {
        let form = format!("act=set&was.presentation=x&presentation={word}");
        let done = faults::act(&mut state, &Form::parse(&form), &look(T0));
        assert!(matches!(done, Posted::Done(_)), "{word}");
        let page = faults::page(&state, None, &look(T0)).into_string();
        assert!(page.contains("<option value=\"usual\""), "{word}");
        state.faults.all.presentation.clone()
    };
    assert_eq!(set("bearer"), Some(Presentation::Bearer));
    assert_eq!(set("usual"), None);
    assert_eq!(set("bearer"), Some(Presentation::Bearer));
    assert_eq!(set(""), None);
}

#[test]
fn a_refusal_leads_back_to_the_code() {
    assert_eq!(activate::way(Some("AB C&D")), "/activate?code=AB%20C%26D");
    assert_eq!(activate::way(None), "/activate");
}

#[test]
fn what_to_try_next_names_the_config_there_is() {
    let mut state = state();
    let page = home::page(&state, &look(T0)).into_string();
    assert!(page.contains("tilld --config FILE login"), "{page}");
    state.config = Some("/srv/my shop/tilld.toml".into());
    let page = home::page(&state, &look(T0)).into_string();
    let named = "tilld --config '/srv/my shop/tilld.toml' login";
    assert!(page.contains(named) && !page.contains("FILE"), "{page}");
    assert!(!page.contains('`'), "{page}");
    // Who is logged in, as in a demo, is not told to log in.
    drop(state.issue_token(0, "laptop".into(), T0));
    let page = home::page(&state, &look(T0)).into_string();
    assert!(page.contains(" serve") && !page.contains(" login<") && !page.contains("toml' login"));
}
