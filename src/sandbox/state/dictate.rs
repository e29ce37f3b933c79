//! Changes a test dictates: any status, amount, currency and instant, whatever the service would do by itself.

use super::State;
use super::asked::LONGEST_FIELD;
use super::spelling::Exact;
use crate::invoice::status::Status;

/// A change dictated by a test. What is `None` stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictated {
    /// `status`
    pub(crate) status: Option<String>,
    /// `amount`, any text.
    pub(crate) amount: Option<String>,
    /// `currency`, any text.
    pub(crate) currency: Option<String>,
    /// `updatedAt`, any text.
    pub(crate) updated_at: Option<String>,
}

/// Why a dictated change was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DictateError {
    /// No such invoice.
    #[error("no such invoice")]
    NoInvoice,
    /// It would be open again, and all requisites are occupied.
    #[error("no requisite is free for an invoice that would be open again")]
    NoRequisites,
    /// No status, to whoever reads it.
    #[error("`status` is 1 to 128 bytes")]
    Status,
    /// Longer than anything that has a meaning there.
    #[error("`amount`, `currency` and `updatedAt` are 2048 bytes at most")]
    TooLong,
}

impl Dictated {
    fn check(&self) -> Result<(), DictateError> {
        let status = self.status.as_deref();
        if status.is_some_and(|status| Status::new(status).is_none()) {
            return Err(DictateError::Status);
        }
        let texts = [&self.amount, &self.currency, &self.updated_at];
        let too_long = |text: &String| text.len() > LONGEST_FIELD;
        if texts.into_iter().flatten().any(too_long) {
            return Err(DictateError::TooLong);
        }
        Ok(())
    }
}

impl State {
    /// Applies a change dictated by a test.
    pub(crate) fn dictate(
        &mut self,
        id_or_order: &str,
        dictated: Dictated,
        notify: bool,
        now: i64,
    ) -> Result<(), DictateError> {
        let invoice = self.find_invoice(id_or_order);
        let invoice = invoice.ok_or(DictateError::NoInvoice)?;
        dictated.check()?;
        let seq = invoice.seq;
        // A name of no list says nothing of whether it can be paid.
        let opens = |status: &String| self.rules.statuses.open.contains(status);
        if !invoice.is_open && dictated.status.as_ref().is_some_and(opens) {
            self.open_again(seq, now)?;
        }
        let exact = Exact {
            amount: dictated.amount.is_some(),
            updated_at: dictated.updated_at.is_some(),
        };
        let happened = dictated.status.as_deref();
        let happened = happened.map(|status| self.rules.statuses.happening(status));
        self.change(seq, dictated, now);
        if let Some(invoice) = self.invoices.get_mut(&seq) {
            invoice.exact.amount |= exact.amount;
            invoice.exact.updated_at = exact.updated_at;
            invoice.happened = happened.unwrap_or(invoice.happened);
        }
        if notify {
            self.notify(seq);
        }
        Ok(())
    }

    /// One that was final is open again: it occupies a requisite as before, and has a payment window.
    fn open_again(&mut self, seq: u64, now: i64) -> Result<(), DictateError> {
        let end = self.window_end(now);
        let invoice = self.invoices.get_mut(&seq);
        let invoice = invoice.ok_or(DictateError::NoInvoice)?;
        if let Some(had) = invoice.requisite {
            let taken = self.pool.take_again(had, &invoice.sum);
            invoice.requisite = Some(taken.ok_or(DictateError::NoRequisites)?);
        }
        invoice.is_open = true;
        if invoice.expires_ms <= now {
            invoice.expires_ms = end;
        }
        self.windows.insert((invoice.expires_ms, seq));
        Ok(())
    }
}
