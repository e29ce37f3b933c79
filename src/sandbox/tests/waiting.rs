//! Requests that are kept waiting: they end, and take no place from others. What is at stake: a sandbox all of whose
//! connections hang could not even be told to stop that.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::harness::{BOUND, Ground, request};
use crate::sandbox::form::encode;
use crate::sandbox::state::faults::MOST_WAITING;

/// More than a listener has connections.
const MANY: usize = 600;

fn hangs(times: &Value) -> Value {
    json!({ "api_status": { "endpoint": "login", "kind": "hang", "times": times } })
}

/// Asks for a login, on a connection that is given back.
async fn ask(ground: &Ground) -> TcpStream {
    let url = ground.sandbox().url();
    let address = url.strip_prefix("http://").expect("http");
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let body = r#"{"clientName":"x"}"#;
    let length = body.len();
    let text = format!(
        "POST /api/v1/agent/login HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).await.expect("sent");
    stream
}

/// It is closed without an answer.
async fn closes(stream: &mut TcpStream) {
    let mut answer = Vec::new();
    let closed = timeout(BOUND, stream.read_to_end(&mut answer)).await;
    // Closed with a reset, too: what is left of the connection is nothing.
    assert!(closed.is_ok() && answer.is_empty(), "{closed:?} {answer:?}");
}

async fn works_again(ground: &Ground) {
    ground.control("/faults", json!({ "reset": true })).await;
    let login = r#"{"clientName":"x"}"#;
    let answer = ground.ask("POST", "/api/v1/agent/login", "", login).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
}

#[tokio::test]
async fn clients_that_leave_take_no_place() {
    let ground = Ground::new(&[]).await;
    ground.control("/faults", hangs(&true.into())).await;
    for _ in 0..MANY {
        drop(ask(&ground).await);
    }
    assert_eq!(ground.ask("GET", "/", "", "").await.status, 200);
    works_again(&ground).await;
    ground.stop().await;
}

#[tokio::test]
async fn no_more_wait_than_may_and_a_reset_ends_it() {
    let ground = Ground::new(&[]).await;
    ground.control("/faults", hangs(&true.into())).await;
    let mut waiting = Vec::new();
    for _ in 0..MOST_WAITING {
        waiting.push(ask(&ground).await);
    }
    while ground.state().await["requests"]["login"] != MOST_WAITING {
        tokio::task::yield_now().await;
    }
    closes(&mut ask(&ground).await).await;
    assert_eq!(ground.ask("GET", "/", "", "").await.status, 200);
    let first = waiting.first_mut().expect("it waits");
    let early = timeout(Duration::from_millis(50), first.read_u8()).await;
    assert!(early.is_err(), "it waits still: {early:?}");
    works_again(&ground).await;
    for stream in &mut waiting {
        closes(stream).await;
    }
    ground.stop().await;
}

#[tokio::test]
async fn what_hangs_ends_with_what_its_client_sends() {
    let ground = Ground::new(&[]).await;
    ground.control("/faults", hangs(&1.into())).await;
    let mut stream = ask(&ground).await;
    stream.shutdown().await.expect("shut");
    closes(&mut stream).await;
    ground.stop().await;
}

#[tokio::test]
async fn a_reset_gives_the_answer_that_was_held() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground
        .control("/faults", json!({ "hold_create_ms": 60_000 }))
        .await;
    let body = ground.invoice("held").to_string();
    let (url, control) = (ground.sandbox().url(), ground.sandbox().control_url());
    let release = async {
        ground.shop.next().await;
        let reset = r#"{"reset":true}"#;
        request(&control, "POST", "/faults", "", reset).await
    };
    let create = request(&url, "POST", "/api/v1/invoices", &bearer, &body);
    let (created, reset) = tokio::join!(create, release);
    assert_eq!((created.status, reset.status), (201, 200));
    ground.stop().await;
}

#[tokio::test]
async fn an_answer_is_lost_on_every_endpoint_and_what_was_asked_is_done() {
    let ground = Ground::new(&[]).await;
    let lost = async |endpoint: &str| {
        let api = json!({ "endpoint": endpoint, "kind": "drop_answer" });
        ground
            .control("/faults", json!({ "api_status": api }))
            .await;
    };
    lost("login").await;
    closes(&mut ask(&ground).await).await;
    let state = ground.state().await;
    assert_eq!(state["logins"][0]["clientName"], "x");

    let login = r#"{"clientName":"y"}"#;
    let started = ground.ask("POST", "/api/v1/agent/login", "", login).await;
    let started = started.json();
    let confirm = json!({ "userCode": started["userCode"] });
    ground.control("/login/confirm", confirm).await;
    let poll = json!({ "deviceCode": started["deviceCode"] }).to_string();
    lost("token").await;
    let token = ground.ask("POST", "/api/v1/agent/token", "", &poll).await;
    assert_eq!(token.status, 0);
    // Granted, and nobody has seen it.
    let state = ground.state().await;
    assert_eq!(state["logins"][1]["spent"], true);
    assert_eq!(state["tokens"][0]["clientName"], "y");

    let bearer = ground.bearer().await;
    lost("create").await;
    assert_eq!(ground.create(&bearer, "a").await.status, 0);
    let state = ground.state().await;
    let made = &state["invoices"][0]["invoice"];
    assert_eq!(made["internalId"], "a");
    lost("fetch").await;
    let path = format!(
        "/api/v1/invoices/{}",
        encode(made["id"].as_str().expect("an id"))
    );
    assert_eq!(ground.ask("GET", &path, &bearer, "").await.status, 0);
    assert_eq!(ground.ask("GET", &path, &bearer, "").await.status, 200);
    ground.stop().await;
}
