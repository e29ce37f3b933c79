//! Settles a create whose answer was lost by the id a person found for it: the service is asked about that id, and what it
//! says goes into the ledger with the id, in one commit. Nothing is posted.

use std::time::Duration;

use crate::client::Client;
use crate::client::error::Error as FetchError;
use crate::client::gate::{Caller, Closed, Gate};
use crate::clock;
use crate::invoice::ids::InvoiceId;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::Observation;
use crate::ledger::{InvoiceRow, Operated, ReadError, Reader, WriteError, Writer};
use crate::secret::Secret;

/// How long a request may wait for its turn at the gate: a person waits for it.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// Everything an adoption works with.
pub(crate) struct Adopter<'a> {
    /// Where the id is written.
    pub writer: &'a Writer,
    /// Where the notify token is read, to be cut out of the answer.
    pub reader: &'a Reader,
    /// The service.
    pub client: &'a Client,
    /// The access token.
    pub token: &'a Secret,
    /// The gate all requests pass.
    pub gate: &'a Gate,
}

/// Why nothing was adopted. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The service wants to be left alone for longer than this command waits. Nothing was sent.
    #[error("could not send the request")]
    Gate(#[source] Closed),
    /// The service gave no answer about this id.
    #[error("could not ask the service about invoice `{id}`")]
    Fetch {
        /// The id.
        id: String,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// The service says that the id belongs to another order.
    #[error("the service says that invoice `{id}` belongs to {said}, not `{wanted}`")]
    OtherOrder {
        /// The id.
        id: String,
        /// The order it named.
        said: String,
        /// The order of the invoice.
        wanted: String,
    },
    /// The notify token could not be read: an answer with it inside must not be stored.
    #[error("could not read the invoice's notify token")]
    Token(#[source] ReadError),
    /// The ledger could not record it.
    #[error("could not record invoice `{id}`")]
    Store {
        /// The id.
        id: String,
        /// Why.
        #[source]
        source: WriteError,
    },
}

impl Adopter<'_> {
    /// Asks about `id` and gives it to the invoice in `row`. The ledger judges again whether the invoice may have it.
    pub(crate) async fn adopt(&self, row: &InvoiceRow, id: &InvoiceId) -> Result<Operated, Error> {
        let permit = self
            .gate
            .admit_within(Caller::Operator, TURN_WITHIN)
            .await
            .map_err(Error::Gate)?;
        let own = self.reader.notify_token(row.key).await;
        let own = own.map_err(Error::Token)?;
        let secrets = (self.token, own.as_ref().map(NotifyToken::secret));
        let asked_ms = clock::wall_ms();
        let answer = self.client.fetch_in_turn(permit, secrets, id).await;
        let named = || id.to_string();
        let report = answer.map_err(|source| Error::Fetch {
            id: named(),
            source,
        })?;
        if report.names_other_order(&row.order_id) {
            let said = report.order_id.value();
            return Err(Error::OtherOrder {
                id: named(),
                said: said.map_or_else(
                    || "something that is no order id".to_owned(),
                    |said| format!("order `{said}`"),
                ),
                wanted: row.order_id.clone(),
            });
        }
        let answer = Observation::polled(report, row.revision, asked_ms, clock::wall_ms());
        let stored = self.writer.adopt(row.key, answer).await;
        stored.map_err(|source| Error::Store {
            id: named(),
            source,
        })
    }
}
