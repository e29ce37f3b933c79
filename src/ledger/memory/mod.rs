//! The second store: everything in memory, for tests that need a ledger without a file, thousands of times over.
//!
//! Stands behind the same seam as SQLite and answers the same (`ledger/tests/conformance`). Commits can be told to
//! fail, in both ways a commit can: not done, and done but reported failed. A daemon that dies between `begin` and `commit`
//! leaves nothing, which is what rolling back is here.

mod abandonment;
mod deliveries;
mod ended;
mod heard;
mod invoice;
mod outdated;
mod read;
mod table;
mod undo;

use deliveries::Attempt;
use heard::HistoryLine;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Instant;

use super::apply::{Rules, remember};
use super::batch;
use super::choice::{Acting, Choice, Missing};
use super::command::{After, AttemptRecord, Command, Intent, Lane, Refusal, Reply};
use super::error::WriteError;
use super::fact::{Fact, Note};
use super::retention::{Cutoffs, Emptied};
use super::row::{Claimed, DeliveryKey, DeliveryState, EventRow, InvoiceKey};
use super::sqlite::Bounds;
use super::store::{
    Earlier, HeardClaim, NewEvent, NewHistory, Next, PollState, Rank, Store, StoreError, Stored,
    Withdrawn,
};
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Claim, Decision, Why};
use crate::process_mark::ProcessMark;
use invoice::{normal, opened};
use table::Table;
use undo::Marks;

/// Earlier claims compared with a new one; as many as SQLite's store gives.
const RECORDED_MOST: usize = 256;

/// How the next commit ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// As it should.
    #[default]
    Done,
    /// The disk is full: nothing is stored.
    NotDone,
    /// It is stored, and reported as failed.
    DoneUnheard,
}

/// An event with the claim that caused it.
#[derive(Clone, Debug)]
struct EventEntry {
    row: EventRow,
    cause: Option<Claim>,
    /// How it was judged, when the event is its line of history too.
    judged: Option<(Decision, Why)>,
    /// A clock that may have been wrong dated it.
    time_unsure: bool,
}

/// One event owed to one hook.
#[derive(Clone, Debug)]
struct Owed {
    event: i64,
    invoice: i64,
    hook: String,
    state: DeliveryState,
    attempts: u32,
    round_start: u32,
    next_ms: Option<i64>,
    wait_ms: i64,
    replay: bool,
    held_why: Option<&'static str>,
    abandoned_by: Option<&'static str>,
    acknowledged: bool,
    started_ms: i64,
    claimant: Option<ProcessMark>,
    child: Option<ProcessMark>,
    /// The attempt with which the delivery that this one tells of was given up.
    gave_up_after: Option<u32>,
}

/// The store.
#[derive(Clone, Debug)]
pub(crate) struct MemoryStore {
    bounds: Bounds,
    invoices: Table<Stored>,
    /// How invoices stand among those of their order.
    ranks: Table<i64>,
    /// Where an id or a ref was stored last. What was taken back since is still here: the row has the last word.
    ids: HashMap<InvoiceId, i64>,
    refs: HashMap<InvoiceRef, i64>,
    /// Lines of history ever written, by invoice.
    lines: Table<i64>,
    polls: Table<PollState>,
    events: Table<EventEntry>,
    deliveries: Table<Owed>,
    attempts: Table<Attempt>,
    history: Table<HistoryLine>,
    refusals: Table<Refusal>,
    meta: Table<Note>,
    savepoint: Option<Marks>,
    /// How the next commit ends.
    fate: Fate,
}

