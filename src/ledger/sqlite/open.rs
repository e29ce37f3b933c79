//! Opens the ledger file, or makes it. A file that is not ours, is newer than us or is damaged is left untouched.
//!
//! A new ledger is made complete under another name and linked into place, so that a ledger is never seen half made.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::failure::from_sqlite;
use super::schema::{APPLICATION_ID, STEPS};
use super::{backup, checkpoint};
use crate::ledger::error::OpenError;
use crate::ledger::store::StoreError;
use crate::percent::SEGMENT;

/// The oldest SQLite without the WAL-reset bug (A28).
const OLDEST_SQLITE: i32 = 3_051_003;
/// Pages a reading connection keeps, KiB: the upper levels of every index of a million invoices. A row it looks for lies on
/// a page that no earlier look-up read, and that the kernel has; SQLite's own 2 MiB for each connection are spent on nothing.
const READER_CACHE_KIB: i64 = 512;
/// Pages the writer keeps, KiB: what the notifications of two thousand invoices touch, and the beginnings of the indexes. SQLite
/// would keep 2 MiB.
const WRITER_CACHE_KIB: i64 = 1_280;
/// The smallest page SQLite has, bytes: no database is smaller.
const SMALLEST_BYTES: u64 = 512;

/// How long a look at a file whose log is needed waits for a program that recovers it.
const LOOK_BUSY: Duration = Duration::from_secs(5);

/// Between two tries for the lock that adding the log takes.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// What a file system without shared memory leads to (A28).
const NO_LOG: &str = "the state directory's file system carries no write-ahead log";

/// Readable and writable by the owner, readable by the reader group.
const FILE_MODE: u32 = 0o640;

/// Opens the ledger for writing, making it when there is none, and brings it to the newest schema.
pub(in crate::ledger) fn open_writer(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    open_writer_by(&STEPS, path, busy)
}

fn open_writer_by(steps: &[&str], path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(OpenError::OldSqlite {
            found: rusqlite::version(),
        });
    }
    let file = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    if !exists(path)? {
        make(path).map_err(file)?;
    }
    look_at_header(path)?;
    let mut connection = connect_writer(path, busy).map_err(file)?;
    check_marks(steps, &connection, path)?;
    keep_log(&connection, busy).map_err(file)?;
    migrate(steps, &mut connection).map_err(file)?;
    Ok(connection)
}

/// A backup has no log beside it; a ledger that is served does. Nobody else may look at the file for the moment it takes.
fn keep_log(connection: &Connection, busy: Duration) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        match backup::take_into_use(connection).map_err(from_sqlite) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => return Err(from_sqlite(refused(NO_LOG))),
            Err(StoreError::Busy) if began.elapsed() < busy => thread::sleep(LOCK_PAUSE),
            Err(error) => return Err(error),
        }
    }
}

/// Opens the ledger again after trouble; it must exist and still be a ledger of this schema.
pub(super) fn reopen_writer(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let refused = |error: OpenError| StoreError::Io(Box::new(error));
    look_at_header(path).map_err(refused)?;
    let connection = connect_writer(path, busy)?;
    check_marks(&STEPS, &connection, path).map_err(refused)?;
    Ok(connection)
}

fn connect_writer(path: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    settle(&connection, busy).map_err(from_sqlite)?;
    Ok(connection)
}

/// Opens the ledger for reading only. It must exist.
pub(in crate::ledger) fn open_reader(path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    open_reader_by(&STEPS, path, busy)
}

fn open_reader_by(steps: &[&str], path: &Path, busy: Duration) -> Result<Connection, OpenError> {
    look_as_reader(path)?;
    look_at_header(path)?;
    let file = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(|e| file(from_sqlite(e)))?;
    connection
        .busy_timeout(busy)
        .and_then(|()| keep_plans(&connection))
        .map_err(|e| file(from_sqlite(e)))?;
    let found = check_marks(steps, &connection, path)?;
    let known = newest(steps);
    if found < known {
        return Err(OpenError::Older {
            path: path.to_owned(),
            found,
            known,
        });
    }
    // Negative: KiB, not pages.
    connection
        .pragma_update(None, "cache_size", -READER_CACHE_KIB)
        .map_err(|e| file(from_sqlite(e)))?;
    Ok(connection)
}

