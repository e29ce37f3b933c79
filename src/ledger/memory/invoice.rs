//! An invoice as it is stored first and as it comes back.

use std::collections::HashMap;

use super::MemoryStore;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::moment::Moment;
use crate::invoice::opening::{Opening, decides};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Invoice, Superseding};
use crate::ledger::command::Intent;
use crate::ledger::row::{InvoiceKey, InvoiceRow, SupersededBy};
use crate::ledger::store::{Earlier, PollState, Rank, Stored};

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
        let ranked: Vec<i64> = self.ranks.iter().map(|(key, _)| key).collect();
        for key in ranked {
            self.ranks.remove(key);
        }
        self.forget();
    }

    /// An invoice with what stands for its order instead.
    pub(super) fn stored(&self, key: InvoiceKey) -> Option<Stored> {
        let stored = self.invoices.get(key.0)?;
        let standing = self.above(key, &stored.row.order_id, self.rank_of(key).abs());
        Some(beside(stored, standing))
    }

    /// The same of many: of each order the one that stands for it is looked for once.
    pub(super) fn all_stored(&self) -> impl Iterator<Item = Stored> {
        let mut standing: HashMap<&str, &Stored> = HashMap::new();
        let rank = |stored: &Stored| self.rank_of(stored.row.key);
        for (_, stored) in self.invoices.iter().filter(|(_, one)| rank(one) > 0) {
            let first = standing.entry(&stored.row.order_id).or_insert(stored);
            if rank(first) < rank(stored) {
                *first = stored;
            }
        }
        self.invoices.iter().map(move |(_, stored)| {
            let first = standing.get(stored.row.order_id.as_str()).copied();
            beside(
                stored,
                first.filter(|first| rank(first) > rank(stored).abs()),
            )
        })
    }

    pub(super) fn rank_of(&self, key: InvoiceKey) -> i64 {
        self.ranks.get(key.0).copied().unwrap_or_default()
    }

    /// The invoice of an order that is ranked highest, above this rank, another one than this.
    pub(super) fn above(&self, key: InvoiceKey, order_id: &str, rank: i64) -> Option<&Stored> {
        let others = self.invoices.iter().map(|(_, stored)| stored);
        others
            .filter(|stored| stored.row.order_id == order_id && stored.row.key != key)
            .filter(|stored| self.rank_of(stored.row.key) > rank)
            .max_by_key(|stored| self.rank_of(stored.row.key))
    }

    pub(super) fn rank_as(&mut self, key: InvoiceKey, order_id: &str, rank: Rank) {
        let of_order = self.invoices.iter().map(|(_, stored)| &stored.row);
        let of_order = of_order.filter(|row| row.order_id == order_id);
        let highest = of_order.map(|row| self.rank_of(row.key).abs()).max();
        let own = self.rank_of(key);
        let new = match rank {
            Rank::First => highest.unwrap_or_default() + 1,
            Rank::Refused => -own.abs(),
            Rank::Known => own.abs(),
        };
        self.ranks.put(key.0, new);
    }

    /// The invoices of an order that decide whether it may be given another, and its tries, newest first.
    pub(super) fn earlier(&self, order_id: &str, tries: [Option<&InvoiceRef>; 2]) -> Vec<Earlier> {
        let rows = self.all_stored();
        let rows = rows.filter(|stored| stored.row.order_id == order_id);
        let mut rows: Vec<Stored> = rows.collect();
        rows.sort_by_key(|stored| std::cmp::Reverse(self.rank_of(stored.row.key)));
        let earlier = rows.into_iter().map(|stored| {
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

/// An invoice beside the one that stands for its order.
fn beside(stored: &Stored, standing: Option<&Stored>) -> Stored {
    let mut stored = stored.clone();
    if let Some(standing) = standing {
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
    stored
}
