//! Brings the census up to the ledger when somebody asks, by short reads: a piece of the invoices or some thousand events at
//! a time. Whoever asks waits for it only so long, and is told what was counted last; the reading goes on meanwhile.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;

use super::census::{Census, HOURS};
use crate::clock;
use crate::fault;
use crate::ledger::{ReadError, Reader};
use crate::panics::contained;
use crate::telemetry::chain;

/// Invoices of one read: about ten milliseconds.
const PIECE: u32 = 2_000;
/// Events of one read: about as long.
const EVENTS: u32 = 5_000;
/// Between two reads while all is counted for the first time, so that a big ledger's readers have turns.
const PAUSE: Duration = Duration::from_millis(2);
/// How long whoever asks waits.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is counted, and what was last.
pub(super) struct Tally(Arc<Inner>);

struct Inner {
    reader: Reader,
    started_ms: i64,
    /// Owned by whoever brings it up, who has it taken out meanwhile; `None` before the first time, and after a panic may have
    /// left it half done.
    working: tokio::sync::Mutex<Option<Census>>,
    /// Held for a moment, to take or put.
    last: Mutex<Option<Arc<Counted>>>,
}

/// A census with the number of all invoices.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    /// What was counted.
    pub(super) census: Census,
    /// All invoices there are.
    pub(super) invoices: u64,
}

impl Tally {
    /// Nothing is read yet. `started_ms`: when the counters begin, milliseconds since 1970.
    pub(super) fn new(reader: Reader, started_ms: i64) -> Self {
        Self(Arc::new(Inner {
            reader,
            started_ms,
            working: tokio::sync::Mutex::default(),
            last: Mutex::default(),
        }))
    }

    /// What there is to tell, as new as it can be had within [`PATIENCE`]; `None` while all is counted for the first time.
    pub(super) async fn caught_up(&self) -> Option<Arc<Counted>> {
        let inner = Arc::clone(&self.0);
        // Of a request, though it may outlive that.
        let work = tokio::spawn(contained(Box::pin(async move {
            if let Err(error) = inner.catch_up().await {
                tracing::debug!(reason = %chain(&error), "what is stored could not be counted");
            }
        })));
        // Late or cut off, the last count is told.
        if let Ok(Err(ended)) = timeout(PATIENCE, work).await
            && let Ok(panic) = ended.try_into_panic()
        {
            resume_unwind(panic);
        }
        let last = self.0.last.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Inner {
    async fn catch_up(&self) -> Result<(), ReadError> {
        let mut working = self.working.lock().await;
        let mut census = match working.take() {
            Some(census) => census,
            None => self.begin().await?,
        };
        let went = self.read_on(&mut census).await;
        // What was read until an error counts.
        *working = Some(census);
        went
    }

    async fn read_on(&self, census: &mut Census) -> Result<(), ReadError> {
        fault::point("count");
        while let Some(after) = census.reads_behind() {
            census.take(self.reader.piece(after, PIECE).await?);
            tokio::time::sleep(PAUSE).await;
        }
        loop {
            let marks = self.reader.marks(census.seq(), EVENTS).await?;
            census.hear(&marks, clock::wall_ms());
            if marks.len() < EVENTS as usize {
                break;
            }
        }
        let invoices = self.reader.invoice_count().await?;
        let told = Arc::new(Counted {
            census: census.clone(),
            invoices,
        });
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        Ok(())
    }

    /// A day back, for what is shown of it; the counters begin with the process.
    async fn begin(&self) -> Result<Census, ReadError> {
        let day_ms = self.started_ms.saturating_sub(HOURS * 3_600_000);
        let from = self.reader.events_before(day_ms).await?;
        let counted_from = self.reader.events_before(self.started_ms).await?;
        Ok(Census::new(from, counted_from))
    }
}
