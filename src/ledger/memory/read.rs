//! The questions the loops ask beside the writer, with the answers SQLite's reading connection gives.

use super::heard::HistoryLine;
use super::{MemoryStore, Owed};
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::opening::Opening;
use crate::invoice::silence::{CLOCK_IS_SET_MS, Class};
use crate::invoice::transition::{Claim, Invoice};
use crate::ledger::apply::heard;
use crate::ledger::fact::Fact;
use crate::ledger::row::{
    AttemptRow, DeliveryKey, DeliveryRow, DeliveryState, DueRow, EventRow, InvoiceKey, InvoiceRow,
    Place, Running,
};
use crate::ledger::store::PollState;

impl MemoryStore {
    /// The invoice behind a ref.
    pub(crate) fn key_of(&self, reference: &InvoiceRef) -> Option<InvoiceKey> {
        let found = self.refs.get(reference).copied();
        let is_its = |key: &i64| {
            let stored = self.invoices.get(*key);
            stored.is_some_and(|stored| stored.row.reference == *reference)
        };
        found.filter(is_its).map(InvoiceKey)
    }

    /// The invoice with an id.
    pub(super) fn key_of_id(&self, id: &InvoiceId) -> Option<InvoiceKey> {
        let found = self.ids.get(id).copied();
        let is_its = |key: &i64| {
            let stored = self.invoices.get(*key);
            stored.is_some_and(|stored| stored.invoice.id.as_ref() == Some(id))
        };
        found.filter(is_its).map(InvoiceKey)
    }

    /// All invoices, oldest first.
    pub(crate) fn invoices(&self) -> impl Iterator<Item = InvoiceRow> {
        self.all_stored().map(|stored| stored.row)
    }

    /// What decides about an invoice.
    pub(crate) fn judged(&self, key: InvoiceKey) -> Option<&Invoice> {
        self.invoices.get(key.0).map(|stored| &stored.invoice)
    }

    /// Invoices whose time to be asked about has come: up to so many of each class, the longest due first.
    pub(crate) fn due(&self, now_ms: i64, per_class: u32) -> Vec<DueRow> {
        let most = usize::try_from(per_class).unwrap_or(usize::MAX);
        let filed = self.filed();
        let is_unset = now_ms < CLOCK_IS_SET_MS;
        let of = |class: Class| {
            let of = || filed.iter().filter(move |place| place.class == class);
            let due = of().filter(move |place| place.due_ms <= now_ms).take(most);
            let dated = of().filter(move |place| is_unset && place.due_ms >= CLOCK_IS_SET_MS);
            due.chain(dated.take(most))
        };
        self.rows(Class::ALL.into_iter().flat_map(of))
    }

    /// Invoices of one class whose due time lies after a place in the order of due times, nearest first.
    pub(crate) fn due_after(&self, place: Place, limit: u32) -> Vec<DueRow> {
        let filed = self.filed();
        let after = filed.iter().filter(|other| other.class == place.class);
        let after = after.filter(|other| **other > place);
        self.rows(after.take(usize::try_from(limit).unwrap_or(usize::MAX)))
    }

    /// Where an invoice is filed, if it is due at all.
    pub(crate) fn place_of(&self, key: InvoiceKey) -> Option<Place> {
        let poll = self.polls.get(key.0)?;
        let has_id = self.invoices.get(key.0)?.invoice.id.is_some();
        let due_ms = poll.due_ms.filter(|_| has_id)?;
        let class = poll.class;
        Some(Place { class, due_ms, key })
    }

    /// The row that is filed at a place.
    pub(crate) fn due_row(&self, place: &Place) -> Option<DueRow> {
        self.rows(std::iter::once(place)).pop()
    }

    /// Invoices that are asked about no more because their time is over, behind a place in the order of that time.
    pub(crate) fn retired_after(
        &self,
        place: (i64, InvoiceKey),
        limit: u32,
    ) -> Vec<(i64, InvoiceKey)> {
        let polls = self.polls.iter();
        let retired = polls.filter_map(|(key, poll)| Some((poll.retired_ms?, InvoiceKey(key))));
        let mut retired: Vec<_> = retired.filter(|other| *other > place).collect();
        retired.sort_unstable();
        retired.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        retired
    }

    /// What a fact says.
    pub(crate) fn fact_of<T>(&self, fact: &Fact<T>) -> Option<T> {
        let mut notes = self.meta.iter().map(|(_, note)| note);
        let found = notes.find(|note| note.key == fact.key)?;
        fact.read(&found.text)
    }

    /// The earliest time an invoice is due.
    pub(crate) fn next_due_ms(&self) -> Option<i64> {
        self.polls.iter().filter_map(|(_, poll)| poll.due_ms).min()
    }

    /// Invoices whose opening is under way.
    pub(crate) fn creating(&self) -> Vec<InvoiceRow> {
        self.invoices()
            .filter(|row| row.opening == Opening::Creating)
            .collect()
    }

    /// All events, oldest first, each with the claim that caused it.
    pub(crate) fn events(&self) -> impl Iterator<Item = (&EventRow, Option<&Claim>)> {
        self.events
            .iter()
            .map(|(_, event)| (&event.row, event.cause.as_ref()))
    }

