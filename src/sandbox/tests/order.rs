//! In which order the notifications of one invoice come. What is at stake: a shop that relies on one is wrong, and must be
//! able to see that here.
#![expect(
    clippy::indexing_slicing,
    reason = "a missing field of a JSON value reads as null, which fails the assertion"
)]

use serde_json::json;

use super::harness::Ground;

/// Longer than everything else in such a test takes, ms.
const LATE_MS: u64 = 1_000;

async fn change(ground: &Ground, order: &str, status: &str) {
    let path = format!("/invoices/{order}/status");
    ground.control(&path, json!({ "status": status })).await;
}

async fn heard(ground: &mut Ground) -> String {
    let heard = ground.shop.next().await;
    let text = |name: &str| heard.body[name].as_str().expect("a text").to_owned();
    format!("{} {}", text("internalId"), text("status"))
}

#[tokio::test]
async fn without_faults_and_with_every_answer_200_they_come_in_order() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    for number in 0..10 {
        change(&ground, "a", &format!("step-{number}")).await;
    }
    for number in 0..10 {
        assert_eq!(heard(&mut ground).await, format!("a step-{number}"));
    }
    ground.stop().await;
}

#[tokio::test]
async fn a_newer_one_passes_one_that_was_refused() {
    let mut ground = Ground::trying_again_after(LATE_MS, &[500]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    change(&ground, "a", "waiting").await;
    assert_eq!(heard(&mut ground).await, "a waiting");
    change(&ground, "a", "paid").await;
    assert_eq!(heard(&mut ground).await, "a paid");
    assert_eq!(heard(&mut ground).await, "a waiting");
    assert_eq!(
        ground.answers(3).await,
        [json!(500), json!(200), json!(200)]
    );
    ground.stop().await;
}

#[tokio::test]
async fn three_tries_and_no_more() {
    let mut ground = Ground::new(&[500, 500, 500]).await;
    let bearer = ground.bearer().await;
    ground.create(&bearer, "a").await;
    change(&ground, "a", "waiting").await;
    for _ in 0..3 {
        assert_eq!(heard(&mut ground).await, "a waiting");
    }
    ground.answers(3).await;
    change(&ground, "a", "paid").await;
    assert_eq!(heard(&mut ground).await, "a paid");
    ground.stop().await;
}

#[tokio::test]
async fn a_newer_one_passes_one_that_is_late() {
    let mut ground = Ground::new(&[]).await;
    let bearer = ground.bearer().await;
    for order in ["a", "b"] {
        ground.create(&bearer, order).await;
    }
    let late = json!({ "invoice": "a", "delay_ms": LATE_MS });
    ground.control("/faults", late).await;
    change(&ground, "a", "waiting").await;
    // When the next one has come, what happens to the one before it is decided.
    change(&ground, "b", "waiting").await;
    assert_eq!(heard(&mut ground).await, "b waiting");
    let no_more = json!({ "invoice": "a", "reset": true });
    ground.control("/faults", no_more).await;
    change(&ground, "a", "paid").await;
    assert_eq!(heard(&mut ground).await, "a paid");
    assert_eq!(heard(&mut ground).await, "a waiting");
    let state = ground.state().await;
    let attempts = &state["invoices"][0]["attempts"];
    assert_eq!(attempts[0]["faults"], json!([]));
    assert_eq!(
        attempts[1]["faults"],
        json!([format!("delay_ms {LATE_MS}")])
    );
    ground.stop().await;
}
