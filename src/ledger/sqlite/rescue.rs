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
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::facts::position;
use super::failure::from_sqlite;
use super::often::Statements;
use super::schema::APPLICATION_ID;
use super::{SqliteStore, backup, check, open};
use crate::clock::wall_ms;
use crate::ledger::error::OpenError;
use crate::ledger::files::{
    Alone, How, Look, Moved, Part, Progress, Rescue, Stamp, Watch, log_identity, rescue,
};
use crate::ledger::mark::Mark;
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

/// The database has another content than was written.
const OVERWRITTEN: Moved = Moved {
    part: Part::Database,
    how: How::Overwritten,
};

/// What is known of the files of an open ledger.
pub(super) struct Guard {
    pub(super) watch: Watch,
    /// It is over with them: nothing more is moved.
    pub(super) over: bool,
    /// An accident that was found behind the answers: the next commit fails by it.
    found: Option<Moved>,
    /// The WAL when its pages were looked at last.
    log: Option<Stamp>,
    /// How far the ledger was when it could be asked last.
    pub(super) at: Option<Mark>,
    /// The newest event that was committed, and the newest of this transaction.
    newest: i64,
    made: i64,
}

impl Guard {
    /// Of a ledger that was opened.
    pub(super) fn new(connection: &Connection, path: &Path) -> Result<Self, OpenError> {
        let progress = progress(connection, path).unwrap_or_default();
        let watch = Watch::new(path, progress, alone(path));
        Ok(Self {
            watch: watch.map_err(|moved| OpenError::File {
                path: path.to_owned(),
                source: StoreError::Moved(moved),
            })?,
            over: false,
            found: None,
            log: None,
            at: None,
            newest: 0,
            made: 0,
        })
    }

    /// A transaction begins, or goes back.
    pub(super) const fn begin(&mut self) {
        self.made = 0;
    }

    /// How far it was committed, whatever it says now.
    pub(super) fn furthest(&self, now: Option<&Mark>) -> Option<Mark> {
        let at = self.at.as_ref()?;
        let now = now.filter(|now| now.ledger == at.ledger);
        Some(Mark {
            event: at
                .event
                .max(self.newest)
                .max(now.map_or(0, |now| now.event)),
            step: at.step.max(now.map_or(0, |now| now.step)),
            files: None,
            ..at.clone()
        })
    }

    /// It is durable.
    pub(super) fn commit(&mut self) {
        self.newest = self.newest.max(self.made);
    }
}

impl<C: Statements> SqliteStore<C> {
    /// Looks whether each of the files is the one that was opened: three looks by path.
    pub(super) fn look_at_files(&self) -> Result<(Stamp, Stamp), StoreError> {
        let found = self.guard.found.map_or(Ok(()), Err);
        let looked = found.and_then(|()| self.guard.watch.look());
        looked.map_err(StoreError::Moved)
    }

    /// The same before a commit, which would lengthen a WAL that was cut, so that only its pages tell.
    pub(super) fn look_before_commit(&self) -> Result<(), StoreError> {
        let (_, log) = self.look_at_files()?;
        if log.extent().0 < self.mover.log_bytes() {
            self.look_at_pages()?;
        }
        Ok(())
    }

    /// Looks at each page of the WAL that is not in the database.
    fn look_at_pages(&self) -> Result<(), StoreError> {
        match self.mover.look() {
            Look::Wrong(part) => Err(overwritten(part)),
            Look::Sound | Look::Unsure => Ok(()),
        }
    }

    /// Looks before the WAL is moved: a database that another hand wrote to would be a mix afterwards, and look sound.
    pub(super) fn is_moved(&mut self) -> bool {
        let looked = self.look_at_files().and_then(|(stamp, _)| {
            if self.guard.watch.differs(stamp) {
                self.look_into_files()
            } else {
                Ok(())
            }
        });
        if let Err(StoreError::Moved(moved)) = looked {
            self.guard.found = Some(moved);
        }
        self.guard.found.is_some()
    }

