//! SQLite behind the seam. The only home of `rusqlite`. Statements are prepared once per connection.

mod abandonment;
mod backup;
pub(crate) mod bulk;
mod census;
mod check;
mod checkpoint;
mod chosen;
mod columns;
mod contract;
mod deliveries;
mod due;
mod facts;
mod failure;
mod heard;
mod held;
mod invoices;
mod known;
mod last_heard;
mod missing;
mod often;
mod open;
mod outdated;
mod overview;
mod planned;
mod read;
mod read_store;
mod refusals;
mod rescue;
mod rows;
mod runnable;
mod saving;
mod schema;
mod silent;
mod story;
mod upkeep;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Statement};

use super::choice::{ACT_AT_ONCE, Acting, Choice, Missing};
use super::command::{After, AttemptRecord, Intent, Lane, Refusal};
use super::error::OpenError;
use super::fact::{Fact, Note};
use super::mark::Keeper;
use super::retention::{Cutoffs, Emptied};
use super::row::{Claimed, DeliveryKey, InvoiceKey};
use super::store::{
    Earlier, HeardClaim, NewEvent, NewHistory, Next, PollState, Rank, Store, StoreError, Stored,
    Withdrawn,
};
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef};
use crate::invoice::status::Outcome;
use crate::invoice::transition::Claim;
use crate::process_mark::ProcessMark;
pub(super) use backup::{copy, unmoved_pages, verify};
pub(super) use check::{check, findings, position_of};
pub(crate) use checkpoint::{Checkpoint, KEPT_BYTES, LogLimits, TRIED_BYTES};
use checkpoint::{Idle, Mover};
pub(super) use contract::contract;
use failure::from_sqlite;
use known::Known;
use often::{Held, Often, Passing, Statements};
pub(crate) use read::Filter;
pub(super) use read::Found;
pub(super) use read_store::ReadStore;
#[cfg(test)]
pub(super) use read_store::count_for_tests;
use rescue::Guard;
pub(super) use rescue::alone;

/// Prepared statements kept per connection; more than the writer has.
const STATEMENTS: usize = 64;

/// The version of the SQLite this tilld was built with, for example `3.53.0`.
pub(crate) fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Lines of history kept per invoice.
    pub history_per_invoice: u32,
    /// Lines of history kept in all.
    pub history_rows: u32,
    /// Refusals kept.
    pub refusal_rows: u32,
}

/// The writing connection.
pub(super) struct SqliteStore<C = Passing> {
    connection: C,
    path: PathBuf,
    busy: Duration,
    bounds: Bounds,
    /// Moves the log into the file.
    mover: Mover,
    /// Cuts the log back when nobody writes.
    idle: Idle,
    /// A sync failed: what this connection has read is not to be trusted, and nothing is stored before it was opened anew.
    distrusted: bool,
    /// Keeps the mark beside the ledger; `None` where nobody wants it kept.
    keeper: Option<Keeper>,
    /// Invoices that need not be loaded.
    known: Known,
    /// SQLite's number for what others have committed, when it was asked last.
    version: Option<i64>,
    /// Whether the files are still what was opened.
    guard: Guard,
}

/// A store in the thread it works in.
pub(super) type Staying = SqliteStore<Held>;

impl SqliteStore {
    /// Opens the ledger for writing, making it when there is none.
    pub(super) fn open(
        path: PathBuf,
        busy: Duration,
        bounds: Bounds,
        (checkpoint, limits): (Checkpoint, LogLimits),
    ) -> Result<Self, OpenError> {
        let connection = open::open_writer(&path, busy)?;
        let guard = Guard::new(&connection, &path)?;
        let mover = Mover::new((checkpoint, limits), &path, busy);
        let mut mover = mover.looking_by(guard.watch.log());
        let hooked = hooked(&mut mover, connection).map_err(from_sqlite);
        let connection = hooked.map_err(|source| OpenError::File {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            connection,
            idle: Idle::new(&path),
            path,
            busy,
            bounds,
            mover,
            guard,
            distrusted: false,
            keeper: None,
            known: Known::default(),
            version: None,
        })
    }

    /// The same in the thread it stays in from now on.
    pub(super) fn stay(self) -> Staying {
        SqliteStore {
            connection: self.connection.stay(),
            path: self.path,
            busy: self.busy,
            bounds: self.bounds,
            mover: self.mover,
            idle: self.idle,
            distrusted: self.distrusted,
            keeper: self.keeper,
            known: self.known,
            version: self.version,
            guard: self.guard,
        }
    }
}

/// Makes a connection the writer's.
fn hooked<C: Statements>(mover: &mut Mover, mut connection: Connection) -> rusqlite::Result<C> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    mover.hook(&mut connection)?;
    Ok(C::around(connection))
}

impl<C: Statements> Store for SqliteStore<C> {
    fn begin(&mut self) -> Result<(), StoreError> {
        self.guard.begin();
        if self.distrusted {
            self.reopen()?;
        }
        self.set_busy(Duration::ZERO)?;
        let taken = self.take_lock();
        self.set_busy(self.busy)?;
        taken?;
        let version = self.version();
        self.known.check(version);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        self.look_before_commit()?;
        self.often(Often::Commit)?;
        self.guard.commit();
        self.keeper.iter_mut().for_each(Keeper::touch);
        Ok(())
    }

