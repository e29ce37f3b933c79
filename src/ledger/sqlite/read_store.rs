//! One reading connection, with its questions as methods and its errors sorted.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::chosen;
use super::deliveries;
use super::due::{self, ended};
use super::facts;
use super::failure::from_sqlite;
use super::held;
use super::missing;
use super::open::open_reader;
use super::read::{
    Filter, Found, attempts, creating, deliveries_of, events, events_of_order, find_event,
    has_order, invoice_by_id, invoice_by_key, invoice_by_ref, invoices_of_order, list_invoices,
    received, running, sealed_by_id, sealed_by_key, sealed_by_order, sealed_by_ref,
    standing_of_order, to_acknowledge,
};
use super::refusals;
use super::runnable;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::ledger::choice::{ACT_AT_ONCE, Act, Choice, Missing, Page};
use crate::ledger::command::Lane;
use crate::ledger::error::OpenError;
use crate::ledger::fact::Fact;
use crate::ledger::health::Sight;
use crate::ledger::repoll::{Counted, Passed};
use crate::ledger::row::{
    AttemptRow, DeliveryKey, DeliveryRow, DueRow, EventRow, InvoiceKey, InvoicePage, InvoiceRow,
    Outlook, Place, RefusalFilter, RefusalRow, Running,
};
use crate::ledger::seal::Sealed;
use crate::ledger::store::{Earlier, StoreError};

/// How long a read waits for a lock, which only a recovery after a crash holds.
const BUSY: Duration = Duration::from_secs(5);

/// One reading connection, and what was seen by it of rows that cannot be read.
pub(in crate::ledger) struct ReadStore(pub(super) Connection, Cell<Sight>);

impl From<Connection> for ReadStore {
    fn from(connection: Connection) -> Self {
        Self(connection, Cell::default())
    }
}

impl ReadStore {
    pub(in crate::ledger) fn open(path: &Path) -> Result<Self, OpenError> {
        open_reader(path, BUSY).map(Self::from)
    }

    /// As [`ReadStore::open`], for one that must wait no longer than this for a lock.
    pub(in crate::ledger) fn open_without_waiting(
        path: &Path,
        busy: Duration,
    ) -> Result<Self, OpenError> {
        open_reader(path, busy).map(Self::from)
    }

    /// What was seen since this was asked last.
    pub(in crate::ledger) fn seen(&self) -> Sight {
        self.1.take()
    }

