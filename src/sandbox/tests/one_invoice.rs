//! Faults of one invoice, and what cannot be meant: refused with a word that names the key, and nothing is set.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use serde_json::{Value, json};

use super::harness::{Ground, NEVER, request};
use crate::invoice::moment::Moment;
use crate::sandbox::form::encode;

#[tokio::test]
async fn the_service_goes_wrong_for_one_order_alone() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    for fault in [
        json!({ "api_status": { "endpoint": "create", "status": 503, "times": true } }),
        json!({ "no_requisites": true }),
        json!({ "drop_create_answer": true }),
    ] {
        let mut own = fault.clone();
        own["invoice"] = "z".into();
        ground.control("/faults", own).await;
        let one = ground.create(&bearer, "z").await.status;
        assert!(matches!(one, 503 | 0), "{one} for {fault}");
        assert_eq!(ground.create(&bearer, "y").await.status, 201, "{fault}");
        // Frees the requisites.
        for order in ["y", "z"] {
            let path = format!("/invoices/{order}/status");
            let ended = json!({ "status": "paid", "notify": false }).to_string();
            request(&ground.sandbox().control_url(), "POST", &path, "", &ended).await;
        }
        let shown = ground
            .control("/faults", json!({ "invoice": "z", "reset": true }))
            .await;
        assert_eq!(shown["own"], json!({}));
    }
    let created = ground.create(&bearer, "x").await.json();
    let other = ground.create(&bearer, "w").await.json();
    let fault = json!({ "invoice": "x", "api_status": { "endpoint": "fetch", "status": 404 } });
    ground.control("/faults", fault).await;
    for (made, wanted) in [(&other, 200), (&created, 404), (&created, 200)] {
        let path = format!(
            "/api/v1/invoices/{}",
            encode(made["id"].as_str().expect("an id"))
        );
        assert_eq!(ground.ask("GET", &path, &bearer, "").await.status, wanted);
    }
    ground.stop().await;
}

/// An instant, whichever way it is written.
fn moment(told: &Value) -> Moment {
    Moment::parse(told.as_str().expect("a text")).expect("a time")
}

#[tokio::test]
async fn the_clock_is_off_for_one_invoice_alone() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    let mut made = Vec::new();
    for order in ["a", "b", "c"] {
        made.push(ground.create(&bearer, order).await.json());
    }
    let skewed = json!({ "invoice": made[0]["id"], "clock_skew_ms": -3_600_000 });
    ground.control("/faults", skewed).await;
    let same = json!({ "invoice": "b", "same_instant": true });
    ground.control("/faults", same).await;
    let mut after = Vec::new();
    for order in ["a", "b", "c"] {
        let path = format!("/invoices/{order}/status");
        let shown = ground.control(&path, json!({ "status": "paid" })).await;
        after.push(moment(&shown["invoice"]["updatedAt"]));
    }
    let before: Vec<_> = made.iter().map(|one| moment(&one["updatedAt"])).collect();
    assert!(after[0] < before[0], "{after:?} {before:?}");
    assert_eq!(after[1], before[1]);
    assert!(after[2] > before[2], "{after:?} {before:?}");
    ground.stop().await;
}

