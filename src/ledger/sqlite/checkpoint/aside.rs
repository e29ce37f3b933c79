//! Moves a long log on a thread and a connection of its own, while the writer goes on. Can be stopped at any page: what
//! is not moved stays in the log.

use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::InterruptHandle;
use rusqlite::wal::CheckpointMode;

use super::super::open;
use super::looked::{Tries, look_and_move};
use crate::ledger::files::Log;
use crate::ledger::store::StoreError;

/// A move that is under way.
pub(super) struct Aside {
    thread: JoinHandle<Tries>,
    stop: InterruptHandle,
}

impl std::fmt::Debug for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aside").finish_non_exhaustive()
    }
}

impl Aside {
    pub(super) fn start(ledger: &Path, log: &Log, busy: Duration) -> Result<Self, StoreError> {
        let connection = open::reopen_writer(ledger, busy)?;
        let stop = connection.get_interrupt_handle();
        let log = log.clone();
        let thread = Builder::new()
            .name("ledger-log".into())
            .spawn(move || look_and_move(&connection, &log, CheckpointMode::PASSIVE));
        let thread = thread.map_err(|error| StoreError::Io(Box::new(error)))?;
        Ok(Self { thread, stop })
    }

    pub(super) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Pages in the log, and those of them that are in the file. Waits for the end.
    pub(super) fn join(self) -> Tries {
        let panicked = |_| Ok(Err(rusqlite::Error::InvalidQuery));
        self.thread.join().unwrap_or_else(panicked)
    }

    /// Ends it early.
    pub(super) fn stop(self) {
        self.stop.interrupt();
        if let Ok(Err(error)) = self.join() {
            tracing::debug!(reason = %error, "the ledger's log is left as it is");
        }
    }
}
