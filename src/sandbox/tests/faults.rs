//! What the sandbox does wrong when it is told to, as the shop and the client see it.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use serde_json::{Value, json};

use super::harness::{Ground, TOKEN, request};

#[tokio::test]
async fn notifications_go_wrong_as_told() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    let change = async |ground: &Ground, status: &str| {
        ground
            .control("/invoices/a/status", json!({ "status": status }))
            .await;
    };
    ground.control("/faults", json!({ "lose": 1 })).await;
    change(&ground, "lost").await;
    assert_eq!(ground.answers(1).await, [json!("lost on purpose")]);
    ground
        .control("/faults", json!({ "repeat": 1, "wrong_token": 1 }))
        .await;
    change(&ground, "twice").await;
    for _ in 0..2 {
        let heard = ground.shop.next().await;
        assert_eq!(heard.body["status"], "twice");
        assert!(!heard.head.contains(TOKEN) && heard.head.contains("x-notification-token: xxxx"));
    }
    ground
        .control("/faults", json!({ "presentation": "query:t" }))
        .await;
    change(&ground, "query").await;
    let heard = ground.shop.next().await;
    assert!(
        heard.head.starts_with(&format!("POST /n/a?t={TOKEN} ")),
        "{}",
        heard.head
    );
    ground
        .control(
            "/faults",
            json!({ "presentation": "body:/notificationToken" }),
        )
        .await;
    change(&ground, "body").await;
    assert_eq!(ground.shop.next().await.body["notificationToken"], TOKEN);
    ground
        .control("/faults", json!({ "reset": true, "reorder": true }))
        .await;
    for status in ["first", "second"] {
        change(&ground, status).await;
    }
    for status in ["second", "first"] {
        assert_eq!(ground.shop.next().await.body["status"], status);
    }
    let sent = ground
        .control("/invoices/a/notify", json!({ "times": 20 }))
        .await;
    assert_eq!(sent["answers"], json!(vec![200; 20]));
    ground.stop().await;
}

#[tokio::test]
async fn the_api_goes_wrong_as_told() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground
        .control("/faults", json!({ "drop_create_answer": 1 }))
        .await;
    assert_eq!(ground.create(&bearer, "dropped").await.status, 0);
    assert_eq!(
        ground.state().await["invoices"][0]["invoice"]["internalId"],
        "dropped"
    );
    ground
        .control("/faults", json!({ "hold_create_ms": 200 }))
        .await;
    let (created, heard) = {
        // The answer is still held when the notification has arrived.
        let body = ground.invoice("held").to_string();
        let url = ground.sandbox().url();
        let mut create = std::pin::pin!(request(&url, "POST", "/api/v1/invoices", &bearer, &body));
        let heard = tokio::select! {
            biased;
            heard = ground.shop.next() => heard,
            _early = &mut create => panic!("the answer came before the notification"),
        };
        (create.await, heard)
    };
    assert_eq!(
        (created.status, &heard.body["id"]),
        (201, &created.json()["id"])
    );
    let fault = json!({ "hold_create_ms": 0, "api_status": { "endpoint": "create", "status": 503, "body": "<html>", "retry_after_s": 7 } });
    ground.control("/faults", fault).await;
    let page = ground.create(&bearer, "x").await;
    assert_eq!((page.status, page.body.as_str()), (503, "<html>"));
    assert!(page.head.contains("retry-after: 7") && page.head.contains("content-type: text/html"));
    ground.control("/pool", json!({ "free": 0 })).await;
    let full = ground.create(&bearer, "x").await;
    assert_eq!(
        (full.status, &full.json()["error"]),
        (503, &"Нет доступных реквизитов".into())
    );
    assert_eq!(ground.state().await["requests"]["create"], 4);
    ground.stop().await;
}

async fn change(ground: &Ground, order: &str, status: &str) {
    let path = format!("/invoices/{order}/status");
    ground.control(&path, json!({ "status": status })).await;
}

#[tokio::test]
async fn a_line_goes_bad_and_the_next_try_gets_through() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    ground.control("/faults", json!({ "torn": 1 })).await;
    change(&ground, "a", "paid").await;
    let torn = ground.shop.next().await;
    assert_eq!(torn.body, Value::Null);
    assert!(torn.head.contains("content-length"), "{}", torn.head);
    assert_eq!(ground.shop.next().await.body["status"], "paid");
    assert_eq!(
        ground.answers(2).await,
        [json!("no answer: torn on purpose"), json!(200)]
    );
    ground.control("/faults", json!({ "slow": 1 })).await;
    change(&ground, "a", "refunded").await;
    let slow = ground.shop.next().await;
    assert_eq!(slow.body["status"], "refunded");
    assert!(slow.pieces >= 3, "{} pieces", slow.pieces);
    ground.stop().await;
}