#[tokio::test]
async fn a_sender_gives_up_for_one_invoice_and_the_book_says_so() {
    let mut ground = Ground::new(&[NEVER]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    let gives_up = json!({ "invoice": "a", "give_up_ms": 50, "presentation": "body:/secret" });
    ground.control("/faults", gives_up).await;
    let path = "/invoices/a/status";
    ground.control(path, json!({ "status": "paid" })).await;
    for _try in 0..2 {
        assert_eq!(ground.shop.next().await.body["status"], "paid");
    }
    let wanted = [json!("no answer: time-out"), json!(200)];
    assert_eq!(ground.answers(2).await, wanted);
    let state = ground.state().await;
    let attempt = &state["invoices"][0]["attempts"][0];
    assert_eq!(attempt["presentation"], "body:/secret");
    assert_eq!(attempt["faults"], json!(["give_up_ms 50"]));
    let body = attempt["body"].as_str().expect("a body");
    // The token that was put into it is not in the book.
    assert!(
        body.contains("\"paid\"") && !body.contains("secret"),
        "{body}"
    );
    ground.stop().await;
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused_by_the_name_of_its_key() {
    let ground = Ground::new(&[]).await;
    let url = ground.sandbox().control_url();
    let before = ground.state().await["faults"].clone();
    let api =
        |rest: &str| format!("{{\"lose\":1,\"api_status\":{{\"endpoint\":\"fetch\",{rest}}}}}");
    let of_one = |rest: &str| format!("{{\"lose\":1,\"invoice\":\"Z\",{rest}}}");
    let mut cases = vec![
        (r#"{"lose":1,"invoice":""}"#.to_owned(), "`invoice`"),
        (r#"{"lose":1,"delay_ms":-1}"#.to_owned(), "`delay_ms`"),
        (r#"{"lose":1,"delay_ms":600001}"#.to_owned(), "`delay_ms`"),
        (
            r#"{"lose":1,"give_up_ms":600001}"#.to_owned(),
            "`give_up_ms`",
        ),
        (
            r#"{"lose":1,"hold_create_ms":60001}"#.to_owned(),
            "`hold_create_ms`",
        ),
        (r#"{"lose":1,"copies":101}"#.to_owned(), "`copies`"),
        (r#"{"lose":1,"copies":0}"#.to_owned(), "`copies`"),
        (
            r#"{"lose":1,"delay_ms":"5"}"#.to_owned(),
            "`delay_ms`: invalid type: string \\\"5\\\", expected a whole number",
        ),
        (r#"{"lose":"x"}"#.to_owned(), "`lose`: a count is"),
        (r#"{"lose":1,"loose":1}"#.to_owned(), "unknown key `loose`"),
        (
            r#"{"lose":1,"api_status":["fetch"]}"#.to_owned(),
            "`api_status`: ",
        ),
        (api(r#""x":1"#), "`api_status`: unknown key `x`"),
        ("[]".to_owned(), "a JSON object"),
        ("{".to_owned(), "the body is no JSON"),
        (
            r#"{"lose":1,"clock_skew_ms":86400001}"#.to_owned(),
            "`clock_skew_ms`",
        ),
        (r#"{"lose":1,"rates":{"lose":101}}"#.to_owned(), "`rates`"),
        (r#"{"lose":1,"rates":{"loose":1}}"#.to_owned(), "`loose`"),
        (
            r#"{"lose":1,"presentation":"x:y"}"#.to_owned(),
            "`presentation` is `header:NAME`, `bearer`,",
        ),
        (of_one(r#""rates":{"lose":1}"#), "`rates`"),
        (
            of_one(r#""api_status":{"endpoint":"login","kind":"cut"}"#),
            "`api_status`",
        ),
        (
            of_one(r#""api_status":{"endpoint":"token","kind":"cut"}"#),
            "`api_status`",
        ),
        (
            r#"{"lose":1,"api_status":{"endpoint":"x","kind":"cut"}}"#.to_owned(),
            "`endpoint`",
        ),
        (api(r#""times":1"#), "`status`"),
        (api(r#""kind":"loud""#), "`kind`"),
        (api(r#""status":204,"body":"x""#), "`body`"),
        (api(r#""status":404,"location":"/x""#), "`location`"),
        (api(r#""status":429,"retry_after_s":-1"#), "`retry_after_s`"),
        (api(r#""kind":"html","status":204"#), "`status`"),
        (api(r#""kind":"html","body":"x""#), "`body`"),
        (api(r#""kind":"html","location":"/x""#), "`location`"),
        (api(r#""kind":"redirect","status":200"#), "`status`"),
        (api(r#""kind":"redirect","location":"/x\ny""#), "`location`"),
        (
            api(r#""kind":"redirect","retry_after_s":1"#),
            "`retry_after_s`",
        ),
    ];
    for status in ["0", "101", "199", "600", "999", "1000", "-1", "65736"] {
        cases.push((api(&format!("\"status\":{status}")), "`status`"));
        cases.push((
            api(&format!("\"kind\":\"html\",\"status\":{status}")),
            "`status`",
        ));
    }
    for kind in ["hang", "cut", "drop_answer"] {
        for (key, value) in [
            ("status", "200"),
            ("body", "\"x\""),
            ("retry_after_s", "1"),
            ("location", "\"/x\""),
        ] {
            let fault = format!("\"kind\":\"{kind}\",\"{key}\":{value}");
            let named = ["`status`", "`body`", "`retry_after_s`", "`location`"];
            let named = named.into_iter().find(|name| name.contains(key));
            cases.push((api(&fault), named.expect("a name")));
        }
    }
    for (fault, named) in cases {
        let refused = request(&url, "POST", "/faults", "", &fault).await;
        assert_eq!(refused.status, 400, "{fault}");
        assert!(refused.body.contains(named), "{fault}: {}", refused.body);
    }
    assert_eq!(ground.state().await["faults"], before);
    ground.stop().await;
}

#[tokio::test]
async fn what_is_told_is_answered_so() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    for (api, status, head) in [
        (
            json!({ "status": 200, "body": "[1]" }),
            200,
            "content-type: application/json",
        ),
        (
            json!({ "status": 200, "body": "null" }),
            200,
            "content-type: application/json",
        ),
        (
            json!({ "status": 200, "body": "<p>" }),
            200,
            "content-type: text/html",
        ),
        (
            json!({ "kind": "html", "status": 503, "retry_after_s": 7 }),
            503,
            "retry-after: 7",
        ),
        (
            json!({ "kind": "redirect", "status": 302 }),
            302,
            "location: /elsewhere",
        ),
    ] {
        let mut api = api.clone();
        api["endpoint"] = "fetch".into();
        ground
            .control("/faults", json!({ "api_status": api }))
            .await;
        let answer = ground.ask("GET", "/api/v1/invoices/x", &bearer, "").await;
        assert_eq!(answer.status, status, "{api}");
        assert!(answer.head.contains(head), "{}", answer.head);
    }
    ground.stop().await;
}

#[tokio::test]
async fn what_is_dictated_must_be_a_status_and_find_a_requisite() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    let url = ground.sandbox().control_url();
    let dictate = async |status: &str| {
        let body = json!({ "status": status }).to_string();
        let answer = request(&url, "POST", "/invoices/a/status", "", &body).await;
        answer.status
    };
    assert_eq!(dictate("").await, 400);
    assert_eq!(dictate(&"x".repeat(500_000)).await, 400);
    assert_eq!(dictate("paid").await, 200);
    ground.control("/pool", json!({ "free": 0 })).await;
    assert_eq!(dictate("new").await, 409);
    ground.control("/pool", json!({ "free": 1 })).await;
    assert_eq!(dictate("new").await, 200);
    assert_eq!(
        ground.state().await["pool"],
        json!({ "free": 0, "occupied": 1 })
    );
    ground.stop().await;
}

#[tokio::test]
async fn a_presentation_alone_is_taken_back() {
    let ground = Ground::new(&[]).await;
    for back in [json!("usual"), json!(null)] {
        for whose in [json!({}), json!({ "invoice": "a" })] {
            let asked = |presentation: &Value| {
                let mut asked = whose.clone();
                asked["presentation"] = presentation.clone();
                asked["delay_ms"] = 5.into();
                asked
            };
            ground.control("/faults", asked(&json!("bearer"))).await;
            assert!(
                ground.state().await["faults"]
                    .to_string()
                    .contains("bearer")
            );
            ground.control("/faults", json!({ "delay_ms": 5 })).await;
            assert!(
                ground.state().await["faults"]
                    .to_string()
                    .contains("bearer")
            );
            ground.control("/faults", asked(&back)).await;
            let faults = ground.state().await["faults"].clone();
            assert!(!faults.to_string().contains("bearer"), "{faults}");
            assert_eq!(faults["delay_ms"], 5, "the others stay");
        }
    }
    ground.stop().await;
}

#[tokio::test]
async fn numbers_that_cannot_be_meant_are_refused_in_plain_words() {
    let ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    let url = ground.sandbox().control_url();
    for (path, body, word) in [
        ("/pool", r#"{"free":-1}"#, "`free` is 0 to"),
        ("/pool", r#"{"free":"all"}"#, "expected a whole number"),
        ("/pool", "{}", "missing key `free`"),
        ("/invoices/a/notify", r#"{"times":0}"#, "`times` is 1 to"),
        ("/invoices/a/notify", r#"{"times":-1}"#, "`times` is 1 to"),
    ] {
        let answer = request(&url, "POST", path, "", body).await;
        assert_eq!(answer.status, 400, "{path} {body}");
        assert!(answer.body.contains(word), "{body}: {}", answer.body);
    }
    ground.stop().await;
}
