//! The device login and its tokens.

use super::super::login::{DecideError, LoginRefusal, MOST_LOGINS, MOST_TOKENS, PollRefusal};
use super::super::{Rules, SHOPS, State};
use super::{T0, rules, state};

#[test]
fn the_poll_answers_what_the_merchant_said() {
    // (what the merchant says, time of the second poll, its answer)
    let cases = [
        (None, 5_000, "authorization_pending"),
        (None, 4_900, "slow_down"),
        (Some(None), 5_000, "access_denied"),
        (Some(Some(SHOPS[1])), 4_900, "slow_down"),
        (Some(Some(SHOPS[1])), 5_000, "issued"),
        (Some(Some(SHOPS[1])), 600_000, "expired_token"),
        (None, 600_000, "expired_token"),
    ];
    for (said, second, wanted) in cases {
        let mut state = state(1);
        let login = state.start_login("test", T0).expect("named");
        assert_eq!(
            state.poll_login(&login.device_code, T0).err(),
            Some(PollRefusal::Code("authorization_pending"))
        );
        if let Some(shop) = said {
            let typed = login.user_code.to_lowercase().replace('-', " ");
            assert_eq!(state.decide_login(&typed, shop, T0 + 1), Ok(()));
        }
        let answer = state.poll_login(&login.device_code, T0 + second);
        let word = match answer {
            Ok(_token) => "issued",
            Err(PollRefusal::Code(code)) => code,
            Err(PollRefusal::Full) => "full",
        };
        assert_eq!(word, wanted, "{said:?} after {second} ms");
    }
}

#[test]
fn slow_down_lengthens_the_interval() {
    let mut state = state(1);
    let login = state.start_login("test", T0).expect("named");
    let mut poll = |at: i64| state.poll_login(&login.device_code, T0 + at).err();
    let said = |code| Some(PollRefusal::Code(code));
    assert_eq!(poll(0), said("authorization_pending"));
    assert_eq!(poll(1_000), said("slow_down"));
    assert_eq!(poll(7_000), said("slow_down"));
    assert_eq!(poll(22_000), said("authorization_pending"));
}

#[test]
fn at_speed_slow_down_adds_less() {
    let rules = Rules {
        speed: 50,
        interval_s: 1,
        ..rules(1)
    };
    let mut state = State::new(rules, 1);
    let login = state.start_login("test", T0).expect("named");
    let mut poll = |at: i64| state.poll_login(&login.device_code, T0 + at).err();
    let said = |code| Some(PollRefusal::Code(code));
    assert_eq!(poll(0), said("authorization_pending"));
    assert_eq!(poll(500), said("slow_down"));
    assert_eq!(poll(1_600), said("authorization_pending"));
}

/// What is at stake: a code that lives ten minutes and a token that was never revoked are good however many others come.
#[test]
fn nothing_that_lives_makes_room() {
    let mut state = state(1);
    let first = state.start_login("first", T0).expect("room");
    for _ in 1..MOST_LOGINS {
        state.start_login("other", T0 + 1).expect("room");
    }
    let full = state.start_login("one more", T0 + 2).err();
    assert_eq!(full, Some(LoginRefusal::Full));
    let code = first.user_code.as_str();
    assert_eq!(state.decide_login(code, Some(SHOPS[0]), T0 + 3), Ok(()));
    let token = state
        .poll_login(&first.device_code, T0 + 4)
        .expect("issued");
    // One that is spent is over, and gives way; so do all when their lives end.
    assert!(state.start_login("one more", T0 + 5).is_ok());
    assert!(state.start_login("too many", T0 + 6).is_err());
    assert!(state.start_login("later", T0 + 600_001).is_ok());

    for _ in 1..MOST_TOKENS {
        assert!(state.issue_token(1, "other".into(), T0).is_some());
    }
    assert!(state.issue_token(1, "one more".into(), T0).is_none());
    let late = T0 + 600_002;
    let login = state.start_login("late", late).expect("room");
    assert_eq!(
        state.decide_login(&login.user_code, Some(SHOPS[0]), late),
        Ok(())
    );
    let full = state.poll_login(&login.device_code, late).err();
    assert_eq!(full, Some(PollRefusal::Full));
    assert_eq!(state.shop_of_token(token.token.expose(), late), Some(0));
    assert_eq!(state.revoke_tokens(Some(token.token.expose()), late), 1);
    assert!(state.poll_login(&login.device_code, late + 5_000).is_ok());
}

#[test]
fn a_code_gives_one_token_and_is_decided_once() {
    let mut state = state(1);
    let login = state.start_login("  laptop ", T0).expect("named");
    assert_eq!(login.user_code.len(), 9);
    assert!(login.verification_url.ends_with(&login.user_code));
    let code = login.user_code.as_str();
    assert_eq!(
        state.decide_login(code, Some("no such shop"), T0),
        Err(DecideError::NoSuchShop)
    );
    assert_eq!(state.decide_login(code, Some(SHOPS[1]), T0), Ok(()));
    assert_eq!(
        state.decide_login(code, None, T0),
        Err(DecideError::Decided)
    );
    let issued = state.poll_login(&login.device_code, T0).expect("a token");
    assert_eq!(issued.shop_name, SHOPS[1]);
    assert!(issued.token.expose().starts_with("sandbox-tilld-"));
    assert_eq!(issued.token.expose().split(':').count(), 2);
    assert_eq!(
        state.poll_login(&login.device_code, T0 + 9_000).err(),
        Some(PollRefusal::Code("expired_token"))
    );
    assert_eq!(
        state.decide_login("ZZZZ-ZZZZ", None, T0),
        Err(DecideError::Unknown)
    );
    let unnamed = state.start_login("  ", T0).err();
    assert_eq!(unnamed, Some(LoginRefusal::NoName));
}

#[test]
fn a_revoked_token_is_no_token() {
    let mut state = state(1);
    let first = state.issue_token(0, "a".into(), T0).expect("room");
    let second = state.issue_token(1, "b".into(), T0).expect("room");
    assert_eq!(state.shop_of_token(first.token.expose(), T0), Some(0));
    let id = state.tokens().next().expect("a token").id.clone();
    assert_eq!(state.revoke_tokens(Some(&id), T0), 1);
    assert_eq!(state.revoke_tokens(Some(&id), T0), 0);
    assert_eq!(state.shop_of_token(first.token.expose(), T0), None);
    assert_eq!(state.shop_of_token(second.token.expose(), T0), Some(1));
    assert_eq!(state.revoke_tokens(None, T0), 1);
    assert_eq!(state.shop_of_token("", T0), None);
}
