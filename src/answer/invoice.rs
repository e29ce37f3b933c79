//! An invoice as one JSON object, the same at every door.
//!
//! Relies on rows holding nothing secret. Promises that fields are only ever added, and that every field is always there
//! (`null` when there is nothing to say).

use serde::Serialize;
use serde_json::Value;

use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::ledger::InvoiceRow;

/// One invoice in the words of `--json`. Amounts are decimal text, times UTC with milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct Shown<'a> {
    order_id: &'a str,
    invoice_id: Option<&'a str>,
    r#ref: &'a str,
    mode: &'static str,
    method: &'a str,
    status: Option<&'a str>,
    outcome: &'static str,
    opening: &'static str,
    opening_note: Option<&'a str>,
    amount_asked: &'a str,
    amount_agreed: &'a str,
    amount_reported: Option<&'a str>,
    currency: &'a str,
    currency_reported: Option<&'a str>,
    doubt: bool,
    attention: &'a [String],
    unresolved: bool,
    found_by: Option<&'static str>,
    expire_at: Option<String>,
    created_at: String,
    updated_at: String,
    payment_url: Option<&'a str>,
    requisites: Option<Value>,
    service: Option<Value>,
}

/// The JSON object of an invoice.
pub(crate) fn json(row: &InvoiceRow) -> Shown<'_> {
    Shown {
        order_id: &row.order_id,
        invoice_id: row.invoice_id.as_deref(),
        r#ref: row.reference.as_str(),
        mode: row.mode.as_str(),
        method: &row.method,
        status: row.status.as_deref(),
        outcome: row.outcome.as_str(),
        opening: row.opening.as_str(),
        opening_note: row.opening_note.as_deref(),
        amount_asked: &row.amount_asked,
        amount_agreed: &row.amount_agreed,
        amount_reported: row.amount_reported.as_deref(),
        currency: &row.currency_agreed,
        currency_reported: row.currency_reported.as_deref(),
        doubt: row.doubt,
        attention: &row.attention,
        unresolved: row.unresolved,
        found_by: row.found_by.map(Source::as_str),
        expire_at: row.expire_ms.map(time),
        created_at: time(row.created_ms),
        updated_at: time(row.updated_ms),
        payment_url: row.payment_url.as_deref(),
        requisites: row.requisites.as_deref().map(json_or_text),
        service: row.raw.as_deref().map(json_or_text),
    }
}

/// What a command is given to mean this invoice: the service's id, or the order while there is none.
pub(crate) fn named(row: &InvoiceRow) -> &str {
    row.invoice_id.as_deref().unwrap_or(&row.order_id)
}

/// What the service reported, with a dash for what it did not say.
pub(crate) fn reported(row: &InvoiceRow) -> String {
    let part = |text: &Option<String>| or_dash(text.as_deref());
    format!(
        "{} {}",
        part(&row.amount_reported),
        part(&row.currency_reported)
    )
}

/// An amount with its currency.
pub(crate) fn sum(amount: &str, currency: &str) -> String {
    format!("{amount} {currency}")
}

/// UTC with milliseconds.
pub(crate) fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

/// A dash for what is not there.
pub(crate) fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Stored JSON as JSON; what is none is passed on as text.
pub(crate) fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::invoice::ids::InvoiceRef;
    use crate::invoice::opening::{Mode, Opening};
    use crate::invoice::status::Outcome;
    use crate::ledger::InvoiceKey;

    /// An H2H invoice as it stands after its create.
    pub(crate) fn row() -> InvoiceRow {
        InvoiceRow {
            key: InvoiceKey(1),
            reference: InvoiceRef::parse("AAAAAAAAAAAAAAAAAAAAAA").expect("a ref"),
            order_id: "1042".to_owned(),
            invoice_id: Some("inv-1".to_owned()),
            mode: Mode::H2h,
            method: "SBP".to_owned(),
            opening: Opening::Answered,
            opening_note: None,
            creator: None,
            creator_deadline_ms: 0,
            status: Some("new".to_owned()),
            outcome: Outcome::Open,
            outcome_ms: 1_795_860_120_004,
            found_by: None,
            amount_asked: "599.80".to_owned(),
            currency_asked: "RUB".to_owned(),
            amount_agreed: "599.80".to_owned(),
            currency_agreed: "RUB".to_owned(),
            amount_reported: Some("599.8".to_owned()),
            currency_reported: Some("RUB".to_owned()),
            doubt: false,
            attention: Vec::new(),
            unresolved: false,
            requisites: Some(r#"{"bankName":"Б","phoneNumber":"+70000000000"}"#.to_owned()),
            payment_url: None,
            raw: Some(r#"{"id":"inv-1","status":"new","dealRate":0.10,"extra":1}"#.to_owned()),
            expire_ms: Some(1_795_860_720_000),
            created_ms: 1_795_860_120_004,
            updated_ms: 1_795_860_120_004,
            revision: 1,
        }
    }

    #[test]
    fn the_json_object_is_what_scripts_rely_on() {
        let wanted = concat!(
            r#"{"order_id":"1042","invoice_id":"inv-1","ref":"AAAAAAAAAAAAAAAAAAAAAA","mode":"h2h","method":"SBP","#,
            r#""status":"new","outcome":"open","opening":"answered","opening_note":null,"amount_asked":"599.80","#,
            r#""amount_agreed":"599.80","amount_reported":"599.8","currency":"RUB","currency_reported":"RUB","#,
            r#""doubt":false,"attention":[],"unresolved":false,"found_by":null,"#,
            r#""expire_at":"2026-11-28T10:12:00.000Z","created_at":"2026-11-28T10:02:00.004Z","#,
            r#""updated_at":"2026-11-28T10:02:00.004Z","payment_url":null,"#,
            r#""requisites":{"bankName":"Б","phoneNumber":"+70000000000"},"#,
            r#""service":{"dealRate":0.10,"extra":1,"id":"inv-1","status":"new"}}"#,
        );
        assert_eq!(
            serde_json::to_string(&json(&row())).expect("plain data"),
            wanted
        );
    }
}
