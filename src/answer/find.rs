//! Which invoice is meant by a name, and whether there is anything left to wait for.

use super::failure::{Exit, Failure};
use crate::invoice::opening::Opening;
use crate::invoice::status::Outcome;
use crate::ledger::{InvoiceRow, Reader};

/// The invoices a person means: those of the order with this id, newest first, or else the one with this id or ref.
pub(crate) async fn find(reader: &Reader, name: &str) -> Result<Vec<InvoiceRow>, Failure> {
    let of_order = reader.invoices_of_order(name).await?;
    if !of_order.is_empty() {
        return Ok(of_order);
    }
    Ok(reader.find_invoice(name).await?.into_iter().collect())
}

/// No invoice goes by this name.
pub(crate) fn not_found(name: &str) -> Failure {
    let error = format!("no invoice with the order id, invoice id or ref `{name}` in the ledger");
    Failure::new(Exit::NotFound, error).hint("`tilld invoice list` shows what is there")
}

/// The one that stands for the order among its invoices: the one that paid it, else the newest that was not refused.
pub(crate) fn meant(found: Vec<InvoiceRow>) -> Option<InvoiceRow> {
    let standing = found.iter().position(|row| row.superseded.is_none());
    found.into_iter().nth(standing.unwrap_or_default())
}

/// The end of the wait, if it has come: paid is 0, any other final outcome 5, and what nobody will ever tell is 9.
pub(crate) fn end(row: &InvoiceRow, now_ms: i64) -> Option<Result<Exit, Failure>> {
    let unknown =
        |text: String, hint: &str| Some(Err(Failure::new(Exit::Unknown, text).hint(hint)));
    match row.outcome {
        Outcome::Paid => Some(Ok(Exit::Ok)),
        Outcome::Failed | Outcome::Reversed | Outcome::Mismatch | Outcome::SecondPayment => {
            Some(Ok(Exit::NotPaid))
        }
        Outcome::Open if row.unresolved => unknown(
            format!(
                "the service never gave a final answer about order `{}`",
                row.order_id
            ),
            "look the order up in the cabinet",
        ),
        // Without a daemon nobody writes down that a creator is gone; a notification would have named the id.
        Outcome::Open if row.is_lost(now_ms) => unknown(
            format!(
                "nobody knows whether the create of order `{}` reached the service",
                row.order_id
            ),
            "look the order up in the cabinet; `tilld invoice adopt ORDER --id ID` settles it",
        ),
        Outcome::Open if row.opening == Opening::Refused => {
            let text = format!("the create of order `{}` opened no invoice", row.order_id);
            Some(Err(
                Failure::new(Exit::NotPaid, text).hint("run `tilld invoice create` again")
            ))
        }
        Outcome::Open => None,
    }
}

/// It was waited for as long as was wished.
pub(crate) fn still_open(row: &InvoiceRow, seconds: u64) -> Failure {
    let text = format!(
        "order `{}` is still {} after {seconds} s",
        row.order_id, row.outcome
    );
    Failure::new(Exit::TimeOut, text).hint("run it again to go on waiting")
}
