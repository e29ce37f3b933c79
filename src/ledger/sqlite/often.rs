//! The statements of a notification, prepared once and held beside their connection. rusqlite's own cache looks a statement
//! up by its whole text each time and copies that, which takes a third of what running it does.
//!
//! A store that has not reached the thread it works in has [`Passing`]: a held statement never leaves its thread.

use std::ops::Deref;

use rusqlite::{Connection, PrepFlags, Statement};

use super::{columns, deliveries, due, invoices, saving};
use crate::ledger::sqlite::planned::Planned as _;

/// A statement that is held.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) enum Often {
    /// Takes the write lock.
    Begin,
    /// Makes it all durable.
    Commit,
    /// What others have committed.
    Version,
    /// [`columns::BY_KEY`].
    Load,
    /// [`saving::SAVE_OFTEN`].
    Save,
    /// [`invoices::INSERT_EVENT`].
    InsertEvent,
    /// [`deliveries::INSERT_WAITING`].
    InsertDelivery,
    /// [`due::POLL_STATE`].
    PollState,
}

impl Often {
    /// How many there are.
    const COUNT: usize = 8;

    const fn sql(self) -> &'static str {
        match self {
            Self::Begin => "BEGIN IMMEDIATE",
            Self::Commit => "COMMIT",
            Self::Version => "PRAGMA data_version",
            Self::Load => columns::BY_KEY,
            Self::Save => saving::SAVE_OFTEN,
            Self::InsertEvent => invoices::INSERT_EVENT,
            Self::InsertDelivery => deliveries::INSERT_WAITING,
            Self::PollState => due::POLL_STATE,
        }
    }
}

/// A connection with a way to such statements.
pub(in crate::ledger) trait Statements: Deref<Target = Connection> {
    /// Around another connection.
    fn around(connection: Connection) -> Self;

    /// Uses a statement. Whatever it was bound to before is still bound.
    fn often<T>(
        &mut self,
        which: Often,
        act: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T>;
}

/// A connection that may still go to another thread.
pub(in crate::ledger) struct Passing(Box<Connection>);

impl Passing {
    pub(super) fn stay(self) -> Held {
        Held::around(*self.0)
    }
}

impl Deref for Passing {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Statements for Passing {
    fn around(connection: Connection) -> Self {
        Self(Box::new(connection))
    }

    fn often<T>(
        &mut self,
        which: Often,
        act: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        act(&mut *self.0.planned(which.sql())?)
    }
}

/// Each is prepared when it is used first.
type Prepared<'c> = [Option<Statement<'c>>; Often::COUNT];

self_cell::self_cell!(
    /// A connection with its statements, in the thread it works in.
    struct Cell {
        owner: Connection,
        #[not_covariant]
        dependent: Prepared,
    }
);

/// A connection that stays in its thread.
pub(in crate::ledger) struct Held(Cell);

impl Deref for Held {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.borrow_owner()
    }
}

impl Statements for Held {
    fn around(connection: Connection) -> Self {
        Self(Cell::new(connection, |_connection| Prepared::default()))
    }

    fn often<T>(
        &mut self,
        which: Often,
        act: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.0.with_dependent_mut(|connection, prepared| {
            let held = prepared
                .get_mut(which as usize)
                .expect("as many places as statements");
            let statement = match held {
                Some(statement) => statement,
                None => held.insert({
                    super::planned::judge(which.sql());
                    connection
                        .prepare_with_flags(which.sql(), PrepFlags::SQLITE_PREPARE_PERSISTENT)?
                }),
            };
            act(statement)
        })
    }
}
