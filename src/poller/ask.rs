//! One question about one invoice, and its answer on the one road into the ledger. The same for the daemon's rounds and
//! for a person who wants to know now.
//!
//! Promises that whatever is no answer about this invoice changes nothing but the time of the next question.

use crate::client::Client;
use crate::client::error::Error as FetchError;
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Gate, Permit};
use crate::clock;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Observation, Report};
use crate::invoice::transition::Decision;
use crate::ledger::{
    DueRow, InvoiceKey, NoAnswer, PollFailed, ReadError, Reader, WriteError, Writer,
};
use crate::secret::Secret;
use crate::telemetry::chain;

/// What a question needs.
pub(super) struct Asker {
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) client: Client,
    pub(super) gate: Gate,
}

/// Why a question brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Nothing {
    /// The service gave no answer about this invoice.
    #[error("could not ask the service about invoice `{id}`")]
    Fetch {
        /// The id.
        id: String,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// The answer has the invoice's id and another order's. Nothing of it was taken.
    #[error("the service's answer about invoice `{id}` names another order")]
    OtherOrder {
        /// The id.
        id: String,
    },
    /// The notify token could not be read. Stored with a secret in it, an answer could not be unsaid: nothing was asked.
    #[error("could not read the notify token of invoice `{id}`")]
    Read {
        /// The id.
        id: String,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// The answer could not be recorded.
    #[error("could not record what the service said about invoice `{id}`")]
    Store {
        /// The id.
        id: String,
        /// Why.
        #[source]
        source: WriteError,
    },
}

impl Asker {
    /// Asks, and records the answer; gives what was decided on it.
    pub(super) async fn ask(
        &self,
        row: &DueRow,
        token: &Secret,
        permit: Permit,
    ) -> Result<Decision, Nothing> {
        let asked_ms = clock::wall_ms();
        let own = match self.reader.notify_token(row.key).await {
            Ok(own) => own,
            Err(source) => {
                let id = row.invoice_id.to_string();
                return Err(Nothing::Read { id, source });
            }
        };
        let own = own.as_ref().map(NotifyToken::secret);
        let answer = self
            .client
            .fetch_in_turn(permit, (token, own), &row.invoice_id)
            .await;
        match answer {
            Ok(report) => self.record(row, report, asked_ms).await,
            Err(source) => {
                self.put_back(row.key, asked_ms, self.why(&source)).await;
                let id = row.invoice_id.to_string();
                Err(Nothing::Fetch { id, source })
            }
        }
    }

    async fn record(
        &self,
        row: &DueRow,
        report: Report,
        asked_ms: i64,
    ) -> Result<Decision, Nothing> {
        let id = || row.invoice_id.to_string();
        let answer = Observation::polled(report, row.revision, asked_ms, clock::wall_ms());
        match self.writer.record(row.key, answer).await {
            Ok(recorded) if recorded.decision == Decision::NotThisInvoice => {
                self.put_back(row.key, asked_ms, NoAnswer::Other).await;
                Err(Nothing::OtherOrder { id: id() })
            }
            Ok(recorded) => Ok(recorded.decision),
            Err(source) => Err(Nothing::Store { id: id(), source }),
        }
    }

    /// Moves the invoice back. When that cannot be stored it stays due, which the gate's pace bounds.
    async fn put_back(&self, key: InvoiceKey, asked_ms: i64, why: NoAnswer) {
        let failed = PollFailed {
            key,
            asked_ms,
            now_ms: clock::wall_ms(),
            why,
        };
        if let Err(error) = self.writer.poll_failed(failed).await {
            tracing::warn!(reason = %chain(&error), "a due time could not be stored");
        }
    }

    /// Why a question brought no answer, once the gate knows how it ended. An outage is what others met as well; alone, it
    /// may be this invoice the service is silent about.
    fn why(&self, error: &FetchError) -> NoAnswer {
        let met_nobody = matches!(error.verdict(), Verdict::Outage(_));
        let view = self.gate.view();
        match error {
            FetchError::NotFound { service_ms, .. } | FetchError::Forbidden { service_ms, .. } => {
                NoAnswer::NotFound {
                    service_ms: *service_ms,
                }
            }
            _ if met_nobody && view.outage.is_some() => NoAnswer::Outage,
            // They say nothing of the invoice.
            FetchError::LoginNeeded
            | FetchError::TokenUnusable
            | FetchError::Busy { status: ..500, .. } => NoAnswer::Other,
            _ if view.answered => NoAnswer::Alone,
            _ => NoAnswer::Other,
        }
    }
}
