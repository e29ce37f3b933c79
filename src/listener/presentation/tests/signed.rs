//! Signatures made with the token. The figures are those of Python's `hmac` module.

use super::*;

/// What is signed.
const BODY: &str = r#"{"id":"i-1","status":"paid"}"#;
const HEX: &str = "f60294f5426883eafc62e61e65568cd407a1f753e554b8cee00b1861e41128be";
const BASE64: &str = "9gKU9UJog+r8YuYeZVaM1Aeh91PlVLjO4AsYYeQRKL4=";
const BASE64_FOR_URLS: &str = "9gKU9UJog-r8YuYeZVaM1Aeh91PlVLjO4AsYYeQRKL4=";
/// The same behind a byte-order mark, which is a part of the body.
const HEX_WITH_MARK: &str = "4ab3fc4cb8e9e9f7278a750cdd57b63f7d2604824df9eb5c35e92f1e80124d63";
/// Made with no key at all, by somebody who knows nothing (A19).
const HEX_EMPTY_KEY: &str = "4c760811a8dc7b7940d6e42ac78033a22be1988f42535cef3124c881e1d426a1";
/// Standard Webhooks, of `msg_1` at 1764230400.
const STANDARD_WEBHOOKS: &str = "A8WmR656UlgLePA3Qmu7qqDPStnrMP+p/K52Evh5HhI=";
const STANDARD_WEBHOOKS_EMPTY_KEY: &str = "s8kUKKIVtesXRs2fPmgs81VIuL8NjRxdlmzmSozHVTQ=";

fn hmac() -> Presentations {
    Presentations::only(&["hmac-sha256:header:X-Sign"]).expect("a place")
}

fn standard_webhooks() -> Presentations {
    Presentations::only(&["standard-webhooks"]).expect("a place")
}

fn message(id: &str, timestamp: &str, signature: &str) -> String {
    format!("webhook-id: {id}\nwebhook-timestamp: {timestamp}\nwebhook-signature: {signature}")
}

#[test]
fn a_signature_is_read_however_it_is_written() {
    for value in [
        HEX.to_owned(),
        HEX.to_uppercase(),
        format!("sha256={HEX}"),
        format!("SHA256={HEX}"),
        format!("  {HEX}  "),
        BASE64.to_owned(),
        format!("sha256={BASE64}"),
        BASE64.trim_end_matches('=').to_owned(),
        BASE64_FOR_URLS.to_owned(),
        BASE64_FOR_URLS.trim_end_matches('=').to_owned(),
    ] {
        let headers = format!("x-sign: {value}");
        check(&hmac(), &headers, "", BODY, "hmac-sha256:header:x-sign");
    }
    assert_ne!(BASE64, BASE64_FOR_URLS, "the alphabets show");
}

/// A19 and A20: odd lengths, other characters, other keys, nothing behind the prefix.
#[test]
fn a_signature_that_is_none_is_refused() {
    let (odd, _) = HEX.split_at(63);
    let (short, _) = HEX.split_at(62);
    for value in [
        odd.to_owned(),
        short.to_owned(),
        format!("{HEX}0"),
        format!("{HEX}00"),
        "z".repeat(64),
        "0".repeat(64),
        "sha256=".to_owned(),
        format!("sha256= {HEX}"),
        format!("sha256=sha256={HEX}"),
        format!("sha1={HEX}"),
        format!("sha512={HEX}"),
        format!("{HEX}, {HEX}"),
        format!("{BASE64}="),
        format!("={BASE64}"),
        "A".repeat(43),
        "A".repeat(44),
        "=".repeat(44),
        "x".repeat(10_000),
        "{T}".to_owned(),
        HEX_EMPTY_KEY.to_owned(),
        format!("sha256={HEX_EMPTY_KEY}"),
        HEX_WITH_MARK.to_owned(),
    ] {
        let headers = format!("x-sign: {value}");
        check(&hmac(), &headers, "", BODY, "signature_wrong");
    }
    let changed = BODY.replace("i-1", "i-2");
    check(
        &hmac(),
        &format!("x-sign: {HEX}"),
        "",
        &changed,
        "signature_wrong",
    );
    check(&hmac(), "", "", BODY, "token_missing");
    check(&hmac(), "x-sign:  ", "", BODY, "token_missing");
}

#[test]
fn a_signature_is_over_the_bytes_as_they_came() {
    let body = format!("\u{feff}{BODY}");
    let headers = format!("x-sign: {HEX_WITH_MARK}");
    check(&hmac(), &headers, "", &body, "hmac-sha256:header:x-sign");
    check(
        &hmac(),
        &format!("x-sign: {HEX}"),
        "",
        &body,
        "signature_wrong",
    );
}

#[test]
fn a_signature_beside_another_one_is_refused() {
    let twice = |other: &str| format!("x-sign: {HEX}\nx-sign: {other}");
    check(
        &hmac(),
        &twice(BASE64),
        "",
        BODY,
        "hmac-sha256:header:x-sign",
    );
    for other in [HEX_EMPTY_KEY, "", "x"] {
        check(&hmac(), &twice(other), "", BODY, "token_doubled");
    }
    let many = format!("x-sign: {HEX}\n").repeat(MOST_VALUES + 1);
    check(&hmac(), &many, "", BODY, "token_doubled");
}

