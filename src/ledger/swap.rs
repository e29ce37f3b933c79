//! Puts a copy in the ledger's place. Relies on the daemon's own lock, which is held meanwhile: no daemon serves then.
//! Promises an order of steps that loses nothing at a crash: the copy is complete and on disk before anything is moved, and
//! what was there keeps a name.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::error::OpenError;
use super::files::Part;
use super::lock::{LockError, ServeLock};
use super::store::StoreError;
use super::{FILE_NAME, sqlite};
use crate::regular_file::{self, Unfit};

/// As the ledger.
const FILE_MODE: u32 = 0o640;

/// What was put back.
#[derive(Debug)]
pub(crate) struct Swapped {
    /// The ledger.
    pub(crate) path: PathBuf,
    /// The number of its last event.
    pub(crate) events: i64,
    /// The files that were there, as they are named now.
    pub(crate) replaced: Vec<PathBuf>,
}

/// Why nothing was put back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The copy cannot be opened as a ledger.
    #[error(transparent)]
    Copy(#[from] OpenError),
    /// A daemon serves.
    #[error(transparent)]
    Served(LockError),
    /// The copy is damaged.
    #[error("`{path}` is not sound: {what}")]
    Unsound {
        /// The copy.
        path: PathBuf,
        /// What was found first.
        what: String,
    },
    /// The copy cannot be read, or not be written beside the ledger.
    #[error("could not copy `{path}`")]
    Read {
        /// The copy.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file could not be moved.
    #[error("could not put `{path}` in place")]
    Place {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Verifies the copy, and puts it in the place of the ledger in this directory.
pub(crate) fn put_back(
    state_dir: &Path,
    copy: &Path,
    now_ms: i64,
) -> Result<Swapped, RestoreError> {
    super::prepare(state_dir)?;
    let _lock = ServeLock::take(state_dir).map_err(RestoreError::Served)?;
    let path = state_dir.join(FILE_NAME);
    let draft = path.with_added_extension("restored");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RestoreError::Place { path, source }
    };
    let looked = copy_file(copy, &draft)
        .map_err(|source| RestoreError::Read {
            path: copy.to_owned(),
            source,
        })
        .and_then(|()| look(copy, &draft));
    if looked.is_err() {
        remove(&draft);
        remove(&Part::Log.of(&draft));
    }
    let events = looked?;
    let mut replaced = Vec::new();
    // The WAL first: without its database it harms nothing, and beside the copy it would destroy it.
    for part in [Part::Index, Part::Log, Part::Database] {
        let old = part.of(&path);
        let aside = part.of(&path.with_added_extension(format!("replaced-{now_ms}")));
        match fs::rename(&old, &aside) {
            Ok(()) => replaced.push(aside),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&old)(error)),
        }
    }
    // The copy's own WAL first: a WAL without its database is refused, a database without its WAL lacks commits.
    let log = Part::Log.of(&draft);
    if log.exists() {
        fs::rename(log, Part::Log.of(&path)).map_err(failed(&path))?;
    }
    fs::rename(&draft, &path).map_err(failed(&path))?;
    let synced = File::open(state_dir).and_then(|directory| directory.sync_all());
    synced.map_err(failed(state_dir))?;
    Ok(Swapped {
        path,
        events,
        replaced,
    })
}

/// The draft is looked at, so that the copy is left as it is. Gives its last event.
fn look(copy: &Path, draft: &Path) -> Result<i64, RestoreError> {
    let looked = sqlite::findings(draft).map(|findings| findings.into_iter().next());
    let events = sqlite::position_of(draft);
    remove(&Part::Index.of(draft));
    let path = copy.to_owned();
    match looked {
        Ok(None) => Ok(events?.event),
        Ok(Some(what)) => Err(RestoreError::Unsound { path, what }),
        Err(OpenError::Foreign { what, .. }) => {
            let what = what.to_owned();
            Err(RestoreError::Unsound { path, what })
        }
        Err(OpenError::File {
            source: StoreError::Corrupt(what),
            ..
        }) => {
            let what = what.to_string();
            Err(RestoreError::Unsound { path, what })
        }
        Err(other) => Err(other.into()),
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    for part in [Part::Database, Part::Log, Part::Index] {
        remove(&part.of(to));
    }
    copy_part(from, to)?;
    // A backup has none; of a plain copy the newest commits are there.
    let log = Part::Log.of(from);
    if fs::metadata(&log).is_ok_and(|about| about.len() > 0) {
        copy_part(&log, &Part::Log.of(to))?;
    }
    Ok(())
}

fn copy_part(from: &Path, to: &Path) -> io::Result<()> {
    let (mut from, _) = regular_file::open(from).map_err(Unfit::into_io)?;
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(to)?;
    io::copy(&mut from, &mut copy)?;
    copy.sync_all()
}

/// Files of its own that may not be there.
fn remove(file: &Path) {
    fs::remove_file(file).unwrap_or_default();
}
