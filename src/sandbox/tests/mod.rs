//! The sandbox over real sockets: a merchant, a shop and a test that drives both.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

mod faults;
mod harness;
mod one_invoice;
mod order;
mod strict;
mod waiting;

use std::fs;
use std::net::SocketAddr;

use serde_json::json;

use self::harness::{Ground, TOKEN, request};
use super::form::encode;
use super::{Error, Settings, WriteError, start, write_config};
use crate::shutdown::Shutdown;

/// The value of the hidden field in a page's form.
fn form_token(page: &str) -> &str {
    let (_, rest) = page
        .split_once("name=\"form_token\" value=\"")
        .expect("a form");
    rest.split_once('"').expect("a value").0
}

#[tokio::test]
async fn a_login_is_confirmed_in_the_cabinet_and_revoked_there() {
    let ground = Ground::new(&[]).await;
    let started = ground
        .ask(
            "POST",
            "/api/v1/agent/login",
            "",
            "{\"clientName\":\"<b>laptop</b>\"}",
        )
        .await;
    assert_eq!(started.status, 201);
    let started = started.json();
    assert_eq!(
        (&started["expiresIn"], &started["interval"]),
        (&600.into(), &1.into())
    );
    let code = started["userCode"].as_str().expect("a code");
    let url = started["verificationUrl"].as_str().expect("an address");
    assert_eq!(
        url,
        format!("{}/activate?code={code}", ground.sandbox().cabinet_url())
    );
    let poll = json!({ "deviceCode": started["deviceCode"] }).to_string();
    let pending = ground.ask("POST", "/api/v1/agent/token", "", &poll).await;
    assert_eq!(
        (pending.status, &pending.json()["error"]),
        (400, &"authorization_pending".into())
    );

    let page = ground
        .ask("GET", &format!("/activate?code={code}"), "", "")
        .await;
    assert!(page.body.contains("&lt;b&gt;laptop") && page.body.contains(code));
    assert!(page.head.contains("content-security-policy"));
    let form = format!(
        "form_token={}&code={code}&decision=confirm&shop=Night+Bakery",
        form_token(&page.body)
    );
    let posted = ground.ask("POST", "/activate", "", &form).await;
    assert_eq!(posted.status, 303);
    // The interval is a second, and the first poll was just now.
    let hasty = ground.ask("POST", "/api/v1/agent/token", "", &poll).await;
    assert_eq!(
        (hasty.status, &hasty.json()["error"]),
        (400, &"slow_down".into())
    );

    let bearer = ground.bearer().await;
    assert_eq!(ground.create(&bearer, "a").await.status, 201);
    let cabinet = ground.ask("GET", "/cabinet", "", "").await;
    let (_, rest) = cabinet
        .body
        .split_once("name=\"token\" value=\"")
        .expect("a token");
    let id = rest.split_once('"').expect("an id").0;
    let form = format!("form_token={}&token={id}", form_token(&cabinet.body));
    assert_eq!(
        ground
            .ask("POST", "/cabinet/revoke", "", &form)
            .await
            .status,
        303
    );
    assert_eq!(ground.create(&bearer, "b").await.status, 401);
    ground.stop().await;
}

#[tokio::test]
async fn the_token_comes_once_after_the_merchant_confirmed() {
    let ground = Ground::new(&[]).await;
    let started = ground
        .ask("POST", "/api/v1/agent/login", "", "{\"clientName\":\"x\"}")
        .await
        .json();
    ground
        .control(
            "/login/confirm",
            json!({ "userCode": started["userCode"], "shop": "Лавка у моста" }),
        )
        .await;
    let poll = json!({ "deviceCode": started["deviceCode"] }).to_string();
    let issued = ground.ask("POST", "/api/v1/agent/token", "", &poll).await;
    assert_eq!(
        (issued.status, &issued.json()["shopName"]),
        (200, &"Лавка у моста".into())
    );
    let again = ground.ask("POST", "/api/v1/agent/token", "", &poll).await;
    assert_eq!(
        (again.status, &again.json()["error"]),
        (400, &"expired_token".into())
    );
    let shown = ground.state().await.to_string();
    for secret in [&started["deviceCode"], &issued.json()["token"]] {
        assert!(!shown.contains(secret.as_str().expect("a secret")));
    }
    ground.stop().await;
}

