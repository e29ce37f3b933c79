//! How an invoice is shown: the one JSON object and the one form for people, whichever command shows it.
//!
//! Relies on rows holding nothing secret. Promises that fields of the JSON object are only ever added, that every field
//! is always there (`null` when there is nothing to say), and that what strangers wrote reaches no terminal unescaped.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::super::failure::Failure;
use super::super::output::{Output, escape, print_json};
use super::attention;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::opening::Opening;
use crate::ledger::InvoiceRow;
use crate::wire;

/// One invoice in the words of `--json`. Amounts are decimal text, times UTC with milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct Shown<'a> {
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
pub(super) fn json(row: &InvoiceRow) -> Shown<'_> {
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

/// Prints one invoice: what the customer needs first, then how it stands, then what the service said last.
/// `now_ms` (milliseconds since 1970) tells whether the payment window is over.
pub(super) fn print(output: Output, row: &InvoiceRow, now_ms: i64) -> Result<(), Failure> {
    if output.json() {
        return print_json(&json(row));
    }
    if let Some((heading, lines)) = payment(row, now_ms) {
        output.line(&heading)?;
        // Never wrapped: a card number or an address torn in two is copied wrong.
        output.unwrapped().pairs(&lines)?;
        output.line("")?;
    }
    output.pairs(&standing(row, now_ms))?;
    let said = said(row);
    if !said.is_empty() {
        output.line("\nThe service said last:")?;
        output.pairs(&said)?;
    }
    Ok(())
}

/// Prints many invoices: a table, or JSON lines.
pub(super) fn print_many(output: Output, rows: &[InvoiceRow]) -> Result<(), Failure> {
    if output.json() {
        return rows.iter().try_for_each(|row| print_json(&json(row)));
    }
    let cells: Vec<[String; 8]> = rows
        .iter()
        .map(|row| {
            [
                row.order_id.clone(),
                name(row).into_owned(),
                or_dash(row.status.as_deref()),
                row.outcome.to_string(),
                sum(&row.amount_agreed, &row.currency_agreed),
                or_dash(
                    Some(&row.method)
                        .filter(|method| !method.is_empty())
                        .map(String::as_str),
                ),
                time(row.created_ms),
                row.attention.join(" "),
            ]
        })
        .collect();
    let headings = [
        "ORDER",
        "INVOICE",
        "STATUS",
        "OUTCOME",
        "AMOUNT",
        "METHOD",
        "CREATED",
        "ATTENTION",
    ];
    output.table(Some(headings), &cells)
}

/// What the invoice is called: the service's id, or how far its opening came while there is none.
fn name(row: &InvoiceRow) -> Cow<'_, str> {
    match (&row.invoice_id, row.opening) {
        (Some(id), _) => id.into(),
        (None, Opening::Creating) => "(being created)".into(),
        (None, Opening::Answered | Opening::Tracked) => "-".into(),
        (None, Opening::Refused) => "(refused)".into(),
        (None, Opening::Unknown) => "(unknown)".into(),
    }
}

/// What the customer needs: a heading, and either the address of the payment page or the requisites. `None` when there
/// is nothing to pay with.
fn payment(row: &InvoiceRow, now_ms: i64) -> Option<(String, Vec<(String, String)>)> {
    let mut lines = Vec::new();
    if let Some(url) = &row.payment_url {
        lines.push(("  page".to_owned(), url.clone()));
    }
    match row.requisites.as_deref().map(json_or_text) {
        Some(Value::Object(fields)) => {
            lines.extend(fields.iter().map(|(name, value)| {
                (
                    format!("  {name}"),
                    wire::json::text(Some(value)).unwrap_or_else(|| value.to_string()),
                )
            }));
        }
        Some(other) => lines.push(("  requisites".to_owned(), other.to_string())),
        None => {}
    }
    let what = sum(&row.amount_agreed, &row.currency_agreed);
    let what = match row.method.as_str() {
        "" => what,
        method => format!("{what} by {}", escape(method)),
    };
    let over = row.expire_ms.is_some_and(|expire_ms| expire_ms <= now_ms);
    // Nobody must be led to pay twice, or too late.
    let heading = match (row.outcome.is_final(), over) {
        (false, false) => format!("Pay {what}:"),
        (false, true) => format!("The time to pay {what} is over. It was to go to:"),
        (true, _) => format!("Nothing is to be paid any more. It was {what}, to:"),
    };
    (!lines.is_empty()).then_some((heading, lines))
}

