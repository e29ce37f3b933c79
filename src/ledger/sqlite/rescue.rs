//! The writer's files: whether they are still what was opened, and what becomes of the WAL that is open when they are not.
//! Relies on `ledger/files` for the decisions, and on SQLite to read and write what is open whatever its name is now.
//! Promises that after an accident was found nothing is committed, and nothing that another process may write is touched.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};

use super::failure::from_sqlite;
use super::often::Statements;
use super::{SqliteStore, open};
use crate::clock::wall_ms;
use crate::ledger::files::{How, Moved, Part, Rescue, Stamp, rescue};
use crate::ledger::store::StoreError;

/// The head of a WAL, and the head of each page in it, bytes.
const LOG_HEAD: i64 = 32;
const FRAME_BYTES: i64 = 4_096 + 24;
/// A database that looks wrong is looked at again after this: another program's checkpoint may have been writing.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// How long passing reads are waited for when the WAL is moved for the last time.
const LAST_FOR: Duration = Duration::from_secs(2);
/// As the ledger.
const FILE_MODE: u32 = 0o640;

impl<C: Statements> SqliteStore<C> {
    /// Looks whether the files are what was opened: three looks by path, and one into the database when another hand wrote
    /// there. `own`: also when this process did, which no commit waits for.
    pub(super) fn look_at_files(&mut self, own: bool) -> Result<(), StoreError> {
        let (stamp, log) = self.watch.look().map_err(StoreError::Moved)?;
        if self.watch.is_moving() {
            return Ok(());
        }
        if log < self.mover.log_bytes(LOG_HEAD, FRAME_BYTES)
            && self.connection.is_autocommit()
            && self.is_log_cut()
        {
            return Err(overwritten(Part::Log));
        }
        if self.watch.is_to_be_read(stamp, own) && !self.reads(stamp) {
            return Err(overwritten(Part::Database));
        }
        Ok(())
    }

    /// Reads the database alone. False when another hand wrote there.
    fn reads(&self, stamp: Stamp) -> bool {
        if self.watch.accept(stamp, &open::alone(&self.path)) {
            return true;
        }
        thread::sleep(AGAIN_AFTER);
        let stamp = self.watch.look().map_or(stamp, |(stamp, _)| stamp);
        self.watch.accept(stamp, &open::alone(&self.path))
    }

    /// True when the WAL is shorter than its index says. Another program may have moved it and begun it anew, which its
    /// index says too.
    fn is_log_cut(&self) -> bool {
        let frames = |row: &rusqlite::Row<'_>| row.get::<_, i64>(1);
        let asked = self
            .connection
            .query_row("PRAGMA wal_checkpoint(NOOP)", [], frames);
        let Ok(frames) = asked else {
            return false;
        };
        let log = self.watch.look().map_or(0, |(_, log)| log);
        frames > 0 && log < LOG_HEAD + frames * FRAME_BYTES
    }

    /// What the mover wrote to the database is our own.
    pub(super) fn note_moves(&mut self) {
        let moving = self.mover.is_moving();
        if moving != self.watch.is_moving() {
            self.watch.moving(moving);
        }
        if self.mover.take_moved()
            && !moving
            && let Ok((stamp, _)) = self.watch.look()
        {
            self.watch.accept_own(stamp);
        }
    }

    /// An event that has a number which was committed before: the WAL or its index went back.
    pub(super) fn go_on(&mut self, made: i64) -> Result<i64, StoreError> {
        if made <= self.newest {
            return Err(overwritten(Part::Index));
        }
        self.made = made;
        Ok(made)
    }

    /// Does with the open WAL what the accident asks for. Whatever comes of it, nothing more is stored.
    pub(super) fn rescue(&mut self, moved: Moved) {
        self.over = true;
        self.watch.lose();
        self.mover.stop();
        // The last connection to be closed would move the WAL, into whatever the database is now.
        let left = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let Err(error) = left {
            tracing::debug!(reason = %error, "SQLite did not take an option");
        }
        let (database, log) = self.watch.places();
        let overwritten = moved.how == How::Overwritten;
        match rescue(database, overwritten, log) {
            Rescue::Leave => {}
            Rescue::Move => {
                if self.move_log() {
                    tracing::info!("the ledger's log is moved into `{}`", self.path.display());
                } else {
                    self.keep();
                }
            }
            Rescue::MoveAndKeep => match (self.move_log(), self.watch.elsewhere()) {
                (true, Some(place)) => tracing::warn!(
                    path = %place.display(),
                    "what was acknowledged is in `{}`; hint: `tilld db restore` puts it back",
                    place.display()
                ),
                (_, _) => self.keep(),
            },
            Rescue::Keep => self.keep(),
        }
    }

    /// True when all of the WAL is in the open database.
    fn move_log(&self) -> bool {
        let moved = self.connection.busy_timeout(LAST_FOR).and_then(|()| {
            self.connection
                .wal_checkpoint_v2(Some("main"), CheckpointMode::TRUNCATE)
        });
        moved
            .inspect_err(
                |error| tracing::error!(reason = %error, "the ledger's log could not be moved"),
            )
            .is_ok()
    }

    /// Copies what is open to a file of its own beside the ledger.
    fn keep(&self) {
        match self.copy() {
            Ok(kept) => tracing::warn!(
                path = %kept.display(),
                "what was acknowledged is kept in `{0}`; hint: `tilld db restore {0}` puts it back",
                kept.display()
            ),
            Err(error) => {
                let reason = crate::telemetry::chain(&error);
                tracing::error!(
                    %reason,
                    "what was acknowledged could not be kept: {reason}; hint: put the newest backup back with `tilld db restore`"
                );
            }
        }
    }

    fn copy(&self) -> Result<PathBuf, StoreError> {
        let io = |error: std::io::Error| StoreError::Io(Box::new(error));
        let kept = self.path.with_extension(format!("db.kept-{}", wall_ms()));
        let draft = kept.with_added_extension("new");
        fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&draft)
            .map_err(io)?;
        self.fill(&draft).map_err(from_sqlite)?;
        fs::rename(&draft, &kept).map_err(io)?;
        let directory = kept.parent().unwrap_or(Path::new("."));
        let synced = fs::File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(io)?;
        Ok(kept)
    }

    fn fill(&self, draft: &Path) -> rusqlite::Result<()> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut copy = Connection::open_with_flags(draft, flags)?;
        let backup = Backup::new(&self.connection, &mut copy)?;
        if backup.step(-1)? != StepResult::Done {
            let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
            return Err(rusqlite::Error::SqliteFailure(busy, None));
        }
        drop(backup);
        let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
        copy.pragma_update_and_check(None, "journal_mode", "DELETE", mode)?;
        copy.close().map_err(|(_, error)| error)
    }
}

fn overwritten(part: Part) -> StoreError {
    let how = How::Overwritten;
    StoreError::Moved(Moved { part, how })
}