impl MemoryStore {
    /// An empty store.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            invoices: Table::default(),
            ranks: Table::default(),
            ids: HashMap::new(),
            refs: HashMap::new(),
            lines: Table::default(),
            polls: Table::default(),
            events: Table::default(),
            deliveries: Table::default(),
            attempts: Table::default(),
            history: Table::default(),
            refusals: Table::default(),
            meta: Table::default(),
            savepoint: None,
            fate: Fate::Done,
        }
    }

    /// Runs the commands in one transaction whose commit ends as `fate` says, the way the writer's thread does.
    pub(crate) fn run(
        &mut self,
        rules: &Rules,
        commands: &[&Command],
        fate: Fate,
    ) -> Result<Vec<Result<Reply, WriteError>>, StoreError> {
        self.fate = fate;
        let replies = batch::run(self, rules, commands);
        self.fate = Fate::Done;
        Ok(replies?
            .into_iter()
            .map(|reply| reply.map_err(WriteError::from))
            .collect())
    }

    /// Takes over the merchant's lists, as opening a ledger does; the rules bear their number afterwards.
    pub(crate) fn adopt(&mut self, rules: &mut Rules) -> Result<(), StoreError> {
        self.begin()?;
        rules.sorted_by = Some(remember(self, rules)?);
        self.commit()
    }
}

fn refused(what: &'static str) -> StoreError {
    StoreError::Refused(what.into())
}

