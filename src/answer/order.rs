//! An order as one JSON object: the invoice that stands for it, all of its invoices in short, and the money that came.
//!
//! Relies on the view `orders` for the sum. Promises the fields of an invoice, so that what reads one reads an order too.

use serde::Serialize;

use super::failure::Failure;
use super::find::find;
use super::invoice::{self, Shown};
use super::name::{Kind, Name};
use crate::invoice::opening::Opening;
use crate::ledger::{InvoiceRow, Reader};

/// One order.
#[derive(Debug)]
struct Order {
    /// The invoice that stands for it first; never none.
    rows: Vec<InvoiceRow>,
    received: Option<String>,
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    standing: Shown<'a>,
    received: Option<&'a str>,
    invoices: Vec<Short<'a>>,
}

/// An invoice of the order, as far as a shop compares it with the others.
#[derive(Serialize)]
struct Short<'a> {
    r#ref: &'a str,
    invoice_id: Option<&'a str>,
    outcome: &'a str,
    amount_agreed: &'a str,
    amount_reported: Option<&'a str>,
    currency: &'a str,
    superseded: bool,
}

/// The order with this id.
async fn load(reader: &Reader, order_id: &str) -> Result<Order, Failure> {
    let rows = find(reader, &Kind::Order.of(order_id)).await?;
    let received = reader.received(order_id).await?;
    Ok(Order { rows, received })
}

/// What a name means, as JSON: an order, or one invoice.
pub(crate) async fn shown(
    reader: &Reader,
    name: &Name,
    row: &InvoiceRow,
) -> Result<String, Failure> {
    if name.kind == Kind::Order {
        return Ok(load(reader, &name.text).await?.json());
    }
    let text = serde_json::to_string(&invoice::json(row));
    Ok(text.expect("texts and integers serialise"))
}

impl Order {
    /// The JSON object. Invoices that were refused are left out, but for the one that stands.
    fn json(&self) -> String {
        let standing = self.rows.first().expect("one at least");
        let is_shown =
            |row: &&InvoiceRow| row.opening != Opening::Refused || row.key == standing.key;
        let document = Document {
            standing: invoice::json(standing),
            received: self.received.as_deref(),
            invoices: self.rows.iter().filter(is_shown).map(short).collect(),
        };
        serde_json::to_string(&document).expect("texts and integers serialise")
    }
}

fn short(row: &InvoiceRow) -> Short<'_> {
    Short {
        r#ref: row.reference.as_str(),
        invoice_id: row.invoice_id.as_deref(),
        outcome: row.outcome.as_str(),
        amount_agreed: &row.amount_agreed,
        amount_reported: row.amount_reported.as_deref(),
        currency: &row.currency_agreed,
        superseded: row.superseded.is_some(),
    }
}
