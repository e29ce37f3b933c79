//! The invoice object in the forms that senders give it.
//! Relies on nothing but the reader.
//! Promises that trouble in one field costs no other, and that what cannot be read is not taken for missing.

use super::*;
use crate::secret::Secret;

fn read(body: &str) -> Report {
    without(body, &[])
}

fn without(body: &str, hidden: &[&Secret]) -> Report {
    let decoded = decode(&Fields::read(body.as_bytes()).expect(body)).expect(body);
    decoded.without(hidden)
}

#[test]
fn id_and_status_are_enough() {
    let found = read(
        r#"{"id":"a1","status":"PARTIALLY_REVERSED","paymentOption":null,"direction":"sideways","extra":{"x":[1]}}"#,
    );
    assert_eq!(found.status.as_str(), "PARTIALLY_REVERSED");
    assert_eq!(found.amount, Reported::Missing);
    assert!(found.raw.contains("extra"));
    assert_eq!(told(&found), ["direction=sideways"]);
}

fn told(report: &Report) -> Vec<String> {
    report.odd.iter().map(Odd::key).collect()
}

#[test]
fn odd_fields_are_named_and_lose_nothing_else() {
    let found = read(
        r#"{"id":"a1","status":"x","dealRate":91.5,"amount":12.50,"expireAt":"soon","currency":["RUB"],"dealRequisites":"not json"}"#,
    );
    assert_eq!(found.reported(), (Some("12.50"), Some(r#"["RUB"]"#)));
    assert_eq!(
        told(&found),
        [
            "amount:retyped",
            "currency:retyped",
            "dealRate:retyped",
            "expireAt:no_time",
            "dealRequisites:no_object"
        ]
    );
}

/// A10: a time that cannot be read is kept as it was written.
#[test]
fn an_unreadable_time_is_kept_as_it_was_written() {
    for (value, instant, kept, odd) in [
        (r#""2025-03-30T01:30:00Z""#, true, None, None),
        (
            r#""2025-03-30T01:30:00""#,
            true,
            None,
            Some("updatedAt:no_zone"),
        ),
        (
            r#""1743298200""#,
            false,
            Some("1743298200"),
            Some("updatedAt:no_time"),
        ),
        (
            "1743298200",
            false,
            Some("1743298200"),
            Some("updatedAt:no_time"),
        ),
        (
            "1743298200.5",
            false,
            Some("1743298200.5"),
            Some("updatedAt:no_time"),
        ),
        ("[2025]", false, Some("[2025]"), Some("updatedAt:no_time")),
        ("false", false, Some("false"), Some("updatedAt:no_time")),
        (r#""""#, false, None, None),
        ("null", false, None, None),
    ] {
        let report = read(&format!(r#"{{"id":"a","status":"x","updatedAt":{value}}}"#));
        assert_eq!(report.updated_at.is_some(), instant, "{value}");
        assert_eq!(report.updated_at_text.as_deref(), kept, "{value}");
        assert_eq!(told(&report), odd.as_slice(), "{value}");
    }
}

/// A08: a number where a string belongs is read as its digits, an id too.
#[test]
fn numbers_are_read_as_their_digits() {
    let digits = "1234567890123456789012345678901234567890";
    let report = read(&format!(
        r#"{{"id":7000000000000000000001,"status":"x","internalId":42,"amount":{digits},"createdAt":1}}"#
    ));
    assert_eq!(report.id.as_str(), "7000000000000000000001");
    assert_eq!(report.order_id, Reported::Value("42".to_owned()));
    assert_eq!(report.amount, Reported::Unreadable);
    assert!(report.raw.contains(digits));
    let fields = ["id", "amount", "createdAt", "internalId"];
    assert_eq!(
        told(&report),
        fields.map(|field| format!("{field}:retyped"))
    );
}

/// A08, A09: what is there and cannot be read is not missing; what is equal by value is equal.
#[test]
fn an_amount_is_a_plain_decimal_or_unreadable_or_missing() {
    use Reported::{Missing, Unreadable, Value};
    let long = format!("\"{}\"", "9".repeat(100_000));
    for (form, wanted) in [
        ("1e3", Value("1000")),
        ("1E+3", Value("1000")),
        ("1000.00", Value("1000.00")),
        (r#""1e3""#, Value("1000")),
        (r#""0599.80""#, Value("0599.80")),
        ("1e999999999", Unreadable),
        ("{}", Unreadable),
        ("[1000]", Unreadable),
        ("true", Unreadable),
        ("false", Unreadable),
        (r#""NaN""#, Unreadable),
        (r#"" 1000""#, Unreadable),
        (&long, Unreadable),
        (r#""""#, Missing),
        ("null", Missing),
    ] {
        let report = read(&format!(r#"{{"id":"a","status":"x","amount":{form}}}"#));
        let plain = match &report.amount {
            Missing => Missing,
            Value(amount) => Value(amount.as_str()),
            Unreadable => Unreadable,
        };
        assert_eq!(plain, wanted, "{form:.99}");
    }
}

#[test]
fn an_order_or_a_currency_of_another_type_is_not_missing() {
    for (form, missing) in [
        ("true", false),
        ("false", false),
        ("[5]", false),
        ("{}", false),
        ("7", false),
        (r#""""#, true),
        ("null", true),
    ] {
        let body = format!(r#"{{"id":"a","status":"x","internalId":{form},"currency":{form}}}"#);
        let report = read(&body);
        // Not even an order that is called so.
        assert_eq!(
            report.names_other_order(form),
            !missing && form != "7",
            "{form}"
        );
        assert_eq!(report.currency.as_deref(), (!missing).then_some(form));
    }
}

#[test]
fn requisites_in_any_number_of_layers() {
    let wanted = r#"{"bankName":"Б","phoneNumber":"+7"}"#;
    let once = Value::from(wanted).to_string();
    let twice = Value::from(once.as_str()).to_string();
    for form in [wanted, &once, &twice] {
        let body = format!(r#"{{"id":"a","status":"new","dealRequisites":{form}}}"#);
        assert_eq!(read(&body).requisites.as_deref(), Some(wanted), "{form}");
    }
    for form in [r#""""#, "null", r#""not json""#, r#""5""#] {
        let body = format!(r#"{{"id":"a","status":"new","dealRequisites":{form}}}"#);
        assert_eq!(read(&body).requisites, None, "{form}");
    }
}

#[test]
fn texts_without_end_are_kept_short_and_unequal() {
    let told =
        |text: &str| read(&format!(r#"{{"id":"a","status":"x","currency":"{text}"}}"#)).currency;
    let (one, other) = (told(&"R".repeat(100_000)), told(&"R".repeat(100_001)));
    assert!(one != other && one.is_some_and(|text| text.len() < 200));
}

/// Cut after it was shortened, the first letters of a secret would stay.
#[test]
fn a_secret_in_a_long_text_is_cut_before_the_text_is_shortened() {
    let secret = Secret::new("notify-token-notify-token-notify-token-0123");
    for field in [
        "currency",
        "paymentMethod",
        "updatedAt",
        "direction",
        "status",
        "internalId",
    ] {
        for padding in 0..70 {
            let told = format!("{}{}", "x".repeat(padding), secret.expose());
            let body = format!(r#"{{"id":"a","status":"x","{field}":"{told}"}}"#);
            let body = body.replace(r#""status":"x","status""#, r#""status""#);
            let report = format!("{:?}", without(&body, &[&secret]));
            assert!(!report.contains("notify"), "{field} {padding}: {report}");
            assert!(report.contains("[cut]"), "{field} {padding}: {report}");
        }
    }
}

/// What a browser would run, or open from a disk, is no address of a payment page.
#[test]
fn only_an_address_of_the_web_is_a_payment_page() {
    let read_url = |url: &str| {
        read(&format!(
            r#"{{"id":"a","status":"x","paymentUrl":"{url}"}}"#
        ))
    };
    let good = read_url("https://pay.example/1");
    assert_eq!(good.payment_url.as_deref(), Some("https://pay.example/1"));
    assert_eq!(told(&good), Vec::<String>::new());
    let bad = read_url("javascript:alert(1)");
    assert_eq!(bad.payment_url, None);
    assert_eq!(told(&bad), ["paymentUrl:no_address"]);
    assert!(bad.raw.contains("javascript:alert(1)"));
    assert_eq!(told(&read_url("")), Vec::<String>::new());
}

#[test]
fn without_id_or_status_it_is_no_invoice() {
    for (body, wanted) in [
        (r#"{"status":"paid"}"#, NotAnInvoice::Id),
        (r#"{"id":"..","status":"paid"}"#, NotAnInvoice::Id),
        (r#"{"id":"a\nb","status":"paid"}"#, NotAnInvoice::Id),
        (r#"{"id":"a"}"#, NotAnInvoice::Status),
        (r#"{"id":"a","status":""}"#, NotAnInvoice::Status),
        (r#"{"id":"a","status":7}"#, NotAnInvoice::Status),
    ] {
        assert_eq!(
            decode(&Fields::read(body.as_bytes()).expect(body)),
            Err(wanted),
            "{body}"
        );
    }
}
