//! How an invoice is shown to people, whichever command shows it. Promises that what strangers wrote reaches no terminal
//! unescaped.

use std::borrow::Cow;

use serde_json::Value;

use super::super::failure::Failure;
use super::super::output::{Output, escape, print_json};
use crate::answer::attention;
use crate::answer::invoice::{json, json_or_text, or_dash, other, status, time};
pub(super) use crate::answer::invoice::{name, reported, sum};
use crate::invoice::opening::Opening;
use crate::ledger::InvoiceRow;
use crate::telemetry::word;
use crate::wire;

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
                called(row).into_owned(),
                status(row.status.as_deref()),
                listed(row),
                sum(&row.amount_agreed, &row.currency_agreed),
                or_dash(
                    Some(&row.method)
                        .filter(|method| !method.is_empty())
                        .map(String::as_str),
                ),
                time(row.created_ms),
                attention::words(&row.attention, " "),
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

/// The outcome, and whether the order goes by another invoice.
fn listed(row: &InvoiceRow) -> String {
    let superseded = row.superseded.as_ref().map_or("", |_by| ", superseded");
    format!("{}{superseded}", row.outcome)
}

/// What the invoice is called: the service's id, or how far its opening came while there is none.
fn called(row: &InvoiceRow) -> Cow<'_, str> {
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
        (false, _) if let Some(by) = &row.superseded => {
            format!(
                "Superseded by {}: show that one. It was {what}, to:",
                other(by)
            )
        }
        (false, false) => format!("Pay {what}:"),
        (false, true) => format!("The time to pay {what} is over. It was to go to:"),
        (true, _) => {
            let ended = ended(row);
            format!("{ended}: nothing is to be paid any more. It was {what}, to:")
        }
    };
    (!lines.is_empty()).then_some((heading, lines))
}

/// How it ended: the outcome, and the service's word for that where it is another.
fn ended(row: &InvoiceRow) -> String {
    let outcome = row.outcome.as_str();
    match row.status.as_deref() {
        Some(status) if status != outcome => format!("{outcome} ({})", escape(&word(status))),
        _ => outcome.to_owned(),
    }
}

/// How the invoice stands.
fn standing(row: &InvoiceRow, now_ms: i64) -> Vec<(&'static str, String)> {
    let mut pairs = vec![
        ("order", row.order_id.clone()),
        ("invoice", called(row).into_owned()),
        ("outcome", row.outcome.to_string()),
        ("status", status(row.status.as_deref())),
    ];
    if let Some(by) = &row.superseded {
        let sum = sum(&by.amount, &by.currency);
        pairs.push((
            "superseded",
            format!("by {} over {sum}, {}", other(by), by.outcome),
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::invoice::tests::row;
    use crate::invoice::status::Outcome;

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
            status: Some("paid".to_owned()),
            ..row()
        };
        let (heading, _) = payment(&paid, 0).expect("requisites");
        assert!(
            heading.starts_with("paid: nothing is to be paid"),
            "{heading}"
        );
        let expired = InvoiceRow {
            outcome: Outcome::Failed,
            status: Some("expired".to_owned()),
            ..row()
        };
        let (heading, _) = payment(&expired, 0).expect("requisites");
        assert!(
            heading.starts_with("failed (expired): nothing is to be paid"),
            "{heading}"
        );
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
            attention: vec![crate::invoice::attention::Attention::Rewound],
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