    /// Looks at their content too, between two transactions.
    pub(super) fn look_into_files(&mut self) -> Result<(), StoreError> {
        let (stamp, log) = self.look_at_files()?;
        if self.guard.log.is_none_or(|before| before != log) {
            self.look_at_pages()?;
            self.guard.log = Some(log);
        }
        let bytes = log.extent().0;
        let progress = match asked(&self.connection, &self.path) {
            Ok(progress) => progress,
            // With WAL and locks SQLite never meets a database between two moments.
            Err(error) if is_damage(&error) => return Err(overwritten(Part::Database)),
            Err(_) => return Ok(()),
        };
        let needed = LOG_HEAD + progress.frames * FRAME_BYTES;
        if progress.frames > 0 && bytes < needed {
            // Another program may have begun it anew since.
            let again = self
                .progress()
                .is_some_and(|now| now.frames >= progress.frames);
            let looked = self.guard.watch.look();
            let bytes = looked.map_or(bytes, |(_, log)| log.extent().0);
            if again && bytes < needed {
                return Err(overwritten(Part::Log));
            }
        }
        if self.guard.watch.is_moving() {
            return Ok(());
        }
        if !self.guard.watch.is_to_be_read(stamp) {
            self.guard.watch.note(progress);
        } else if !self.reads() {
            return Err(overwritten(Part::Database));
        }
        Ok(())
    }

    fn progress(&self) -> Option<Progress> {
        progress(&self.connection, &self.path)
    }

    /// Reads the database alone. False when another hand wrote there. A second look tells that from another program's
    /// checkpoint that goes on.
    fn reads(&self) -> bool {
        let read = || {
            let Some((progress, (stamp, _))) = self.progress().zip(self.guard.watch.look().ok())
            else {
                return true;
            };
            let is_cut = self.guard.watch.is_cut(stamp, progress.is_whole());
            let sound = self.guard.watch.accept(stamp, progress, &alone(&self.path));
            sound && !(is_cut && self.is_damaged())
        };
        read() || {
            thread::sleep(AGAIN_AFTER);
            read()
        }
    }

    /// What the mover wrote to the database is our own, unless some of the database was cut off meanwhile. `last`: nobody
    /// looks again.
    pub(super) fn note_moves(&mut self, last: bool) {
        let moving = self.mover.is_moving();
        if moving != self.guard.watch.is_moving() {
            self.guard.watch.moving(moving);
        }
        if !moving
            && let Some(whole) = self.mover.take_moved()
            && let Some(progress) = self.progress()
            && let Ok((stamp, _)) = self.guard.watch.look()
        {
            let is_cut = self.guard.watch.is_cut(stamp, whole) && self.is_damaged();
            self.guard.found = is_cut.then_some(OVERWRITTEN).or(self.guard.found);
            let least = self.guard.furthest(None);
            self.guard.watch.accept_own(stamp, progress, (whole, least));
        }
        let how = How::Overwritten;
        let wrong = self.mover.wrong().map(|part| Moved { part, how });
        self.guard.found = self.guard.found.or(wrong);
        if last && let Some(moved) = self.guard.found {
            tracing::error!(reason = %moved, "the ledger's files are not what was opened: {moved}");
            self.rescue(moved);
        }
    }

    /// True when the ledger on the disk is damaged. A file can lie in less room than it is long on some file systems, and one
    /// that another program rebuilt is shorter.
    fn is_damaged(&self) -> bool {
        match check::damaged_pages(&self.path) {
            Ok(findings) => !findings.is_empty(),
            Err(error) => matches!(error, OpenError::Foreign { .. }),
        }
    }

    /// An event that has a number which was committed before: the WAL or its index went back.
    pub(super) fn go_on(&mut self, made: i64) -> Result<i64, StoreError> {
        if made <= self.guard.newest {
            return Err(overwritten(Part::Index));
        }
        self.guard.made = made;
        Ok(made)
    }

