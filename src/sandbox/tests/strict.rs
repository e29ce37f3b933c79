//! What the contract says of requests, to the letter: a client that is wrong about it here learns so here.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::harness::{BOUND, Ground, request};
use crate::sandbox::form::encode;

const LOGIN: &str = "/api/v1/agent/login";
const TOKEN: &str = "/api/v1/agent/token";
const INVOICES: &str = "/api/v1/invoices";

/// Contract 4: bodies are JSON and are sent with the header `Content-Type: application/json`.
#[tokio::test]
async fn a_body_is_one_json_object_and_says_so() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let body = ground.invoice("a").to_string();
    for (kind, wanted) in [
        ("Content-Type: application/json\r\n", 201),
        ("Content-Type: Application/JSON; charset=utf-8\r\n", 201),
        ("Content-Type: text/plain\r\n", 415),
        ("Content-Type:\r\n", 415),
        ("Content-Type: application/jsonp\r\n", 415),
        (
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
            415,
        ),
    ] {
        let headers = format!("{bearer}{kind}");
        let answer = ground.ask("POST", INVOICES, &headers, &body).await;
        assert_eq!(answer.status, wanted, "{kind}");
    }
    let doubled = body.replacen('{', "{\"currency\":\"EUR\",", 1);
    for wrong in [
        format!("\u{feff}{body}"),
        json!(body).to_string(),
        format!("[{body}]"),
        format!("{body}{body}"),
        doubled,
        String::new(),
    ] {
        let answer = ground.ask("POST", INVOICES, &bearer, &wrong).await;
        assert_eq!(answer.status, 400, "{wrong}");
    }
    for path in [LOGIN, TOKEN] {
        let body = "{\"clientName\":\"x\",\"deviceCode\":\"x\"}";
        let answer = ground
            .ask("POST", path, "Content-Type: text/plain\r\n", body)
            .await;
        assert_eq!(answer.status, 415, "{path}");
    }
    ground.stop().await;
}

/// Contract 4.1, 4.2 and 5: no Authorization there, and one elsewhere.
#[tokio::test]
async fn a_token_goes_where_it_belongs() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    for (path, body) in [
        (LOGIN, "{\"clientName\":\"x\"}"),
        (TOKEN, "{\"deviceCode\":\"x\"}"),
    ] {
        let answer = ground.ask("POST", path, &bearer, body).await;
        assert_eq!(answer.status, 400, "{path}");
        let said = answer.json()["error"].to_string();
        assert!(said.contains("Authorization"), "{said}");
    }
    let body = ground.invoice("a").to_string();
    let twice = format!("{bearer}Authorization: Bearer other\r\n");
    let answer = ground.ask("POST", INVOICES, &twice, &body).await;
    assert_eq!(answer.status, 400);
    let none = ground.ask("POST", INVOICES, "", &body).await;
    assert_eq!(none.status, 401);
    assert!(
        none.head.contains("www-authenticate: bearer"),
        "{}",
        none.head
    );
    ground.stop().await;
}

/// Contract 7: with all requisites of an amount and a method occupied, another amount is tried, or another time.
#[tokio::test]
async fn another_amount_finds_a_requisite() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let asked = async |order: &str, amount: &str, method: &str| {
        let body = ground.invoice(order).to_string();
        let body = body
            .replace(":150,", &format!(":{amount},"))
            .replace("\"SBP\"", &format!("\"{method}\""));
        ground.ask("POST", INVOICES, &bearer, &body).await
    };
    for order in ["a", "b", "c"] {
        assert_eq!(asked(order, "1.5e2", "SBP").await.status, 201);
    }
    let full = asked("d", "150.00", "SBP").await;
    assert_eq!(full.status, 503);
    assert_eq!(full.json()["error"], "Нет доступных реквизитов");
    assert_eq!(asked("e", "150.01", "SBP").await.status, 201);
    assert_eq!(asked("f", "150", "TO_CARD").await.status, 201);
    ground.stop().await;
}

#[tokio::test]
async fn each_method_is_named_where_another_is_wrong() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let created = ground.create(&bearer, "a").await.json();
    let path = format!(
        "{INVOICES}/{}",
        encode(created["id"].as_str().expect("an id"))
    );
    let head = ground.ask("HEAD", &path, &bearer, "").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    for (method, path, allowed) in [
        ("DELETE", path.as_str(), "allow: get, head"),
        ("GET", INVOICES, "allow: post"),
        ("PUT", "/cabinet", "allow: get, head, post"),
    ] {
        let answer = ground.ask(method, path, &bearer, "").await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert!(answer.head.contains(allowed), "{}", answer.head);
    }
    let control = ground.sandbox().control_url();
    for (method, path, wanted) in [
        ("GET", "/pool", 405),
        ("POST", "/state", 405),
        ("HEAD", "/state", 200),
        ("DELETE", "/invoices/a/status", 405),
        ("GET", "/nothing", 404),
        ("POST", "/invoices/a/other", 404),
    ] {
        let answer = request(&control, method, path, "", "").await;
        assert_eq!(answer.status, wanted, "{method} {path}");
    }
    ground.stop().await;
}

#[tokio::test]
async fn a_page_of_elsewhere_commands_nothing() {
    let ground = Ground::new(&[]).await;
    let control = ground.sandbox().control_url();
    for (site, wanted) in [
        ("cross-site", 403),
        ("same-site", 403),
        ("same-origin", 200),
        ("none", 200),
    ] {
        let headers = format!("Sec-Fetch-Site: {site}\r\nContent-Type: text/plain\r\n");
        let answer = request(&control, "POST", "/pool", &headers, "{\"free\":1}").await;
        assert_eq!(answer.status, wanted, "{site}");
    }
    // Nor is its body waited for.
    let head = "Host: evil.example\r\nContent-Length: 9\r\n";
    let foreign = announced(&control, head).await;
    assert!(foreign.starts_with("HTTP/1.1 421 "), "{foreign}");
    ground.stop().await;
}

/// What is answered to a head whose body never comes.
async fn announced(url: &str, headers: &str) -> String {
    let address = url.strip_prefix("http://").expect("http");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let text = format!("POST /pool HTTP/1.1\r\n{headers}\r\n");
        stream.write_all(text.as_bytes()).await.expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("read");
        answer
    };
    tokio::time::timeout(BOUND, exchange)
        .await
        .expect("an answer in time")
}