#[tokio::test]
async fn a_fault_of_one_invoice_is_that_ones_alone() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    // Also of an order that has no invoice yet.
    let own = json!({ "invoice": "b", "missing_token": true, "delay_ms": 1 });
    let shown = ground.control("/faults", own).await;
    assert_eq!(shown["own"]["b"]["missing_token"], true);
    for order in ["a", "b"] {
        ground.create(&bearer, order).await;
        change(&ground, order, "paid").await;
        let heard = ground.shop.next().await;
        assert_eq!(heard.body["internalId"], order);
        assert_eq!(heard.head.contains(TOKEN), order == "a", "{}", heard.head);
    }
    ground.stop().await;
}

#[tokio::test]
async fn an_endpoint_answers_with_what_it_is_told() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let fetch = async || {
        ground
            .ask("GET", "/api/v1/invoices/none", &bearer, "")
            .await
    };
    let told = async |fault: Value| {
        let mut api = json!({ "endpoint": "fetch" });
        api.as_object_mut()
            .expect("an object")
            .extend(fault.as_object().expect("an object").clone());
        ground
            .control("/faults", json!({ "api_status": api }))
            .await;
    };
    told(json!({ "kind": "redirect", "location": "http://127.0.0.1:9/x" })).await;
    let answer = fetch().await;
    assert_eq!(answer.status, 307);
    assert!(answer.head.contains("location: http://127.0.0.1:9/x"));
    told(json!({ "kind": "html" })).await;
    let answer = fetch().await;
    assert_eq!(answer.status, 502);
    assert!(answer.head.contains("content-type: text/html") && answer.body.contains("<h1>"));
    told(json!({ "kind": "cut" })).await;
    assert_eq!(fetch().await.status, 0);
    assert_eq!(fetch().await.status, 404);
    told(json!({ "kind": "hang" })).await;
    {
        let mut hangs = std::pin::pin!(fetch());
        // Another request is answered while this one hangs.
        tokio::select! {
            biased;
            _early = &mut hangs => panic!("it answered"),
            other = ground.create(&bearer, "meanwhile") => assert_eq!(other.status, 201),
        }
    }
    let url = ground.sandbox().control_url();
    for bad in [
        r#"{"api_status":{"endpoint":"fetch"}}"#,
        r#"{"api_status":{"endpoint":"fetch","status":100}}"#,
        r#"{"api_status":{"endpoint":"fetch","kind":"hang","status":200}}"#,
        r#"{"rates":{"loose":1}}"#,
        r#"{"presentation":"x:y"}"#,
    ] {
        let refused = request(&url, "POST", "/faults", "", bad).await;
        assert_eq!(refused.status, 400, "{bad}");
    }
    ground.stop().await;
}

#[tokio::test]
async fn chance_answers_for_an_endpoint_as_often_as_told() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground
        .control("/faults", json!({ "rates": { "api": 50 } }))
        .await;
    let mut own = 0;
    for _ in 0..40 {
        let answer = ground
            .ask("GET", "/api/v1/invoices/none", &bearer, "")
            .await;
        own += usize::from(answer.status == 404);
    }
    assert!((8..32).contains(&own), "{own} of 40 were its own");
    ground.stop().await;
}

#[tokio::test]
async fn the_clock_is_off_as_told() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let updated = |told: &Value| told["invoice"]["updatedAt"].as_str().map(str::to_owned);
    ground
        .control("/faults", json!({ "clock_skew_ms": -3_600_000 }))
        .await;
    let made = ground.create(&bearer, "a").await.json();
    assert!(made["updatedAt"].as_str() < made["createdAt"].as_str());
    ground
        .control("/faults", json!({ "same_instant": true }))
        .await;
    let first = ground
        .control("/invoices/a/status", json!({ "status": "waiting" }))
        .await;
    assert_eq!(updated(&first).as_deref(), made["updatedAt"].as_str());
    ground.control("/faults", json!({ "reset": true })).await;
    let last = ground
        .control("/invoices/a/status", json!({ "status": "paid" }))
        .await;
    assert!(updated(&last) > updated(&first));
    ground.stop().await;
}
