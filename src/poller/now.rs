//! One question about one invoice because a person wants to know now: whatever the plan says, and whatever its outcome.
//!
//! The answer goes the one road into the ledger. Unlike in the daemon's rounds the end is told apart by what the person can
//! do about it. Promises that whatever is no answer about this invoice changes nothing but the time of the next question.

use std::time::Duration;

use crate::client::Client;
use crate::client::error::Error as FetchError;
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Closed, Gate};
use crate::clock;
use crate::invoice::observation::{Asked, Observation, Report, Source};
use crate::invoice::transition::Decision;
use crate::ledger::{DueRow, InvoiceKey, PollFailed, ReadError, Reader, WriteError, Writer};
use crate::secret::Secret;
use crate::telemetry::chain;

/// How long a request may wait for its turn at the gate: a person waits for it.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// What it takes to ask.
pub(crate) struct Inquirer<'a> {
    /// Where the answer is recorded.
    pub writer: &'a Writer,
    /// Where the invoice is read.
    pub reader: &'a Reader,
    /// The service.
    pub client: &'a Client,
    /// The access token.
    pub token: &'a Secret,
    /// The gate all requests pass.
    pub gate: &'a Gate,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The invoice has no id yet. Nothing was sent.
    #[error("the invoice has no id to ask for yet")]
    NoId,
    /// The service wants to be left alone for longer than this command waits. Nothing was sent.
    #[error("could not send the request")]
    Gate(#[source] Closed),
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
    /// The ledger could not be read, before the request or before its answer was stored.
    #[error("could not read the invoice")]
    Read(#[source] ReadError),
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

impl Inquirer<'_> {
    /// Asks about an invoice and records the answer; gives what was decided on it.
    pub(crate) async fn ask(&self, key: InvoiceKey) -> Result<Decision, Error> {
        let row = self.reader.pollable(key).await.map_err(Error::Read)?;
        let row = row.ok_or(Error::NoId)?;
        let turn = self.gate.admit_within(TURN_WITHIN).await;
        let permit = turn.map_err(Error::Gate)?;
        let asked_ms = clock::wall_ms();
        permit.leaves();
        let answer = self.client.fetch_invoice(self.token, &row.invoice_id).await;
        permit.ended(match &answer {
            Ok(_report) => Verdict::Alive,
            Err(error) => error.verdict(),
        });
        match answer {
            Ok(report) => self.record(&row, report, asked_ms).await,
            Err(source) => {
                if let Some(wait) = source.retry_after() {
                    self.gate.heed(wait);
                }
                let not_found = matches!(
                    source,
                    FetchError::NotFound { .. } | FetchError::Forbidden { .. }
                );
                self.put_back(key, asked_ms, not_found).await;
                Err(Error::Fetch {
                    id: row.invoice_id.to_string(),
                    source,
                })
            }
        }
    }

    async fn record(&self, row: &DueRow, report: Report, asked_ms: i64) -> Result<Decision, Error> {
        let own = self.reader.notify_token(row.key).await;
        let report = report.without(self.token);
        let report = match own.map_err(Error::Read)? {
            Some(own) => report.without(own.secret()),
            None => report,
        };
        let answer = Observation {
            source: Source::Poll,
            report,
            asked: Some(Asked {
                revision: row.revision,
                at_ms: asked_ms,
            }),
            received_ms: clock::wall_ms(),
        };
        let id = || row.invoice_id.to_string();
        match self.writer.record(row.key, answer).await {
            Ok(recorded) if recorded.decision == Decision::NotThisInvoice => {
                self.put_back(row.key, asked_ms, false).await;
                Err(Error::OtherOrder { id: id() })
            }
            Ok(recorded) => Ok(recorded.decision),
            Err(source) => Err(Error::Store { id: id(), source }),
        }
    }

    /// Counts the question, so that the daemon's next one keeps its distance. No answer is lost when it cannot be stored.
    async fn put_back(&self, key: InvoiceKey, asked_ms: i64, not_found: bool) {
        let failed = PollFailed {
            key,
            asked_ms,
            now_ms: clock::wall_ms(),
            not_found,
        };
        if let Err(error) = self.writer.poll_failed(failed).await {
            tracing::warn!(reason = %chain(&error), "a due time could not be stored");
        }
    }
}
