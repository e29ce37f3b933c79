//! A second invoice of an order: none is opened, unless the shop insists, while an earlier one can be paid or was paid in its
//! window; and whichever of them the customer pays, the order is paid once and by the right sum.
//!
//! Relies on what the service shows of the earlier one, not on the ledger. Promises to leave out what nobody can know: replicas
//! that lag, and an invoice that had failed or was reversed.

use std::collections::HashMap;

use super::book::Begun;
use super::world::{Sabotage, World};
use crate::invoice::event::EventKind;
use crate::invoice::ids::InvoiceId;
use crate::invoice::opening::Opening;
use crate::invoice::status::{Meaning, Outcome};
use crate::ledger::{InvoiceKey, InvoiceRow, LedgerCommand};

impl World {
    /// Looks at the earlier invoices of an order that was given another just now.
    pub(super) fn see_second(&mut self, order_id: &str, own: InvoiceKey) {
        let earlier: Vec<(InvoiceKey, InvoiceId)> = self
            .store
            .invoices()
            .filter(|row| row.key != own && row.order_id == order_id)
            .filter_map(|row| Some((row.key, InvoiceId::new(row.invoice_id.as_deref()?).ok()?)))
            .collect();
        for (key, id) in earlier {
            if self.may_be_paid(&id) {
                let why = format!(
                    "one payable invoice: beside invoice {} another was opened",
                    key.0
                );
                self.book.broken.push(why);
            }
        }
    }

    fn may_be_paid(&self, id: &InvoiceId) -> bool {
        let Some(invoice) = self.service.find_invoice(id.as_str()) else {
            return false;
        };
        let lists = &self.rules.policy.lists;
        let meant = |until: i64| {
            let bodies = self.book.bodies.get(id).map_or(&[][..], Vec::as_slice);
            let bodies = bodies.iter().filter(move |body| body.at <= until);
            bodies.map(|body| lists.sort(&body.report.status))
        };
        let ended = [Some(Meaning::Failed), Some(Meaning::Reversed)];
        if meant(self.now).any(|meaning| ended.contains(&meaning)) {
            return false;
        }
        let left_ms = invoice.expires_ms.saturating_sub(self.service_ms());
        // Answers of a replica may be older than they are dated.
        let was_paid = !self.scenario.may_lag()
            && meant(self.now.saturating_add(left_ms)).next_back() == Some(Some(Meaning::Paid));
        left_ms > 0 || was_paid
    }
}

/// What an order was like before another invoice of it was begun: how many invoices there were, and its id while it is unpaid.
pub(super) struct Before {
    invoices: usize,
    unpaid: String,
}

impl World {
    pub(super) fn before_begun(&self, commands: &[&LedgerCommand]) -> Option<Before> {
        let [LedgerCommand::Begin(intent)] = commands else {
            return None;
        };
        let order_id = intent.order_id.as_str();
        let is_paid = |row: InvoiceRow| row.order_id == order_id && row.outcome == Outcome::Paid;
        let unpaid = !self.store.invoices().any(is_paid);
        unpaid.then(|| Before {
            invoices: self.store.invoices().count(),
            unpaid: order_id.to_owned(),
        })
    }

    /// Notes the invoice that stands for an unpaid order from now on.
    pub(super) fn see_begun(&mut self, before: Option<Before>) {
        let newest = self.store.invoices().last();
        if let (Some(before), Some(row)) = (before, newest)
            && self.store.invoices().count() > before.invoices
        {
            self.book.begun.push(Begun {
                order_id: before.unpaid,
                key: row.key,
                after: self.store.events().last().map_or(0, |(event, _)| event.seq),
            });
        }
        if self.sabotage == Sabotage::NothingSuperseded {
            self.store.drop_superseded();
        }
    }
}

/// An order is paid once at a time, and by a sum that its newest invoice has.
pub(super) fn paid_once(world: &World) -> Vec<String> {
    let rows: HashMap<InvoiceKey, InvoiceRow> =
        world.store.invoices().map(|row| (row.key, row)).collect();
    let mut paid_by: HashMap<&str, InvoiceKey> = HashMap::new();
    let mut broken = Vec::new();
    for (event, _) in world.store.events() {
        let order = event.order_id.as_str();
        let payer = paid_by.get(order).copied();
        if event.outcome != Outcome::Paid {
            if payer == Some(event.invoice) {
                paid_by.remove(order);
            }
            continue;
        }
        let told = matches!(
            event.kind,
            EventKind::Paid | EventKind::Late | EventKind::PaidAgain
        );
        if let Some(payer) = payer.filter(|payer| *payer != event.invoice) {
            broken.push(format!(
                "an order is paid once: {order} by invoice {} beside {}",
                event.invoice.0, payer.0
            ));
        }
        paid_by.insert(order, event.invoice);
        let mut newer = world.book.begun.iter().filter(|begun| {
            let row = rows.get(&begun.key);
            begun.order_id == order
                && begun.key > event.invoice
                && begun.after < event.seq
                && row.is_some_and(|row| row.opening != Opening::Refused)
        });
        let sum = |key| rows.get(&key).map(|row| row.amount_agreed.as_str());
        if told
            && let Some(newest) = newer.next_back()
            && sum(newest.key) != sum(event.invoice)
        {
            broken.push(format!(
                "an order is paid once: {order} by invoice {} though {} is newer",
                event.invoice.0, newest.key.0
            ));
        }
    }
    broken
}
