//! What can go wrong with the ledger, split by what the reader can do about it.

use std::path::PathBuf;
use std::sync::Arc;

use super::rights::Wrong;
use super::seal::KeyError;
use super::store::StoreError;

/// Why the ledger could not be opened. All of them want a person (exit code 11, or 15 for owner and mode).
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The state directory cannot be made or read.
    #[error("could not prepare state directory `{path}`")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Whoever only wants to read may not, or the way there leads through something that is no directory.
    #[error("could not read ledger `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The sealing key cannot be used.
    #[error("could not load the ledger's sealing key")]
    Key(#[source] KeyError),
    /// The file cannot be opened.
    #[error("could not open ledger `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// Something else lies at the ledger's path.
    #[error("`{path}` is not a ledger of tilld: {what}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: &'static str,
    },
    /// A backup was put in place, and the log of the ledger before it was left.
    #[error("the log beside `{path}` belongs to the ledger that was there before it")]
    StrayLog {
        /// The file.
        path: PathBuf,
    },
    /// A newer tilld wrote it.
    #[error("ledger `{path}` has schema {found}, this tilld knows up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest version this binary knows.
        known: i64,
    },
    /// An older tilld wrote it, and the caller may not bring it up to date.
    #[error("ledger `{path}` has schema {found}, this tilld reads {known}")]
    Older {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The version this binary reads.
        known: i64,
    },
    /// There is none, though there was one with events.
    #[error("ledger `{path}` is gone: {}", .events.map_or_else(known_by_copy, known_by_mark))]
    Gone {
        /// The file.
        path: PathBuf,
        /// How many events the mark knows of, if there is one.
        events: Option<i64>,
        /// A copy that a daemon kept at its end.
        kept: Option<PathBuf>,
    },
    /// It lacks what a daemon kept when it ended.
    #[error("ledger `{path}` is behind `{kept}`, which was kept when the daemon ended")]
    Behind {
        /// The file.
        path: PathBuf,
        /// The copy that the daemon kept.
        kept: PathBuf,
    },
    /// Database and log are of two ledgers, or damaged.
    #[error("ledger `{path}` is a mix of files, or damaged: {what}")]
    Mixed {
        /// The file.
        path: PathBuf,
        /// A copy that a daemon kept at its end.
        kept: Option<PathBuf>,
        /// What was found first.
        what: String,
    },
    /// There is none, and the caller only wanted to read.
    #[error("there is no ledger at `{path}` yet")]
    Absent {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else owns a file, or others may do more with it than read.
    #[error(transparent)]
    Rights(Wrong),
    /// Another machine may have it open, which a write-ahead log does not survive (A28).
    #[error("state directory `{path}` lies on a network file system ({found})")]
    Network {
        /// The directory.
        path: PathBuf,
        /// Which file system.
        found: &'static str,
    },
    /// The file alone is mounted, so that its log would be left behind (A28).
    #[error("ledger `{path}` is mounted as a single file, without the log beside it")]
    MountedAlone {
        /// The file.
        path: PathBuf,
    },
    /// The SQLite compiled in is too old to be trusted with a WAL (A28).
    #[error("SQLite {found} is older than 3.51.3")]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// The writing thread could not be started.
    #[error("could not start the ledger's writing thread")]
    Thread(#[source] std::io::Error),
}

fn known_by_mark(events: i64) -> String {
    format!("the mark beside it knows of {events} events")
}

fn known_by_copy() -> String {
    "a copy that was kept when the daemon ended lies beside it".to_owned()
}

impl OpenError {
    /// What the system said of a directory or a key that could not be made or read, for whoever must know whether that passes
    /// by itself.
    pub(crate) const fn said_by_system(&self) -> Option<&std::io::Error> {
        match self {
            Self::Directory { source, .. } | Self::Key(KeyError::File { source, .. }) => {
                Some(source)
            }
            Self::Unreadable { .. }
            | Self::Key(
                KeyError::Gone { .. }
                | KeyError::Mode { .. }
                | KeyError::Owner { .. }
                | KeyError::NotAFile { .. }
                | KeyError::NotAKey { .. },
            )
            | Self::File { .. }
            | Self::Foreign { .. }
            | Self::StrayLog { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Gone { .. }
            | Self::Behind { .. }
            | Self::Mixed { .. }
            | Self::Absent { .. }
            | Self::Rights(_)
            | Self::Network { .. }
            | Self::MountedAlone { .. }
            | Self::OldSqlite { .. }
            | Self::Thread(_) => None,
        }
    }
}

/// Why a change was not stored. Nothing of it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// Too much waits already.
    #[error("the ledger's queue is full")]
    QueueFull,
    /// The database could not.
    #[error("could not store in the ledger")]
    NotStored(#[source] Arc<StoreError>),
    /// The ledger has no such row.
    #[error("the ledger has no {0}")]
    Missing(&'static str),
    /// The writer has ended.
    #[error("the ledger's writer has ended")]
    Ended,
}

impl WriteError {
    /// True when the same change may succeed later by itself.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::QueueFull => true,
            Self::NotStored(store) => match store.as_ref() {
                StoreError::Busy
                | StoreError::Full
                | StoreError::LogFull
                | StoreError::Io(_)
                | StoreError::Moved(_)
                | StoreError::ReadOnly(_) => true,
                StoreError::Corrupt(_) | StoreError::Refused(_) => false,
            },
            Self::Missing(_) | Self::Ended => false,
        }
    }
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read from the ledger")]
pub struct ReadError(#[source] pub StoreError);
