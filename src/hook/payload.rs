//! What a hook is told: the JSON document on its standard input and the `TILLD_*` variables. Pure.
//!
//! Part of the public contract: fields and variables are only ever added. Short fields go into variables, each capped
//! and free of control characters; customer data (requisites) and anything long stands in the document alone (A37, A39).

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use crate::invoice::event::EventKind;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::status::Outcome;

/// The version of the document's shape.
const SCHEMA: u32 = 1;

/// Longest variable, in bytes. Linux refuses 128 KiB; no field that belongs into a variable comes near this.
pub const LONGEST_VARIABLE: usize = 4096;

/// Every variable a hook is given besides `PATH`, `HOME` and `LANG`. None of them may be a setting.
pub const VARIABLES: [&str; 17] = [
    "TILLD_EVENT",
    "TILLD_EVENT_ID",
    "TILLD_ATTEMPT",
    "TILLD_REPLAY",
    "TILLD_SOURCE",
    "TILLD_ORDER_ID",
    "TILLD_INVOICE_ID",
    "TILLD_REF",
    "TILLD_STATUS",
    "TILLD_PREVIOUS_STATUS",
    "TILLD_OUTCOME",
    "TILLD_AMOUNT",
    "TILLD_AGREED_AMOUNT",
    "TILLD_CURRENCY",
    "TILLD_MODE",
    "TILLD_OCCURRED_AT",
    "TILLD_PAYLOAD_FILE",
];

/// All a hook may learn about one attempt at one delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The hook's name.
    pub hook: String,
    /// 1 for the first run of this delivery.
    pub attempt: u32,
    /// True when a person asked for a run of something already done.
    pub replay: bool,
    /// The stable id of the event: the same in every attempt, so that a hook can tell a repetition.
    pub event_id: String,
    /// The event's number in the ledger.
    pub seq: i64,
    /// What kind of change it is.
    pub kind: EventKind,
    /// A poll went back to an older claim.
    pub rewound: bool,
    /// When it was recorded, milliseconds since 1970.
    pub at_ms: i64,
    /// Who said it; `None` for what nobody claimed.
    pub source: Option<Source>,
    /// The status shown from the event on.
    pub status: Option<String>,
    /// The status before it.
    pub previous_status: Option<String>,
    /// The outcome from the event on.
    pub outcome: Outcome,
    /// The outcome before it.
    pub previous_outcome: Outcome,
    /// The merchant's own id of the order.
    pub order_id: String,
    /// The service's id, once it is known.
    pub invoice_id: Option<String>,
    /// The invoice's ref.
    pub invoice_ref: String,
    /// `h2h` or `redirect`; `unknown` of an invoice opened elsewhere, until an answer shows it.
    pub mode: String,
    /// The payment method as it was asked for; of an invoice opened elsewhere as reported, and empty until then.
    pub method: String,
    /// What was asked for at create.
    pub amount_asked: String,
    /// What was agreed: as asked until an operator accepts other figures.
    pub amount_agreed: String,
    /// The currency that was agreed.
    pub currency_agreed: String,
    /// The amount of the claim behind the event.
    pub amount_reported: Option<String>,
    /// The currency of the claim behind the event.
    pub currency_reported: Option<String>,
    /// The hosted payment page (Redirect).
    pub payment_url: Option<String>,
    /// The requisites as JSON text (H2H).
    pub requisites: Option<String>,
    /// The end of the payment window, milliseconds since 1970.
    pub expire_ms: Option<i64>,
    /// The service's document behind the event, secrets cut out.
    pub service: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    event: Event<'a>,
    attempt: u32,
    replay: bool,
    hook: &'a str,
    invoice: Invoice<'a>,
    service: Option<Value>,
}

#[derive(Serialize)]
struct Event<'a> {
    id: &'a str,
    seq: i64,
    kind: &'a str,
    rewound: bool,
    at: String,
    source: Option<&'a str>,
    status: Option<&'a str>,
    previous_status: Option<&'a str>,
    outcome: &'a str,
    previous_outcome: &'a str,
}

#[derive(Serialize)]
struct Invoice<'a> {
    order_id: &'a str,
    #[serde(rename = "invoice_id")]
    id: Option<&'a str>,
    r#ref: &'a str,
    mode: &'a str,
    method: &'a str,
    amount_asked: &'a str,
    amount_agreed: &'a str,
    amount_reported: Option<&'a str>,
    currency: &'a str,
    currency_reported: Option<&'a str>,
    payment_url: Option<&'a str>,
    requisites: Option<Value>,
    expire_at: Option<String>,
}

