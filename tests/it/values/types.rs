//! A field that is compared and has another JSON type differs: it is not taken for missing.
//! Relies on `till`.
//! Promises that no payment is told for it, whoever says it.

use serde_json::{Value, json};

use super::till::{Till, status};

/// The fields of a payment with one more.
fn paid_with(name: &str, value: &Value) -> Value {
    let mut fields = status("paid", 5);
    let all = fields.as_object_mut().expect("fields");
    all.insert(name.to_owned(), value.clone());
    fields
}

#[test]
fn a_currency_of_another_type_is_another_currency() {
    let till = Till::start();
    let forms = [
        json!({}),
        json!({ "code": "RUB" }),
        json!(["RUB"]),
        json!(false),
        json!(643),
    ];
    for (number, form) in forms.iter().enumerate() {
        let order = format!("A-{number}");
        till.open(&order, "1000");
        till.says_and_tells(&order, &paid_with("currency", form), "\"1000.00\"");
        // The poll says the same, so that it stands.
        till.becomes(&order, &["outcome", "doubt"], "mismatch 0");
        till.becomes(&order, &["currency_reported"], &form.to_string());
    }
    till.world.settle();
    let noted = till.world.hook_log("note");
    assert!(
        noted.iter().all(|line| !line.contains(" paid ")),
        "{noted:?}"
    );
}

#[test]
fn an_order_of_another_type_is_no_order() {
    let till = Till::start();
    for (order, form) in [
        ("true", json!(true)),
        ("[5]", json!([5])),
        ("{}", json!({})),
        ("A-1", json!(false)),
    ] {
        till.open(order, "1000");
        let body = till.says(order, &paid_with("internalId", &form), "\"1000.00\"");
        let refused = till.tell(order, &body);
        assert_eq!(refused.status, 401, "{form}: {refused:?}");
        let bare = till.tell_bare(order, &body);
        assert_eq!(bare.status, 401, "{form}: {bare:?}");
        till.poll(order);
        assert_eq!(till.world.invoice(order, "outcome"), "open", "{form}");
    }
    // A whole number is read as its digits.
    till.open("42", "1000");
    till.says_and_tells("42", &paid_with("internalId", &json!(42)), "\"1000.00\"");
    till.becomes("42", &["outcome"], "paid");
}

#[test]
fn missing_and_null_and_empty_are_the_same() {
    let till = Till::start();
    for (number, form) in [json!(null), json!("")].iter().enumerate() {
        for (field, name) in [("c", "currency"), ("i", "internalId")] {
            let order = format!("A-{field}{number}");
            till.open(&order, "1000");
            till.says_and_tells(&order, &paid_with(name, form), "\"1000.00\"");
            till.becomes(&order, &["outcome", "doubt"], "paid 0");
        }
    }
}