    /// All deliveries, oldest first.
    pub(crate) fn deliveries(&self) -> Vec<DeliveryRow> {
        self.deliveries
            .iter()
            .filter_map(|(key, owed)| self.row_of(key, owed))
            .collect()
    }

    /// One delivery.
    pub(crate) fn delivery(&self, key: DeliveryKey) -> Option<DeliveryRow> {
        self.row_of(key.0, self.deliveries.get(key.0)?)
    }

    /// The invoice a delivery belongs to.
    pub(crate) fn invoice_of(&self, key: DeliveryKey) -> Option<InvoiceKey> {
        let owed = self.deliveries.get(key.0)?;
        Some(InvoiceKey(owed.invoice))
    }

    /// The attempts of a delivery that have ended.
    pub(crate) fn attempts(&self, key: DeliveryKey) -> Vec<AttemptRow> {
        self.attempts
            .iter()
            .filter(|(_, attempt)| attempt.delivery == key.0)
            .map(|(_, attempt)| AttemptRow {
                number: attempt.number,
                started_ms: attempt.record.started_ms,
                ended_ms: attempt.record.ended_ms,
                result: attempt.record.result.clone(),
                stdout: attempt.record.stdout.clone(),
                stderr: attempt.record.stderr.clone(),
            })
            .collect()
    }

    /// Deliveries that are running, or were when their daemon died.
    pub(crate) fn running(&self) -> Vec<Running> {
        self.deliveries
            .iter()
            .filter(|(_, owed)| owed.state == DeliveryState::Running)
            .filter_map(|(key, owed)| {
                Some(Running {
                    key: DeliveryKey(key),
                    hook: owed.hook.clone(),
                    attempt: owed.attempts,
                    claimant: owed.claimant.clone()?,
                    child: owed.child.clone(),
                    started_ms: owed.started_ms,
                })
            })
            .collect()
    }

    /// Polls of an invoice in a row that brought nothing.
    pub(crate) fn failures(&self, key: InvoiceKey) -> u32 {
        self.polls.get(key.0).map_or(0, |poll| poll.failures)
    }

    /// All lines of history that are kept, oldest first.
    pub(crate) fn history(&self) -> impl Iterator<Item = &HistoryLine> {
        self.history.iter().map(|(_, line)| line)
    }

    /// How many refusals are kept.
    pub(crate) fn refusal_count(&self) -> usize {
        self.refusals.len()
    }

    fn row_of(&self, key: i64, owed: &Owed) -> Option<DeliveryRow> {
        let event = &self.events.get(owed.event)?.row;
        Some(DeliveryRow {
            key: DeliveryKey(key),
            seq: event.seq,
            event_id: event.event_id.clone(),
            order_id: event.order_id.clone(),
            kind: event.kind,
            hook: owed.hook.clone(),
            state: owed.state,
            at_ms: event.at_ms,
            attempts: owed.attempts,
            replay: owed.replay,
            next_ms: owed.next_ms,
            held_why: owed
                .held_why
                .filter(|_| owed.state == DeliveryState::Held)
                .map(str::to_owned),
            abandoned_by: owed.abandoned_by.map(str::to_owned),
            acknowledged: owed.acknowledged,
            behind: self.in_front_of(owed),
        })
    }

    /// The event whose delivery to the same hook this one waits for.
    fn in_front_of(&self, owed: &Owed) -> Option<i64> {
        if owed.state != DeliveryState::Waiting {
            return None;
        }
        let unfinished = |state: DeliveryState| {
            matches!(
                state,
                DeliveryState::Waiting | DeliveryState::Running | DeliveryState::Held
            )
        };
        self.deliveries
            .iter()
            .filter(|(_, other)| other.invoice == owed.invoice && other.hook == owed.hook)
            .filter(|(_, other)| other.event < owed.event && unfinished(other.state))
            .map(|(_, other)| other.event)
            .min()
    }

    /// Due times of invoices that have an id, in their order.
    pub(crate) fn places(&self) -> Vec<(i64, InvoiceKey)> {
        let filed = self.filed().into_iter();
        let mut places: Vec<_> = filed.map(|place| (place.due_ms, place.key)).collect();
        places.sort_unstable();
        places
    }

    /// Due times of invoices that have an id, as they are filed.
    fn filed(&self) -> Vec<Place> {
        let has_id = |key: i64| {
            self.invoices
                .get(key)
                .is_some_and(|stored| stored.invoice.id.is_some())
        };
        let place = |(key, poll): (i64, &PollState)| {
            Some(Place {
                class: poll.class,
                due_ms: poll.due_ms?,
                key: InvoiceKey(key),
            })
        };
        let polls = self.polls.iter().filter(|(key, _)| has_id(*key));
        let mut filed: Vec<Place> = polls.filter_map(place).collect();
        filed.sort_unstable();
        filed
    }

    fn rows<'a>(&self, places: impl Iterator<Item = &'a Place>) -> Vec<DueRow> {
        let row = |place: &Place| {
            let stored = self.invoices.get(place.key.0)?;
            Some(DueRow {
                key: place.key,
                order_id: stored.row.order_id.clone(),
                invoice_id: stored.invoice.id.clone()?,
                revision: stored.row.revision,
                heard: heard(stored, self.polls.get(place.key.0)?),
                due_ms: place.due_ms,
                class: place.class,
            })
        };
        places.filter_map(row).collect()
    }
}
