//! Whatever stands in whatever place: no panic, and never authentic without the token (A20).

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Places of every form, and those that `auto` has.
fn lists() -> [Presentations; 2] {
    let pinned = [
        "header:X-Notification-Token",
        "bearer",
        "basic-password",
        "query:token",
        "body:/notificationToken/0",
        "hmac-sha256:header:X-Signature",
        "standard-webhooks",
    ];
    [
        Presentations::auto(),
        Presentations::only(&pinned).expect("places"),
    ]
}

/// Bytes a header may have, behind the beginnings that lead somewhere.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let beginning = prop::sample::select(vec![
        "", "Bearer ", "basic ", "Basic", "sha256=", "SHA256=", "v1,", "v1, v1,", "v1a,", "1",
    ]);
    let byte = prop_oneof![
        prop::sample::select(b"0123456789abcdefABCDEF+/=-_ ,.:".to_vec()),
        any::<u8>(),
    ];
    let end = prop_oneof![
        vec(byte.clone(), 0..8),
        vec(byte.clone(), 40..46),
        vec(byte, 60..68),
    ];
    (beginning, end).prop_map(|(beginning, end)| [beginning.as_bytes(), &end].concat())
}

proptest! {
    #[test]
    fn no_bytes_in_any_place_are_the_token_or_a_panic(
        values in vec((prop::sample::select(vec![
            "x-notification-token", "authorization", "x-signature", "webhook-id",
            "webhook-timestamp", "webhook-signature",
        ]), value()), 0..12),
        query in "(token=)?[ -~]{0,40}(&token=[%a-f0-9]{0,10})?",
        raw in vec(any::<u8>(), 0..64),
        said in ".{0,40}",
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in &values {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(*name, value);
            }
        }
        let body = serde_json::json!({ "notificationToken": said }).to_string();
        let body = Fields::read(body.as_bytes()).expect("an object");
        let carried = Carried { headers: &headers, query: Some(&query), body: &body, raw: &raw };
        for list in lists() {
            let verdict = list.judge(&token(), carried);
            prop_assert!(
                matches!(verdict, Verdict::Missing | Verdict::Wrong | Verdict::SignatureWrong),
                "{verdict:?}"
            );
        }
    }
}
