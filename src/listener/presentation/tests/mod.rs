//! The table of what senders present, and what it is worth.

mod anything;
mod signed;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::header::{HeaderName, HeaderValue};

use super::*;
use crate::listener::Reason;
use crate::wire::fields::Fields;

/// `T` in the tables below stands for this token, in every place.
fn token() -> NotifyToken {
    NotifyToken::from_stored("AbCdEfGhIjKlMnOpQrStUvWxYz-0123456789_+/=".to_owned())
        .expect("long enough")
}

fn with_token(text: &str) -> String {
    let basic = STANDARD.encode(format!("user:{}", token().secret().expose()));
    text.replace("{BASIC}", &basic)
        .replace("{T}", token().secret().expose())
}

/// Headers one a line, the query, the body.
fn check(places: &Presentations, headers: &str, query: &str, body: &str, wanted: &str) {
    let mut map = HeaderMap::new();
    for line in headers.lines() {
        let (name, value) = line.split_once(':').expect("a header");
        let value = HeaderValue::from_str(&with_token(value.trim_start())).expect("a value");
        map.append(name.parse::<HeaderName>().expect("a name"), value);
    }
    let (query, body) = (with_token(query), with_token(body));
    let carried = Carried {
        headers: &map,
        query: (!query.is_empty()).then_some(query.as_str()),
        body: &Fields::read(body.as_bytes()).expect("an object"),
        raw: body.as_bytes(),
    };
    let verdict = places.judge(&token(), carried);
    let told = match verdict {
        Verdict::Right(place) => place.to_string(),
        other => Reason::of_verdict(other)
            .map_or("token_right", Reason::as_str)
            .to_owned(),
    };
    assert_eq!(told, wanted, "{headers:?} {query:?} {body:?}");
}

#[test]
fn the_usual_places() {
    let auto = Presentations::auto();
    for (headers, query, body, wanted) in [
        ("", "", "{}", "token_missing"),
        (
            "x-notification-token: {T}",
            "",
            "{}",
            "header:x-notification-token",
        ),
        (
            "X-NOTIFICATION-TOKEN:   {T}  ",
            "",
            "{}",
            "header:x-notification-token",
        ),
        ("authorization: Bearer {T}", "", "{}", "bearer"),
        ("authorization: BEARER   {T}", "", "{}", "bearer"),
        ("authorization: Basic {BASIC}", "", "{}", "basic-password"),
        ("authorization: BASIC   {BASIC}", "", "{}", "basic-password"),
        ("", "a=1&token={T}", "{}", "query:token"),
        (
            "",
            "tok%65n=%41bCdEfGhIjKlMnOpQrStUvWxYz-0123456789_%2b%2F%3d",
            "{}",
            "query:token",
        ),
        (
            "",
            "",
            r#"{"notificationToken":"{T}"}"#,
            "body:/notificationToken",
        ),
        // Twice the same, and the same in two places, is one thing said twice.
        (
            "x-notification-token: {T}\nx-notification-token: {T}",
            "",
            "{}",
            "header:x-notification-token",
        ),
        (
            "x-notification-token: {T}",
            "token={T}",
            "{}",
            "header:x-notification-token",
        ),
        // Somebody else's `Authorization`, and a field of the invoice that only sounds alike.
        (
            "authorization: Basic dTpw\nx-notification-token: {T}",
            "",
            "{}",
            "header:x-notification-token",
        ),
        (
            "x-notification-token: {T}",
            "",
            r#"{"token":"other"}"#,
            "header:x-notification-token",
        ),
    ] {
        check(&auto, headers, query, body, wanted);
    }
}

