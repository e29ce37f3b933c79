//! Whether polls have shown that an invoice was not paid. Pure.
//!
//! Relies on times of the service's clock. Promises that only its clear word after the end of the payment window says so.

/// The service's own name for an invoice that nobody has paid (contract 2.1).
pub const NEW: &str = "new";
/// Two answers this far apart that there is no such invoice are believed, milliseconds: one may come from a replica that lags.
const GONE_MS: i64 = 5_000;

/// What polls of one invoice brought last, by the service's clock, milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// The last answer about it.
    pub answered_ms: Option<i64>,
    /// The first of the answers since then that there is no such invoice, or that this shop may not see it.
    pub gone_since_ms: Option<i64>,
    /// The last of those.
    pub gone_ms: Option<i64>,
}

impl Polled {
    /// After an answer about it.
    pub const fn answered(at_ms: i64) -> Self {
        Self {
            answered_ms: Some(at_ms),
            gone_since_ms: None,
            gone_ms: None,
        }
    }

    /// After a poll that brought no answer: two refusals count only in a row.
    #[must_use]
    pub const fn failed(self) -> Self {
        Self {
            gone_since_ms: None,
            gone_ms: None,
            ..self
        }
    }

    /// After an answer that there is no such invoice.
    #[must_use]
    pub fn gone(self, at_ms: i64) -> Self {
        let since = self.gone_since_ms.filter(|since| *since <= at_ms);
        Self {
            gone_since_ms: since.or(Some(at_ms)),
            gone_ms: Some(at_ms),
            ..self
        }
    }

    /// For how long the service has said that there is no such invoice, milliseconds.
    pub fn gone_for_ms(self) -> i64 {
        let both = self.gone_ms.zip(self.gone_since_ms);
        both.map_or(0, |(last, since)| last.saturating_sub(since))
    }

    /// True when the service has said since the end that an invoice with this status was not paid. Only `new` says so of an
    /// open one: what other names mean for the money is unknown.
    pub fn says_unpaid(&self, closes_ms: i64, status: Option<&str>) -> bool {
        let is_after = |at: Option<i64>| at.filter(|at| *at >= closes_ms);
        let is_new = status == Some(NEW) && is_after(self.answered_ms).is_some();
        let is_gone = is_after(self.gone_ms).is_some() && self.gone_for_ms() >= GONE_MS;
        is_new || is_gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_service_says_that_an_invoice_was_not_paid_and_only_after_its_end() {
        let before = Polled::answered(99);
        let after = Polled::answered(100);
        assert!(!before.says_unpaid(100, Some("new")));
        assert!(after.says_unpaid(100, Some("new")));
        for status in [Some("waiting"), Some("NEW"), None] {
            assert!(!after.says_unpaid(100, status), "{status:?}");
        }
        let once = Polled::default().gone(200);
        assert!(!once.says_unpaid(100, None));
        assert!(!once.gone(200 + GONE_MS - 1).says_unpaid(100, None));
        assert!(once.gone(200 + GONE_MS).says_unpaid(100, None));
        // Both of them before its end.
        let early = once.gone(200 + GONE_MS);
        assert!(!early.says_unpaid(201 + GONE_MS, None));
        assert!(!once.failed().gone(200 + GONE_MS).says_unpaid(100, None));
        // An answer between them, and a clock that was set back.
        assert!(
            !Polled::answered(300)
                .gone(200 + GONE_MS)
                .says_unpaid(100, None)
        );
        assert!(!once.gone(100).says_unpaid(0, None));
    }
}