    fn rollback(&mut self) {
        self.known.clear();
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            tracing::warn!(reason = %error, "the ledger's transaction could not be rolled back");
        }
    }

    fn savepoint(&mut self) -> Result<(), StoreError> {
        self.execute("SAVEPOINT one")
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.execute("RELEASE one")
    }

    fn rollback_to_savepoint(&mut self) -> Result<(), StoreError> {
        self.guard.begin();
        self.known.clear();
        self.execute("ROLLBACK TO one")
            .and_then(|()| self.execute("RELEASE one"))
    }

    fn tidy(&mut self, last: bool) -> Option<Instant> {
        if self.guard.over {
            return self.mark(last);
        }
        if self.distrusted || self.is_moved() {
            // Nothing of it is moved before it was opened anew, or after an accident.
            return None;
        }
        let moved = self.mover.tidy(&self.connection, last);
        let cut = self.idle.tidy(&self.connection, &mut self.mover, last);
        self.note_moves(last);
        let times = moved.into_iter().chain(cut);
        self.mark(last).into_iter().chain(times).min()
    }

    fn others_wrote(&mut self) -> bool {
        let version = self.version();
        let before = std::mem::replace(&mut self.version, version);
        version.is_none() || version != before
    }

    fn stands(&mut self) -> Result<(), StoreError> {
        self.look_into_files()
    }

    fn recover(&mut self, failed: &StoreError) -> Result<(), StoreError> {
        match failed {
            StoreError::Busy | StoreError::Full | StoreError::LogFull | StoreError::Refused(_) => {
                Ok(())
            }
            StoreError::Moved(moved) => {
                self.rescue(*moved);
                Ok(())
            }
            // After a failed sync the page cache is not to be trusted: start over.
            StoreError::Io(_) | StoreError::ReadOnly(_) | StoreError::Corrupt(_) => self.reopen(),
        }
    }

    fn is_log_full(&self) -> bool {
        self.mover.is_full()
    }

    fn empty(&mut self, key: InvoiceKey, cutoffs: Cutoffs) -> Result<Emptied, StoreError> {
        self.known.forget(key);
        let emptied = outdated::empty(&self.connection, key, cutoffs).map_err(from_sqlite)?;
        if emptied != Emptied::default() {
            // The log has what was there before.
            self.idle.scrub();
        }
        Ok(emptied)
    }

    fn insert_invoice(
        &mut self,
        intent: &Intent,
        generation: i64,
    ) -> Result<InvoiceKey, StoreError> {
        invoices::insert(&self.connection, intent, generation).map_err(from_sqlite)
    }

    fn load(&mut self, key: InvoiceKey) -> Result<Option<Stored>, StoreError> {
        if let Some(known) = self.known.get(key).cloned() {
            if cfg!(debug_assertions) {
                let read = invoices::load(&mut self.connection, key).map_err(from_sqlite)?;
                known::assert_stands(&known, read.as_ref());
            }
            return Ok(Some(known));
        }
        let read = invoices::load(&mut self.connection, key).map_err(from_sqlite)?;
        read.iter().cloned().for_each(|read| self.known.put(read));
        Ok(read)
    }

    fn owner_of(&mut self, id: &InvoiceId) -> Result<Option<InvoiceKey>, StoreError> {
        invoices::owner_of(&self.connection, id).map_err(from_sqlite)
    }

    fn standing_beside(
        &mut self,
        key: InvoiceKey,
        order_id: &str,
    ) -> Result<Option<(InvoiceKey, Outcome)>, StoreError> {
        invoices::standing_beside(&self.connection, key, order_id).map_err(from_sqlite)
    }

    fn rank(&mut self, key: InvoiceKey, order_id: &str, rank: Rank) -> Result<(), StoreError> {
        let others = invoices::rank(&self.connection, key, order_id, rank).map_err(from_sqlite)?;
        for other in others {
            self.known.forget(other);
        }
        self.known.forget(key);
        Ok(())
    }

    fn save(&mut self, stored: &Stored) -> Result<(), StoreError> {
        let before = self.known.get(stored.row.key);
        saving::save(&mut self.connection, before, stored).map_err(from_sqlite)?;
        self.known.put(stored.clone());
        Ok(())
    }

    fn standing_of_order(
        &mut self,
        order_id: &str,
        tries: [Option<&InvoiceRef>; 2],
    ) -> Result<Vec<Earlier>, StoreError> {
        read::standing_of_order(&self.connection, order_id, tries).map_err(from_sqlite)
    }

    fn recorded_claims(&mut self, key: InvoiceKey) -> Result<Vec<Claim>, StoreError> {
        invoices::recorded_claims(&self.connection, key).map_err(from_sqlite)
    }

    fn insert_event(&mut self, event: &NewEvent<'_>) -> Result<i64, StoreError> {
        let made = invoices::insert_event(&mut self.connection, event).map_err(from_sqlite)?;
        self.go_on(made)
    }

    fn has_event(&mut self, key: InvoiceKey, kind: EventKind) -> Result<bool, StoreError> {
        invoices::has_event(&self.connection, key, kind).map_err(from_sqlite)
    }

    fn insert_delivery(
        &mut self,
        seq: i64,
        invoice: InvoiceKey,
        hook: &str,
        next: Next,
    ) -> Result<DeliveryKey, StoreError> {
        deliveries::insert(&mut self.connection, seq, invoice, hook, next).map_err(from_sqlite)
    }

    fn newest_event(&mut self) -> Result<i64, StoreError> {
        facts::newest_event(&self.connection).map_err(from_sqlite)
    }

    fn missing(&mut self, choice: &Choice) -> Result<Vec<Missing>, StoreError> {
        let found = missing::missing(&self.connection, choice, ACT_AT_ONCE);
        found.map(|found| found.of).map_err(from_sqlite)
    }

    fn was_undated(&mut self, key: InvoiceKey, text: &str) -> Result<bool, StoreError> {
        invoices::was_undated(&self.connection, key, text).map_err(from_sqlite)
    }

    fn add_history(&mut self, line: &NewHistory<'_>) -> Result<(), StoreError> {
        invoices::add_history(&self.connection, line, &self.bounds).map_err(from_sqlite)
    }

    fn poll_state(&mut self, key: InvoiceKey) -> Result<PollState, StoreError> {
        let read = |statement: &mut Statement<'_>| invoices::poll_state(statement, key);
        let found = self.connection.often(Often::PollState, read);
        found.map_err(from_sqlite)
    }

    fn save_poll(&mut self, key: InvoiceKey, state: &PollState) -> Result<(), StoreError> {
        invoices::save_poll(&self.connection, key, state).map_err(from_sqlite)
    }

    fn claim(
        &mut self,
        claimant: &ProcessMark,
        ahead: RangeInclusive<i64>,
        lanes: &[Lane],
    ) -> Result<Vec<Claimed>, StoreError> {
        deliveries::claim(&self.connection, claimant, &ahead, lanes).map_err(from_sqlite)
    }

    fn name_child(&mut self, key: DeliveryKey, child: &ProcessMark) -> Result<bool, StoreError> {
        deliveries::name_child(&self.connection, key, child).map_err(from_sqlite)
    }

    fn give_back(&mut self, key: DeliveryKey) -> Result<bool, StoreError> {
        deliveries::give_back(&self.connection, key).map_err(from_sqlite)
    }

    fn mark_unsure(&mut self, after: i64) -> Result<(), StoreError> {
        facts::mark_unsure(&self.connection, after).map_err(from_sqlite)
    }

    fn replan(&mut self, now_ms: i64, forward_ms: i64) -> Result<usize, StoreError> {
        deliveries::replan(&self.connection, now_ms, forward_ms).map_err(from_sqlite)
    }

    fn finish(
        &mut self,
        key: DeliveryKey,
        record: &AttemptRecord,
        after: After,
    ) -> Result<bool, StoreError> {
        deliveries::finish(&self.connection, key, record, after).map_err(from_sqlite)
    }

    fn owe_abandonment(&mut self, key: DeliveryKey, at_ms: i64) -> Result<(), StoreError> {
        abandonment::owe(&self.connection, key, at_ms).map_err(from_sqlite)
    }

    fn act(&mut self, acting: &Acting) -> Result<usize, StoreError> {
        chosen::act(&self.connection, acting).map_err(from_sqlite)
    }

    fn add_refusals(&mut self, refusals: &[Refusal]) -> Result<(), StoreError> {
        refusals::add(&self.connection, refusals, &self.bounds).map_err(from_sqlite)
    }

    fn fact<T>(&mut self, fact: &Fact<T>) -> Result<Option<T>, StoreError> {
        facts::fact(&self.connection, fact).map_err(from_sqlite)
    }

    fn note(&mut self, note: &Note) -> Result<(), StoreError> {
        facts::note(&self.connection, note).map_err(from_sqlite)
    }

    fn with_status(
        &mut self,
        from: InvoiceKey,
        names: &[String],
        among: u32,
        most: u32,
    ) -> Result<(Vec<InvoiceKey>, Option<InvoiceKey>), StoreError> {
        heard::with_status(&self.connection, from, names, among, most).map_err(from_sqlite)
    }

    fn heard_claims(&mut self, key: InvoiceKey) -> Result<Vec<HeardClaim>, StoreError> {
        heard::claims(&self.connection, key).map_err(from_sqlite)
    }

    fn hold_unfinished(&mut self, why: &'static str) -> Result<usize, StoreError> {
        held::hold_unfinished(&self.connection, why).map_err(from_sqlite)
    }

    fn withdraw_held(&mut self, key: InvoiceKey) -> Result<Withdrawn, StoreError> {
        held::withdraw(&self.connection, key).map_err(from_sqlite)
    }
}
