//! The writing connection beside its transactions: the lock, the place it lies at, the mark beside it, and how it is opened
//! anew.

use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Statement;

use super::failure::from_sqlite;
use super::often::{Often, Statements};
use super::{SqliteStore, facts, hooked, open};
use crate::ledger::files::Watch;
use crate::ledger::health::Health;
use crate::ledger::mark::{Keeper, Mark};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::starts;
use crate::ledger::store::StoreError;

/// Between two tries for the write lock. SQLite's own waiting grows to 100 ms between tries, and then misses every gap a
/// program leaves that writes without a pause (A23).
const LOCK_PAUSE: Duration = Duration::from_millis(1);

impl<C: Statements> SqliteStore<C> {
    /// What SQLite says of how durable its commits are: 2 is FULL.
    pub(in crate::ledger) fn synchronous(&self) -> Result<i64, StoreError> {
        open::synchronous(&self.connection).map_err(from_sqlite)
    }

    /// How the writer fares, for others.
    pub(in crate::ledger) fn health(&self) -> Health {
        self.mover.health()
    }

    /// Watches the files, for readers.
    pub(in crate::ledger) fn watch(&self) -> Watch {
        self.guard.watch.clone()
    }

    /// Has the mark kept from now on.
    pub(in crate::ledger) fn keep_mark(&mut self, keeper: Keeper) {
        self.guard.at = self.position().ok();
        self.keeper = Some(keeper);
    }

    /// How far the ledger is: what other connections have committed counts too.
    pub(in crate::ledger) fn position(&self) -> Result<Mark, StoreError> {
        facts::position(&self.connection).map_err(from_sqlite)
    }

    /// The same, with its files.
    pub(in crate::ledger) fn lying(&self) -> Result<Mark, StoreError> {
        let files = self.guard.watch.lying(&self.path);
        Ok(Mark {
            files,
            ..self.position()?
        })
    }

    /// Writes the mark when it is due. Gives when it is due next.
    pub(super) fn mark(&mut self, last: bool) -> Option<Instant> {
        let at = self.keeper.as_ref()?.due(last)?;
        if at > Instant::now() {
            return Some(at);
        }
        let now = self.lying();
        // After an accident it may say less than was committed, or nothing at all.
        let now = if self.guard.over {
            self.guard
                .furthest(now.as_ref().ok())
                .ok_or(StoreError::Busy)
        } else {
            now
        };
        let keeper = self.keeper.as_mut()?;
        match now {
            Ok(now) => {
                keeper.keep(&now, last);
                starts::remember(&now);
                self.guard.at = Some(now);
            }
            Err(error) => {
                keeper.put_off();
                tracing::debug!(reason = %error, "the ledger could not be asked how far it is");
            }
        }
        keeper.due(false)
    }

    pub(super) fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.connection
            .planned(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(drop)
            .map_err(from_sqlite)
    }

    pub(super) fn often(&mut self, which: Often) -> Result<(), StoreError> {
        let done = self
            .connection
            .often(which, |statement| statement.execute([]));
        done.map(drop).map_err(from_sqlite)
    }

    /// SQLite's number for what others have committed. It changes with the commits of all connections but this one, and costs
    /// a look at the log's index: no page is read.
    pub(super) fn version(&mut self) -> Option<i64> {
        let read = |statement: &mut Statement<'_>| statement.query_row([], |row| row.get(0));
        self.connection.often(Often::Version, read).ok()
    }

    /// Takes the write lock, with a try every [`LOCK_PAUSE`] within the busy budget.
    pub(super) fn take_lock(&mut self) -> Result<(), StoreError> {
        let began = Instant::now();
        loop {
            match self.often(Often::Begin) {
                Err(StoreError::Busy) if began.elapsed() < self.busy => thread::sleep(LOCK_PAUSE),
                ended => return ended,
            }
        }
    }

    /// Opens the file anew; until that has come about nothing is stored.
    pub(super) fn reopen(&mut self) -> Result<(), StoreError> {
        self.distrusted = true;
        self.known.clear();
        // Else another ledger would be opened in its place.
        self.guard.watch.look().map_err(StoreError::Moved)?;
        let connection = open::reopen_writer(&self.path, self.busy)?;
        self.connection = hooked(&mut self.mover, connection).map_err(from_sqlite)?;
        self.distrusted = false;
        Ok(())
    }

    /// How long SQLite itself waits inside a statement.
    pub(super) fn set_busy(&self, busy: Duration) -> Result<(), StoreError> {
        self.connection.busy_timeout(busy).map_err(from_sqlite)
    }
}
