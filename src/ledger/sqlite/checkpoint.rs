//! Moves the log into the file, behind the answers of a commit, so that no acknowledgement waits for it.
//!
//! Relies on being the writer's connection's only hook on its log.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::Connection;
use rusqlite::wal::CheckpointMode;

/// Pages in the log beyond which it is moved into the file: SQLite's own default.
const PAGES: i32 = 1_000;
/// A reader that stands in the way makes the next try wait for this many more pages, doubling up to the largest.
const BACK_OFF_MOST: i32 = 64_000;

/// When the log is moved into the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checkpoint {
    /// Behind the answers of a commit.
    AfterAnswers,
    /// Within the commit that makes it long.
    InCommit,
}

/// Moves the log of one connection.
#[derive(Debug)]
pub(super) struct Mover {
    when: Checkpoint,
    /// Pages in the log after the last commit, set by SQLite's hook.
    pages: Arc<AtomicI32>,
    /// Pages from which the next checkpoint is tried.
    next_at: i32,
}

impl Mover {
    pub(super) fn new(when: Checkpoint) -> Self {
        Self {
            when,
            pages: Arc::new(AtomicI32::new(0)),
            next_at: PAGES,
        }
    }

    /// Called once for each connection.
    pub(super) fn hook(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        if self.when == Checkpoint::InCommit {
            return connection.pragma_update(None, "wal_autocheckpoint", PAGES);
        }
        let pages = Arc::clone(&self.pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, now| {
            pages.store(now, Ordering::Relaxed);
            Ok(())
        }))
    }

    /// Moves the log into the file once it is long.
    pub(super) fn tidy(&mut self, connection: &Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.next_at {
            return;
        }
        match connection.wal_checkpoint_v2(Some("main"), CheckpointMode::PASSIVE) {
            Ok((log, moved)) if moved >= log => {
                self.pages.store(0, Ordering::Relaxed);
                self.next_at = PAGES;
            }
            // A reader stands in the way: trying after each batch would only burn time.
            Ok(_) => {
                self.next_at = pages.saturating_mul(2).clamp(PAGES, pages + BACK_OFF_MOST);
            }
            Err(error) => {
                tracing::warn!(reason = %error, "the ledger's log could not be moved into its file");
                self.next_at = pages.saturating_add(PAGES);
            }
        }
    }
}
