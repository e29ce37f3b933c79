//! The contract to the letter: the document, the variables, and what hostile texts make of them.

use serde_json::Value;

use super::*;

/// An event as it usually is, for the tests of this room.
pub(crate) fn facts() -> Facts {
    Facts {
        hook: "fulfil".to_owned(),
        attempt: 2,
        replay: false,
        event_id: "0199-e".to_owned(),
        seq: 7,
        kind: EventKind::Paid,
        rewound: false,
        at_ms: 1_795_860_120_004,
        source: Some(Source::Poll),
        status: Some("done".to_owned()),
        previous_status: Some("new".to_owned()),
        outcome: Outcome::Paid,
        previous_outcome: Outcome::Open,
        order_outcome: Outcome::Paid,
        order_id: "1042".to_owned(),
        invoice_id: Some("inv-1".to_owned()),
        invoice_ref: "AAAAAAAAAAAAAAAAAAAAAA".to_owned(),
        mode: "h2h".to_owned(),
        method: "SBP".to_owned(),
        amount_asked: "599.80".to_owned(),
        amount_agreed: "599.80".to_owned(),
        currency_agreed: "RUB".to_owned(),
        amount_reported: Some("599.8".to_owned()),
        currency_reported: Some("RUB".to_owned()),
        payment_url: None,
        requisites: Some(r#"{"phoneNumber":"+70000000000"}"#.to_owned()),
        expire_ms: Some(1_795_860_720_000),
        service: Some(r#"{"id":"inv-1","amount":0.10}"#.to_owned()),
        abandoned: None,
    }
}

#[test]
fn the_document_is_what_the_contract_says() {
    let wanted = concat!(
        r#"{"schema":1,"event":{"id":"0199-e","seq":7,"kind":"paid","rewound":false,"at":"2026-11-28T10:02:00.004Z","#,
        r#""source":"poll","status":"done","previous_status":"new","outcome":"paid","previous_outcome":"open","order_outcome":"paid"},"#,
        r#""attempt":2,"replay":false,"hook":"fulfil","invoice":{"order_id":"1042","invoice_id":"inv-1","#,
        r#""ref":"AAAAAAAAAAAAAAAAAAAAAA","mode":"h2h","method":"SBP","amount_asked":"599.80","#,
        r#""amount_agreed":"599.80","amount_reported":"599.8","currency":"RUB","currency_reported":"RUB","#,
        r#""payment_url":null,"requisites":{"phoneNumber":"+70000000000"},"expire_at":"2026-11-28T10:12:00.000Z"},"#,
        r#""service":{"amount":0.10,"id":"inv-1"},"abandoned":null}"#,
        "\n",
    );
    assert_eq!(document(&facts()), wanted);
}

#[test]
fn hostile_texts_leave_the_document_valid_and_the_variables_harmless() {
    for text in [
        "$(touch x)",
        ";id",
        "a\n2025 ERROR forged",
        "\"'",
        "a\0b",
        "\u{202e}rtl",
        "\x1b[2J\x7f",
        "--config=/x",
    ] {
        let facts = Facts {
            order_id: text.to_owned(),
            service: Some(text.to_owned()),
            ..facts()
        };
        let read: Value = serde_json::from_str(&document(&facts)).expect(text);
        assert_eq!(
            read.pointer("/invoice/order_id").and_then(Value::as_str),
            Some(text)
        );
        assert_eq!(read.pointer("/service").and_then(Value::as_str), Some(text));
        for (name, value) in variables(&facts, Path::new("/run/p")) {
            let value = value.into_string().expect("UTF-8");
            assert!(!value.chars().any(char::is_control), "{name}={value:?}");
        }
    }
    assert_eq!(tame("a\0b\n"), "a\u{fffd}b\u{fffd}");
}

#[test]
fn variables_are_capped_at_a_letter_and_hold_no_requisites() {
    let long = Facts {
        order_id: "я".repeat(100_000),
        ..facts()
    };
    for (name, value) in variables(&long, Path::new("/run/p")) {
        assert!(value.len() <= LONGEST_VARIABLE, "{name}");
        assert!(!value.to_string_lossy().contains("70000000000"), "{name}");
    }
    assert_eq!(tame(&"я".repeat(3000)), "я".repeat(LONGEST_VARIABLE / 2));
    assert_eq!(
        tame(&format!("x{}", "я".repeat(3000))).len(),
        LONGEST_VARIABLE - 1
    );
}

#[test]
fn every_variable_has_its_own_value() {
    let bare = Facts {
        source: None,
        status: None,
        previous_status: None,
        invoice_id: None,
        amount_reported: None,
        currency_reported: None,
        replay: true,
        ..facts()
    };
    let shown = |facts: &Facts| {
        variables(facts, Path::new("/run/p"))
            .map(|(name, value)| format!("{name}={}", value.display()))
            .join("\n")
    };
    let wanted = "TILLD_EVENT=paid\nTILLD_EVENT_ID=0199-e\nTILLD_ATTEMPT=2\nTILLD_REPLAY=0\nTILLD_SOURCE=poll\n\
        TILLD_ORDER_ID=1042\nTILLD_INVOICE_ID=inv-1\nTILLD_REF=AAAAAAAAAAAAAAAAAAAAAA\nTILLD_STATUS=done\n\
        TILLD_PREVIOUS_STATUS=new\nTILLD_OUTCOME=paid\nTILLD_ORDER_OUTCOME=paid\nTILLD_AMOUNT=599.8\nTILLD_AGREED_AMOUNT=599.80\n\
        TILLD_CURRENCY=RUB\nTILLD_MODE=h2h\nTILLD_OCCURRED_AT=2026-11-28T10:02:00.004Z\n\
        TILLD_ABANDONED_HOOK=\nTILLD_ABANDONED_EVENT_ID=\nTILLD_ABANDONED_RESULT=\nTILLD_PAYLOAD_FILE=/run/p";
    assert_eq!(shown(&facts()), wanted);
    let wanted = wanted
        .replace("REPLAY=0", "REPLAY=1")
        .replace("SOURCE=poll", "SOURCE=")
        .replace("ID=inv-1", "ID=")
        .replace("STATUS=done", "STATUS=")
        .replace("STATUS=new", "STATUS=")
        .replace("TILLD_AMOUNT=599.8", "TILLD_AMOUNT=");
    assert_eq!(shown(&bare), wanted);
}

/// The event of [`facts`], whose delivery was given up.
fn given_up() -> Facts {
    facts().telling(GivenUp {
        hook: "fulfil".to_owned(),
        event_id: "0199-e".to_owned(),
        attempts: 12,
        at_ms: 1_795_946_520_004,
        result: "exit 1".to_owned(),
        stderr: "no stock\n".to_owned(),
    })
}

#[test]
fn an_abandonment_is_told_as_what_it_is_and_not_as_its_event() {
    let facts = Facts {
        hook: "on_abandoned".to_owned(),
        attempt: 1,
        ..given_up()
    };
    let told: Value = serde_json::from_str(&document(&facts)).expect("JSON");
    let at = |pointer: &str| told.pointer(pointer).cloned().unwrap_or_default();
    assert_eq!(at("/event/kind"), "abandoned");
    assert_eq!(at("/event/id"), "0199-e-abandoned-fulfil-12");
    assert_eq!(at("/event/at"), "2026-11-29T10:02:00.004Z");
    // Nothing changed, and the service said nothing.
    assert_eq!(at("/event/previous_outcome"), at("/event/outcome"));
    assert_eq!(at("/event/previous_status"), at("/event/status"));
    assert_eq!(
        (at("/event/source"), at("/service")),
        (Value::Null, Value::Null)
    );
    let wanted = serde_json::json!({ "hook": "fulfil", "event_id": "0199-e", "kind": "paid", "attempts": 12,
        "result": "exit 1", "stderr": "no stock\n" });
    assert_eq!(at("/abandoned"), wanted);
    let variables = variables(&facts, Path::new("/run/p"));
    for (name, wanted) in [
        ("TILLD_EVENT", "abandoned"),
        ("TILLD_EVENT_ID", "0199-e-abandoned-fulfil-12"),
        ("TILLD_SOURCE", ""),
        ("TILLD_OUTCOME", "paid"),
        ("TILLD_ORDER_ID", "1042"),
        ("TILLD_ABANDONED_HOOK", "fulfil"),
        ("TILLD_ABANDONED_EVENT_ID", "0199-e"),
        ("TILLD_ABANDONED_RESULT", "exit 1"),
    ] {
        let value = variables.iter().find(|(known, _)| *known == name);
        assert_eq!(
            value.map(|(_, value)| value.to_str()),
            Some(Some(wanted)),
            "{name}"
        );
    }
}
