//! Notifications and invoices in forms the contract does not show: new names, empty and retyped fields, amounts in other
//! spellings, JSON inside JSON (A08, A09, A11). What is at stake: trouble in a field nobody needs must not cost the status.

use serde_json::{Value, json};

use crate::harness::{Heard, PATIENCE, Service, Setup, wait_until};

/// A08
#[test]
fn a_field_nobody_needs_does_not_cost_the_status() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let cases = [
        json!({ "paymentOption": null }),
        json!({ "paymentUrl": null, "requisiteId": null, "merchantName": null }),
        json!({ "dealRate": 91.5 }),
        json!({ "direction": "sideways" }),
        json!({ "direction": 1 }),
        json!({ "extra": { "nested": [{ "deep": true }] } }),
        json!({ "expireAt": "" }),
        json!({ "expireAt": "soon" }),
        json!({ "expireAt": 1_795_860_120 }),
        json!({ "createdAt": null }),
        json!({ "amount": null }),
        json!({ "currency": null }),
        json!({ "currency": "" }),
        json!({ "internalId": null }),
        json!({ "paymentMethod": {} }),
    ];
    for (number, fields) in cases.iter().enumerate() {
        let status = format!("NEVER_SEEN_{number}");
        let mut all = json!({ "status": status, "updatedAt": invoice.at_us(number + 1) });
        all.as_object_mut()
            .expect("fields")
            .extend(fields.as_object().expect("fields").clone());
        let answer = world.tell(&invoice, &invoice.with(&all).to_string());
        assert_eq!(answer.status, 200, "{fields}: {answer:?}");
        let now = world.sql("SELECT status, outcome, doubt FROM invoices");
        assert_eq!(now, [[status.as_str(), "open", "0"]], "{fields}");
    }
    // Only what is needed: an id and a status. Without an instant a poll must tell.
    let bare = json!({ "id": invoice.id, "status": "BARE" }).to_string();
    assert_eq!(world.tell(&invoice, &bare).status, 200);
    let last =
        "SELECT status, decision FROM heard WHERE source = 'notification' ORDER BY id DESC LIMIT 1";
    assert_eq!(world.sql(last), [["BARE", "doubt"]]);
    // One line for each new name, and no more.
    let log = world.serve_log();
    let named = log
        .lines()
        .filter(|line| line.contains("WARN") && line.contains("NEVER_SEEN_3"));
    assert_eq!(named.count(), 1, "{log}");
    assert!(
        world
            .value("SELECT attention FROM invoices")
            .contains("unsorted_status")
    );
}

