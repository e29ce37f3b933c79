//! Why an operator must look at an invoice, in sentences with the invoice's own figures.

use super::invoice::{accepting, other, reported, sum};
use crate::invoice::attention::{Attention, Figures};
use crate::invoice::status::Outcome;
use crate::ledger::InvoiceRow;

/// One sentence for each reason, led by its word. Not escaped.
pub(crate) fn sentences(row: &InvoiceRow) -> Vec<String> {
    let superseded = row.superseded.as_ref();
    let instead = superseded.map(|by| {
        (
            other(by).text,
            sum(&by.amount, &by.currency),
            by.outcome == Outcome::Paid.as_str(),
        )
    });
    let figures = Figures {
        order_id: &row.order_id,
        invoice_id: row.invoice_id.as_deref(),
        status: row.status.as_deref().unwrap_or_default(),
        asked: &sum(&row.amount_asked, &row.currency_asked),
        agreed: &sum(&row.amount_agreed, &row.currency_agreed),
        reported: &reported(row),
        instead: instead
            .as_ref()
            .map(|(name, sum, paid)| (name.as_str(), sum.as_str(), *paid)),
        accepting: &accepting(row),
    };
    let sentence = |reason: &Attention| format!("{reason}: {}", reason.sentence(&figures));
    row.attention.iter().map(sentence).collect()
}

/// The words alone.
pub(crate) fn words(reasons: &[Attention], between: &str) -> String {
    let words: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
    words.join(between)
}