/// Tells a file that is not there from one that is not for this user.
fn look_as_reader(path: &Path) -> Result<(), OpenError> {
    let looked = fs::metadata(path).and_then(|about| {
        if about.is_file() {
            // Asked, not tried: opening it beside SQLite would drop this process's locks, see `look_at_header`.
            let asked = accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS);
            asked.map_err(io::Error::from)
        } else {
            Ok(())
        }
    });
    let path = path.to_owned();
    looked.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => OpenError::Absent { path },
        _ => OpenError::Unreadable { path, source },
    })
}

/// Plans do not depend on the values that are bound. Where there are partial indexes SQLite otherwise prepares a statement
/// anew each time another value is bound to it.
fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

fn settle(connection: &Connection, busy: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(busy)?;
    // Our own checkpoint runs after the answers; set before any hook, since each overwrites the other.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    let kept = i64::try_from(checkpoint::KEPT_BYTES).unwrap_or(i64::MAX);
    connection.pragma_update(None, "journal_size_limit", kept)?;
    // What is emptied or rewritten is overwritten in its page: requisites are not to be found in the file's free room.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    keep_plans(connection)?;
    // What a row belongs to was read or written in the same transaction, whatever the row: looking it up again would take a
    // tenth of what SQLite does for a notification. That each belongs somewhere is looked at after every test, on the file.
    connection.pragma_update(None, "foreign_keys", false)?;
    // Nor are the types of the values checked by a release, which would take a fifth more than SQLite does for a notification:
    // the code's own types bind them, and every test runs with the checks.
    connection.pragma_update(None, "ignore_check_constraints", !cfg!(debug_assertions))?;
    // The side files stay after a clean close: without them a reader that may not write cannot open the file (A25).
    let mut keep = 1;
    connection.file_control(Some("main"), rusqlite::FileControl::PersistWal(&mut keep))?;
    // Asserted and not trusted: with less than FULL a power cut may undo what was acknowledged (A16).
    if synchronous(connection)? == 2 {
        Ok(())
    } else {
        Err(refused("SQLite did not take synchronous=FULL"))
    }
}

/// How durable this connection's commits are: 2 is FULL.
pub(super) fn synchronous(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "synchronous", |row| row.get(0))
}

fn refused(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ERROR);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

fn exists(path: &Path) -> Result<bool, OpenError> {
    path.try_exists().map_err(|source| OpenError::Directory {
        path: path.to_owned(),
        source,
    })
}

/// Judges whether the file is a ledger before anything may write to it: SQLite would take an empty file for a new
/// database, and would repair a foreign one from whatever log lies beside it.
///
/// Asked through SQLite itself, and as of a file that never changes. Opening and closing the file by other means would
/// drop every lock this process holds on it, since POSIX locks go with the first descriptor that is closed; the next
/// program to close the file would then take itself for the last one and throw the log away.
///
/// A checkpoint that is under way, or was cut off by a crash, has written the first page and not yet the pages that it
/// counts: without the log such a file is damaged. Then it is asked again with locks and log, still only for reading.
fn look_at_header(path: &Path) -> Result<(), OpenError> {
    let foreign = |what| OpenError::Foreign {
        path: path.to_owned(),
        what,
    };
    let failed = |source| OpenError::File {
        path: path.to_owned(),
        source,
    };
    let meta = fs::metadata(path).map_err(|e| failed(StoreError::Io(Box::new(e))))?;
    if !meta.is_file() {
        return Err(foreign("it is not a file"));
    }
    if meta.len() < SMALLEST_BYTES {
        return Err(foreign("it is empty or cut short"));
    }
    let (id, is_new_copy) = match look(&unchanging(path)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            (look(&uri(path)).map(|(id, _)| id), false)
        }
        Ok((id, is_new_copy)) => (Ok(id), is_new_copy),
        Err(error) => (Err(error), false),
    };
    match id.map_err(from_sqlite) {
        Ok(APPLICATION_ID) if is_new_copy && has_log(path) => Err(OpenError::StrayLog {
            path: path.to_owned(),
        }),
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(foreign("it is another program's SQLite database")),
        Err(StoreError::Corrupt(_)) => Err(foreign("it is no SQLite database")),
        Err(other) => Err(failed(other)),
    }
}