#[tokio::test]
async fn a_payment_is_told_again_until_the_shop_says_200() {
    let mut ground = Ground::new(&[500, 404]).await;
    let bearer = ground.bearer().await;
    let created = ground.create(&bearer, "a").await;
    assert_eq!(created.status, 201);
    let id = created.json()["id"].as_str().expect("an id").to_owned();
    let state = ground.state().await;
    let page = state["invoices"][0]["page"]
        .as_str()
        .expect("a page")
        .to_owned();
    let path = page
        .strip_prefix(&ground.sandbox().url())
        .expect("here")
        .to_owned();
    let shown = ground.ask("GET", &path, "", "").await;
    let form = format!("form_token={}&happening=paid", form_token(&shown.body));
    assert_eq!(ground.ask("POST", &path, "", &form).await.status, 303);
    for _ in 0..3 {
        let heard = ground.shop.next().await;
        assert!(
            heard.head.starts_with("POST /n/a HTTP/1.1"),
            "{}",
            heard.head
        );
        assert!(
            heard
                .head
                .to_lowercase()
                .contains(&format!("x-notification-token: {TOKEN}"))
        );
        assert_eq!(
            (&heard.body["id"], &heard.body["status"]),
            (&id.as_str().into(), &"paid".into())
        );
    }
    assert_eq!(
        ground.answers(3).await,
        [json!(500), json!(404), json!(200)]
    );
    let fetched = ground
        .ask(
            "GET",
            &format!("/api/v1/invoices/{}", encode(&id)),
            &bearer,
            "",
        )
        .await;
    assert_eq!(
        (fetched.status, &fetched.json()["status"]),
        (200, &"paid".into())
    );
    // What was paid cannot be cancelled from a page left open.
    let form = format!("form_token={}&happening=cancel", form_token(&shown.body));
    assert_eq!(ground.ask("POST", &path, "", &form).await.status, 409);
    ground.stop().await;
}

#[tokio::test]
async fn what_is_not_asked_properly_is_refused() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let invoices = "/api/v1/invoices";
    for (method, path, headers, body, wanted) in [
        ("POST", invoices, "", "{}", 401),
        (
            "POST",
            invoices,
            "Authorization: Bearer nonsense\r\n",
            "{}",
            401,
        ),
        ("POST", invoices, bearer.as_str(), "{}", 400),
        ("POST", invoices, bearer.as_str(), "not json", 400),
        ("GET", "/api/v1/invoices/unknown", bearer.as_str(), "", 404),
        (
            "DELETE",
            "/api/v1/invoices/unknown",
            bearer.as_str(),
            "",
            405,
        ),
        ("GET", "/api/v2/invoices", bearer.as_str(), "", 404),
        ("POST", "/api/v1/agent/login", "", "{}", 400),
        (
            "POST",
            "/api/v1/agent/token",
            "",
            "{\"deviceCode\":\"dc_x\"}",
            400,
        ),
        (
            "POST",
            "/activate",
            "",
            "code=ABCD-EFGH&decision=confirm",
            403,
        ),
        (
            "POST",
            "/activate",
            "Origin: http://evil.example\r\n",
            "",
            403,
        ),
        ("GET", "/", "Host: evil.example\r\n", "", 421),
        ("GET", "/pay/unknown", "", "", 404),
        ("GET", "/activate?code=nonsense", "", "", 200),
    ] {
        let answer = ground.ask(method, path, headers, body).await;
        assert_eq!(answer.status, wanted, "{method} {path} {body}");
    }
    let control = ground.sandbox().control_url();
    let foreign = request(&control, "GET", "/state", "Host: evil.example\r\n", "").await;
    assert_eq!(foreign.status, 421);
    let typo = request(&control, "POST", "/faults", "", "{\"loose\":1}").await;
    assert_eq!(typo.status, 400);
    ground.stop().await;
}

