//! Invoices the writer recorded something of lately, as they stand in the file, so that the next notification of one of them
//! reads nothing. Reading one takes a fourth of what the writer does for a notification.
//!
//! Relies on the writer for two things: each transaction begins with [`Known::check`], and what may have been undone, or was
//! stored in another way than by [`Known::put`], is forgotten. Promises no more than [`MOST`] of them. A build with debug
//! assertions holds each against the file when it is used, so that every test of the ledger is one of this.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::invoice::opening::Opening;
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::Stored;

/// Invoices kept in all, some 1.5 kB each: more than a shop has under way at one time.
const MOST: usize = 4_096;

/// Texts of an invoice that is kept, bytes: what one takes is what the service sends, and some send much.
const LONGEST: usize = 4_096;

/// Boxed: a table has nearly as many empty places as full ones.
type Invoices = HashMap<InvoiceKey, Box<Stored>, BuildHasherDefault<Mixed>>;

/// Where a key goes. The keys are the ledger's own numbers, which nobody outside can choose: one multiplication scatters them.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // The golden ratio's bits; the table looks at the highest and at the lowest.
        let mixed = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}

/// The invoices, those that were put in last apart from those before them: when the young are half of what may be kept, the
/// old are dropped.
#[derive(Debug, Default)]
pub(super) struct Known {
    young: Invoices,
    old: Invoices,
    /// SQLite's number for what others have committed, as it was when the oldest of these was put in.
    version: Option<i64>,
}

impl Known {
    /// Called when the write lock is held, with SQLite's number for what others have committed; `None` where it cannot be
    /// told. After a foreign commit nothing is known.
    pub(super) fn check(&mut self, version: Option<i64>) {
        if version.is_none() || version != self.version {
            self.clear();
            self.version = version;
        }
    }

    /// The invoice as it stands in the file.
    pub(super) fn get(&self, key: InvoiceKey) -> Option<&Stored> {
        let found = self.young.get(&key).or_else(|| self.old.get(&key));
        found.map(|stored| &**stored)
    }

    /// Keeps an invoice that was read, or stored, as it is. The claims that are events are looked up when they matter.
    pub(super) fn put(&mut self, mut stored: Stored) {
        self.forget(stored.row.key);
        stored.invoice.recorded = Vec::new();
        // What these hold of the invoice that stands for the order changes with that.
        let is_beside = stored.row.superseded.is_some() || stored.row.opening == Opening::Refused;
        if is_beside || length(&stored) > LONGEST {
            return;
        }
        if self.young.len() >= MOST / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(stored.row.key, Box::new(stored));
    }

    /// An invoice was changed in another way.
    pub(super) fn forget(&mut self, key: InvoiceKey) {
        self.young.remove(&key);
        self.old.remove(&key);
    }

    /// What was stored may be undone.
    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

/// The texts that may be long.
fn length(stored: &Stored) -> usize {
    let row = &stored.row;
    let texts = [
        &row.raw,
        &row.requisites,
        &row.payment_url,
        &row.currency_reported,
        &row.amount_reported,
    ];
    let texts = texts.into_iter().flatten().map(String::len);
    let doubted = stored.invoice.doubted.iter();
    let pending = stored.invoice.pending.iter().map(|pending| &pending.claim);
    // Of a claim that differs, what it named instead may be as long as the service likes.
    let differs = doubted.chain(pending).chain(&stored.invoice.claim);
    let differs = differs.map(|claim| {
        claim
            .verdict
            .as_stored()
            .map_or(100, |text| 100 + text.len())
    });
    texts.sum::<usize>() + differs.sum::<usize>()
}

/// What was kept is what stands in the file.
pub(super) fn assert_stands(kept: &Stored, read: Option<&Stored>) {
    let read = read.expect("invoices are never deleted");
    assert_eq!(format!("{kept:?}"), format!("{read:?}"), "as in the file");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::saving::tests::{ledger, read};

    fn one() -> Stored {
        read(&ledger())
    }

    fn numbered(key: i64) -> Stored {
        let mut one = one();
        one.row.key = InvoiceKey(key);
        one
    }

    #[test]
    fn the_newest_is_kept_and_none_that_is_long() {
        let mut known = Known::default();
        known.check(Some(1));
        let mut stored = one();
        let key = stored.row.key;
        for revision in [20, 21] {
            stored.row.revision = revision;
            known.put(stored.clone());
            assert_eq!(known.get(key).expect("kept").row.revision, revision);
        }
        stored.row.raw = Some("x".repeat(LONGEST));
        known.put(stored);
        assert!(known.get(key).is_none(), "not the one before either");
    }

    /// What another process has written is not what is known here.
    #[test]
    fn nothing_is_known_after_a_foreign_commit() {
        let mut known = Known::default();
        known.check(Some(1));
        known.put(one());
        known.check(Some(1));
        assert!(known.get(InvoiceKey(7)).is_some());
        for version in [Some(2), None] {
            known.put(one());
            known.check(version);
            assert!(known.get(InvoiceKey(7)).is_none(), "{version:?}");
        }
    }

    #[test]
    fn the_latest_are_kept_and_no_more_than_the_bound() {
        let mut known = Known::default();
        let most = i64::try_from(MOST).expect("small");
        let stored = one();
        for key in 0..2 * most {
            let mut stored = stored.clone();
            stored.row.key = InvoiceKey(key);
            known.put(stored);
            assert!(known.young.len() + known.old.len() <= MOST);
        }
        for key in most + most / 2..2 * most {
            assert!(known.get(InvoiceKey(key)).is_some(), "{key}");
        }
        known.put(numbered(1));
        known.clear();
        assert!(known.get(InvoiceKey(1)).is_none());
    }
}
