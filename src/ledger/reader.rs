//! Reads, beside the writer and never waiting for it. Each read runs on a blocking thread with a connection from a small
//! pool; a connection that failed is dropped and opened anew. What each notification looks up is asked on the listener's own
//! thread first, see [`super::near`].

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::choice::{Act, Choice, Missing, Page};
use super::command::Lane;
use super::error::{OpenError, ReadError};
use super::fact::{Fact, GENERATION, GENERATION_BEGAN};
use super::files::Watch;
use super::health::{Health, State};
use super::lineage::Lineage;
use super::near::Near;
use super::pool::{Asker, Pool};
use super::row::{
    AttemptRow, DeliveryKey, DeliveryRow, DueRow, EventRow, InvoiceKey, InvoiceRow, Outlook, Place,
    RefusalFilter, RefusalRow, Running, Watched,
};
use super::seal::Sealer;
use super::sqlite::ReadStore;
use super::store::StoreError;
use crate::fault;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::notify_token::NotifyToken;
use crate::panics::carried;

/// Reads the ledger. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    pub(super) pool: Arc<Pool>,
    /// Whose places it reads at.
    asker: Asker,
    /// For short look-ups of one who has a thread of its own.
    near: Option<Arc<Near>>,
    /// How the writer of the same process fares; `None` without one.
    health: Option<Health>,
    /// Watches the files for that writer.
    watch: Option<Watch>,
}

impl Reader {
    /// Opens a ledger that exists. The first connection is opened here, so that a wrong file is found at once.
    pub(super) fn open(path: PathBuf, sealer: Option<Arc<Sealer>>) -> Result<Self, OpenError> {
        let pool = Pool::open(path, sealer)?;
        Ok(Self {
            pool: Arc::new(pool),
            asker: Asker::default(),
            near: None,
            health: None,
            watch: None,
        })
    }

    /// The ledger's file.
    pub(super) fn path(&self) -> &Path {
        &self.pool.path
    }

    /// Beside a writer in the same process.
    pub(super) fn beside_writer(self, health: Health, watch: Watch) -> Self {
        Self {
            health: Some(health),
            watch: Some(watch),
            ..self
        }
    }

    /// True while nothing is known to have happened to the files since the writer of this process saw them.
    pub(crate) fn stands(&self) -> bool {
        self.watch.as_ref().is_none_or(Watch::stands)
    }

    /// How the writer of this process fares; nothing is known of another one's.
    pub(crate) fn health(&self) -> State {
        self.health.as_ref().map(Health::now).unwrap_or_default()
    }

    /// The same for one who has a thread of its own, which may wait for the disk: its short look-ups stay on that thread.
    pub(crate) fn for_a_thread(&self) -> Self {
        Self {
            near: Some(Arc::default()),
            ..self.clone()
        }
    }

    /// The same for clients, who may read much and often: at places of their own.
    pub(crate) fn for_clients(&self) -> Self {
        Self {
            asker: Asker::Clients,
            ..self.clone()
        }
    }

    /// The same for whoever wants to know how everything stands.
    pub(crate) fn for_status(&self) -> Self {
        Self {
            asker: Asker::Status,
            ..self.clone()
        }
    }

    /// Opens what short look-ups are asked on. Without it the first who ask find it missing and all go to blocking threads
    /// at once, which then stay for a while and keep what they have allocated.
    pub(crate) async fn furnish(&self) {
        let Some(near) = self.near.clone() else {
            return;
        };
        let pool = Arc::clone(&self.pool);
        let furnished = tokio::task::spawn_blocking(move || near.furnish(&pool.path)).await;
        if let Err(ended) = furnished {
            // Whoever asks opens it then.
            tracing::debug!(error = %ended, "could not open the connection for look-ups");
        }
    }

