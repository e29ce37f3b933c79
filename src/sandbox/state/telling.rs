//! Telling of invoices: notifications made, and the book of what came of them.

use std::sync::Arc;

use super::State;
use super::notice::{Answer, Attempt, MOST_ATTEMPTS, Notice, Sent};

impl State {
    /// Puts a notification of the invoice as it stands now into the queue.
    pub(super) fn notify(&mut self, seq: u64) {
        let notice = self.make_notice(seq);
        self.notices.extend(notice);
    }

    /// As [`State::notify`], for the invoice with this id.
    pub(crate) fn notify_of(&mut self, id: &str) {
        if let Some(seq) = self.by_id.get(id).copied() {
            self.notify(seq);
        }
    }

    /// A notification of the invoice as it stands now, given to the caller instead of the queue.
    pub(crate) fn notice_of(&mut self, id_or_order: &str) -> Option<Notice> {
        let seq = self.find_invoice(id_or_order)?.seq;
        self.make_notice(seq)
    }

    fn make_notice(&mut self, seq: u64) -> Option<Notice> {
        let id = self.invoices.get(&seq)?.id.clone();
        let body = self.tell(&id)?;
        let invoice = self.invoices.get_mut(&seq)?;
        invoice.notices += 1;
        Some(Notice {
            invoice: seq,
            key: invoice.key,
            id: invoice.id.clone(),
            order: invoice.internal_id.clone(),
            number: invoice.notices,
            url: invoice.notification_url.clone(),
            token: invoice.token.clone(),
            status: invoice.status.clone(),
            body: body.into(),
            reordered: false,
            dated: invoice.dated.clone(),
        })
    }

    /// Writes down what came of an attempt.
    pub(crate) fn record_attempt(
        &mut self,
        notice: &Notice,
        attempt: u32,
        mut sent: Sent,
        answer: Answer,
        now: i64,
    ) {
        let Some(invoice) = self.invoices.get_mut(&notice.invoice) else {
            return;
        };
        if sent.presentation.is_some() {
            sent.faults.extend(notice.dated.clone());
        }
        while invoice.attempts.len() >= MOST_ATTEMPTS {
            invoice.attempts.pop_front();
        }
        invoice.attempts.push_back(Attempt {
            notice: notice.number,
            number: attempt,
            at_ms: now,
            status: notice.status.clone(),
            sent,
            body: Arc::clone(&notice.body),
            answer,
        });
    }
}
