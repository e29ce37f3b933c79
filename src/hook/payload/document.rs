//! The JSON document. Every field is always there, `null` when there is nothing to say.

use serde::Serialize;

use super::Facts;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::telemetry::visible_json;
use crate::wire::stored::Stored;

/// The version of the document's shape.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    event: Event<'a>,
    attempt: u32,
    replay: bool,
    hook: &'a str,
    invoice: Invoice<'a>,
    service: Option<Stored>,
    abandoned: Option<Abandoned<'a>>,
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
    order_outcome: &'a str,
}

/// The delivery of the event that was given up, and how its last attempt ended.
#[derive(Serialize)]
struct Abandoned<'a> {
    hook: &'a str,
    event_id: &'a str,
    kind: &'a str,
    attempts: u32,
    result: &'a str,
    stderr: &'a str,
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
    requisites: Option<Stored>,
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
            kind: facts.word(),
            rewound: facts.rewound,
            at: Moment::from_ms(facts.at_ms).to_string(),
            source: facts.source.map(Source::as_str),
            status: facts.status.as_deref(),
            previous_status: facts.previous_status.as_deref(),
            outcome: facts.outcome.as_str(),
            previous_outcome: facts.previous_outcome.as_str(),
            order_outcome: facts.order_outcome.as_str(),
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
            requisites: facts.requisites.as_deref().map(Stored::new),
            expire_at: facts.expire_ms.map(|ms| Moment::from_ms(ms).to_string()),
        },
        service: facts.service.as_deref().map(Stored::new),
        abandoned: facts.abandoned.as_ref().map(|given_up| Abandoned {
            hook: &given_up.hook,
            event_id: &given_up.event_id,
            kind: facts.kind.as_str(),
            attempts: given_up.attempts,
            result: &given_up.result,
            stderr: &given_up.stderr,
        }),
    };
    let mut text = visible_json(&document);
    text.push('\n');
    text
}