#[test]
fn a_signature_that_is_wrong_contradicts_only_where_it_was_pinned() {
    let auto = Presentations::auto();
    let beside = format!("x-notification-token: {{T}}\nx-signature: {HEX_EMPTY_KEY}");
    check(&auto, &beside, "", BODY, "header:x-notification-token");
    let foreign = message("msg_9", "1", "v1,AAAA");
    check(&auto, &foreign, "token={T}", BODY, "query:token");
    let alone = format!("x-hub-signature-256: sha256={HEX_EMPTY_KEY}");
    check(&auto, &alone, "", BODY, "signature_wrong");
    check(&auto, &alone, "token=x", BODY, "token_wrong");
    let signed = format!("x-signature: {HEX}");
    check(&auto, &signed, "token=x", BODY, "token_contradicting");
    let two = Presentations::only(&["query:token", "hmac-sha256:header:x-sign"]).expect("places");
    let wrong = "x-sign: abc";
    check(&two, wrong, "token={T}", BODY, "token_contradicting");
    let right = format!("x-sign: {HEX}");
    check(&two, &right, "", BODY, "hmac-sha256:header:x-sign");
    check(&two, &right, "token={T}", BODY, "query:token");
}

#[test]
fn auto_tries_the_usual_headers_of_signatures() {
    let auto = Presentations::auto();
    for name in [
        "x-notification-signature",
        "x-signature",
        "x-signature-256",
        "x-webhook-signature",
        "x-hub-signature-256",
    ] {
        let headers = format!("{name}: {HEX}");
        check(
            &auto,
            &headers,
            "",
            BODY,
            &format!("hmac-sha256:header:{name}"),
        );
    }
    let headers = message("msg_1", "1764230400", &format!("v1,{STANDARD_WEBHOOKS}"));
    check(&auto, &headers, "", BODY, "standard-webhooks");
}

#[test]
fn any_signature_of_a_standard_webhook_suffices() {
    for signature in [
        format!("v1,{STANDARD_WEBHOOKS}"),
        format!("v1,{}", STANDARD_WEBHOOKS.trim_end_matches('=')),
        format!("v1a,AAAA v1,{STANDARD_WEBHOOKS_EMPTY_KEY}  v1,{STANDARD_WEBHOOKS}"),
        format!("v1,{STANDARD_WEBHOOKS} junk"),
        format!("v1,AAAA\nwebhook-signature: v1,{STANDARD_WEBHOOKS}"),
        format!("v1,{STANDARD_WEBHOOKS}\nwebhook-id: msg_1"),
    ] {
        let headers = message("msg_1", "1764230400", &signature);
        check(
            &standard_webhooks(),
            &headers,
            "",
            BODY,
            "standard-webhooks",
        );
    }
}

#[test]
fn a_standard_webhook_that_is_none_is_refused() {
    let right = format!("v1,{STANDARD_WEBHOOKS}");
    let forged = format!("v1,{STANDARD_WEBHOOKS_EMPTY_KEY}");
    let many = format!("{}{right}", "v1,AAAA ".repeat(40));
    for (id, timestamp, signature) in [
        ("msg_1", "1764230400", forged.as_str()),
        ("msg_1", "1764230400", STANDARD_WEBHOOKS),
        ("msg_1", "1764230400", &right.replace("v1,", "v2,")),
        ("msg_1", "1764230400", &right.replace("v1,", "v1, ")),
        ("msg_1", "1764230400", "v1,"),
        ("msg_1", "1764230400", "v1,\u{ff}"),
        ("msg_1", "1764230400", &many),
        ("msg_2", "1764230400", &right),
        ("", "1764230400", &right),
        ("msg_1\nwebhook-id: msg_2", "1764230400", &right),
        ("msg_1", "1764230401", &right),
        ("msg_1", "", &right),
        ("msg_1", "+1764230400", &right),
        ("msg_1", "1764230400.0", &right),
        ("msg_1", "2025-11-27", &right),
        ("msg_1", &"1".repeat(10_000), &right),
    ] {
        let headers = message(id, timestamp, signature);
        check(&standard_webhooks(), &headers, "", BODY, "signature_wrong");
    }
    check(
        &standard_webhooks(),
        &format!("webhook-signature: {right}"),
        "",
        BODY,
        "signature_wrong",
    );
}

/// What is signed could be divided in two ways: the part of the body before a full stop would be taken for the id.
#[test]
fn an_id_with_a_full_stop_is_refused() {
    let signature = "FsFKvVG1/ouU7FuHH0yd2kShRkpkjKEs1LwicBgqpsc=";
    let headers = message("msg.1", "1764230400", &format!("v1,{signature}"));
    check(&standard_webhooks(), &headers, "", BODY, "signature_wrong");
}

/// The example of the Standard Webhooks libraries: a secret in base64 behind its prefix, and a time long gone.
#[test]
fn a_secret_of_standard_webhooks_is_decoded() {
    let body = br#"{"test": 2432232314}"#;
    let token = NotifyToken::from_stored("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
        ("webhook-timestamp", "1614265330"),
        (
            "webhook-signature",
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let carried = Carried {
        headers: &headers,
        query: None,
        body: &Fields::read(body).expect("an object"),
        raw: body,
    };
    let (auto, token) = (Presentations::auto(), token.expect("long enough"));
    let verdict = auto.judge(&token, carried);
    assert_eq!(verdict, Verdict::Right(&Place::StandardWebhooks));
}
