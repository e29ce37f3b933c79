//! What is emptied of invoices that were over long ago: requisites and payment page, and the service's raw documents with
//! what scripts wrote. What an order was worth and what became of it stays.
//!
//! The ledger is walked through by its invoices' numbers, a stretch at a time and by a reader; only what is to be emptied goes
//! to the writer, in small commits. Relies on nothing remembered: a walk that was cut off begins anew, and one that finds
//! nothing writes nothing. Promises to leave an invoice alone while it is open, or a delivery of it is not over.

use super::error::{ReadError, WriteError};
use super::handle::Writer;
use super::reader::Reader;
use super::row::InvoiceKey;
use super::sqlite::KEPT_BYTES;

/// Numbers of invoices in one stretch: some milliseconds of reading.
const STRETCH: i64 = 2_000;
/// Invoices emptied in one commit at most: each has some pages, and a notification waits for the commit.
pub(crate) const EMPTIED_AT_ONCE: usize = 25;

/// A log that nothing keeps from being moved is shorter, bytes.
const LONG_BYTES: u64 = KEPT_BYTES + 1024 * 1024;

/// A day, milliseconds.
const DAY_MS: i64 = 86_400_000;

/// What was over before when is emptied, milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cutoffs {
    /// Requisites and payment page of what was over then.
    pub requisites_ms: Option<i64>,
    /// Raw documents, and what scripts wrote by then.
    pub raw_ms: Option<i64>,
}

impl Cutoffs {
    /// After so many days each; 0: never. A raw document has the requisites in it, so it goes with them at the latest.
    pub(crate) fn after_days(requisites: u64, raw: u64, now_ms: i64) -> Self {
        let before = |days: u64| {
            let days = i64::try_from(days).ok().filter(|days| *days > 0)?;
            Some(now_ms.saturating_sub(days.saturating_mul(DAY_MS)))
        };
        let requisites_ms = before(requisites);
        Self {
            requisites_ms,
            raw_ms: before(raw).max(requisites_ms),
        }
    }

    /// Nothing is ever emptied.
    pub(crate) fn is_never(&self) -> bool {
        self.requisites_ms.is_none() && self.raw_ms.is_none()
    }
}

/// How much was emptied, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    /// Invoices that lost their requisites or payment page.
    pub requisites: u64,
    /// Invoices that lost raw documents, or what scripts wrote.
    pub raw: u64,
}

impl Emptied {
    /// Takes another count in.
    pub(crate) fn add(&mut self, other: Self) {
        self.requisites += other.requisites;
        self.raw += other.raw;
    }
}

/// What a stretch of the ledger has that is to be emptied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// The invoices.
    pub keys: Vec<InvoiceKey>,
    /// How much of each kind that is.
    pub count: Emptied,
    /// The last number that was looked at; `None` at the end of the ledger.
    pub next: Option<InvoiceKey>,
}

/// Why a walk was cut off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WalkError {
    /// It could not be looked.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It could not be emptied.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Reader {
    /// What is to be emptied of the invoices behind this number.
    pub(crate) async fn outdated(
        &self,
        after: InvoiceKey,
        cutoffs: Cutoffs,
    ) -> Result<Stretch, ReadError> {
        self.ask(move |store| store.outdated(after, STRETCH, cutoffs))
            .await
    }
}

impl Reader {
    /// The log is longer than one that can be moved ever is: what empties would fill it further, up to its bound, where
    /// notifications are turned away.
    pub(crate) fn log_is_long(&self) -> bool {
        let mut log = self.path().to_owned().into_os_string();
        log.push("-wal");
        // Asked about, never opened: SQLite's locks go with the first descriptor that is closed.
        std::fs::metadata(log).is_ok_and(|about| about.len() > LONG_BYTES)
    }
}

/// Walks through the ledger once. Without a writer it only counts. `rest` is waited for between two steps.
pub(crate) async fn walk<Rest: Future<Output = ()>>(
    reader: &Reader,
    writer: Option<&Writer>,
    cutoffs: Cutoffs,
    rest: impl Fn() -> Rest,
) -> Result<Emptied, WalkError> {
    let mut emptied = Emptied::default();
    let mut after = Some(InvoiceKey(0));
    while let Some(behind) = after {
        let stretch = reader.outdated(behind, cutoffs).await?;
        match writer {
            None => emptied.add(stretch.count),
            Some(writer) => {
                for some in stretch.keys.chunks(EMPTIED_AT_ONCE) {
                    emptied.add(writer.empty(some.to_vec(), cutoffs).await?);
                    rest().await;
                }
            }
        }
        after = stretch.next;
        rest().await;
    }
    Ok(emptied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_document_goes_with_the_requisites_in_it() {
        let now = 100 * DAY_MS;
        let day = |day: i64| Some(day * DAY_MS);
        for (requisites, raw, wanted) in [
            (0, 0, (None, None)),
            (30, 0, (day(70), day(70))),
            (0, 30, (None, day(70))),
            (30, 90, (day(70), day(70))),
            (90, 30, (day(10), day(70))),
        ] {
            let cutoffs = Cutoffs::after_days(requisites, raw, now);
            assert_eq!((cutoffs.requisites_ms, cutoffs.raw_ms), wanted);
            assert_eq!(cutoffs.is_never(), wanted == (None, None));
        }
    }
}
