//! An invoice as it is stored first and as it comes back.

use super::MemoryStore;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::moment::Moment;
use crate::invoice::opening::{Opening, decides};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Invoice, Superseding};
use crate::ledger::command::Intent;
use crate::ledger::row::{InvoiceKey, InvoiceRow, SupersededBy};
use crate::ledger::store::{Earlier, PollState, Stored};

/// The row an intent makes; its key is given when it is added.
pub(super) fn opened(intent: &Intent, generation: i64) -> Stored {
    let wanted = &intent.wanted;
    let amount = wanted.sum.amount.as_str();
    let currency = wanted.sum.currency.as_str();
    let row = InvoiceRow {
        key: InvoiceKey(0),
        reference: intent.reference.clone(),
        order_id: intent.order_id.as_str().to_owned(),
        invoice_id: None,
        mode: wanted.mode,
        method: wanted.method.clone(),
        opening: Opening::Creating,
        opening_note: None,
        creator: Some(intent.creator.clone()),
        creator_deadline_ms: intent.deadline_ms,
        status: None,
        outcome: Outcome::Open,
        outcome_ms: intent.now_ms,
        found_by: None,
        amount_asked: amount.to_owned(),
        currency_asked: currency.to_owned(),
        amount_agreed: amount.to_owned(),
        currency_agreed: currency.to_owned(),
        amount_reported: None,
        currency_reported: None,
        doubt: false,
        attention: Vec::new(),
        unresolved: false,
        requisites: None,
        payment_url: None,
        raw: None,
        expire_ms: None,
        created_ms: intent.now_ms,
        updated_ms: intent.now_ms,
        revision: 0,
        superseded: None,
    };
    let invoice = Invoice::unheard(intent.order_id.clone(), wanted.sum.clone());
    Stored {
        invoice,
        row,
        heard_ms: None,
        sorted_by: 0,
        generation,
        newest: Moment::from_ns(0),
        document: None,
    }
}

/// An invoice as it comes back from a file: what stands twice in it is taken from where a file has it, and what is loaded
/// apart is not there.
pub(super) fn normal(mut stored: Stored) -> Stored {
    let claim = stored.invoice.claim.as_ref();
    stored.row.status = claim.map(|claim| claim.status.as_str().to_owned());
    stored.row.revision = stored.invoice.revision;
    stored.row.doubt = stored.invoice.doubt;
    stored.invoice.outcome = stored.row.outcome;
    stored.invoice.recorded = Vec::new();
    // Kept apart.
    stored.row.superseded = None;
    stored.invoice.superseded = None;
    stored
}

impl MemoryStore {
    /// Drops the doubt of an invoice as if nobody had to ask: what no code may do, for tests of the tests.
    pub(crate) fn drop_doubt(&mut self, key: InvoiceKey) {
        if let Some(mut stored) = self.invoices.get(key.0).cloned() {
            stored.invoice.doubt = false;
            stored.invoice.doubted.clear();
            self.invoices.put(key.0, normal(stored));
            self.polls.put(key.0, PollState::default());
            self.forget();
        }
    }
}

impl MemoryStore {
    /// Lets each invoice stand for its order: what no code may do, for tests of the tests.
    pub(crate) fn drop_superseded(&mut self) {
        let superseded: Vec<i64> = self.superseded.iter().map(|(key, _)| key).collect();
        for key in superseded {
            self.superseded.remove(key);
        }
        self.forget();
    }

    /// An invoice with what stands for its order instead.
    pub(super) fn stored(&self, key: InvoiceKey) -> Option<Stored> {
        let mut stored = self.invoices.get(key.0)?.clone();
        let by = self.superseded.get(key.0);
        if let Some(standing) = by.and_then(|by| self.invoices.get(*by)) {
            let row = &standing.row;
            stored.row.superseded = Some(SupersededBy {
                r#ref: row.reference.as_str().to_owned(),
                invoice_id: row.invoice_id.clone(),
                outcome: row.outcome.as_str().to_owned(),
                amount: row.amount_agreed.clone(),
                currency: row.currency_agreed.clone(),
            });
            stored.invoice.superseded = Some(Superseding {
                sum: standing.invoice.agreed.clone(),
                outcome: row.outcome,
            });
        }
        Some(stored)
    }

    /// Lets an invoice stand for its order; those that were refused stay as they are.
    pub(super) fn supersede(&mut self, key: InvoiceKey, order_id: &str) {
        let superseded = |row: &&InvoiceRow| {
            row.opening != Opening::Refused || self.superseded.get(row.key.0).is_none()
        };
        let others = self.beside(key, order_id).filter(superseded);
        let others: Vec<_> = others.map(|row| row.key).collect();
        self.superseded.remove(key.0);
        for other in others {
            self.superseded.put(other.0, key.0);
        }
    }

    /// The other invoices of an order, newest first.
    pub(super) fn beside(
        &self,
        key: InvoiceKey,
        order_id: &str,
    ) -> impl Iterator<Item = &InvoiceRow> {
        let rows = self.invoices.iter().rev().map(|(_, stored)| &stored.row);
        rows.filter(move |row| row.order_id == order_id && row.key != key)
    }

    /// The invoices of an order that decide whether it may be given another, and its tries, newest first.
    pub(super) fn earlier(&self, order_id: &str, tries: [Option<&InvoiceRef>; 2]) -> Vec<Earlier> {
        let keys = self.invoices.iter().rev().map(|(key, _)| InvoiceKey(key));
        let rows = keys.filter_map(|key| self.stored(key));
        let rows = rows.filter(|stored| stored.row.order_id == order_id);
        let earlier = rows.map(|stored| {
            let poll = self.polls.get(stored.row.key.0).copied();
            Earlier {
                row: stored.row.clone(),
                is_pending: stored.invoice.pending.is_some(),
                poll: poll.unwrap_or_default(),
            }
        });
        let counts = |earlier: &Earlier| {
            let row = &earlier.row;
            let is_try = tries.contains(&Some(&row.reference));
            decides(row.opening, row.outcome, earlier.is_unsure()) || is_try
        };
        earlier.filter(counts).collect()
    }
}