/// True when a log with something in it lies beside the file.
fn has_log(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    fs::metadata(PathBuf::from(name)).is_ok_and(|log| log.len() > 0)
}

/// The application id, and whether it is a backup that nobody has opened for writing yet.
fn look(uri: &str) -> rusqlite::Result<(i64, bool)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.busy_timeout(LOOK_BUSY)?;
    let id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    Ok((id, id == APPLICATION_ID && backup::is_new(&connection)))
}

/// The file as SQLite's URI, to be read without locks, log and side files.
pub(super) fn unchanging(path: &Path) -> String {
    uri(path) + "?immutable=1"
}

/// What stands as it is in a path of a URI.
const IN_URI: &AsciiSet = &SEGMENT.remove(b'/');

/// The file as SQLite's URI.
fn uri(path: &Path) -> String {
    let path = percent_encode(path.as_os_str().as_encoded_bytes(), IN_URI);
    format!("file:{path}")
}

/// The file's schema version, when this binary knows it.
fn check_marks(steps: &[&str], connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let file = |e| OpenError::File {
        path: path.to_owned(),
        source: from_sqlite(e),
    };
    let found: i64 = connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(file)?;
    let known = newest(steps);
    if found > known {
        Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known,
        })
    } else {
        Ok(found)
    }
}

fn newest(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).expect("a handful of steps")
}

/// Runs the steps that are missing, all in one transaction. Nothing to do takes no lock.
fn migrate(steps: &[&str], connection: &mut Connection) -> Result<(), StoreError> {
    let version = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if version(connection).map_err(from_sqlite)? == newest(steps) {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(from_sqlite)?;
    let done = usize::try_from(version(&transaction).map_err(from_sqlite)?).unwrap_or_default();
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step).map_err(from_sqlite)?;
    }
    transaction
        .pragma_update(None, "user_version", newest(steps))
        .map_err(from_sqlite)?;
    transaction.commit().map_err(from_sqlite)
}

/// Makes a complete, empty ledger and links it to its place. When another process was quicker, its ledger stays.
fn make(path: &Path) -> Result<(), StoreError> {
    let io = |e: io::Error| StoreError::Io(Box::new(e));
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    remove_all(&draft).map_err(io)?;
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&draft)
        .map_err(io)?;
    let made = fill(&draft).map_err(from_sqlite);
    let linked = made.and_then(|()| {
        fs::File::open(&draft)
            .and_then(|file| file.sync_all())
            .map_err(io)?;
        match fs::hard_link(&draft, path) {
            Err(taken) if taken.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other.map_err(io),
        }
    });
    remove_all(&draft).map_err(io)?;
    linked?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(io)
}

fn fill(draft: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(refused(NO_LOG));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in STEPS {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest(&STEPS))?;
    transaction.commit()?;
    // Closing as the only connection moves the log into the file and removes the side files.
    connection.close().map_err(|(_, error)| error)
}