#[test]
fn what_differs_is_refused() {
    let auto = Presentations::auto();
    for (headers, query, body, wanted) in [
        ("x-notification-token: wrong", "", "{}", "token_wrong"),
        ("x-notification-token: {T}x", "", "{}", "token_wrong"),
        ("x-notification-token: \"{T}\"", "", "{}", "token_wrong"),
        ("authorization: {T}", "", "{}", "token_missing"),
        ("authorization: Bearer{T}", "", "{}", "token_missing"),
        ("authorization: Bearer Bearer {T}", "", "{}", "token_wrong"),
        ("authorization: Basic {T}", "", "{}", "token_wrong"),
        ("authorization: Basic dTpw", "", "{}", "token_wrong"),
        ("x-notification-token: {T}, {T}", "", "{}", "token_wrong"),
        (
            "x-notification-token: {T}\nx-notification-token: wrong",
            "",
            "{}",
            "token_doubled",
        ),
        (
            "x-notification-token: wrong\nx-notification-token: {T}",
            "",
            "{}",
            "token_doubled",
        ),
        (
            "x-notification-token: {T}\nx-notification-token:",
            "",
            "{}",
            "token_doubled",
        ),
        ("", "token={T}&token=x", "{}", "token_doubled"),
        (
            "x-notification-token: {T}",
            "token=wrong",
            "{}",
            "token_contradicting",
        ),
        (
            "authorization: Bearer wrong",
            "token={T}",
            "{}",
            "token_contradicting",
        ),
        ("", "Token={T}", "{}", "token_missing"),
        ("", "", r#"{"notificationToken":["{T}"]}"#, "token_missing"),
    ] {
        check(&auto, headers, query, body, wanted);
    }
}

/// A19: whatever is empty says nothing, wherever it stands.
#[test]
fn empty_equals_nothing() {
    let auto = Presentations::auto();
    for (headers, query, body) in [
        ("x-notification-token:", "", "{}"),
        ("x-notification-token:    ", "", "{}"),
        ("authorization: Bearer", "", "{}"),
        ("authorization: Bearer  ", "", "{}"),
        ("", "token=", "{}"),
        ("", "token", "{}"),
        ("", "", r#"{"notificationToken":""}"#),
        ("", "", r#"{"notificationToken":null}"#),
        ("authorization: Basic", "", "{}"),
        // `user:`, `:` and `user:` with blanks behind it.
        ("authorization: Basic dXNlcjo=", "", "{}"),
        ("authorization: Basic Og", "", "{}"),
        ("authorization: Basic dXNlcjogIA==", "", "{}"),
        ("x-signature:", "", "{}"),
        ("webhook-signature:", "", "{}"),
        ("webhook-id: msg_1\nwebhook-timestamp: 1", "", "{}"),
        (
            "x-notification-token:\nauthorization: Bearer",
            "token=",
            r#"{"notificationToken":""}"#,
        ),
    ] {
        check(&auto, headers, query, body, "token_missing");
    }
    check(
        &auto,
        "authorization: Bearer",
        "token={T}",
        "{}",
        "query:token",
    );
}

/// A20: strange bytes and lengths are wrong, not a panic.
#[test]
fn strange_values_are_wrong() {
    let mut map = HeaderMap::new();
    for bytes in [
        vec![0xff; 41],
        vec![b'x'; 10_000],
        "ключ".as_bytes().to_vec(),
    ] {
        map.insert(
            "x-notification-token",
            HeaderValue::from_bytes(&bytes).expect("a value"),
        );
        let carried = Carried {
            headers: &map,
            query: Some("%&%=%&token%ff=%zz&&=&token=%"),
            body: &Fields::read(b"{}").expect("an object"),
            raw: b"{}",
        };
        assert_eq!(
            Presentations::auto().judge(&token(), carried),
            Verdict::Wrong
        );
    }
    let many = "x-notification-token: {T}\n".repeat(MOST_VALUES + 1);
    check(&Presentations::auto(), &many, "", "{}", "token_doubled");
}

#[test]
fn only_pinned_places_count() {
    let pinned = Presentations::only(&["header:X-Sign", "bearer", "body:/meta/a~1b", "query:k"])
        .expect("places");
    for (headers, query, body, wanted) in [
        ("x-sign: {T}", "", "{}", "header:x-sign"),
        ("", "", r#"{"meta":{"a/b":"{T}"}}"#, "body:/meta/a~1b"),
        ("", "k={T}", "{}", "query:k"),
        (
            "x-notification-token: {T}",
            "token={T}",
            r#"{"notificationToken":"{T}"}"#,
            "token_missing",
        ),
        (
            "x-notification-token: wrong\nx-sign: {T}",
            "",
            "{}",
            "header:x-sign",
        ),
        (
            "authorization: Basic dTpw\nx-sign: {T}",
            "",
            "{}",
            "token_contradicting",
        ),
        // A scheme is part of the place.
        ("authorization: {T}", "", "{}", "token_wrong"),
        ("authorization: Basic {BASIC}", "", "{}", "token_wrong"),
        ("authorization:", "", "{}", "token_missing"),
    ] {
        check(&pinned, headers, query, body, wanted);
    }
}

/// A20: one byte more or less, blanks within, another case.
#[test]
fn only_the_token_to_the_byte_is_the_token() {
    let token = token();
    let text = token.secret().expose();
    let (_, shorter) = text.split_at(1);
    let values = [
        format!("{text}x"),
        format!("x{text}"),
        shorter.to_owned(),
        text.to_lowercase(),
        text.to_uppercase(),
        format!("\"{text}\""),
        text.replace('-', "- "),
    ];
    let all = Presentations::auto();
    for value in &values {
        let basic = STANDARD.encode(format!("user:{value}"));
        for (headers, query, body) in [
            (format!("x-webhook-secret: {value}"), "", "{}".to_owned()),
            (
                format!("authorization: bearer {value}"),
                "",
                "{}".to_owned(),
            ),
            (format!("authorization: basic {basic}"), "", "{}".to_owned()),
            (String::new(), value.as_str(), "{}".to_owned()),
            (
                String::new(),
                "",
                serde_json::json!({ "notificationToken": value }).to_string(),
            ),
        ] {
            let query = if query.is_empty() {
                String::new()
            } else {
                format!("token={query}")
            };
            check(&all, &headers, &query, &body, "token_wrong");
        }
    }
    // Blanks around it are not its own, wherever it stands.
    let padded = STANDARD.encode(format!("user: {text} \n"));
    check(
        &all,
        &format!("authorization: basic {padded}"),
        "token=%20{T}%0A",
        r#"{"notificationToken":" {T} "}"#,
        "query:token",
    );
}

/// A proxy that asks for a password passes it on; the user name is nobody's business.
#[test]
fn a_password_contradicts_only_where_it_was_pinned() {
    let foreign = "authorization: Basic dTpw";
    let auto = Presentations::auto();
    check(&auto, foreign, "token={T}", "{}", "query:token");
    let twice = format!("authorization: Basic {{BASIC}}\n{foreign}");
    check(&auto, &twice, "", "{}", "token_doubled");
    let bearer = "authorization: Basic {BASIC}\nauthorization: Bearer x";
    check(&auto, bearer, "", "{}", "token_contradicting");
    let pinned = Presentations::only(&["basic-password", "query:token"]).expect("places");
    check(&pinned, foreign, "token={T}", "{}", "token_contradicting");
    for junk in [
        "Basic {T}",
        "Basic dTpw dTpw",
        "Digest x",
        "Bearer {T}",
        "{T}",
    ] {
        let header = format!("authorization: {junk}");
        check(&pinned, &header, "", "{}", "token_wrong");
    }
    let (no_user, no_padding) = ("OnBhc3M=", "dXNlcjpwYXNz");
    for other in [no_user, no_padding] {
        let header = format!("authorization: Basic {other}");
        check(&pinned, &header, "", "{}", "token_wrong");
    }
    let long = STANDARD.encode(format!("a \u{e9}:{}", token().secret().expose()));
    let header = format!("authorization: basic {}", long.trim_end_matches('='));
    check(&pinned, &header, "", "{}", "basic-password");
}

#[test]
fn both_schemes_of_authorization_can_be_pinned() {
    let both = Presentations::only(&["bearer", "basic-password"]).expect("places");
    for (header, wanted) in [
        ("authorization: Bearer {T}", "bearer"),
        ("authorization: Basic {BASIC}", "basic-password"),
        ("authorization: Digest {T}", "token_wrong"),
    ] {
        check(&both, header, "", "{}", wanted);
    }
}

#[test]
fn places_that_read_a_header_in_two_ways_are_told() {
    for (one, other) in [
        ("header:X-Sign", "hmac-sha256:header:x-sign"),
        ("bearer", "header:Authorization"),
        ("standard-webhooks", "header:webhook-id"),
    ] {
        let clash = Presentations::only(&[one, "query:k", other]).expect_err("a clash");
        assert!(matches!(clash, PlaceError::Clash(..)), "{clash}");
    }
    Presentations::only(&["bearer", "bearer"]).expect("said twice is said once");
}

#[test]
fn a_place_reads_back_and_a_typo_is_told() {
    for text in [
        "header:x-a",
        "bearer",
        "basic-password",
        "query:t",
        "body:/a/b",
        "hmac-sha256:header:x-a",
        "standard-webhooks",
    ] {
        assert_eq!(
            Place::parse(text).map(|p| p.to_string()).as_deref(),
            Ok(text)
        );
    }
    for text in [
        "",
        "header",
        "header:",
        "header:a b",
        "Bearer",
        "bearer:x",
        "query:",
        "body:",
        "body:/",
        "body:a",
        "cookie:x",
        "basic",
        "basic-password:x",
        "hmac-sha256",
        "hmac-sha256:x",
        "hmac-sha256:header:",
        "hmac-sha256:header:a b",
        "hmac-sha256:query:x",
        "standard-webhooks:x",
    ] {
        assert_eq!(
            Place::parse(text),
            Err(PlaceError::Unknown(text.to_owned())),
            "`{text}`"
        );
    }
    assert_eq!(Presentations::only::<&str>(&[]), Err(PlaceError::None));
    assert_eq!(Presentations::auto().places.len(), USUAL.len());
}