    /// Does with the open WAL what the accident asks for. Whatever comes of it, nothing more is stored.
    pub(super) fn rescue(&mut self, moved: Moved) {
        self.guard.over = true;
        if let Some(keeper) = &mut self.keeper {
            keeper.touch();
        }
        self.guard.watch.lose();
        self.mover.stop();
        // The last connection to be closed would move the WAL, into whatever the database is now.
        let left = self
            .connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let Err(error) = left {
            tracing::debug!(reason = %error, "SQLite did not take an option");
        }
        let (database, log) = self.guard.watch.places();
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
            Rescue::MoveAndKeep => match (self.move_log(), self.guard.watch.elsewhere()) {
                (true, Some(place)) => tracing::warn!(
                    path = %place.display(),
                    "what was acknowledged is in `{0}`; hint: `tilld db restore {0}` puts it back",
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

/// What the WAL's index says. `None` where it cannot be asked.
pub(super) fn progress(connection: &Connection, ledger: &Path) -> Option<Progress> {
    asked(connection, ledger).ok()
}

fn asked(connection: &Connection, ledger: &Path) -> rusqlite::Result<Progress> {
    let (frames, moved) = connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| {
        Ok((row.get(1)?, row.get(2)?))
    })?;
    let log = log_identity(ledger);
    Ok(Progress { log, frames, moved })
}

fn is_damage(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// Reads the database without its WAL.
pub(in crate::ledger) fn alone(path: &Path) -> Alone {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let read = Connection::open_with_flags(open::unchanging(path), flags).and_then(|connection| {
        let id: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        if id != APPLICATION_ID || backup::is_new(&connection) {
            return Ok(Alone::Foreign);
        }
        position(&connection).map(Alone::At)
    });
    read.unwrap_or_else(|error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => Alone::Foreign,
        Some(ErrorCode::DatabaseCorrupt) => Alone::Torn,
        _ => Alone::Unknown,
    })
}

fn overwritten(part: Part) -> StoreError {
    let how = How::Overwritten;
    StoreError::Moved(Moved { part, how })
}

#[cfg(test)]
mod tests {
    use super::super::{Bounds, Checkpoint, LogLimits};
    use super::*;
    use crate::ledger::store::Store as _;

    const BUSY: Duration = Duration::from_secs(1);
    const BOUNDS: Bounds = Bounds {
        history_per_invoice: 10,
        history_rows: 10,
        refusal_rows: 10,
    };

    /// A ledger whose database has some pages, and whose WAL has enough to be moved.
    fn ledger(directory: &Path) -> SqliteStore {
        let path = directory.join("ledger.db");
        let limits = (Checkpoint::AfterAnswers, LogLimits::WIDE);
        let mut store = SqliteStore::open(path, BUSY, BOUNDS, limits).expect("made");
        store
            .execute("CREATE TABLE notes (note BLOB)")
            .expect("room");
        let notes = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2200) \
          INSERT INTO notes SELECT randomblob(3000) FROM n";
        store.execute(notes).expect("written");
        store.tidy(false);
        assert_eq!(store.guard.found, None);
        store.stands().expect("nothing happened");
        let most = "UPDATE notes SET note = randomblob(3000) WHERE rowid % 3 <> 0";
        store.execute(most).expect("written");
        store
    }

    /// SQLite gives it its length again, with holes, unless too much is missing.
    #[test]
    fn a_database_that_is_cut_while_the_log_is_moved_is_found() {
        for quarters in [0, 1, 2, 3, 4] {
            let directory = tempfile::tempdir().expect("a directory");
            let mut store = ledger(directory.path());
            let file = fs::OpenOptions::new().write(true).open(&store.path);
            let file = file.expect("opened");
            let bytes = file.metadata().expect("there").len();
            // Behind the look that every move begins with.
            file.set_len(bytes / 4 * quarters).expect("cut");
            store.mover.tidy(&store.connection, false);
            let is_long_again = file.metadata().expect("there").len() >= bytes;
            assert_eq!(is_long_again, quarters > 1, "{quarters}");
            store.note_moves(false);
            let found = (quarters < 4).then_some(OVERWRITTEN);
            assert_eq!(store.guard.found, found, "{quarters}");
            assert_eq!(store.stands().is_err(), quarters < 4);
        }
    }
}
