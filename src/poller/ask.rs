//! One question about one invoice, and what becomes of its answer.

use crate::client::Client;
use crate::client::error::Error;
use crate::client::gate::Gate;
use crate::clock;
use crate::invoice::observation::{Observation, Source};
use crate::invoice::transition::Decision;
use crate::ledger::{DueRow, InvoiceKey, PollFailed, Reader, Writer};
use crate::telemetry::chain;

use super::login::Token;

/// What a question needs.
pub(super) struct Asker {
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) client: Client,
    pub(super) gate: Gate,
}

/// How a question ended.
pub(super) struct Ended {
    /// The invoice.
    pub(super) key: InvoiceKey,
    /// The number of the token, when the service refused it.
    pub(super) refused: Option<u64>,
}

impl Asker {
    /// Asks, and records the answer. Whatever is no proper answer changes nothing but the time of the next question.
    pub(super) async fn ask(&self, row: DueRow, token: Token) -> Ended {
        let permit = self.gate.admit().await;
        let asked_ms = clock::wall_ms();
        let answer = self
            .client
            .fetch_invoice(&token.secret, &row.invoice_id)
            .await;
        drop(permit);
        let mut ended = Ended {
            key: row.key,
            refused: None,
        };
        match answer {
            Ok(decoded) => {
                for field in &decoded.odd {
                    tracing::debug!(field, order.id = %row.order_id, "the service wrote `{field}` in another form than its contract");
                }
                self.record(&row, &token, decoded.report, asked_ms).await;
            }
            Err(error) => {
                if let Some(wait) = error.retry_after() {
                    self.gate.heed(wait);
                }
                if matches!(error, Error::LoginNeeded) {
                    ended.refused = Some(token.number);
                } else {
                    let reason = chain(&error);
                    tracing::warn!(order.id = %row.order_id, %reason, "no answer about order {}: {reason}", row.order_id);
                }
                self.put_back(row.key, asked_ms).await;
            }
        }
        ended
    }

    async fn record(
        &self,
        row: &DueRow,
        token: &Token,
        report: crate::invoice::observation::Report,
        asked_ms: i64,
    ) {
        let report = report.without(&token.secret);
        let report = match self.reader.notify_token(row.key).await {
            Ok(Some(own)) => report.without(own.secret()),
            Ok(None) => report,
            // Stored with a secret in it, it could not be unsaid; asked again, it costs one request.
            Err(error) => return tracing::warn!(reason = %chain(&error), "an answer was dropped"),
        };
        let observation = Observation {
            source: Source::Poll,
            report,
            asked_at_revision: Some(row.revision),
            received_ms: clock::wall_ms(),
        };
        match self.writer.record(row.key, observation).await {
            Ok(recorded) if recorded.decision == Decision::NotThisInvoice => {
                tracing::warn!(order.id = %row.order_id, "the answer about order {} names another order", row.order_id);
                self.put_back(row.key, asked_ms).await;
            }
            Ok(_recorded) => {}
            Err(error) => {
                tracing::warn!(reason = %chain(&error), "an answer could not be recorded and is asked for again");
            }
        }
    }

    /// Moves the invoice back. When that cannot be stored it stays due, which the gate's pace bounds.
    async fn put_back(&self, key: InvoiceKey, asked_ms: i64) {
        if let Err(error) = self.writer.poll_failed(PollFailed { key, asked_ms }).await {
            tracing::warn!(reason = %chain(&error), "a due time could not be stored");
        }
    }
}