impl Store for MemoryStore {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.forget();
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if self.fate == Fate::NotDone {
            return Err(StoreError::Full);
        }
        self.forget();
        if self.fate == Fate::DoneUnheard {
            return Err(StoreError::Io("the sync was reported as failed".into()));
        }
        Ok(())
    }

    fn rollback(&mut self) {
        self.go_back(Marks::default());
        self.savepoint = None;
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.savepoint = Some(self.marks());
        Ok(())
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.savepoint = None;
        Ok(())
    }

    fn rollback_to_savepoint(&mut self) -> Result<(), StoreError> {
        let marks = self.savepoint.take().ok_or(refused("no savepoint"))?;
        self.go_back(marks);
        Ok(())
    }

    fn tidy(&mut self, _last: bool) -> Option<Instant> {
        None
    }

    fn empty(&mut self, key: InvoiceKey, cutoffs: Cutoffs) -> Result<Emptied, StoreError> {
        Ok(self.empty_outdated(key, cutoffs))
    }

    fn others_wrote(&mut self) -> bool {
        false
    }

    fn recover(&mut self, _failed: &StoreError) -> Result<(), StoreError> {
        Ok(())
    }

    fn insert_invoice(
        &mut self,
        intent: &Intent,
        generation: i64,
    ) -> Result<InvoiceKey, StoreError> {
        if self.key_of(&intent.reference).is_some() {
            return Err(refused("the ref stands already"));
        }
        let mut stored = opened(intent, generation);
        let key = self.invoices.add(stored.clone());
        stored.row.key = InvoiceKey(key);
        self.refs.insert(intent.reference.clone(), key);
        self.invoices.put(key, stored);
        Ok(InvoiceKey(key))
    }

    fn load(&mut self, key: InvoiceKey) -> Result<Option<Stored>, StoreError> {
        Ok(self.stored(key))
    }

    fn owner_of(&mut self, id: &InvoiceId) -> Result<Option<InvoiceKey>, StoreError> {
        Ok(self.key_of_id(id))
    }

    fn save(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let key = stored.row.key;
        if let Some(id) = &stored.invoice.id
            && self.owner_of(id)?.is_some_and(|owner| owner != key)
        {
            return Err(refused("the id stands already"));
        }
        if self.invoices.get(key.0).is_some() {
            if let Some(id) = &stored.invoice.id {
                self.ids.insert(id.clone(), key.0);
            }
            self.invoices.put(key.0, normal(stored.clone()));
        }
        Ok(())
    }

    fn standing_beside(
        &mut self,
        key: InvoiceKey,
        order_id: &str,
    ) -> Result<Option<(InvoiceKey, Outcome)>, StoreError> {
        let standing = self.above(key, order_id, 0);
        Ok(standing.map(|stored| (stored.row.key, stored.row.outcome)))
    }

    fn rank(&mut self, key: InvoiceKey, order_id: &str, rank: Rank) -> Result<(), StoreError> {
        self.rank_as(key, order_id, rank);
        Ok(())
    }

    fn standing_of_order(
        &mut self,
        order_id: &str,
        tries: [Option<&InvoiceRef>; 2],
    ) -> Result<Vec<Earlier>, StoreError> {
        Ok(self.earlier(order_id, tries))
    }

    fn recorded_claims(&mut self, key: InvoiceKey) -> Result<Vec<Claim>, StoreError> {
        let events = self.events.iter().rev().map(|(_, event)| event);
        Ok(events
            .filter(|event| event.row.invoice == key)
            .filter_map(|event| event.cause.clone())
            .take(RECORDED_MOST)
            .collect())
    }

    fn insert_event(&mut self, event: &NewEvent<'_>) -> Result<i64, StoreError> {
        let change = event.change;
        let text = |status: &Option<crate::invoice::status::Status>| {
            status.as_ref().map(|status| status.as_str().to_owned())
        };
        let invoice = self.invoices.get(event.invoice.0);
        let row = EventRow {
            seq: 0,
            event_id: event.event_id.to_owned(),
            invoice: event.invoice,
            order_id: invoice
                .ok_or(refused("no such invoice"))?
                .row
                .order_id
                .clone(),
            kind: change.kind,
            rewound: change.rewound,
            status: text(&change.status),
            previous_status: text(&change.previous_status),
            outcome: change.outcome,
            previous_outcome: change.previous_outcome,
            order_outcome: change.order_outcome,
            source: event.source,
            at_ms: event.at_ms,
            amount_reported: event.reported.0.map(str::to_owned),
            currency_reported: event.reported.1.map(str::to_owned),
            raw: event.raw.map(str::to_owned),
        };
        let mut entry = EventEntry {
            row,
            cause: change.cause.clone(),
            judged: event.judged,
            time_unsure: false,
        };
        let seq = self.events.add(entry.clone());
        entry.row.seq = seq;
        self.events.put(seq, entry);
        Ok(seq)
    }

    fn has_event(&mut self, key: InvoiceKey, kind: EventKind) -> Result<bool, StoreError> {
        let is_it = |event: &EventEntry| event.row.invoice == key && event.row.kind == kind;
        Ok(self.events.iter().any(|(_, event)| is_it(event)))
    }

    fn insert_delivery(
        &mut self,
        seq: i64,
        invoice: InvoiceKey,
        hook: &str,
        next: Next,
    ) -> Result<DeliveryKey, StoreError> {
        let same = |(_, other): (i64, &Owed)| other.event == seq && other.hook == hook;
        if self.deliveries.iter().any(same) {
            return Err(refused("the delivery stands already"));
        }
        let (state, next_ms, wait_ms, held_why) = match next {
            Next::At { at_ms, wait_ms } => (DeliveryState::Waiting, Some(at_ms), wait_ms, None),
            Next::Held(why) => (DeliveryState::Held, None, 0, Some(why)),
        };
        Ok(DeliveryKey(self.deliveries.add(Owed {
            event: seq,
            invoice: invoice.0,
            hook: hook.to_owned(),
            state,
            attempts: 0,
            round_start: 0,
            next_ms,
            wait_ms,
            replay: false,
            held_why,
            abandoned_by: None,
            acknowledged: false,
            started_ms: 0,
            claimant: None,
            child: None,
            gave_up_after: None,
        })))
    }

    fn newest_event(&mut self) -> Result<i64, StoreError> {
        Ok(self.events.iter().next_back().map_or(0, |(seq, _)| seq))
    }

    fn missing(&mut self, _choice: &Choice) -> Result<Vec<Missing>, StoreError> {
        Ok(Vec::new()) // Nobody else writes here.
    }

    fn was_undated(&mut self, key: InvoiceKey, text: &str) -> Result<bool, StoreError> {
        let is_it = |line: &HistoryLine| line.is_undated(key, text);
        Ok(self.history.iter().any(|(_, line)| is_it(line)))
    }

    fn add_history(&mut self, line: &NewHistory<'_>) -> Result<(), StoreError> {
        self.add_line(line);
        Ok(())
    }

    fn poll_state(&mut self, key: InvoiceKey) -> Result<PollState, StoreError> {
        Ok(self.polls.get(key.0).copied().unwrap_or_default())
    }

    fn save_poll(&mut self, key: InvoiceKey, state: &PollState) -> Result<(), StoreError> {
        if self.invoices.get(key.0).is_none() {
            return Err(refused("no such invoice"));
        }
        self.polls.put(key.0, *state);
        Ok(())
    }

    fn claim(
        &mut self,
        claimant: &ProcessMark,
        ahead: RangeInclusive<i64>,
        lanes: &[Lane],
    ) -> Result<Vec<Claimed>, StoreError> {
        Ok(self.claim_runnable(claimant, &ahead, lanes))
    }

    fn name_child(&mut self, key: DeliveryKey, child: &ProcessMark) -> Result<bool, StoreError> {
        Ok(self.name(key, child))
    }

    fn give_back(&mut self, key: DeliveryKey) -> Result<bool, StoreError> {
        Ok(self.take_back(key))
    }

    fn mark_unsure(&mut self, after: i64) -> Result<(), StoreError> {
        self.doubt_times(after);
        Ok(())
    }

    fn replan(&mut self, now_ms: i64, forward_ms: i64) -> Result<usize, StoreError> {
        Ok(self.replan_all(now_ms, forward_ms))
    }

    fn finish(
        &mut self,
        key: DeliveryKey,
        record: &AttemptRecord,
        after: After,
    ) -> Result<bool, StoreError> {
        Ok(self.end_run(key, record, after))
    }

    fn owe_abandonment(&mut self, key: DeliveryKey, at_ms: i64) -> Result<(), StoreError> {
        self.owe_telling(key, at_ms);
        Ok(())
    }

    fn act(&mut self, acting: &Acting) -> Result<usize, StoreError> {
        Ok(self.act_on(acting))
    }

    fn add_refusals(&mut self, refusals: &[Refusal]) -> Result<(), StoreError> {
        let unknown = |key: InvoiceKey| self.invoices.get(key.0).is_none();
        if refusals.iter().any(|one| one.invoice.is_some_and(unknown)) {
            return Err(refused("no such invoice"));
        }
        for refusal in refusals {
            self.refusals.add(refusal.clone());
        }
        for is_known in [true, false] {
            let ring = self.refusals.iter().rev();
            let ring = ring.filter(|(_, one)| one.invoice.is_some() == is_known);
            let beyond = ring.skip(self.bounds.refusal_rows as usize);
            for id in beyond.map(|(id, _)| id).collect::<Vec<_>>() {
                self.refusals.remove(id);
            }
        }
        Ok(())
    }

    fn fact<T>(&mut self, fact: &Fact<T>) -> Result<Option<T>, StoreError> {
        Ok(self.fact_of(fact))
    }

    fn note(&mut self, note: &Note) -> Result<(), StoreError> {
        let known = self.meta.iter().find(|(_, known)| known.key == note.key);
        match known.map(|(id, _)| id) {
            Some(id) => self.meta.put(id, note.clone()),
            None => drop(self.meta.add(note.clone())),
        }
        Ok(())
    }

    fn with_status(
        &mut self,
        from: InvoiceKey,
        names: &[String],
        among: u32,
        most: u32,
    ) -> Result<(Vec<InvoiceKey>, Option<InvoiceKey>), StoreError> {
        Ok(self.named(from, names, among, most))
    }

    fn heard_claims(&mut self, key: InvoiceKey) -> Result<Vec<HeardClaim>, StoreError> {
        Ok(self.heard_of(key))
    }

    fn hold_unfinished(&mut self, why: &'static str) -> Result<usize, StoreError> {
        Ok(self.hold_all(why))
    }

    fn withdraw_held(&mut self, key: InvoiceKey) -> Result<Withdrawn, StoreError> {
        Ok(self.withdraw(key))
    }
}
