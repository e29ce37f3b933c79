//! How a command of tilld that reads the whole ledger says so, so that nobody is alarmed by a log that waits for it: a backup
//! and a check read for as long as the ledger is big.
//!
//! It is said by a lock on the state directory, which readers may take too, which writes nothing, and which the kernel drops
//! with the process. Relies on nothing else taking one there; promises only a word: whoever is not allowed to say it reads
//! all the same, and is told of like any other program.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::file_lock::FileLock;

/// Tries to say it: who asks holds the lock for an instant.
const TRIES: u32 = 20;
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(5);

/// It is said until this is dropped.
#[derive(Debug)]
pub(super) struct Said {
    _lock: FileLock,
}

/// Says that the ledger in this directory is read by a command of tilld.
pub(super) fn say(state_dir: &Path) -> Option<Said> {
    for _ in 0..TRIES {
        let directory = File::open(state_dir).ok()?;
        match FileLock::take(directory, FlockOperation::NonBlockingLockShared) {
            Ok(lock) => return Some(Said { _lock: lock }),
            Err(Errno::WOULDBLOCK) => thread::sleep(PAUSE),
            Err(_told_to_nobody) => return None,
        }
    }
    None
}

/// True while a command says so. What cannot be asked is not said.
pub(super) fn is_said(state_dir: &Path) -> bool {
    let Ok(directory) = File::open(state_dir) else {
        return false;
    };
    // Taken for an instant.
    let taken = FileLock::take(directory, FlockOperation::NonBlockingLockExclusive);
    matches!(taken, Err(Errno::WOULDBLOCK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_as_long_as_one_of_them_reads() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        assert!(!is_said(path));
        let (one, other) = (say(path), say(path));
        assert!(one.is_some() && other.is_some() && is_said(path));
        drop(one);
        assert!(is_said(path));
        drop(other);
        assert!(!is_said(path));
        assert!(say(&path.join("none")).is_none() && !is_said(&path.join("none")));
    }
}