/// How the invoice stands.
fn standing(row: &InvoiceRow, now_ms: i64) -> Vec<(&'static str, String)> {
    let mut pairs = vec![
        ("order", row.order_id.clone()),
        ("invoice", name(row).into_owned()),
        ("outcome", row.outcome.to_string()),
        ("status", or_dash(row.status.as_deref())),
    ];
    if let Some(expire_ms) = row.expire_ms {
        let over = if expire_ms <= now_ms { " (over)" } else { "" };
        pairs.push(("pay until", format!("{}{over}", time(expire_ms))));
    }
    pairs.extend([
        ("mode", row.mode.as_str().to_owned()),
        (
            "method",
            or_dash(
                Some(&row.method)
                    .filter(|method| !method.is_empty())
                    .map(String::as_str),
            ),
        ),
        ("asked", sum(&row.amount_asked, &row.currency_asked)),
    ]);
    if (&row.amount_agreed, &row.currency_agreed) != (&row.amount_asked, &row.currency_asked) {
        pairs.push(("agreed", sum(&row.amount_agreed, &row.currency_agreed)));
    }
    if row.amount_reported.is_some() || row.currency_reported.is_some() {
        pairs.push(("reported", reported(row)));
    }
    if let Some(note) = &row.opening_note {
        pairs.push(("opening", format!("{}: {note}", row.opening.as_str())));
    }
    if row.doubt {
        pairs.push(("doubt", "the service is asked what holds".to_owned()));
    }
    if let Some(source) = row.found_by {
        pairs.push(("found by", source.as_str().to_owned()));
    }
    pairs.extend([
        ("created", time(row.created_ms)),
        ("updated", time(row.updated_ms)),
        ("ref", row.reference.as_str().to_owned()),
    ]);
    let sentences = attention::sentences(row);
    pairs.extend(sentences.into_iter().map(|told| ("attention", told)));
    pairs
}

/// Every contract field of the service's newest document.
fn said(row: &InvoiceRow) -> Vec<(String, String)> {
    let document = row
        .raw
        .as_deref()
        .and_then(|raw| wire::json::object(raw.as_bytes()).ok());
    let fields = document.map(|document| wire::invoice::fields(&document));
    fields
        .unwrap_or_default()
        .into_iter()
        .map(|(name, value)| (format!("  {name}"), value))
        .collect()
}

/// What a command is given to mean this invoice: the service's id, or the order while there is none.
pub(super) fn named(row: &InvoiceRow) -> &str {
    row.invoice_id.as_deref().unwrap_or(&row.order_id)
}

/// What the service reported, with a dash for what it did not say.
pub(super) fn reported(row: &InvoiceRow) -> String {
    let part = |text: &Option<String>| or_dash(text.as_deref());
    format!(
        "{} {}",
        part(&row.amount_reported),
        part(&row.currency_reported)
    )
}

/// An amount with its currency.
pub(super) fn sum(amount: &str, currency: &str) -> String {
    format!("{amount} {currency}")
}

fn time(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}

fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// Stored JSON as JSON; what is none is passed on as text.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_no_json| Value::String(text.to_owned()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::invoice::ids::InvoiceRef;
    use crate::invoice::opening::Mode;
    use crate::invoice::status::Outcome;
    use crate::ledger::InvoiceKey;

    /// An H2H invoice as it stands after its create.
    pub(in crate::cli::invoice) fn row() -> InvoiceRow {
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

    #[test]
    fn the_customers_part_is_there_only_when_there_is_something_to_pay_with() {
        let (heading, lines) = payment(&row(), 0).expect("requisites");
        assert_eq!(heading, "Pay 599.80 RUB by SBP:");
        let phone = ("  phoneNumber".to_owned(), "+70000000000".to_owned());
        assert_eq!(lines.last(), Some(&phone));
        let (late, _) = payment(&row(), i64::MAX).expect("requisites");
        assert!(late.starts_with("The time to pay"), "{late}");
        let paid = InvoiceRow {
            outcome: Outcome::Paid,
            ..row()
        };
        let (heading, _) = payment(&paid, 0).expect("requisites");
        assert!(heading.starts_with("Nothing is to be paid"), "{heading}");
        let redirect = InvoiceRow {
            requisites: None,
            payment_url: Some("https://pay.example/1".to_owned()),
            ..row()
        };
        let (_, lines) = payment(&redirect, 0).expect("a page");
        assert_eq!(
            lines,
            [("  page".to_owned(), "https://pay.example/1".to_owned())]
        );
        let neither = InvoiceRow {
            requisites: None,
            ..row()
        };
        assert!(payment(&neither, 0).is_none());
    }

    #[test]
    fn people_see_what_differs_and_whether_time_is_over() {
        let value = |pairs: &[(&str, String)], name: &str| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.clone())
        };
        let before = standing(&row(), 1_795_860_719_999);
        assert_eq!(value(&before, "agreed"), None);
        assert_eq!(
            value(&before, "pay until").as_deref(),
            Some("2026-11-28T10:12:00.000Z")
        );
        let accepted = InvoiceRow {
            amount_agreed: "600".to_owned(),
            attention: vec!["rewound".to_owned()],
            ..row()
        };
        let after = standing(&accepted, 1_795_860_720_000);
        assert_eq!(value(&after, "agreed").as_deref(), Some("600 RUB"));
        assert_eq!(
            value(&after, "pay until").as_deref(),
            Some("2026-11-28T10:12:00.000Z (over)")
        );
        assert!(value(&after, "attention").is_some_and(|told| told.starts_with("rewound: ")));
    }

    #[test]
    fn every_contract_field_received_is_shown() {
        let names: Vec<String> = said(&row()).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["  id", "  status", "  dealRate"]);
    }
}
