//! One question about one invoice because a person wants to know now: whatever the plan says, and whatever its outcome.

use std::time::Duration;

use crate::client::Client;
use crate::client::gate::{Caller, Closed, Gate};
use crate::invoice::transition::Decision;
use crate::ledger::{InvoiceKey, ReadError, Reader, Writer};
use crate::secret::Secret;
use crate::shutdown::Shutdown;

use super::ask::Asker;
pub(crate) use super::ask::Nothing;
use super::ended::said_by;
use super::login::Word;

/// How long a request may wait for its turn at the gate: a person waits for it.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// What it takes to ask. Close the ledger only after dropping this.
pub(crate) struct Inquirer {
    asker: Asker,
    token: Secret,
    caller: Caller,
}

/// Why nothing was learnt.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The invoice has no id yet. Nothing was sent.
    #[error("the invoice has no id to ask for yet")]
    NoId,
    /// The service wants to be left alone for longer than this command waits. Nothing was sent.
    #[error("could not send the request")]
    Gate(#[source] Closed),
    /// The process stops: no request leaves any more. Nothing was sent.
    #[error("tilld stops, so no request was sent")]
    Stopping,
    /// The ledger could not be read. Nothing was sent.
    #[error("could not read the invoice")]
    Read(#[source] ReadError),
    /// The question brought nothing.
    #[error(transparent)]
    Nothing(#[from] Nothing),
}

impl Inquirer {
    /// Takes what it takes, and by which lane of the gate its polls leave: an operator's, or that of the create that needs them.
    pub(crate) fn new(
        caller: Caller,
        (writer, reader): (Writer, Reader),
        client: Client,
        gate: Gate,
        token: Secret,
    ) -> Self {
        let asker = Asker {
            writer,
            reader,
            client,
            gate,
        };
        Self {
            asker,
            token,
            caller,
        }
    }

    /// How long the service wants to be left alone; zero when it does not.
    pub(crate) fn shut_for(&self) -> Duration {
        self.asker.gate.shut_for(self.caller)
    }

    /// Asks about an invoice and records the answer; gives what was decided on it.
    pub(crate) async fn ask(&self, key: InvoiceKey) -> Result<Decision, Error> {
        self.ask_unless(key, &Shutdown::new()).await
    }

    /// [`Self::ask`], unless the wish to stop comes before the request leaves: it might be cut off.
    pub(crate) async fn ask_unless(
        &self,
        key: InvoiceKey,
        stop: &Shutdown,
    ) -> Result<Decision, Error> {
        let row = self.asker.reader.pollable(key).await.map_err(Error::Read)?;
        let row = row.ok_or(Error::NoId)?;
        let permit = tokio::select! {
            turn = self.asker.gate.admit_within(self.caller, TURN_WITHIN) => turn.map_err(Error::Gate)?,
            () = stop.requested() => return Err(Error::Stopping),
        };
        if stop.is_requested() {
            return Err(Error::Stopping);
        }
        let asked = self.asker.ask(&row, &self.token, permit).await;
        let fetches = self.asker.client.fetches();
        match said_by(asked.as_ref().err()) {
            Word::Accepted => fetches.said_of(&self.token, true),
            Word::Refused => fetches.said_of(&self.token, false),
            Word::Nothing => {}
        }
        Ok(asked?)
    }
}
