//! Makes a backup: a copy of the ledger under another name, looked over, on disk, and only then put in its place. Relies
//! on the ledger being readable and on nothing else of its directory; promises that the file's name never stands for half a
//! backup, and that a file that stands there is left alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::FILE_NAME;
use super::error::OpenError;
use super::reading;
use super::sqlite;
use super::store::StoreError;

/// How long it waits for a program that recovers the ledger's log.
const BUSY: Duration = Duration::from_secs(5);
/// Readable and writable by whoever makes it, readable by a group, as the ledger.
const FILE_MODE: u32 = 0o640;

/// What tells a backup from the ledger it was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// When it was made, milliseconds since 1970.
    pub(super) made_ms: i64,
    /// Somebody has opened it for writing.
    pub(super) in_use: bool,
}

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of the last event; 0 when there is none.
    pub last_event: i64,
    /// Events.
    pub events: i64,
    /// Invoices.
    pub invoices: i64,
    /// Deliveries.
    pub deliveries: i64,
    /// Attempts that have ended.
    pub attempts: i64,
}

/// A backup that was made.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    /// Where it lies, from the root.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What is in it.
    pub counts: Counts,
}

/// Why there is none. Nothing stands under the name that was asked for, unless it stood there before.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// Something lies there already.
    #[error("`{path}` is there already")]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// The directory or the file cannot be written.
    #[error("could not write backup `{path}`")]
    Place {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The disk is too small, so nothing was begun.
    #[error("backup `{path}` takes {needed} bytes, and {free} are free there")]
    Room {
        /// The file.
        path: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes of the ledger.
        needed: u64,
    },
    /// The copy could not be written.
    #[error("could not copy the ledger to `{path}`")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// The copy was looked over, and is not what it must be.
    #[error("the copy is not sound: {what}")]
    Unsound {
        /// What was found.
        what: String,
    },
}

/// The file a backup is made in before it is one. Gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Draft {
    path: PathBuf,
    target: PathBuf,
}

impl Draft {
    /// Makes the empty file beside `target`, at which nothing may lie.
    pub(crate) fn make(target: &Path) -> Result<Self, BackupError> {
        let place = |source| BackupError::Place {
            path: target.to_owned(),
            source,
        };
        let target = std::path::absolute(target).map_err(place)?;
        match fs::symlink_metadata(&target) {
            Ok(_) => return Err(BackupError::Taken { path: target }),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(place(error)),
            Err(_) => {}
        }
        let path = target.with_added_extension(format!("part-{}", std::process::id()));
        let made = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(&path);
        made.map_err(place)?;
        Ok(Self { path, target })
    }

    /// Fills it with the ledger in `state_dir` and looks it over. Blocks for as long as that takes. `now_ms`, milliseconds
    /// since 1970, is when the backup was made, and what its stamp says.
    pub(crate) fn fill(&self, state_dir: &Path, now_ms: i64) -> Result<Counts, BackupError> {
        let _said = reading::say(state_dir);
        let stamp = Stamp {
            made_ms: now_ms,
            in_use: false,
        };
        let ledger = state_dir.join(FILE_NAME);
        self.has_room(&ledger)?;
        let counts = sqlite::copy(&ledger, &self.path, stamp, BUSY)?;
        sqlite::verify(&self.path, &counts, stamp)?;
        Ok(counts)
    }

    /// The copy is as long as the ledger. Where it is on the same disk, one that fails for want of room has taken the ledger's.
    fn has_room(&self, ledger: &Path) -> Result<(), BackupError> {
        let needed = fs::metadata(ledger).map_or(0, |about| about.len());
        let Ok(disk) = rustix::fs::statvfs(&self.path) else {
            return Ok(());
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A file system that tells nothing tells zeros.
        if free >= needed || disk.f_blocks == 0 {
            return Ok(());
        }
        Err(BackupError::Room {
            path: self.target.clone(),
            free,
            needed,
        })
    }

    /// Removes it, also while it is being filled.
    pub(crate) fn discard(&self) {
        for end in ["", "-journal", "-wal", "-shm"] {
            let mut name = self.path.as_os_str().to_owned();
            name.push(end);
            // Mostly there is none: it has got its name, or was never made.
            drop(fs::remove_file(PathBuf::from(name)));
        }
    }

    /// Makes it the backup: on disk, under its name.
    pub(crate) fn place(&self, counts: Counts) -> Result<Backup, BackupError> {
        let place = |source| BackupError::Place {
            path: self.target.clone(),
            source,
        };
        let file = File::open(&self.path).map_err(place)?;
        file.sync_all().map_err(place)?;
        let bytes = file.metadata().map_err(place)?.len();
        match put(&self.path, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Taken {
                    path: self.target.clone(),
                });
            }
            other => other.map_err(place)?,
        }
        let directory = self.target.parent().unwrap_or(Path::new("/"));
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(place)?;
        Ok(Backup {
            path: self.target.clone(),
            bytes,
            counts,
        })
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.discard();
    }
}

/// Renames, never over another file. Where the file system cannot do that at once, a second name does.
fn put(draft: &Path, target: &Path) -> io::Result<()> {
    match renameat_with(CWD, draft, CWD, target, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => fs::hard_link(draft, target),
        other => Ok(other?),
    }
}