fn remove_all(draft: &Path) -> io::Result<()> {
    for end in ["", "-wal", "-shm"] {
        let mut name = draft.as_os_str().to_owned();
        name.push(end);
        match fs::remove_file(PathBuf::from(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::*;

    const BUSY: Duration = Duration::from_secs(1);
    /// The parts of a log file: its head, and the head in front of each page.
    const LOG_HEAD: usize = 32;
    const FRAME_HEAD: usize = 24;

    /// A ledger of the first schema, with three orders.
    const FIRST: &str = include_str!("../../../tests/fixtures/ledger-1.sql");

    #[test]
    fn a_further_step_is_taken_whole_or_not_at_all() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.db");
        let plain = || Connection::open(&path).expect("opened");
        plain().execute_batch(FIRST).expect("the first schema");
        let text = |sql: &str| -> String {
            let found = plain().query_row(sql, [], |row| row.get(0));
            found.expect("read")
        };
        let version = "SELECT user_version || '' FROM pragma_user_version";
        let rows = "SELECT group_concat(order_id || ' ' || outcome || ' ' || updated_at, ', ') FROM invoices";
        let (first, before) = (text(version), text(rows));
        let planted =
            "ALTER TABLE invoice ADD COLUMN planted INTEGER; UPDATE invoice SET planted = id + 1;";
        let failing = format!("{planted} UPDATE invoice SET nothing = 1");
        let further = |step| [STEPS.as_slice(), &[step]].concat();

        let steps = further(planted);
        let reading = open_reader_by(&steps, &path, BUSY);
        assert!(
            matches!(reading, Err(OpenError::Older { found: 1, known, .. }) if known == newest(&steps)),
            "{reading:?}"
        );
        let failed = open_writer_by(&further(&failing), &path, BUSY);
        assert!(matches!(failed, Err(OpenError::File { .. })), "{failed:?}");
        assert_eq!((text(version), text(rows)), (first, before.clone()));
        let left = "SELECT count(*) || '' FROM pragma_table_info('invoice') WHERE name = 'planted'";
        assert_eq!(text(left), "0");

        drop(open_writer_by(&steps, &path, BUSY).expect("brought up to date"));
        assert_eq!(text(version), newest(&steps).to_string());
        assert_eq!(text(rows), before);
        let new = "SELECT group_concat(planted, ' ') FROM invoice";
        assert_eq!(text(new), "2 3 4");
        assert!(open_reader_by(&steps, &path, BUSY).is_ok());
        for refused in [open_reader(&path, BUSY), open_writer(&path, BUSY)] {
            assert!(
                matches!(refused, Err(OpenError::Newer { .. })),
                "{refused:?}"
            );
        }
    }

    /// A16: a crash, or a look, between the first write of a checkpoint and its last must not cost the ledger.
    #[test]
    fn a_ledger_in_the_middle_of_a_checkpoint_is_a_ledger() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.db");
        let writer = open_writer(&path, BUSY).expect("made");
        let grow = "CREATE TABLE notes (note BLOB); INSERT INTO notes VALUES (randomblob(500000))";
        writer.execute_batch(grow).expect("room");
        writer
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .expect("an option");
        drop(writer);
        write_first_page(&path);

        let alone = look(&unchanging(&path)).map_err(from_sqlite);
        assert!(matches!(alone, Err(StoreError::Corrupt(_))), "{alone:?}");
        let bytes = |connection: &Connection| -> i64 {
            let ask = "SELECT sum(length(note)) FROM notes";
            connection
                .query_row(ask, [], |row| row.get(0))
                .expect("there")
        };
        let reader = open_reader(&path, BUSY).expect("a ledger");
        assert_eq!(bytes(&reader), 500_000);
        let writer = open_writer(&path, BUSY).expect("a ledger");
        assert_eq!(bytes(&writer), 500_000);
        assert!(reopen_writer(&path, BUSY).is_ok());
    }

    /// What a checkpoint does first: the newest first page goes from the log into the file.
    fn write_first_page(path: &Path) {
        let log = fs::read(path.with_extension("db-wal")).expect("a log");
        let size = log.get(8..12).and_then(|bytes| bytes.try_into().ok());
        let size = usize::try_from(u32::from_be_bytes(size.expect("a head"))).expect("small");
        let frames = log.get(LOG_HEAD..).expect("a head");
        let first = frames
            .chunks_exact(FRAME_HEAD + size)
            .rfind(|frame| frame.starts_with(&1_u32.to_be_bytes()));
        let page = first.and_then(|frame| frame.get(FRAME_HEAD..));
        let file = fs::OpenOptions::new().write(true).open(path);
        let file = file.expect("the ledger");
        file.write_all_at(page.expect("it changed"), 0)
            .expect("written");
    }
}
