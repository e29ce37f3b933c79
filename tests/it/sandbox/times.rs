//! `--speed`: times pass faster, and are told as they are.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{JSON, Started};
use crate::harness::{PATIENCE, Service, wait_for};

/// Milliseconds between two times as the sandbox tells them in plain spelling, within one day.
#[track_caller]
fn between_ms(from: &Value, to: &Value) -> i64 {
    let ms = |told: &Value| {
        let told = told.as_str().expect("a time");
        let (_, time) = told.trim_end_matches('Z').split_once('T').expect("a time");
        let parts = time
            .split([':', '.'])
            .map(|part| part.parse::<i64>().expect("digits"));
        let [hours, minutes, seconds, ms] = parts.collect::<Vec<_>>().try_into().expect("four");
        ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms
    };
    (ms(to) - ms(from)).rem_euclid(24 * 60 * 60 * 1_000)
}

/// Two minutes to pay are two seconds, and the two minutes over which a shop that says 500 is told again are two more.
#[test]
fn the_window_and_the_pauses_between_tries_pass_sixty_times_faster() {
    let shop = Service::start(|_heard| (500, String::new()));
    let sandbox = Started::new(&["--plain", "--speed=60", "--window=120", "--notify-retry=60"]);
    assert_eq!(sandbox.announced.get("speed"), Some(&json!(60)));
    let state = sandbox.control("GET", "/state", &json!({}));
    assert_eq!(state.get("speed"), Some(&json!(60)));
    let home = sandbox.ask("GET", "/", &[], "").body;
    assert!(home.contains("times pass 60 times faster"), "{home}");

    let began = Instant::now();
    let url = format!("{}/n", shop.url());
    let created = sandbox.create(&sandbox.bearer(), &url, &json!({}));
    assert_eq!(created.status, 201, "{created:?}");
    // Told as it is, also while nothing has happened yet.
    let (made, ends) = (
        sandbox.invoice("/invoice/createdAt"),
        sandbox.invoice("/invoice/expireAt"),
    );
    assert_eq!(between_ms(&made, &ends), 2_000);
    wait_for(PATIENCE, "the window to close", || {
        (sandbox.invoice("/invoice/status") == "expired").then_some(())
    });
    assert!(began.elapsed() >= Duration::from_secs(2));
    let tries = wait_for(PATIENCE, "three tries", || {
        let tries = sandbox.invoice("/attempts");
        let tries = tries.as_array()?;
        (tries.len() == 3).then(|| tries.clone())
    });
    for pair in tries.windows(2) {
        let [first, second] = pair else {
            panic!("{tries:?}")
        };
        assert_eq!(first.get("answer"), Some(&json!(500)), "{first}");
        let gap = between_ms(&first["at"], &second["at"]);
        assert!((1_000..30_000).contains(&gap), "{gap} ms");
    }
    sandbox.ends();
}

/// A person confirms a login at a person's speed: it stays open long enough for one, and says so.
#[test]
fn a_login_stays_open_for_a_person() {
    let sandbox = Started::new(&["--speed=3600"]);
    let login = json!({ "clientName": "shop" }).to_string();
    let login = sandbox
        .ask("POST", "/api/v1/agent/login", &[JSON], &login)
        .json();
    assert_eq!(login.get("expiresIn"), Some(&json!(120)));
    assert_eq!(login.get("interval"), Some(&json!(1)));
    let code = login.get("deviceCode").cloned();
    let poll = json!({ "deviceCode": code }).to_string();
    let polled = sandbox.ask("POST", "/api/v1/agent/token", &[JSON], &poll);
    assert_eq!(
        polled.json().get("error"),
        Some(&json!("authorization_pending"))
    );
    sandbox.ends();
}

#[test]
fn without_speed_times_are_the_services_and_nothing_is_said() {
    let sandbox = Started::new(&["--plain"]);
    assert_eq!(sandbox.announced.get("speed"), Some(&json!(1)));
    let home = sandbox.ask("GET", "/", &[], "").body;
    assert!(!home.contains("faster"), "{home}");
    let created = sandbox.create(&sandbox.bearer(), "http://127.0.0.1:9/n", &json!({}));
    assert_eq!(created.status, 201, "{created:?}");
    let (made, ends) = (
        sandbox.invoice("/invoice/createdAt"),
        sandbox.invoice("/invoice/expireAt"),
    );
    assert_eq!(between_ms(&made, &ends), 30 * 60 * 1_000);
    sandbox.ends();
}
