//! Invoices the writer recorded something of lately, as they stand in the file, so that the next notification of one of them
//! reads nothing. Reading one takes a fourth of what the writer does for a notification.
//!
//! Relies on the writer for three things: each transaction begins with [`Known::check`], what may have been undone is
//! forgotten by [`Known::clear`], and whoever stores an invoice in another way than by taking it from here and putting it back
//! calls [`Known::forget`]. Promises no more than [`MOST`] of them. A build with debug assertions holds each against the file
//! when it is taken, so that every test of the ledger is one of this.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

    /// Gives an invoice away.
    pub(super) fn take(&mut self, key: InvoiceKey) -> Option<Box<Stored>> {
        self.young.remove(&key).or_else(|| self.old.remove(&key))
    }

    /// Keeps an invoice that was stored as it is. Its document is left to the event that has it, and the claims that are
    /// events are looked up when they matter.
    pub(super) fn put(&mut self, mut stored: Box<Stored>) {
        if stored.document.is_some() {
            stored.row.raw = None;
        }
        stored.invoice.recorded = Vec::new();
        // What a superseded one holds of the invoice that stands for the order changes with that.
        if length(&stored) > LONGEST || stored.row.superseded.is_some() {
            return;
        }
        if self.young.len() >= MOST / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(stored.row.key, stored);
    }

    /// An invoice was stored that was not taken from here.
    pub(super) fn forget(&mut self, key: InvoiceKey) {
        drop(self.take(key));
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
    let texts = [&row.raw, &row.requisites, &row.payment_url];
    let texts = texts.into_iter().flatten().map(String::len);
    // Each is a word or two.
    texts.sum::<usize>() + stored.invoice.doubted.len() * 100
}

/// What was kept is what stands in the file, but for a document that an event has.
pub(super) fn assert_stands(kept: &Stored, read: Option<Stored>) {
    let mut read = read.expect("invoices are never deleted");
    if read.document.is_some() {
        read.row.raw = None;
    }
    assert_eq!(format!("{kept:?}"), format!("{read:?}"), "as in the file");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::usual::tests::{ledger, read_usual};

    fn one() -> Box<Stored> {
        Box::new(read_usual(&ledger()).expect("as most are"))
    }

    fn numbered(key: i64) -> Box<Stored> {
        let mut one = one();
        one.row.key = InvoiceKey(key);
        one
    }

    #[test]
    fn it_is_given_once_and_the_document_is_left_to_the_event() {
        let mut known = Known::default();
        known.check(Some(1));
        let mut stored = one();
        stored.document = Some(3);
        let key = stored.row.key;
        known.put(stored);
        assert_eq!(known.take(key).expect("kept").row.raw, None);
        assert!(known.take(key).is_none());
        known.put(one());
        assert!(known.take(key).expect("kept").row.raw.is_some());
    }

    #[test]
    fn a_long_one_is_not_kept() {
        let mut known = Known::default();
        known.check(Some(1));
        let mut stored = one();
        stored.row.raw = Some("x".repeat(LONGEST));
        known.put(stored.clone());
        assert!(known.take(stored.row.key).is_none());
        stored.document = Some(3);
        stored.row.requisites = None;
        stored.row.payment_url = None;
        known.put(stored);
        assert!(known.take(InvoiceKey(7)).is_some(), "an event has it");
    }

    /// What another process has written is not what is known here.
    #[test]
    fn nothing_is_known_after_a_foreign_commit() {
        let mut known = Known::default();
        known.check(Some(1));
        known.put(one());
        known.check(Some(1));
        assert!(known.take(InvoiceKey(7)).is_some());
        for version in [Some(2), None] {
            known.put(one());
            known.check(version);
            assert!(known.take(InvoiceKey(7)).is_none(), "{version:?}");
        }
    }

    #[test]
    fn the_latest_are_kept_and_no_more_than_the_bound() {
        let mut known = Known::default();
        let stored = one();
        let most = i64::try_from(MOST).expect("small");
        for key in 0..2 * most {
            let mut stored = stored.clone();
            stored.row.key = InvoiceKey(key);
            known.put(stored);
            assert!(known.young.len() + known.old.len() <= MOST);
        }
        for key in most + most / 2..2 * most {
            assert!(known.take(InvoiceKey(key)).is_some(), "{key}");
        }
        known.put(numbered(1));
        known.clear();
        assert!(known.take(InvoiceKey(1)).is_none());
    }
}
