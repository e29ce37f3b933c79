//! Texts of invoices that were over long ago, emptied.

use super::MemoryStore;
use crate::invoice::silence::CLOCK_IS_SET_MS;
use crate::invoice::status::Outcome;
use crate::ledger::AttemptRecord;
use crate::ledger::retention::{Cutoffs, Emptied};
use crate::ledger::row::{DeliveryState, InvoiceKey};

impl MemoryStore {
    pub(super) fn empty_outdated(&mut self, key: InvoiceKey, cutoffs: Cutoffs) -> Emptied {
        let Some(mut stored) = self.invoices.get(key.0).cloned() else {
            return Emptied::default();
        };
        let row = &mut stored.row;
        let over_ms = match row.outcome {
            Outcome::Open => row.unresolved.then_some(row.updated_ms),
            Outcome::Paid
            | Outcome::Failed
            | Outcome::Reversed
            | Outcome::Mismatch
            | Outcome::SecondPayment => Some(row.outcome_ms),
        };
        let is_over = |state| matches!(state, DeliveryState::Done | DeliveryState::Abandoned);
        let owed = self
            .deliveries
            .iter()
            .any(|(_, owed)| owed.invoice == key.0 && !is_over(owed.state));
        let unsure = {
            let mut events = self.events.iter().map(|(_, event)| event);
            events.any(|event| event.row.invoice == key && event.time_unsure)
        };
        let told_ms = stored.newest.as_ms();
        let is_set = |ms: i64| ms >= CLOCK_IS_SET_MS;
        let over_ms = over_ms
            .filter(|over| is_set(told_ms) || is_set(*over) && !unsure)
            .map(|over| over.max(row.created_ms).max(told_ms));
        let Some(over_ms) = over_ms.filter(|_| !owed) else {
            return Emptied::default();
        };
        let outdated = |cutoff: Option<i64>| cutoff.is_some_and(|cutoff| over_ms <= cutoff);
        let mut emptied = Emptied::default();
        if outdated(cutoffs.requisites_ms)
            && (row.requisites.is_some() || row.payment_url.is_some())
        {
            (row.requisites, row.payment_url) = (None, None);
            emptied.requisites = 1;
        }
        let has_raw = row.raw.is_some();
        if outdated(cutoffs.raw_ms) && has_raw {
            stored.row.raw = None;
            emptied.raw = 1;
            self.empty_events(key);
        }
        self.invoices.put(key.0, stored);
        if let Some(raw_ms) = cutoffs.raw_ms.filter(|_| outdated(cutoffs.raw_ms))
            && self.empty_output(key, raw_ms)
        {
            emptied.raw = 1;
        }
        emptied
    }

    /// Marks the events behind this number as dated by a clock that may have been wrong.
    pub(super) fn doubt_times(&mut self, after: i64) {
        let later = self.events.iter().filter(|(seq, _)| *seq > after);
        let later: Vec<_> = later.map(|(seq, event)| (seq, event.clone())).collect();
        for (seq, mut event) in later {
            event.time_unsure = true;
            self.events.put(seq, event);
        }
    }

    fn empty_events(&mut self, key: InvoiceKey) {
        let own = self
            .events
            .iter()
            .filter(|(_, event)| event.row.invoice == key);
        for (seq, mut event) in own
            .map(|(seq, event)| (seq, event.clone()))
            .collect::<Vec<_>>()
        {
            event.row.raw = None;
            self.events.put(seq, event);
        }
    }

    /// What scripts wrote in runs that were over then. False when there was nothing.
    fn empty_output(&mut self, key: InvoiceKey, raw_ms: i64) -> bool {
        let of_invoice = |delivery: i64| {
            let owed = self.deliveries.get(delivery);
            owed.is_some_and(|owed| owed.invoice == key.0)
        };
        let says = |record: &AttemptRecord| {
            (CLOCK_IS_SET_MS..=raw_ms).contains(&record.ended_ms)
                && !(record.stdout.is_empty() && record.stderr.is_empty())
        };
        let own = self
            .attempts
            .iter()
            .filter(|(_, attempt)| of_invoice(attempt.delivery) && says(&attempt.record));
        let own: Vec<_> = own.map(|(id, attempt)| (id, attempt.clone())).collect();
        let any = !own.is_empty();
        for (id, mut attempt) in own {
            attempt.record.stdout.clear();
            attempt.record.stderr.clear();
            self.attempts.put(id, attempt);
        }
        any
    }
}
