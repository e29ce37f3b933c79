//! What a shop may ask for: whole numbers as numbers, everything else as text, and no digit that nobody can pay.
//! Relies on `till`.
//! Promises the same at the command line and at the socket.

use serde_json::Value;

use super::till::Till;

/// The body of a create, each value to the letter.
fn wish(order: &str, amount: &str, currency: &str) -> String {
    format!(r#"{{"order_id":{order},"amount":{amount},"currency":"{currency}","method":"SBP"}}"#)
}

#[test]
fn whole_numbers_are_taken_and_other_numbers_are_sent_as_text() {
    let till = Till::start();
    let world = &till.world;
    for (order, amount) in [
        ("1", "1000"),
        ("2", "\"599.80\""),
        ("\"3\"", "7"),
        ("12345678901234567890123", "1"),
    ] {
        let opened = world.call("POST", "/v1/invoices", &wish(order, amount, "RUB"));
        assert_eq!(opened.status, 201, "{opened:?}");
        let shown: Value = serde_json::from_str(&opened.body).expect("JSON");
        let text = |name: &str| {
            shown
                .get(name)
                .and_then(Value::as_str)
                .expect("text")
                .to_owned()
        };
        assert_eq!(text("order_id"), order.trim_matches('"'));
        assert_eq!(text("amount_asked"), amount.trim_matches('"'));
    }
    // The same order, as a number and as text.
    let again = world.call("POST", "/v1/invoices", &wish("\"1\"", "\"1000.00\"", "RUB"));
    assert_eq!(again.status, 200, "{again:?}");
    for (order, amount, field) in [
        ("\"9\"", "599.80", "`amount`"),
        ("\"9\"", "1e3", "`amount`"),
        ("\"9\"", "1E+3", "`amount`"),
        ("\"9\"", "1000.0", "`amount`"),
        ("9.0", "\"1\"", "`order_id`"),
        ("9e1", "\"1\"", "`order_id`"),
        ("true", "\"1\"", "`order_id`"),
        ("\"9\"", "[1]", "`amount`"),
        ("\"9\"", "null", "`amount`"),
    ] {
        let refused = world.call("POST", "/v1/invoices", &wish(order, amount, "RUB"));
        assert_eq!(refused.status, 400, "{order} {amount}: {refused:?}");
        assert!(refused.body.contains("send it as text"), "{refused:?}");
        assert!(refused.body.contains(field), "{refused:?}");
    }
    for (amount, why) in [
        ("-5", "greater than zero"),
        ("0", "greater than zero"),
        ("\"1e3\"", "plain decimal"),
        // What serde_json takes for a number.
        (
            r#"{"$serde_json::private::Number":"5"}"#,
            "a name that no body may have",
        ),
    ] {
        let refused = world.call("POST", "/v1/invoices", &wish("\"9\"", amount, "RUB"));
        assert_eq!(refused.status, 400, "{amount}: {refused:?}");
        assert!(refused.body.contains(why), "{refused:?}");
    }
    assert_eq!(world.value("SELECT count(*) FROM invoices"), "4");
}

#[test]
fn no_digit_is_asked_for_that_the_currency_has_not() {
    let till = Till::start();
    let world = &till.world;
    for (number, (amount, currency, fits)) in [
        ("599.80", "RUB", true),
        ("599.8000", "RUB", true),
        ("599.801", "RUB", false),
        ("100.00", "JPY", true),
        ("100.5", "JPY", false),
        ("1.234", "KWD", true),
        ("1.2345", "KWD", false),
        ("0.00000001", "BTC", true),
    ]
    .into_iter()
    .enumerate()
    {
        let order = format!("S-{number}");
        let body = wish(&format!("\"{order}\""), &format!("\"{amount}\""), currency);
        let opened = world.call("POST", "/v1/invoices", &body);
        assert_eq!(
            opened.status,
            if fits { 201 } else { 400 },
            "{amount} {currency}: {opened:?}"
        );
        let order = format!("C-{number}");
        let create = [
            "invoice",
            "create",
            "--order",
            &order,
            "--amount",
            amount,
            "--currency",
            currency,
            "--method",
            "SBP",
        ];
        let ran = world.tilld(&create).ends_with(if fits { 0 } else { 2 });
        if !fits {
            let said = format!("{amount} {currency} has more than");
            assert!(ran.stderr.contains(&said), "{ran:?}");
            assert!(opened.body.contains(&said), "{opened:?}");
        }
    }
}
