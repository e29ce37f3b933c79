//! `GET /v1/status` says whether the service takes the login, as the daemon last met it, and nothing else of the login: what is
//! stored, where and for which shop is its owner's to know.

use serde_json::{Value, json};

use super::client::text;
use crate::harness::{PATIENCE, Setup, World, wait_until};

/// The status once `polling.login` is this. The login itself is hidden all the while.
#[track_caller]
fn once(world: &World, wanted: &str) -> Value {
    let mut told = Value::Null;
    wait_until(PATIENCE, wanted, || {
        let answer = world.call("GET", "/v1/status", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        told = answer.json();
        assert_eq!(told.get("login"), Some(&json!({ "state": "hidden" })));
        text(&answer, "/polling/login") == wanted
    });
    let since = told.pointer("/polling/login_since").expect("a member");
    let is_trouble = ["needed", "refused"].contains(&wanted);
    assert_eq!(since.is_string(), is_trouble, "{told}");
    assert_eq!(told.get("needs_person"), Some(&json!(is_trouble)), "{told}");
    told
}

#[test]
fn clients_learn_whether_the_service_takes_the_login_and_nothing_else_of_it() {
    let world = Setup::new().logged_out().start();
    once(&world, "needed");
    world.login();
    world.faults(&json!({ "lose": true }));
    world.create("A-1");
    let good = once(&world, "good");
    let owners = world.tilld(&["status", "--json"]).ends_with(0).json();
    let stored = owners.pointer("/login/state");
    assert_eq!(stored, Some(&json!("stored")), "there is one to be hidden");
    let shop = owners.pointer("/login/shop_name").and_then(Value::as_str);
    let shop = shop.expect("a name");
    assert!(!good.to_string().contains(shop), "{good}");

    world.control("POST", "/tokens/revoke", &Value::Null);
    once(&world, "refused");
    world.login();
    once(&world, "good");
}
