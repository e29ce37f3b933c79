//! The service's own book: what its control listener tells of its invoices. What stands there is the truth that tilld is
//! judged by.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::cli::stage::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::sandbox::state::notice::MOST_ATTEMPTS;
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
    /// So many notifications of it became due.
    pub(super) due: u64,
    /// What came of them: one for each try.
    pub(super) attempts: Vec<Value>,
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
            due: told.get("notifications")?.as_u64()?,
            attempts: attempts.cloned().unwrap_or_default(),
        })
    }

    /// The unguessable end of its address.
    pub(super) fn reference(&self) -> &str {
        self.address.rsplit('/').next().unwrap_or_default()
    }

    /// Whether a notification of it was not even tried yet.
    pub(super) fn waits(&self) -> bool {
        let tried = |attempt: &Value| attempt.get("notification").and_then(Value::as_u64);
        let tried: BTreeSet<u64> = self.attempts.iter().filter_map(tried).collect();
        // The book keeps the newest tries.
        let oldest = tried.first().copied().unwrap_or(1);
        let oldest = if self.attempts.len() >= MOST_ATTEMPTS {
            oldest
        } else {
            1
        };
        (oldest..=self.due).any(|number| !tried.contains(&number))
    }

    /// How many tries of its notifications something was done wrong to.
    pub(super) fn faults(&self) -> usize {
        let faults = |attempt: &&Value| {
            let faults = attempt.get("faults").and_then(Value::as_array);
            faults.is_some_and(|faults| !faults.is_empty())
        };
        self.attempts.iter().filter(faults).count()
    }

    /// Whether tilld took a notification that says it is paid.
    pub(super) fn told_paid(&self, statuses: &Statuses) -> bool {
        self.attempts.iter().any(|attempt| {
            let status = attempt.get("status").and_then(Value::as_str);
            status.is_some_and(|status| statuses.is_paid(status))
                && attempt.get("answer").and_then(Value::as_u64) == Some(200)
        })
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
