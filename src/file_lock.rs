//! An advisory lock on a file, for one process among several.
//!
//! Relies on `flock(2)`. Promises that the lock ends when its holder drops it: a child between fork and exec has a copy of the
//! descriptor, so closing ours is not enough.

use std::fs::File;
use std::ops::Deref;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Result;

/// Held until it is dropped, or until the process ends.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl FileLock {
    /// Locks this file. `Errno::WOULDBLOCK` when another holder excludes it and `operation` does not wait.
    pub(crate) fn take(file: File, operation: FlockOperation) -> Result<Self> {
        flock(&file, operation)?;
        Ok(Self(file))
    }
}

impl Deref for FileLock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::debug!(%error, "a lock ends with its descriptor");
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn it_ends_though_a_copy_of_the_descriptor_is_open() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let open = || File::open(file.path()).expect("opened");
        let first = open();
        let copy = first.try_clone().expect("copied");
        let held = FileLock::take(first, FlockOperation::NonBlockingLockExclusive).expect("free");
        let second = FileLock::take(open(), FlockOperation::NonBlockingLockShared);
        assert!(matches!(second, Err(Errno::WOULDBLOCK)), "{second:?}");
        drop(held);
        FileLock::take(open(), FlockOperation::NonBlockingLockExclusive).expect("free again");
        drop(copy);
    }
}
