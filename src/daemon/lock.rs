//! The lock that lets one daemon run on a state directory, and tells commands whether one does.
//!
//! The kernel drops it with the process, so it cannot be left behind by a crash.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// The lock's file in the state directory.
const FILE_NAME: &str = "serve.lock";

/// Held by the one daemon; dropped with it.
#[derive(Debug)]
pub(super) struct ServeLock {
    /// Holds the lock by being open.
    _file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LockError {
    /// Another daemon holds it.
    #[error("another tilld serves `{state_dir}` already")]
    Held {
        /// The state directory.
        state_dir: PathBuf,
    },
    /// The file cannot be made or locked.
    #[error("could not lock `{path}`")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ServeLock {
    /// Takes the lock, without waiting. The state directory must exist.
    pub(super) fn take(state_dir: &Path) -> Result<Self, LockError> {
        let path = state_dir.join(FILE_NAME);
        let failed = |source| LockError::File {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(0o640)
            .open(&path)
            .map_err(failed)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { _file: file }),
            Err(Errno::WOULDBLOCK) => Err(LockError::Held {
                state_dir: state_dir.to_owned(),
            }),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

/// True while a daemon serves this state directory. Where that cannot be told, there is none.
pub(crate) fn is_served(state_dir: &Path) -> bool {
    let Ok(file) = File::open(state_dir.join(FILE_NAME)) else {
        return false;
    };
    // A shared lock for an instant: it stands beside other askers' and only a daemon's refuses it. A daemon that starts
    // within this instant would find the lock taken, so it tries a few times (see `start`).
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => false,
        Err(errno) => errno == Errno::WOULDBLOCK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_at_a_time() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(!is_served(directory.path()));
        let lock = ServeLock::take(directory.path()).expect("free");
        assert!(is_served(directory.path()));
        assert!(matches!(
            ServeLock::take(directory.path()),
            Err(LockError::Held { .. })
        ));
        drop(lock);
        assert!(!is_served(directory.path()));
        ServeLock::take(directory.path()).expect("free again");
    }
}
