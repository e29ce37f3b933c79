//! How a refused notification is shown: one JSON object and one line of a table. Fields of the JSON object are only ever
//! added.

use serde::Serialize;

use super::super::failure::Failure;
use super::super::output::{Output, print_json};
use crate::invoice::moment::Moment;
use crate::ledger::RefusalRow;

/// One refused notification in the words of `--json`. What is not known is `null`.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    /// What `--before` takes.
    number: i64,
    /// UTC with milliseconds.
    at: String,
    reason: &'a str,
    order_id: Option<&'a str>,
    invoice_id: Option<&'a str>,
    /// 8 hex digits of the SHA-256 of what stood for a ref; `null` on the bare path.
    ref_hash: Option<&'a str>,
    client: &'a str,
    /// `null` when the body was not read to its end.
    body_bytes: Option<i64>,
    body_sha256: Option<&'a str>,
    headers: Vec<&'a str>,
    /// How many names beyond those kept there were.
    headers_left_out: u64,
}

fn json(row: &RefusalRow) -> Shown<'_> {
    let (headers, headers_left_out) = headers(&row.header_names);
    Shown {
        number: row.number,
        at: Moment::from_ms(row.at_ms).to_string(),
        reason: &row.reason,
        order_id: row.order_id.as_deref(),
        invoice_id: row.invoice_id.as_deref(),
        ref_hash: known(&row.ref_hash),
        client: &row.peer,
        body_bytes: known(&row.body_sha256).map(|_| row.body_bytes),
        body_sha256: known(&row.body_sha256),
        headers,
        headers_left_out,
    }
}

/// The names of headers as the ledger keeps them, and how many beyond those kept there were.
pub(in crate::cli) fn headers(kept: &str) -> (Vec<&str>, u64) {
    let mut names: Vec<&str> = kept.split(',').collect();
    names.retain(|name| !name.is_empty());
    // A name never begins with `+`: the ledger writes that sign otherwise.
    let left_out = names.last().and_then(|last| last.strip_prefix('+'));
    let left_out = left_out.and_then(|count| count.parse().ok());
    names.retain(|name| !name.starts_with('+'));
    (names, left_out.unwrap_or_default())
}

fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

/// Prints refused notifications: a table, or JSON lines.
pub(super) fn print_many(output: Output, rows: &[RefusalRow]) -> Result<(), Failure> {
    if output.json() {
        return rows.iter().try_for_each(|row| print_json(&json(row)));
    }
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells: Vec<[String; 7]> = rows
        .iter()
        .map(|row| {
            let shown = json(row);
            [
                shown.at,
                row.reason.clone(),
                or_dash(row.order_id.clone()),
                or_dash(shown.ref_hash.map(str::to_owned)),
                row.peer.clone(),
                or_dash(shown.body_bytes.map(|bytes| bytes.to_string())),
                or_dash(known(&row.header_names).map(str::to_owned)),
            ]
        })
        .collect();
    let headings = [
        "TIME", "REASON", "ORDER", "REF", "CLIENT", "BYTES", "HEADERS",
    ];
    output.table(Some(headings), &cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_object_is_what_scripts_rely_on() {
        let row = RefusalRow {
            number: 7,
            at_ms: 1_795_860_120_004,
            order_id: Some("1042".to_owned()),
            invoice_id: Some("inv-1".to_owned()),
            ref_hash: "ba7816bf".to_owned(),
            header_names: "accept,host,+3".to_owned(),
            reason: "token_wrong".to_owned(),
            peer: "127.0.0.1".to_owned(),
            body_bytes: 3,
            body_sha256: "ab12".to_owned(),
        };
        let text = |row: &RefusalRow| serde_json::to_string(&json(row)).expect("plain data");
        assert_eq!(
            text(&row),
            concat!(
                r#"{"number":7,"at":"2026-11-28T10:02:00.004Z","reason":"token_wrong","order_id":"1042","invoice_id":"inv-1","#,
                r#""ref_hash":"ba7816bf","client":"127.0.0.1","body_bytes":3,"body_sha256":"ab12","#,
                r#""headers":["accept","host"],"headers_left_out":3}"#,
            )
        );
        let bare = RefusalRow {
            order_id: None,
            invoice_id: None,
            ref_hash: String::new(),
            header_names: String::new(),
            body_bytes: 0,
            body_sha256: String::new(),
            ..row
        };
        assert_eq!(
            text(&bare),
            concat!(
                r#"{"number":7,"at":"2026-11-28T10:02:00.004Z","reason":"token_wrong","order_id":null,"invoice_id":null,"#,
                r#""ref_hash":null,"client":"127.0.0.1","body_bytes":null,"body_sha256":null,"#,
                r#""headers":[],"headers_left_out":0}"#,
            )
        );
    }
}
