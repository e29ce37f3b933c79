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
use crate::telemetry::visible_json;

/// What a name means: an order with all its invoices, or one invoice.
#[derive(Debug)]
pub(crate) struct Meant {
    /// The invoice that stands for the order first; never none.
    rows: Vec<InvoiceRow>,
    /// The money that came for the order.
    received: Option<String>,
    is_order: bool,
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

/// Reads it.
pub(crate) async fn load(reader: &Reader, name: &Name) -> Result<Meant, Failure> {
    let rows = find(reader, name).await?;
    let is_order = name.kind == Kind::Order;
    let received = if is_order {
        reader.received(&name.text).await?
    } else {
        None
    };
    Ok(Meant {
        rows,
        received,
        is_order,
    })
}

impl Meant {
    /// The invoice, or the one that stands for the order.
    pub(crate) fn standing(&self) -> &InvoiceRow {
        self.rows.first().expect("found are one at least")
    }

    /// The JSON object. Of an order invoices that were refused are left out, but for the one that stands; what needs a person
    /// at any of them needs one at the order.
    pub(crate) fn json(&self) -> String {
        let standing = invoice::json(self.standing());
        if self.is_order {
            let own = self.standing().key;
            let is_shown = |row: &&InvoiceRow| row.opening != Opening::Refused || row.key == own;
            visible_json(&Document {
                standing: standing.with_others(&self.rows),
                received: self.received.as_deref(),
                invoices: self.rows.iter().filter(is_shown).map(short).collect(),
            })
        } else {
            visible_json(&standing)
        }
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
