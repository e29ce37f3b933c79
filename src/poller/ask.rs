//! One question about one invoice, and what becomes of its answer.

use crate::client::Client;
use crate::client::error::Error;
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Gate, Permit};
use crate::clock;
use crate::invoice::observation::{Asked, Observation, Report, Source};
use crate::invoice::transition::Decision;
use crate::ledger::{DueRow, InvoiceKey, NoAnswer, PollFailed, Reader, Writer};
use crate::telemetry::chain;

use super::login::{Mark, Token, Word};

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
    /// What became of it.
    pub(super) outcome: Outcome,
    /// The token it was asked with.
    pub(super) mark: Mark,
    /// What the answer says about that token.
    pub(super) word: Word,
}

/// What became of a question.
pub(super) enum Outcome {
    /// The answer is in the ledger.
    Recorded,
    /// The service refused the token.
    LoginRefused,
    /// No answer, or none that could be recorded; the reason in one line.
    Trouble(String),
}

impl Asker {
    /// Asks, and records the answer. Whatever is no proper answer changes nothing but the time of the next question.
    pub(super) async fn ask(&self, row: DueRow, token: Token, permit: Permit) -> Ended {
        let asked_ms = clock::wall_ms();
        permit.leaves();
        let answer = self
            .client
            .fetch_invoice(&token.secret, &row.invoice_id)
            .await;
        let (word, outcome) = match answer {
            Ok(report) => {
                permit.ended(Verdict::Alive);
                let outcome = self.record(&row, &token, report, asked_ms).await;
                (Word::Accepted, outcome)
            }
            Err(error) => {
                if let Some(wait) = error.retry_after() {
                    self.gate.heed(wait);
                }
                permit.ended(error.verdict());
                let outcome = self.no_answer(&row, &error, asked_ms).await;
                (said_of_the_token(&error), outcome)
            }
        };
        Ended {
            key: row.key,
            outcome,
            mark: token.mark,
            word,
        }
    }

    async fn no_answer(&self, row: &DueRow, error: &Error, asked_ms: i64) -> Outcome {
        let why = why(error, &self.gate);
        self.put_back(row.key, asked_ms, why).await;
        if matches!(error, Error::LoginNeeded) {
            return Outcome::LoginRefused;
        }
        let reason = chain(error);
        tracing::warn!(order.id = %row.order_id, %reason, "no answer about order {}: {reason}", row.order_id);
        Outcome::Trouble(reason)
    }

    async fn record(&self, row: &DueRow, token: &Token, report: Report, asked_ms: i64) -> Outcome {
        let report = report.without(&token.secret);
        let report = match self.reader.notify_token(row.key).await {
            Ok(Some(own)) => report.without(own.secret()),
            Ok(None) => report,
            // Stored with a secret in it, it could not be unsaid; asked again, it costs one request.
            Err(error) => return trouble("an answer was dropped", &error),
        };
        let observation = Observation {
            source: Source::Poll,
            report,
            asked: Some(Asked {
                revision: row.revision,
                at_ms: asked_ms,
            }),
            received_ms: clock::wall_ms(),
        };
        match self.writer.record(row.key, observation).await {
            Ok(recorded) if recorded.decision == Decision::NotThisInvoice => {
                self.put_back(row.key, asked_ms, NoAnswer::Other).await;
                let reason = "the answer names another order";
                tracing::warn!(order.id = %row.order_id, "about order {}: {reason}", row.order_id);
                Outcome::Trouble(reason.to_owned())
            }
            Ok(_recorded) => Outcome::Recorded,
            Err(error) => trouble(
                "an answer could not be recorded and is asked for again",
                &error,
            ),
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
}

/// Why a question brought no answer, once the gate knows how it ended. An outage is what others met as well; alone, it may
/// be this invoice the service is silent about.
pub(super) fn why(error: &Error, gate: &Gate) -> NoAnswer {
    let met_nobody = matches!(error.verdict(), Verdict::Outage(_));
    match error {
        Error::NotFound { service_ms, .. } | Error::Forbidden { service_ms, .. } => {
            NoAnswer::NotFound {
                service_ms: *service_ms,
            }
        }
        _ if met_nobody && gate.view().outage.is_some() => NoAnswer::Outage,
        _ => NoAnswer::Other,
    }
}

/// A service that says about an invoice that there is none, or that this shop may not see it, knows whose token it is.
fn said_of_the_token(error: &Error) -> Word {
    match error {
        Error::LoginNeeded => Word::Refused,
        Error::Forbidden { .. } | Error::NotFound { .. } => Word::Accepted,
        Error::NotSent { .. }
        | Error::Unanswered { .. }
        | Error::Busy { .. }
        | Error::Refused { .. }
        | Error::Redirected { .. }
        | Error::NotTheService { .. }
        | Error::TokenUnusable => Word::Nothing,
    }
}

fn trouble(what: &'static str, error: &dyn std::error::Error) -> Outcome {
    let reason = chain(error);
    tracing::warn!(%reason, "{what}");
    Outcome::Trouble(reason)
}
