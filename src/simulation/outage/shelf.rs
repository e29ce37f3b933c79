//! The due times as the ledger files them, in their order. The store in memory sorts all of them for each look, which is
//! quick enough for a dozen invoices and not for thousands; here the order is kept. Relies on being told of every write.

use std::collections::{BTreeSet, HashMap};

use crate::invoice::silence::Class;
use crate::ledger::memory::MemoryStore;
use crate::ledger::{DueRow, InvoiceKey, Place};

/// Due times in their order.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    places: BTreeSet<Place>,
    of: HashMap<InvoiceKey, Place>,
}

impl Shelf {
    /// An invoice was written.
    pub(super) fn refresh(&mut self, store: &MemoryStore, key: InvoiceKey) {
        if let Some(old) = self.of.remove(&key) {
            self.places.remove(&old);
        }
        if let Some(place) = store.place_of(key) {
            self.places.insert(place);
            self.of.insert(key, place);
        }
    }

    /// As the ledger's `due`: up to so many of each class whose time has come, the longest due first.
    pub(super) fn due(&self, store: &MemoryStore, now_ms: i64, per_class: u32) -> Vec<DueRow> {
        let most = usize::try_from(per_class).unwrap_or(usize::MAX);
        let of = |class: Class| {
            let from = place(class, i64::MIN, i64::MIN);
            let until = place(class, now_ms, i64::MAX);
            self.places.range(from..=until).take(most)
        };
        let due = Class::ALL.into_iter().flat_map(of);
        due.filter_map(|place| store.due_row(place)).collect()
    }

    /// As the ledger's `due_after`: those of one class behind a place, nearest first.
    pub(super) fn due_after(&self, store: &MemoryStore, after: Place, limit: u32) -> Vec<DueRow> {
        let last = place(after.class, i64::MAX, i64::MAX);
        let behind = (
            std::ops::Bound::Excluded(after),
            std::ops::Bound::Included(last),
        );
        if after >= last {
            return Vec::new();
        }
        let rows = self.places.range(behind);
        rows.take(usize::try_from(limit).unwrap_or(usize::MAX))
            .filter_map(|place| store.due_row(place))
            .collect()
    }

    /// The first due time that is still to come, of all classes.
    pub(super) fn next_ms(&self, now_ms: i64) -> Option<i64> {
        let of = |class: Class| {
            let from = place(class, now_ms, i64::MAX);
            let until = place(class, i64::MAX, i64::MAX);
            let next = self
                .places
                .range(from..=until)
                .find(|next| next.due_ms > now_ms);
            next.map(|next| next.due_ms)
        };
        Class::ALL.into_iter().filter_map(of).min()
    }
}

fn place(class: Class, due_ms: i64, key: i64) -> Place {
    Place {
        class,
        due_ms,
        key: InvoiceKey(key),
    }
}