    /// Asks one question on a blocking thread, with a connection of the pool. A panic there is passed on, and is of the request
    /// that asks. The place is the thread's: who leaves meanwhile frees none that is still read at.
    pub(super) async fn ask<T, F>(&self, question: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: FnOnce(&ReadStore) -> Result<T, StoreError> + Send + 'static,
    {
        let pool = Arc::clone(&self.pool);
        let place = pool.place(self.asker).await;
        let health = self.health.clone();
        let work = carried(move || {
            let _place = place;
            pool.answer(question, health.as_ref())
        });
        match tokio::task::spawn_blocking(work).await {
            Ok(answer) => answer.map_err(ReadError),
            Err(ended) if ended.is_panic() => std::panic::resume_unwind(ended.into_panic()),
            Err(cancelled) => Err(ReadError(StoreError::Refused(Box::new(cancelled)))),
        }
    }

    /// Asks for one row on this very thread, or, when there is no connection for that, as [`Reader::ask`] does.
    pub(super) async fn glance<T, F>(&self, question: F) -> Result<T, ReadError>
    where
        T: Send + 'static,
        F: Fn(&ReadStore) -> Result<T, StoreError> + Send + 'static,
    {
        let Some(near) = &self.near else {
            return self.ask(question).await;
        };
        let and_seen = |store: &ReadStore| Ok((question(store)?, store.seen()));
        if let Some((answer, seen)) = near.ask(and_seen) {
            self.pool.note(seen, self.health.as_ref());
            return Ok(answer);
        }
        let (pool, near) = (Arc::clone(&self.pool), Arc::clone(near));
        self.ask(move |store| {
            near.furnish(&pool.path);
            question(store)
        })
        .await
    }

    #[cfg(test)]
    pub(super) fn near(&self) -> Option<&Near> {
        self.near.as_deref()
    }

    /// The invoice behind a ref, with its token opened.
    pub async fn watched(&self, reference: InvoiceRef) -> Result<Option<Watched>, ReadError> {
        let pool = Arc::clone(&self.pool);
        self.glance(move |store| {
            let found = store.sealed_by_ref(&reference)?;
            let found = found.map(|(key, sealed)| (key, reference.clone(), sealed));
            Ok(pool.watched(found))
        })
        .await
    }

    /// The invoice a notification without a ref is about, with its token opened: the one with this id of the service,
    /// else the one of this order whose id is not known yet, unless there are several. Both are looked for whatever is
    /// found, so that known and unknown names cost the same.
    pub async fn watched_by_names(
        &self,
        id: InvoiceId,
        order_id: Option<String>,
    ) -> Result<Option<Watched>, ReadError> {
        let pool = Arc::clone(&self.pool);
        self.glance(move |store| {
            let by_id = store.sealed_by_id(&id)?;
            let by_order = match &order_id {
                Some(order_id) => store.sealed_by_order(order_id)?,
                None => None,
            };
            Ok(pool.watched(by_id.or(by_order)))
        })
        .await
    }

    /// The notify token of an invoice, to cut it out of what the service says about it.
    pub async fn notify_token(&self, key: InvoiceKey) -> Result<Option<NotifyToken>, ReadError> {
        let pool = Arc::clone(&self.pool);
        self.ask(move |store| {
            let found = store.sealed_by_key(key)?;
            Ok(found
                .zip(pool.opener.as_ref())
                .and_then(|((reference, sealed), opener)| opener.open(&sealed, &reference)))
        })
        .await
    }

    /// Invoices whose time to be asked about has come: up to `per_class` of each class, the most pressing class first and
    /// in it those that are due for the longest.
    pub async fn due(&self, now_ms: i64, per_class: u32) -> Result<Vec<DueRow>, ReadError> {
        self.ask(move |store| store.due(now_ms, per_class)).await
    }

    /// Invoices of one class whose due time lies after a place in the order of due times, nearest first.
    pub async fn due_after(&self, place: Place, limit: u32) -> Result<Vec<DueRow>, ReadError> {
        self.ask(move |store| store.due_after(place, limit)).await
    }

    /// Invoices whose polling is over, since when, and which: those behind a place in the order of that time, nearest first.
    pub async fn retired_after(
        &self,
        place: (i64, InvoiceKey),
        limit: u32,
    ) -> Result<Vec<(i64, InvoiceKey)>, ReadError> {
        self.ask(move |store| store.retired_after(place, limit))
            .await
    }

    /// An invoice as it is asked about, whether it is due or not; `None` when it has no id yet.
    pub async fn pollable(&self, key: InvoiceKey) -> Result<Option<DueRow>, ReadError> {
        self.ask(move |store| store.pollable(key)).await
    }

    /// The earliest time an invoice is due.
    pub async fn next_due_ms(&self) -> Result<Option<i64>, ReadError> {
        self.ask(ReadStore::next_due_ms).await
    }

    /// Invoices whose opening is under way.
    pub async fn creating(&self) -> Result<Vec<InvoiceRow>, ReadError> {
        self.ask(ReadStore::creating).await
    }

    /// Events after a number, oldest first; of one order or of all.
    pub async fn events(
        &self,
        order_id: Option<&str>,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventRow>, ReadError> {
        let order_id = order_id.map(str::to_owned);
        self.ask(move |store| store.events(order_id.as_deref(), after, limit))
            .await
    }

    /// The number of the newest event; 0 when there is none.
    pub async fn newest_event(&self) -> Result<i64, ReadError> {
        self.ask(ReadStore::newest_event).await
    }

    /// When the newest event was recorded that no wrong clock has dated as far as is known, milliseconds since 1970.
    pub(crate) async fn newest_sure(&self) -> Result<Option<i64>, ReadError> {
        self.ask(ReadStore::newest_sure).await
    }

    /// What the numbers of events are judged by.
    pub(crate) async fn lineage(&self) -> Result<Lineage, ReadError> {
        self.ask(|store| {
            Ok(Lineage {
                generation: store.fact(&GENERATION)?.unwrap_or_default(),
                newest: store.newest_event()?,
                began: store.fact(&GENERATION_BEGAN)?,
            })
        })
        .await
    }

    /// The event with this id, or else with this number.
    pub async fn find_event(&self, name: &str) -> Result<Option<EventRow>, ReadError> {
        let name = name.to_owned();
        self.ask(move |store| store.find_event(&name)).await
    }

    /// The events of an order, newest first.
    pub async fn events_of_order(
        &self,
        order_id: &str,
        limit: u32,
    ) -> Result<Vec<EventRow>, ReadError> {
        let order_id = order_id.to_owned();
        self.ask(move |store| store.events_of_order(&order_id, limit))
            .await
    }

    /// Deliveries, newest first; of one state or of all.
    pub async fn list_deliveries(
        &self,
        state: Option<super::DeliveryState>,
        limit: u32,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        let choice = Choice {
            state,
            ..Choice::default()
        };
        self.chosen_deliveries(choice, limit).await
    }

    /// The deliveries a person means, newest first.
    pub async fn chosen_deliveries(
        &self,
        choice: Choice,
        limit: u32,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        self.ask(move |store| store.chosen_deliveries(&choice, limit))
            .await
    }

    /// What an act would change of the deliveries a person means: a page of it, in the order they were made.
    pub async fn would_change(
        &self,
        act: Act,
        choice: Choice,
        page: Page,
    ) -> Result<Vec<DeliveryRow>, ReadError> {
        self.ask(move |store| store.would_change(act, &choice, &page))
            .await
    }

    /// The delivery that was made last.
    pub async fn newest_delivery(&self) -> Result<DeliveryKey, ReadError> {
        self.ask(ReadStore::newest_delivery).await
    }

    /// The deliveries of an event.
    pub async fn deliveries_of(&self, event_id: &str) -> Result<Vec<DeliveryRow>, ReadError> {
        let event_id = event_id.to_owned();
        self.ask(move |store| store.deliveries_of(&event_id)).await
    }

    /// What events of this choice are without though a hook was to be owed it, the newest, a bounded number.
    pub(crate) async fn missing(&self, choice: Choice) -> Result<Vec<Missing>, ReadError> {
        self.ask(move |store| store.missing(&choice)).await
    }

    /// The attempts of a delivery that have ended.
    pub async fn attempts(&self, key: DeliveryKey) -> Result<Vec<AttemptRow>, ReadError> {
        self.ask(move |store| store.attempts(key)).await
    }

    /// Deliveries that are running, or were when their daemon died.
    pub async fn running_deliveries(&self) -> Result<Vec<Running>, ReadError> {
        self.ask(ReadStore::running).await
    }

    /// True when a delivery waits that was planned later than at this time: a clock was ahead.
    pub async fn planned_after(&self, at_ms: i64) -> Result<bool, ReadError> {
        self.ask(move |store| store.planned_after(at_ms)).await
    }

    /// What a claim for these lanes would find. `ahead`: from now to the latest time that a delivery can rightly be planned
    /// for.
    pub async fn outlook(
        &self,
        ahead: RangeInclusive<i64>,
        lanes: Vec<Lane>,
    ) -> Result<Outlook, ReadError> {
        self.ask(move |store| {
            fault::point("outlook");
            store.outlook(&ahead, &lanes)
        })
        .await
    }

    /// Refused requests, newest first.
    pub async fn refusals(
        &self,
        filter: RefusalFilter,
        limit: u32,
    ) -> Result<Vec<RefusalRow>, ReadError> {
        self.ask(move |store| store.refusals(&filter, limit)).await
    }

    /// How many deliveries a person must release.
    pub async fn held_count(&self) -> Result<u64, ReadError> {
        self.ask(ReadStore::held_count).await
    }

    /// How many deliveries wait or run. Counts them all, by their index: a million take some ten milliseconds.
    pub(crate) async fn owed_count(&self) -> Result<u64, ReadError> {
        self.ask(ReadStore::owed_count).await
    }

    /// How many deliveries were given up and not acknowledged.
    pub async fn abandoned_count(&self) -> Result<u64, ReadError> {
        self.ask(ReadStore::abandoned_count).await
    }

    /// What a fact says; `None` when it was never stored, or cannot be read.
    pub(crate) async fn fact<T: Send>(
        &self,
        fact: &'static Fact<T>,
    ) -> Result<Option<T>, ReadError> {
        self.ask(|store| store.fact(fact)).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{open, opened};

    #[tokio::test]
    async fn an_event_is_found_by_its_id_and_by_its_number() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = open(&directory);
        let (writer, reader) = (ledger.writer(), ledger.reader());
        for order in ["a", "b"] {
            opened(&writer, order).await;
        }
        for (order, seqs) in [("a", vec![1]), ("b", vec![2]), ("c", vec![])] {
            let found = reader.events_of_order(order, 10).await.expect("read");
            let found: Vec<i64> = found.iter().map(|event| event.seq).collect();
            assert_eq!(found, seqs, "{order}");
        }
        let newest = reader.events_of_order("b", 1).await.expect("read");
        let newest = newest.first().expect("there is one");
        for (name, seq) in [
            (newest.event_id.as_str(), Some(2)),
            ("1", Some(1)),
            ("3", None),
            ("none", None),
        ] {
            let found = reader.find_event(name).await.expect("read");
            assert_eq!(found.map(|event| event.seq), seq, "{name}");
        }
    }
}
