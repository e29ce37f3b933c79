//! All that a look of the poller reads, as of one moment. Where nothing is due, which is nearly always, it is read on the
//! asker's own thread and costs some microseconds, however many invoices are open; what is due may be hundreds of rows, and
//! is read on a blocking thread.

use super::error::ReadError;
use super::fact::CLOCK_MARK;
use super::reader::Reader;
use super::row::{DueRow, InvoiceKey, InvoiceRow, Place};
use super::sqlite::ReadStore;
use super::store::StoreError;
use crate::invoice::silence::Class;

/// What a look found.
#[derive(Clone, Debug)]
pub(crate) struct Survey {
    /// Invoices whose opening is under way.
    pub creating: Vec<InvoiceRow>,
    /// The latest time our clock has shown when a due time was stored, milliseconds since 1970.
    pub clock_mark_ms: Option<i64>,
    /// Invoices whose time to be asked about has come, as [`Reader::due`] gives them.
    pub due: Vec<DueRow>,
    /// The first due time that is still to come.
    pub next_ms: Option<i64>,
}

impl Reader {
    /// One look: up to `per_class` due invoices of each class.
    pub(crate) async fn survey(&self, now_ms: i64, per_class: u32) -> Result<Survey, ReadError> {
        let seen = self.glance(move |store| survey(store, now_ms, 1)).await?;
        if seen.due.is_empty() {
            return Ok(seen);
        }
        self.ask(move |store| survey(store, now_ms, per_class))
            .await
    }

    /// The first due time that is still to come.
    pub(crate) async fn next_due_after(&self, now_ms: i64) -> Result<Option<i64>, ReadError> {
        self.glance(move |store| store.at_one_moment(|store| next_ms(store, now_ms)))
            .await
    }
}

fn survey(store: &ReadStore, now_ms: i64, per_class: u32) -> Result<Survey, StoreError> {
    store.at_one_moment(|store| {
        Ok(Survey {
            creating: store.creating()?,
            clock_mark_ms: store.fact(&CLOCK_MARK)?,
            due: store.due(now_ms, per_class)?,
            next_ms: next_ms(store, now_ms)?,
        })
    })
}

fn next_ms(store: &ReadStore, now_ms: i64) -> Result<Option<i64>, StoreError> {
    let mut next = None;
    for class in Class::ALL {
        let behind_what_is_due = Place {
            class,
            due_ms: now_ms,
            key: InvoiceKey(i64::MAX),
        };
        let rows = store.due_after(behind_what_is_due, 1)?;
        let first = rows.first().map(|row| row.due_ms);
        next = next.into_iter().chain(first).min();
    }
    Ok(next)
}
