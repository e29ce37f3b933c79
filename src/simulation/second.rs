//! A second invoice of an order: none is opened, unless the shop insists, while an earlier one can be paid or was paid in its
//! window.
//!
//! Relies on what the service shows of the earlier one, not on the ledger. Promises to leave out what nobody can know: replicas
//! that lag, and an invoice that had failed or was reversed.

use super::world::World;
use crate::invoice::ids::InvoiceId;
use crate::invoice::status::Meaning;
use crate::ledger::InvoiceKey;

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
