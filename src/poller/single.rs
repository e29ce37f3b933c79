//! One question about one invoice, out of turn: for a command that waits while no daemon serves.

use std::sync::Mutex;
use std::time::Duration;

use crate::client::Client;
use crate::client::gate::Gate;
use crate::ledger::{InvoiceKey, ReadError, Reader, Writer};
use crate::secret::Secret;

use super::ask::{Asker, Outcome};
use super::login::{Mark, Token};

/// How long a question may wait for its turn at the gate: a person waits for it.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// What it takes to ask.
pub(crate) struct Question {
    asker: Asker,
    token: Token,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The answer is in the ledger.
    Recorded,
    /// The invoice has no id yet: there is nothing to ask for.
    NothingToAsk,
    /// No answer, or none about this invoice; the reason is for people.
    Trouble(String),
    /// The service refuses the access token.
    LoginNeeded,
}

impl Question {
    /// Takes what it takes. Close the ledger only after dropping this.
    pub(crate) fn new(
        writer: Writer,
        reader: Reader,
        client: Client,
        gate: Gate,
        token: Secret,
    ) -> Self {
        Self {
            asker: Asker {
                writer,
                reader,
                client,
                gate,
                unanswered: Mutex::default(),
            },
            token: Token {
                secret: token,
                mark: Mark::default(),
            },
        }
    }

    /// Asks about an invoice and records the answer.
    pub(crate) async fn ask(&self, reader: &Reader, key: InvoiceKey) -> Result<Asked, ReadError> {
        let Some(row) = reader.pollable(key).await? else {
            return Ok(Asked::NothingToAsk);
        };
        let permit = match self.asker.gate.admit_within(TURN_WITHIN).await {
            Ok(permit) => permit,
            Err(closed) => return Ok(Asked::Trouble(closed.to_string())),
        };
        let ended = self.asker.ask(row, self.token.clone(), permit).await;
        Ok(match ended.outcome {
            Outcome::Recorded => Asked::Recorded,
            Outcome::LoginRefused => Asked::LoginNeeded,
            Outcome::Trouble(reason) => Asked::Trouble(reason),
        })
    }
}
