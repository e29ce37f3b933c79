//! Copies a ledger while others write it: all pages in one step, within one read transaction, so the copy is one moment of
//! the ledger and no write makes it begin anew. `VACUUM INTO` would do the same and build every index again, which holds
//! the log back for longer; the log cannot be emptied while the copy is read, and grows by what is written meanwhile.
//! The copy is stamped, has no log beside it, and is looked over with a connection of its own.

use std::fmt::Debug;
use std::path::Path;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::check;
use super::facts::{fact, note};
use super::failure::from_sqlite;
use super::schema::{APPLICATION_ID, STEPS};
use super::{open, rescue};
use crate::fault;
use crate::ledger::backup::{BackupError, Counts, Stamp};
use crate::ledger::fact::BACKUP;

/// All pages at once.
const ALL_PAGES: i32 = -1;
/// What is counted here and there.
const COUNT: &str = "SELECT (SELECT coalesce(max(seq), 0) FROM event), (SELECT count(*) FROM event), \
  (SELECT count(*) FROM invoice), (SELECT count(*) FROM delivery), (SELECT count(*) FROM attempt)";

/// Copies the ledger into an empty file.
pub(in crate::ledger) fn copy(
    ledger: &Path,
    draft: &Path,
    stamp: Stamp,
    busy: std::time::Duration,
) -> Result<Counts, BackupError> {
    let source = open::open_reader(ledger, busy)?;
    let write = |error| BackupError::Write {
        path: draft.to_owned(),
        source: from_sqlite(error),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut copy = Connection::open_with_flags(draft, flags).map_err(write)?;
    let counts = copy_pages(&source, &mut copy).map_err(write)?;
    drop(source);
    mark_copy(&copy, stamp).map_err(write)?;
    copy.close().map_err(|(_, error)| write(error))?;
    Ok(counts)
}

fn copy_pages(source: &Connection, copy: &mut Connection) -> rusqlite::Result<Counts> {
    // Ended by its drop: it only holds the moment, for the counts and the pages alike.
    let moment = source.unchecked_transaction()?;
    let counts = count(source)?;
    fault::point("backup");
    let backup = Backup::new(source, copy)?;
    if backup.step(ALL_PAGES)? != StepResult::Done {
        // Another connection holds one of the two files: nobody has the copy, and a reader of a log is never refused.
        let busy = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY);
        return Err(rusqlite::Error::SqliteFailure(busy, None));
    }
    drop(backup);
    drop(moment);
    Ok(counts)
}

/// Makes one file of it that knows what it is.
fn mark_copy(copy: &Connection, stamp: Stamp) -> rusqlite::Result<()> {
    let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", mode)?;
    note(copy, &BACKUP.note(&Some(stamp)))
}

/// True of a backup that nobody has opened for writing yet: a log beside it belongs to another file. What cannot be read
/// says nothing.
pub(super) fn is_new(connection: &Connection) -> bool {
    let stamp = fact(connection, &BACKUP).ok().flatten().flatten();
    stamp.is_some_and(|stamp| !stamp.in_use)
}

/// Gives the file a log, if it has none. That it has one is written into the file itself first, since all that follows
/// stands in the log for a while. Returns the mode it has then.
pub(super) fn take_into_use(connection: &Connection) -> rusqlite::Result<String> {
    let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
    let found = connection.pragma_query_value(None, "journal_mode", mode)?;
    if found == "wal" {
        return Ok(found);
    }
    if let Some(Some(stamp)) = fact(connection, &BACKUP)? {
        let in_use = true;
        note(connection, &BACKUP.note(&Some(Stamp { in_use, ..stamp })))?;
    }
    connection.pragma_update_and_check(None, "journal_mode", "WAL", mode)
}

pub(super) fn count(connection: &Connection) -> rusqlite::Result<Counts> {
    connection.query_row(COUNT, [], |row| {
        Ok(Counts {
            last_event: row.get(0)?,
            events: row.get(1)?,
            invoices: row.get(2)?,
            deliveries: row.get(3)?,
            attempts: row.get(4)?,
        })
    })
}

/// Looks a finished copy over: every page and reference, its marks, its stamp, and that it holds what was counted.
pub(in crate::ledger) fn verify(
    draft: &Path,
    counts: &Counts,
    stamp: Stamp,
) -> Result<(), BackupError> {
    let unsound = |what: String| BackupError::Unsound { what };
    let read = |error| BackupError::Write {
        path: draft.to_owned(),
        source: from_sqlite(error),
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copy = Connection::open_with_flags(draft, flags).map_err(read)?;
    let integrity: String = copy
        .pragma_query_value(None, "integrity_check", |row| row.get(0))
        .map_err(read)?;
    if integrity != "ok" {
        return Err(unsound(integrity));
    }
    if let Some(wrong) = check::wrong_types(&copy).map_err(read)?.pop() {
        return Err(unsound(wrong));
    }
    let mut dangling = 0_u64;
    copy.pragma_query(None, "foreign_key_check", |_| {
        dangling += 1;
        Ok(())
    })
    .map_err(read)?;
    same("rows that refer to nothing", &dangling, &0).map_err(unsound)?;
    let number = |name: &str| -> Result<i64, BackupError> {
        copy.pragma_query_value(None, name, |row| row.get(0))
            .map_err(read)
    };
    same(
        "the application id",
        &number("application_id")?,
        &APPLICATION_ID,
    )
    .map_err(unsound)?;
    let newest = i64::try_from(STEPS.len()).unwrap_or_default();
    same("the schema", &number("user_version")?, &newest).map_err(unsound)?;
    let found = fact(&copy, &BACKUP).map_err(read)?;
    same("the stamp", &found, &Some(Some(stamp))).map_err(unsound)?;
    same("the counts", &count(&copy).map_err(read)?, counts).map_err(unsound)
}

fn same<T: Debug + PartialEq>(what: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} instead of {wanted:?}"))
    }
}
/// How many pages of the WAL are not in the ledger's file: a copy of the file alone lacks them. `None` where that cannot be read.
pub(in crate::ledger) fn unmoved_pages(path: &Path) -> Option<i64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).ok()?;
    // The index is opened by the first read.
    let read = connection.query_row("SELECT 1 FROM meta LIMIT 1", [], |_row| Ok(()));
    read.ok()?;
    let progress = rescue::progress(&connection, path)?;
    Some(progress.frames.saturating_sub(progress.moved))
}
