//! Moves the log on a thread and a connection of its own, while the writer goes on. Can be stopped at any page: what is not
//! moved stays in the log.
//!
//! The thread stays from the first move to the last, since opening a connection is itself some work of the writer's.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::InterruptHandle;
use rusqlite::wal::CheckpointMode;

use super::super::open;
use crate::ledger::store::StoreError;

/// Pages in the log, and those of them that are in the file.
type Brought = rusqlite::Result<(i32, i32)>;

/// The thread.
pub(super) struct Aside {
    thread: JoinHandle<()>,
    /// Each is one move.
    moves: SyncSender<()>,
    brought: Receiver<Brought>,
    stop: InterruptHandle,
    under_way: bool,
}

impl std::fmt::Debug for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aside")
            .field("under_way", &self.under_way)
            .finish_non_exhaustive()
    }
}

impl Aside {
    pub(super) fn start(ledger: &Path, busy: Duration) -> Result<Self, StoreError> {
        let connection = open::reopen_writer(ledger, busy)?;
        let stop = connection.get_interrupt_handle();
        let (moves, wishes) = sync_channel(1);
        let (tell, brought) = sync_channel(1);
        let thread = Builder::new().name("ledger-log".into()).spawn(move || {
            while let Ok(()) = wishes.recv() {
                let moved = connection.wal_checkpoint_v2(Some("main"), CheckpointMode::PASSIVE);
                if tell.send(moved).is_err() {
                    return;
                }
            }
        });
        let thread = thread.map_err(|error| StoreError::Io(Box::new(error)))?;
        Ok(Self {
            thread,
            moves,
            brought,
            stop,
            under_way: false,
        })
    }

    /// Begins a move, if none is under way. False when the thread is gone.
    pub(super) fn begin(&mut self) -> bool {
        self.under_way = self.under_way || self.moves.try_send(()).is_ok();
        self.under_way
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way
    }

    /// What the move brought, when it has ended; `wait`: or when it ends. A thread that is gone brings an error.
    pub(super) fn ended(&mut self, wait: bool) -> Option<Brought> {
        let gone = || Err(rusqlite::Error::InvalidQuery);
        let brought = match self.brought.try_recv() {
            Ok(brought) => brought,
            Err(TryRecvError::Empty) if wait => self.brought.recv().unwrap_or_else(|_| gone()),
            Err(TryRecvError::Empty) => return None,
            Err(TryRecvError::Disconnected) => gone(),
        };
        self.under_way = false;
        Some(brought)
    }

    /// Ends the thread, and a move that is under way early.
    pub(super) fn stop(self) {
        self.stop.interrupt();
        drop((self.moves, self.brought));
        if self.thread.join().is_err() {
            tracing::debug!("the thread that moves the ledger's log ended by a panic");
        }
    }
}