/// The document: one JSON object and a line end. Every field is always there, `null` when there is nothing to say.
///
/// # Panics
/// Never: the document holds only texts, integers and values that were JSON before.
pub fn document(facts: &Facts) -> String {
    let document = Document {
        schema: SCHEMA,
        event: Event {
            id: &facts.event_id,
            seq: facts.seq,
            kind: facts.kind.as_str(),
            rewound: facts.rewound,
            at: Moment::from_ms(facts.at_ms).to_string(),
            source: facts.source.map(Source::as_str),
            status: facts.status.as_deref(),
            previous_status: facts.previous_status.as_deref(),
            outcome: facts.outcome.as_str(),
            previous_outcome: facts.previous_outcome.as_str(),
        },
        attempt: facts.attempt,
        replay: facts.replay,
        hook: &facts.hook,
        invoice: Invoice {
            order_id: &facts.order_id,
            id: facts.invoice_id.as_deref(),
            r#ref: &facts.invoice_ref,
            mode: &facts.mode,
            method: &facts.method,
            amount_asked: &facts.amount_asked,
            amount_agreed: &facts.amount_agreed,
            amount_reported: facts.amount_reported.as_deref(),
            currency: &facts.currency_agreed,
            currency_reported: facts.currency_reported.as_deref(),
            payment_url: facts.payment_url.as_deref(),
            requisites: facts.requisites.as_deref().map(json_or_text),
            expire_at: facts.expire_ms.map(|ms| Moment::from_ms(ms).to_string()),
        },
        service: facts.service.as_deref().map(json_or_text),
    };
    let mut text =
        serde_json::to_string(&document).expect("texts, integers and JSON values serialise");
    text.push('\n');
    text
}

/// The variables, in the order of [`VARIABLES`], all of them always set: empty when there is nothing to say.
/// `TILLD_AMOUNT` and `TILLD_CURRENCY` are what the service reported with this event, or what was agreed if it reported none.
pub fn variables(
    facts: &Facts,
    payload_file: &Path,
) -> [(&'static str, OsString); VARIABLES.len()] {
    let or_empty = |text: &Option<String>| text.clone().unwrap_or_default();
    let values = [
        facts.kind.as_str().to_owned(),
        facts.event_id.clone(),
        facts.attempt.to_string(),
        u8::from(facts.replay).to_string(),
        facts.source.map_or("", Source::as_str).to_owned(),
        facts.order_id.clone(),
        or_empty(&facts.invoice_id),
        facts.invoice_ref.clone(),
        or_empty(&facts.status),
        or_empty(&facts.previous_status),
        facts.outcome.as_str().to_owned(),
        facts
            .amount_reported
            .clone()
            .unwrap_or_else(|| facts.amount_agreed.clone()),
        facts.amount_agreed.clone(),
        facts
            .currency_reported
            .clone()
            .unwrap_or_else(|| facts.currency_agreed.clone()),
        facts.mode.clone(),
        Moment::from_ms(facts.at_ms).to_string(),
    ];
    let mut values = values.into_iter().map(|value| OsString::from(tame(&value)));
    // The path is ours and comes last; it goes in as it is, since a changed path would be no path.
    VARIABLES.map(|name| (name, values.next().unwrap_or_else(|| payload_file.into())))
}

/// The service's own JSON with its numbers as they were; what is no JSON is passed on as text.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
}

/// Fit for a variable: no NUL (which would keep the program from starting), no other control characters, capped.
fn tame(text: &str) -> String {
    let mut tamed = String::new();
    for letter in text.chars().map(|c| {
        if c.is_control() {
            char::REPLACEMENT_CHARACTER
        } else {
            c
        }
    }) {
        if tamed.len() + letter.len_utf8() > LONGEST_VARIABLE {
            break;
        }
        tamed.push(letter);
    }
    tamed
}

#[cfg(test)]
pub(super) mod tests {
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
        }
    }

    #[test]
    fn the_document_is_what_the_contract_says() {
        let wanted = concat!(
            r#"{"schema":1,"event":{"id":"0199-e","seq":7,"kind":"paid","rewound":false,"at":"2026-11-28T10:02:00.004Z","#,
            r#""source":"poll","status":"done","previous_status":"new","outcome":"paid","previous_outcome":"open"},"#,
            r#""attempt":2,"replay":false,"hook":"fulfil","invoice":{"order_id":"1042","invoice_id":"inv-1","#,
            r#""ref":"AAAAAAAAAAAAAAAAAAAAAA","mode":"h2h","method":"SBP","amount_asked":"599.80","#,
            r#""amount_agreed":"599.80","amount_reported":"599.8","currency":"RUB","currency_reported":"RUB","#,
            r#""payment_url":null,"requisites":{"phoneNumber":"+70000000000"},"expire_at":"2026-11-28T10:12:00.000Z"},"#,
            r#""service":{"amount":0.10,"id":"inv-1"}}"#,
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
            TILLD_PREVIOUS_STATUS=new\nTILLD_OUTCOME=paid\nTILLD_AMOUNT=599.8\nTILLD_AGREED_AMOUNT=599.80\n\
            TILLD_CURRENCY=RUB\nTILLD_MODE=h2h\nTILLD_OCCURRED_AT=2026-11-28T10:02:00.004Z\nTILLD_PAYLOAD_FILE=/run/p";
        assert_eq!(shown(&facts()), wanted);
        let wanted = wanted
            .replace("REPLAY=0", "REPLAY=1")
            .replace("SOURCE=poll", "SOURCE=")
            .replace("ID=inv-1", "ID=")
            .replace("STATUS=done", "STATUS=")
            .replace("STATUS=new", "STATUS=")
            .replace("TILLD_AMOUNT=599.8", "TILLD_AMOUNT=599.80");
        assert_eq!(shown(&bare), wanted);
    }
}
