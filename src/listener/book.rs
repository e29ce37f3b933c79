//! What the listener needs from the ledger, and no more. A narrow seam, so that the table of answers can be tested without
//! a file and a thread behind it.

use std::future::Future;

use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::observation::Observation;
use crate::invoice::transition::Decision;
use crate::ledger::{
    InvoiceKey, LAST_HEARD, LastHeard, PRESENTATION, Reader, Refusal, Watched, Writer,
};

/// The ledger could not do it now. Why is the ledger's to tell; a sender only learns to come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the ledger cannot serve this now")]
pub struct Unavailable;

/// What the listener needs from the ledger.
pub trait Book: Clone + Send + Sync + 'static {
    /// The invoice behind a ref. Never waits for the writer.
    fn watched(
        &self,
        reference: InvoiceRef,
    ) -> impl Future<Output = Result<Option<Watched>, Unavailable>> + Send;

    /// The invoice a notification without a ref is about: the one with this id, else the one of this order whose id is
    /// not known yet. Never waits for the writer.
    fn watched_by_names(
        &self,
        id: InvoiceId,
        order_id: Option<String>,
    ) -> impl Future<Output = Result<Option<Watched>, Unavailable>> + Send;

    /// True when this tilld itself made this mark for this reference.
    fn is_own(&self, reference: &InvoiceRef, mark: &[u8]) -> bool;

    /// Whether what was just read was read from the ledger that is served. Waits for the writer only when it may not be.
    fn stands(&self) -> impl Future<Output = bool> + Send;

    /// Records an authentic observation. Resolves only when its commit is durable.
    fn record(
        &self,
        invoice: InvoiceKey,
        observation: Observation,
    ) -> impl Future<Output = Result<Decision, Unavailable>> + Send;

    /// Hands a refusal to the gatherer, which nudges its invoice. Never waits.
    fn refuse(&self, refusal: Refusal);

    /// The place that was remembered as the one notifications prove their token in.
    fn presentation(&self) -> impl Future<Output = Result<Option<String>, Unavailable>> + Send;

    /// Remembers that place.
    fn remember_presentation(
        &self,
        place: String,
    ) -> impl Future<Output = Result<(), Unavailable>> + Send;

    /// Remembers when a notification was last stored, milliseconds since 1970, and for which invoice.
    fn remember_heard(
        &self,
        at_ms: i64,
        invoice: InvoiceKey,
    ) -> impl Future<Output = Result<(), Unavailable>> + Send;
}

/// The ledger itself.
#[derive(Clone)]
pub struct LedgerBook {
    /// Reads beside the writer.
    pub reader: Reader,
    /// Answers when the commit is durable.
    pub writer: Writer,
}

impl Book for LedgerBook {
    async fn watched(&self, reference: InvoiceRef) -> Result<Option<Watched>, Unavailable> {
        self.reader
            .watched(reference)
            .await
            .map_err(|error| unavailable(&error))
    }

    async fn watched_by_names(
        &self,
        id: InvoiceId,
        order_id: Option<String>,
    ) -> Result<Option<Watched>, Unavailable> {
        self.reader
            .watched_by_names(id, order_id)
            .await
            .map_err(|error| unavailable(&error))
    }

    fn is_own(&self, reference: &InvoiceRef, mark: &[u8]) -> bool {
        self.reader.is_own(reference, mark)
    }

    async fn stands(&self) -> bool {
        // The writer's turn looks at the files; another program's checkpoint is told from an accident there.
        self.reader.stands() || (self.writer.probe().await.is_ok() && self.reader.stands())
    }

    fn record(
        &self,
        invoice: InvoiceKey,
        observation: Observation,
    ) -> impl Future<Output = Result<Decision, Unavailable>> + Send {
        let recording = self.writer.record(invoice, observation);
        async move {
            let recorded = recording.await;
            recorded
                .map(|recorded| recorded.decision)
                .map_err(|error| unavailable(&error))
        }
    }

    fn refuse(&self, refusal: Refusal) {
        self.writer.refuse(refusal);
    }

    async fn presentation(&self) -> Result<Option<String>, Unavailable> {
        let known = self.reader.fact(&PRESENTATION).await;
        known.map_err(|error| unavailable(&error))
    }

    async fn remember_presentation(&self, place: String) -> Result<(), Unavailable> {
        let noted = self.writer.note(&PRESENTATION, &place).await;
        noted.map_err(|error| unavailable(&error))
    }

    async fn remember_heard(&self, at_ms: i64, invoice: InvoiceKey) -> Result<(), Unavailable> {
        let last = LastHeard { at_ms, invoice };
        let noted = self.writer.note(&LAST_HEARD, &last).await;
        noted.map_err(|error| unavailable(&error))
    }
}

/// The writer tells its own trouble once; here it is only noted which requests it cost.
fn unavailable(error: &(dyn std::error::Error + 'static)) -> Unavailable {
    tracing::debug!(error, "a notification could not be served by the ledger");
    Unavailable
}