    /// Reads several things as they are at one moment. No question in it may be asked of another connection.
    pub(in crate::ledger) fn at_one_moment<T>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begun = self.0.unchecked_transaction().map_err(from_sqlite)?;
        // Dropped on the way out: a reading transaction has nothing to be committed.
        let answer = read(self);
        drop(begun);
        answer
    }

    pub(in crate::ledger) fn invoices_of_order(
        &self,
        order: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<InvoicePage, StoreError> {
        invoices_of_order(&self.0, order, after, most).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn received(&self, order: &str) -> Result<Option<String>, StoreError> {
        received(&self.0, order).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn missing(&self, choice: &Choice) -> Result<Vec<Missing>, StoreError> {
        let found = missing::missing(&self.0, choice, ACT_AT_ONCE);
        found.map(|found| found.of).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn standing_of_order(
        &self,
        order: &str,
    ) -> Result<Vec<Earlier>, StoreError> {
        standing_of_order(&self.0, order, [None; 2]).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn has_order(&self, order: &str) -> Result<bool, StoreError> {
        has_order(&self.0, order).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn invoice_by_id(
        &self,
        id: &str,
    ) -> Result<Option<InvoiceRow>, StoreError> {
        invoice_by_id(&self.0, id).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn invoice_by_ref(
        &self,
        reference: &str,
    ) -> Result<Option<InvoiceRow>, StoreError> {
        invoice_by_ref(&self.0, reference).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn invoice_by_key(
        &self,
        key: InvoiceKey,
    ) -> Result<Option<InvoiceRow>, StoreError> {
        invoice_by_key(&self.0, key).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn to_acknowledge(
        &self,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<InvoicePage, StoreError> {
        to_acknowledge(&self.0, below, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn list_invoices(
        &self,
        filter: Filter,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<InvoicePage, StoreError> {
        list_invoices(&self.0, filter, below, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn sealed_by_ref(
        &self,
        reference: &InvoiceRef,
    ) -> Result<Option<(InvoiceKey, Option<Sealed>)>, StoreError> {
        sealed_by_ref(&self.0, reference).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn sealed_by_id(
        &self,
        id: &InvoiceId,
    ) -> Result<Option<Found>, StoreError> {
        sealed_by_id(&self.0, id).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn sealed_by_order(
        &self,
        order: &str,
    ) -> Result<Option<Found>, StoreError> {
        sealed_by_order(&self.0, order).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn sealed_by_key(
        &self,
        key: InvoiceKey,
    ) -> Result<Option<(InvoiceRef, Sealed)>, StoreError> {
        sealed_by_key(&self.0, key).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn due(
        &self,
        now_ms: i64,
        per_class: u32,
    ) -> Result<Vec<DueRow>, StoreError> {
        let found = due::due(&self.0, now_ms, per_class).map_err(from_sqlite)?;
        // What was due and unreadable stays due: this look sees whether there is such a one.
        self.1
            .set(found.unreadable.map_or(Sight::Clear, Sight::Spoilt));
        Ok(found.rows)
    }

    pub(in crate::ledger) fn due_after(
        &self,
        place: Place,
        limit: u32,
    ) -> Result<Vec<DueRow>, StoreError> {
        // It passes over what is not due yet as well, which is told when it is.
        let found = due::due_after(&self.0, place, limit).map_err(from_sqlite)?;
        Ok(found.rows)
    }

    pub(in crate::ledger) fn retired_after(
        &self,
        place: (i64, InvoiceKey),
        limit: u32,
    ) -> Result<Vec<(i64, InvoiceKey)>, StoreError> {
        due::retired_after(&self.0, place, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn passed(
        &self,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<Vec<Passed>, StoreError> {
        ended::passed(&self.0, below, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn count_ended(
        &self,
        generation: i64,
        below: InvoiceKey,
        limit: u32,
    ) -> Result<Counted, StoreError> {
        ended::count(&self.0, generation, below, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn next_due_ms(&self) -> Result<Option<i64>, StoreError> {
        due::next_due_ms(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn creating(&self) -> Result<Vec<InvoiceRow>, StoreError> {
        creating(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn events(
        &self,
        order: Option<&str>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreError> {
        events(&self.0, order, after, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn find_event(&self, name: &str) -> Result<Option<EventRow>, StoreError> {
        find_event(&self.0, name).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn events_of_order(
        &self,
        order: &str,
        limit: u32,
    ) -> Result<Vec<EventRow>, StoreError> {
        events_of_order(&self.0, order, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn chosen_deliveries(
        &self,
        choice: &Choice,
        limit: u32,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        chosen::list(&self.0, choice, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn would_change(
        &self,
        act: Act,
        choice: &Choice,
        page: &Page,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        chosen::page(&self.0, act, choice, page).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn newest_event(&self) -> Result<i64, StoreError> {
        let newest = "SELECT coalesce(max(seq), 0) FROM event";
        self.0
            .query_row(newest, [], |row| row.get(0))
            .map_err(from_sqlite)
    }

    pub(in crate::ledger) fn newest_delivery(&self) -> Result<DeliveryKey, StoreError> {
        chosen::newest(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn deliveries_of(
        &self,
        event_id: &str,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        deliveries_of(&self.0, event_id).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn attempts(
        &self,
        key: DeliveryKey,
    ) -> Result<Vec<AttemptRow>, StoreError> {
        attempts(&self.0, key).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn running(&self) -> Result<Vec<Running>, StoreError> {
        running(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn newest_sure(&self) -> Result<Option<i64>, StoreError> {
        facts::newest_sure(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn planned_after(&self, at_ms: i64) -> Result<bool, StoreError> {
        deliveries::planned_after(&self.0, at_ms).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn outlook(
        &self,
        ahead: &RangeInclusive<i64>,
        lanes: &[Lane],
    ) -> Result<Outlook, StoreError> {
        runnable::outlook(&self.0, ahead, lanes).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn refusals(
        &self,
        filter: &RefusalFilter,
        limit: u32,
    ) -> Result<Vec<RefusalRow>, StoreError> {
        refusals::list(&self.0, filter, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn fact<T>(&self, fact: &Fact<T>) -> Result<Option<T>, StoreError> {
        facts::fact(&self.0, fact).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn held_count(&self) -> Result<u64, StoreError> {
        held::held_count(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn owed_count(&self) -> Result<u64, StoreError> {
        held::owed_count(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn given_up(&self, limit: u32) -> Result<Vec<DeliveryRow>, StoreError> {
        chosen::given_up(&self.0, limit).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn abandoned_count(&self) -> Result<u64, StoreError> {
        held::abandoned_count(&self.0).map_err(from_sqlite)
    }

    pub(in crate::ledger) fn pollable(
        &self,
        key: InvoiceKey,
    ) -> Result<Option<DueRow>, StoreError> {
        due::pollable(&self.0, key).map_err(from_sqlite)
    }
}

/// Rows of a table, read by a connection of its own.
#[cfg(test)]
pub(in crate::ledger) fn count_for_tests(path: &Path, table: &str) -> i64 {
    let connection = Connection::open(path).expect("it opens");
    connection
        .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| {
            row.get(0)
        })
        .expect("it counts")
}