/// A09: what goes out.
#[test]
fn the_digits_that_were_typed_are_the_digits_that_are_sent() {
    let service = Service::start(create_answer);
    let world = Setup::new().quiet().service(&service.url()).start();
    assert_eq!(world.tilld(&["login"]).code, 0);
    for (number, amount) in ["599.80", "0.10", "1000000000000.01", "7"]
        .iter()
        .enumerate()
    {
        let order = format!("A-{number}");
        let ran = world.open(&order, amount, &[]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let heard = service.heard();
        let body = &heard.last().expect("a create").body;
        let is_number = [',', '}']
            .iter()
            .any(|end| body.contains(&format!("\"amount\":{amount}{end}")));
        assert!(is_number, "{amount}: {body}");
        let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(shown.get("amount_asked"), Some(&json!(amount)));
    }
}

/// Answers a create with the invoice object, the amount to the letter.
fn create_answer(heard: &Heard) -> (u16, String) {
    let Ok(asked) = serde_json::from_str::<Value>(&heard.body) else {
        return (404, "{}".to_owned());
    };
    let text = |name: &str| asked.get(name).map(Value::to_string).unwrap_or_default();
    let order = asked.get("internalId").cloned().unwrap_or_default();
    let answer = json!({
        "id": format!("inv-of-{}", order.as_str().unwrap_or_default()),
        "direction": "in",
        "status": "new",
        "amount": text("amount"),
        "currency": asked.get("currency"),
        "createdAt": "2026-01-01T10:00:00.000Z",
        "updatedAt": "2026-01-01T10:00:00.000Z",
        "internalId": order,
    });
    (201, answer.to_string())
}

/// A09: what comes in.
#[test]
fn an_amount_is_the_same_in_every_spelling_and_kept_as_a_plain_decimal() {
    let note = "echo \"$TILLD_EVENT $TILLD_AMOUNT\" >> \"$1\"";
    let world = Setup::new()
        .plain()
        .quiet()
        .hook("note", &["paid", "mismatch"], note)
        .start();
    for (order, amount, kind) in [
        ("A-1", json!("599.8"), "paid"),
        ("A-2", json!("599.800"), "paid"),
        ("A-3", json!("0599.80"), "paid"),
        ("A-4", Value::Null, "paid"),
        ("A-5", json!("599.79"), "mismatch"),
        ("A-6", json!("59980"), "mismatch"),
        ("A-7", json!("5.9980e2"), "paid"),
    ] {
        let created = world.create(order);
        // A differing amount is believed once the service says so itself.
        let fields = json!({ "status": "paid", "amount": amount.as_str().unwrap_or("599.80") });
        let invoice = world.dictate_fields(&created, &fields);
        let answer = world.tell(
            &invoice,
            &invoice.with(&json!({ "amount": amount })).to_string(),
        );
        assert_eq!(answer.status, 200, "{amount}");
        let outcome = format!("SELECT outcome FROM invoices WHERE order_id = '{order}'");
        wait_until(PATIENCE, &format!("{order}: {kind}"), || {
            world.value(&outcome) == kind
        });
        world.settle();
        // A poll named what the notification did not; an exponent is none of a plain decimal.
        let reported = match amount.as_str() {
            None | Some("5.9980e2") => "599.80",
            Some(plain) => plain,
        };
        let noted = world.hook_log("note").pop();
        assert_eq!(noted, Some(format!("{kind} {reported}")), "{order}");
    }
}

/// A11: one field.
#[test]
fn requisites_in_any_wrapping_do_not_cost_the_status() {
    let note = "cat >> \"$1\"";
    let world = Setup::new().quiet().hook("note", &["*"], note).start();
    let invoice = world.create("A-1");
    let layers = |card: u32, layers: usize| {
        let object = json!({ "card": format!("2200 {card}"), "quote": "\"}" });
        let wrap = |value: Value, _| Value::from(value.to_string());
        let wrapped = (0..layers).fold(object.clone(), wrap);
        (wrapped, Some(object))
    };
    let cases = [
        layers(1, 1),
        (json!(""), None),
        layers(2, 0),
        (Value::Null, None),
        layers(3, 2),
        (json!("not json"), None),
        (json!(7), None),
        (json!(["2200"]), None),
        layers(4, 1),
    ];
    // What cannot be read takes nothing away.
    let mut last = Value::Null;
    for (number, (wrapped, wanted)) in cases.into_iter().enumerate() {
        last = wanted.unwrap_or(last);
        let status = format!("step-{number}");
        let fields = json!({
            "status": status,
            "updatedAt": invoice.at_us(number + 1),
            "dealRequisites": wrapped,
        });
        let answer = world.tell(&invoice, &invoice.with(&fields).to_string());
        assert_eq!(answer.status, 200, "{wrapped}: {answer:?}");
        world.settle();
        let told = world.hook_log("note").pop().expect("a document");
        let told: Value = serde_json::from_str(&told).expect("one document a line");
        assert_eq!(told.pointer("/event/status"), Some(&json!(status)));
        assert_eq!(
            told.pointer("/invoice/requisites"),
            Some(&last),
            "{wrapped}"
        );
    }
}

/// A11: the whole body.
#[test]
fn a_body_that_is_a_string_is_read_or_refused_and_never_lost() {
    let world = Setup::new().quiet().start();
    let invoice = world.create("A-1");
    let body = invoice.saying("waiting", &invoice.at(1));
    let once = Value::from(body).to_string();
    let answer = world.tell(&invoice, &once);
    let stored = world.value("SELECT status FROM invoices") == "waiting";
    assert_eq!((answer.status, stored), (200, true), "{answer:?}");
    let more = invoice.saying("paid", &invoice.at(2));
    let thrice = (0..3).fold(more, |text, _| Value::from(text).to_string());
    for body in [
        thrice.as_str(),
        "\"\"",
        "\"not json\"",
        "[]",
        "7",
        "null",
        "",
        "{}",
    ] {
        assert_eq!(world.tell(&invoice, body).status, 400, "{body}");
    }
    assert_eq!(world.value("SELECT status FROM invoices"), "waiting");
}
