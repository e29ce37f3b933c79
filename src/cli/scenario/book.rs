//! The service's own book: what its control listener tells of its invoices. What stands there is the truth that tilld is
//! judged by.

use rust_decimal::Decimal;
use serde_json::Value;

use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::sandbox::{Sandbox, Statuses, Visitor};
use crate::secret::Secret;

/// An invoice in the service's book.
#[derive(Clone, Debug)]
pub(super) struct Booked {
    /// The shop's order.
    pub(super) order: String,
    /// The service's id.
    pub(super) id: String,
    /// The service's word.
    pub(super) status: String,
    /// What it reports.
    pub(super) amount: String,
    /// Its payment page.
    pub(super) page: String,
    /// Where its notifications go.
    pub(super) address: String,
    /// Its notify token.
    pub(super) token: Secret,
    /// The invoice object.
    pub(super) object: Value,
    /// The answer to its last notification.
    pub(super) answer: Option<Value>,
}

impl Booked {
    fn read(told: &Value) -> Option<Self> {
        let text = |pointer: &str| told.pointer(pointer)?.as_str().map(str::to_owned);
        let attempts = told.get("attempts").and_then(Value::as_array);
        Some(Self {
            order: text("/invoice/internalId")?,
            id: text("/invoice/id")?,
            status: text("/invoice/status")?,
            amount: text("/invoice/amount")?,
            page: text("/page")?,
            address: text("/for_tests/notificationUrl")?,
            token: Secret::new(text("/for_tests/notificationToken")?),
            object: told.get("invoice")?.clone(),
            answer: attempts.and_then(|all| all.last()?.get("answer").cloned()),
        })
    }

    /// The unguessable end of its address.
    pub(super) fn reference(&self) -> &str {
        self.address.rsplit('/').next().unwrap_or_default()
    }

    /// What it amounts to, by the service's word and what was asked.
    pub(super) fn truth(&self, statuses: &Statuses, asked: &str) -> Outcome {
        let exact = |text: &str| Decimal::from_str_exact(text).ok();
        if statuses.is_paid(&self.status) {
            if exact(&self.amount) == exact(asked) {
                Outcome::Paid
            } else {
                Outcome::Mismatch
            }
        } else if statuses.is_failed(&self.status) {
            Outcome::Failed
        } else if statuses.is_final(&self.status) {
            Outcome::Reversed
        } else {
            Outcome::Open
        }
    }
}

/// All invoices, oldest first.
pub(super) async fn read(visitor: &Visitor, sandbox: &Sandbox) -> Result<Vec<Booked>, Trouble> {
    let state = visitor.state(&sandbox.control_url()).await?;
    let invoices = state.get("invoices").and_then(Value::as_array);
    Ok(invoices
        .into_iter()
        .flatten()
        .filter_map(Booked::read)
        .collect())
}