#[tokio::test]
async fn a_redirect_invoice_is_paid_on_its_page_and_leads_back() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let mut body = ground.invoice("r");
    for (name, end) in [
        ("successUrl", "ok"),
        ("cancelUrl", "no"),
        ("errorUrl", "oops"),
    ] {
        body[name] = format!("http://127.0.0.1:1/{end}").into();
    }
    let created = ground
        .ask("POST", "/api/v1/invoices", &bearer, &body.to_string())
        .await
        .json();
    assert!(created["dealRequisites"].is_null() && created["expireAt"].is_null());
    let url = created["paymentUrl"].as_str().expect("an address");
    let path = url
        .strip_prefix(&ground.sandbox().url())
        .expect("here")
        .to_owned();
    for (field, status) in [("method=TO_CARD", "waiting"), ("happening=paid", "paid")] {
        let shown = ground.ask("GET", &path, "", "").await;
        assert!(shown.body.contains("imitation of the payment service"));
        let form = format!("form_token={}&{field}", form_token(&shown.body));
        assert_eq!(ground.ask("POST", &path, "", &form).await.status, 303);
        assert_eq!(ground.shop.next().await.body["status"], status);
    }
    let shown = ground.ask("GET", &path, "", "").await;
    assert!(shown.body.contains("href=\"http://127.0.0.1:1/ok\""));
    ground.stop().await;
}

#[tokio::test]
async fn it_does_not_start_where_others_could_reach_it() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let settings = Settings {
            listen: address.parse().expect("an address"),
            ..Settings::default()
        };
        let refused = start(settings, Shutdown::new()).await.err();
        assert!(matches!(refused, Some(Error::NotLoopback(_))), "{address}");
    }
    let port = SocketAddr::from(([127, 0, 0, 1], 0));
    let settings = Settings {
        interval_s: 0,
        listen: port,
        control: port,
        ..Settings::default()
    };
    let refused = start(settings, Shutdown::new()).await.err();
    assert!(matches!(refused, Some(Error::Interval)));
}

#[tokio::test]
async fn the_config_it_writes_replaces_only_its_own() {
    let ground = Ground::new(&[]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("config.toml");
    let written = write_config(ground.sandbox(), &file).expect("written");
    let again = write_config(ground.sandbox(), &file).expect("its own is replaced");
    assert!(!written.kept && !again.kept);
    let text = fs::read_to_string(&written.path).expect("read");
    let url = ground.sandbox().url();
    let state_dir = directory.path().join("state");
    for line in [
        format!("[service]\nurl = \"{url}\"\n"),
        format!("state_dir = \"{}\"\n", state_dir.display()),
        "failed = [\"canceled\",\"expired\"]\n".to_owned(),
    ] {
        assert!(text.contains(&line), "{line}{text}");
    }
    fs::write(&file, "url = \"mine\"").expect("write");
    let refused = write_config(ground.sandbox(), &file).err();
    assert!(matches!(refused, Some(WriteError::NotOurs(_))));
    assert_eq!(fs::read_to_string(&file).expect("read"), "url = \"mine\"");
    ground.stop().await;
}

#[tokio::test]
async fn a_config_somebody_edited_is_kept_or_refused_and_never_replaced() {
    let ground = Ground::new(&[]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("config.toml");
    let written = write_config(ground.sandbox(), &file).expect("written");
    let text = fs::read_to_string(&written.path).expect("read");
    let edited = format!("{text}\n[[hook]]\nname = \"fulfil\"\n");
    fs::write(&file, &edited).expect("write");
    let kept = write_config(ground.sandbox(), &file).expect("it fits");
    assert!(kept.kept);
    assert_eq!(fs::read_to_string(&file).expect("read"), edited);

    let other = edited.replace(&ground.sandbox().url(), "http://127.0.0.1:1");
    fs::write(&file, &other).expect("write");
    let refused = write_config(ground.sandbox(), &file).err();
    assert!(matches!(refused, Some(WriteError::Edited { .. })));
    assert_eq!(fs::read_to_string(&file).expect("read"), other);

    // One nobody touched, of a sandbox that is gone, gives way.
    write_config(ground.sandbox(), &directory.path().join("fresh.toml")).expect("written");
    let next = Ground::new(&[]).await;
    let fresh = directory.path().join("fresh.toml");
    let replaced = write_config(next.sandbox(), &fresh).expect("replaced");
    assert!(!replaced.kept);
    let text = fs::read_to_string(&fresh).expect("read");
    assert!(text.contains(&next.sandbox().url()), "{text}");
    next.stop().await;
    ground.stop().await;
}
