//! What is read to count what is stored, without reading anything twice: a piece of the invoices at a time, and the events
//! behind a number.

use super::error::ReadError;
use super::reader::Reader;
use super::row::DeliveryRow;
use super::sqlite::ReadStore;
use crate::invoice::event::EventKind;
use crate::invoice::observation::Source;

/// How some invoices stand, those behind one row up to another, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The last of these rows; the one it was asked behind when there are no more.
    pub upto: i64,
    /// The newest event of that moment: what changed of these invoices later stands behind it.
    pub seq: i64,
    /// Status, outcome and how many.
    pub standing: Vec<(Option<String>, String, u64)>,
}

/// What an event says to those who count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventMark {
    /// Its number.
    pub seq: i64,
    /// The row of its invoice.
    pub invoice: i64,
    /// Its kind.
    pub kind: EventKind,
    /// Who found it: the notification where a poll only confirmed what one had told.
    pub source: Option<Source>,
    /// The status before.
    pub previous_status: Option<String>,
    /// The status after.
    pub status: Option<String>,
    /// The outcome before.
    pub previous_outcome: String,
    /// The outcome after.
    pub outcome: String,
    /// When it was recorded, milliseconds since 1970.
    pub at_ms: i64,
    /// The service's own time of the claim behind it, nanoseconds since 1970.
    pub claimed_ns: Option<i64>,
}

impl Reader {
    /// How at most `limit` invoices behind a row stand.
    pub(crate) async fn piece(&self, after: i64, limit: u32) -> Result<Piece, ReadError> {
        self.ask(move |store| store.piece(after, limit)).await
    }

    /// At most `limit` events behind a number, oldest first.
    pub(crate) async fn marks(&self, after: i64, limit: u32) -> Result<Vec<EventMark>, ReadError> {
        self.ask(move |store| store.marks(after, limit)).await
    }

    /// The number behind which all events are that are not older than this time, milliseconds since 1970.
    pub(crate) async fn events_before(&self, at_ms: i64) -> Result<i64, ReadError> {
        self.ask(move |store| store.events_before(at_ms)).await
    }

    /// Reads the whole file through: what is wrong with it first, or nothing.
    pub(crate) async fn quick_check(&self) -> Result<Option<String>, ReadError> {
        self.ask(ReadStore::quick_check).await
    }

    /// The newest deliveries that were given up and not acknowledged.
    pub(crate) async fn given_up(&self, limit: u32) -> Result<Vec<DeliveryRow>, ReadError> {
        self.ask(move |store| store.given_up(limit)).await
    }

    /// How many invoices there are.
    pub(crate) async fn invoice_count(&self) -> Result<u64, ReadError> {
        let newest = self.ask(ReadStore::newest_invoice).await?;
        Ok(u64::try_from(newest).unwrap_or_default())
    }

    /// Looks at no more than `most` events behind a number: the last number looked at, and the orders of those of this kind.
    pub(crate) async fn orders_of_kind(
        &self,
        kind: EventKind,
        after: i64,
        most: u32,
    ) -> Result<(i64, Vec<String>), ReadError> {
        self.ask(move |store| store.orders_of_kind(kind, after, most))
            .await
    }
}
