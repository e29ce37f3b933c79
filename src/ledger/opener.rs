//! Opens the sealed token of an invoice that was looked up, and does the same work where there is none: since look-ups are
//! made on the request's own thread, nothing else hides how long one takes.
//!
//! Promises that an unknown ref is read for and decrypted for as a known one is, with nothing to show for it.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::reader::Reader;
use super::row::{InvoiceKey, Watched};
use super::seal::{Sealed, Sealer};
use super::{KEY_FILE, SECRET_DIRECTORY};
use crate::entropy;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::notify_token::NotifyToken;

/// The key, and the token of nobody that is sealed with it.
pub(super) struct Opener {
    sealer: Arc<Sealer>,
    nobody: InvoiceRef,
    nobodys: Sealed,
}

impl Opener {
    pub(super) fn new(sealer: Arc<Sealer>) -> Self {
        let nobody = InvoiceRef::from_entropy(entropy::bytes());
        let token = NotifyToken::from_entropy(entropy::bytes());
        let nobodys = sealer.seal(&token, &nobody);
        Self {
            sealer,
            nobody,
            nobodys,
        }
    }

    /// The token of an invoice.
    pub(super) fn open(&self, sealed: &Sealed, reference: &InvoiceRef) -> Option<NotifyToken> {
        self.sealer.open(sealed, reference)
    }

    /// The invoice that was found.
    pub(super) fn watched(
        &self,
        key: InvoiceKey,
        sealed: Option<&Sealed>,
        reference: &InvoiceRef,
    ) -> Watched {
        let token = sealed.and_then(|sealed| self.open(sealed, reference));
        Watched { key, token }
    }

    /// None was found: one is opened all the same.
    pub(super) fn nobody(&self) {
        black_box(self.open(&self.nobodys, &self.nobody));
    }
}

/// As long as a mark is: a nonce of 12 bytes, a token of 43 characters and a tag of 16 bytes, in base64.
const MARK_BYTES: usize = 95;

/// Marks a request of this tilld about a reference, which only the key of its ledger can have made. `None` for a user who may
/// not read that.
pub(crate) fn own_mark(state_dir: &Path, reference: &InvoiceRef) -> Option<String> {
    let sealer = Sealer::load(&state_dir.join(SECRET_DIRECTORY).join(KEY_FILE)).ok()?;
    let Sealed(mark) = sealer.seal(&NotifyToken::from_entropy(entropy::bytes()), reference);
    Some(URL_SAFE_NO_PAD.encode(mark))
}

impl Reader {
    /// True for such a mark.
    pub(crate) fn is_own(&self, reference: &InvoiceRef, mark: &[u8]) -> bool {
        let mark = Some(mark).filter(|mark| mark.len() <= MARK_BYTES);
        let mark = mark.and_then(|mark| URL_SAFE_NO_PAD.decode(mark).ok());
        let mark = mark.map(Sealed);
        let opened = mark
            .zip(self.pool.opener.as_ref())
            .and_then(|(mark, opener)| opener.open(&mark, reference));
        opened.is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::tests::{PATIENCE, open, opened};
    use super::*;

    /// The middle one of the times that looking these up takes, known and unknown in turns.
    async fn middle(ledger: &super::super::Ledger, known: &[InvoiceRef]) -> [Duration; 2] {
        let reader = ledger.reader();
        let mut took = [Vec::new(), Vec::new()];
        for (round, own) in (0..2_000_u128).zip(known.iter().cycle()) {
            let nobodys = InvoiceRef::from_entropy((round << 120 | round).to_be_bytes());
            for (reference, took) in [own, &nobodys].into_iter().zip(&mut took) {
                let reference = reference.clone();
                let began = Instant::now();
                black_box(reader.watched(reference).await.expect("read"));
                took.push(began.elapsed());
            }
        }
        took.map(|mut all| {
            all.sort_unstable();
            *all.get(all.len() / 2).expect("many")
        })
    }

    #[tokio::test]
    async fn a_ref_that_nobody_has_costs_what_another_costs() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = open(&directory);
        let (writer, mut known) = (ledger.writer(), Vec::new());
        for order in ["a", "b", "c"] {
            let key = opened(&writer, order).await;
            let row = ledger.reader().invoice(key).await.expect("read");
            known.push(row.expect("it is there").reference);
        }
        let mut seen = Vec::new();
        // Once without a disturbance is enough: no disturbance makes two unequal ways equal.
        for _ in 0..5 {
            let [own, nobodys] = middle(&ledger, &known).await;
            seen.push((own, nobodys));
            if nobodys * 100 > own * 88 && nobodys * 88 < own * 100 {
                break;
            }
        }
        let (own, nobodys) = *seen.last().expect("one");
        assert!(
            nobodys * 100 > own * 88 && nobodys * 88 < own * 100,
            "known, unknown: {seen:?}"
        );
        drop(writer);
        ledger.close(PATIENCE).await;
    }
}
