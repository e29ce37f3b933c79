//! The lock that lets one daemon run on a state directory, and tells commands whether one does.
//!
//! The kernel drops it with the process, so it cannot be left behind by a crash. Its file is its owner's alone: whoever may open
//! it may hold it, and a reader of the ledger must not keep the daemon from starting. A file that was deleted is looked for among
//! what processes have open, so that its holder still counts.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::file_lock::FileLock;

/// The lock's file in the state directory.
const FILE_NAME: &str = "serve.lock";
const MODE: u32 = 0o600;
/// Where the kernel lists who holds what.
const LOCKS: &str = "/proc/locks";
/// Where it shows each process.
const PROCESSES: &str = "/proc";

/// Held by the one daemon; dropped with it.
#[derive(Debug)]
pub(crate) struct ServeLock {
    lock: FileLock,
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
    pub(crate) fn take(state_dir: &Path) -> Result<Self, LockError> {
        let path = state_dir.join(FILE_NAME);
        let failed = |source| LockError::File {
            path: path.clone(),
            source,
        };
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .mode(MODE)
            .open(&path)
            .map_err(failed)?;
        // One that was there may be wider.
        file.set_permissions(Permissions::from_mode(MODE))
            .map_err(failed)?;
        let held = || LockError::Held {
            state_dir: state_dir.to_owned(),
        };
        match FileLock::take(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(_new) if is_held_deleted(&path) => Err(held()),
            Ok(lock) => {
                let lock = Self { lock };
                lock.forget();
                Ok(lock)
            }
            Err(Errno::WOULDBLOCK) => Err(held()),
            Err(errno) => Err(failed(errno.into())),
        }
    }
}

impl ServeLock {
    /// Says where the daemon answers, for commands by other settings. Without it they only cannot try whether it does.
    pub(crate) fn note(&self, control: &Path) {
        let noted = std::path::absolute(control).and_then(|path| {
            let machine = machine();
            let noted = [machine.as_os_str().as_bytes(), path.as_os_str().as_bytes()];
            self.lock.set_len(0)?;
            self.lock.write_all_at(&noted.join(&b'\n'), 0)
        });
        if let Err(error) = noted {
            tracing::debug!(%error, "the lock's file does not say where the daemon answers");
        }
    }

    /// Says that the daemon answers nowhere: not yet, or no more.
    pub(crate) fn forget(&self) {
        if let Err(error) = self.lock.set_len(0) {
            tracing::debug!(%error, "the lock's file still says where a daemon answered");
        }
    }
}

/// Where the daemon of this state directory said that it answers: for its owner alone to read.
pub(crate) fn served_on(state_dir: &Path) -> Option<PathBuf> {
    let noted = fs::read(state_dir.join(FILE_NAME)).ok()?;
    let at = noted.iter().position(|byte| *byte == b'\n')?;
    let (on, path) = noted.split_at_checked(at)?;
    let path = PathBuf::from(OsStr::from_bytes(path.strip_prefix(b"\n")?));
    (on == machine().as_os_str().as_bytes()).then_some(path)
}

/// What tells a container's paths from those of others: the namespace of processes.
fn machine() -> PathBuf {
    fs::read_link("/proc/self/ns/pid").unwrap_or_default()
}

/// True while a daemon serves this state directory. Where that cannot be told, there is none.
pub(crate) fn is_served(state_dir: &Path) -> bool {
    let path = state_dir.join(FILE_NAME);
    match File::open(&path) {
        // A shared lock for an instant: it stands beside other askers' and only a daemon's refuses it. A daemon that starts
        // within this instant would find the lock taken, so it tries a few times (see `start`).
        Ok(file) => match FileLock::take(file, FlockOperation::NonBlockingLockShared) {
            Ok(_free) => is_held_deleted(&path),
            Err(errno) => errno == Errno::WOULDBLOCK,
        },
        Err(refused) if refused.kind() == io::ErrorKind::PermissionDenied => is_listed(&path),
        Err(_missing) => is_held_deleted(&path),
    }
}

/// A process of the same user holds a lock file that was deleted since. Other users' processes cannot be looked at.
/// The kernel's list of all locks is no help: while others come and go, a reader of it passes some over.
fn is_held_deleted(path: &Path) -> bool {
    // The directory's own name: what the kernel shows has no links in it.
    let directory = path.parent().map(Path::canonicalize);
    let (Some(Ok(directory)), Ok(processes)) = (directory, fs::read_dir(PROCESSES)) else {
        return false;
    };
    let deleted = directory.join(format!("{FILE_NAME} (deleted)"));
    processes.flatten().any(|process| {
        let process = process.path();
        let open = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut held = open.filter(|one| fs::read_link(one.path()).is_ok_and(|to| to == deleted));
        held.any(|one| {
            let about = fs::read_to_string(process.join("fdinfo").join(one.file_name()));
            about.unwrap_or_default().lines().any(is_exclusive)
        })
    })
}

/// A line of what the kernel says about a descriptor: `lock: 1: FLOCK  ADVISORY  WRITE 3110 fe:00:123 0 EOF`.
fn is_exclusive(line: &str) -> bool {
    line.strip_prefix("lock:")
        .is_some_and(|lock| exclusive(lock).is_some())
}

/// The number of a file that is locked exclusively, with its device:
/// `1: FLOCK  ADVISORY  WRITE 3110 fe:00:123 0 EOF`.
fn exclusive(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip(1);
    let [kind, _advisory, access, _pid, file] = std::array::from_fn(|_| words.next());
    let is_exclusive = kind == Some("FLOCK") && access == Some("WRITE");
    file.filter(|_| is_exclusive)
}

/// The kernel lists an exclusive lock of this file. By its number alone: the device is told in another way than files tell it
/// on some file systems.
fn is_listed(path: &Path) -> bool {
    let (Ok(about), Ok(locks)) = (fs::metadata(path), fs::read_to_string(LOCKS)) else {
        return false;
    };
    let number = format!(":{}", about.ino());
    let mut held = locks.lines().filter_map(exclusive);
    held.any(|file| file.ends_with(&number))
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

    #[test]
    fn a_lock_whose_file_was_deleted_is_held_still() {
        let directory = tempfile::tempdir().expect("a directory");
        let lock = ServeLock::take(directory.path()).expect("free");
        fs::remove_file(directory.path().join(FILE_NAME)).expect("deleted");
        assert!(is_served(directory.path()));
        let second = ServeLock::take(directory.path());
        assert!(matches!(second, Err(LockError::Held { .. })), "{second:?}");
        assert!(is_served(directory.path()));
        drop(lock);
        assert!(!is_served(directory.path()));
        ServeLock::take(directory.path()).expect("free again");
    }

    #[test]
    fn who_may_not_open_it_is_told_all_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE_NAME);
        fs::write(&path, "").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("its mode");
        assert!(!is_listed(&path));
        let lock = ServeLock::take(directory.path()).expect("free");
        assert!(is_listed(&path));
        let mode = fs::metadata(&path).expect("it is there").mode();
        assert_eq!(mode & 0o777, MODE, "nobody else may hold it");
        drop(lock);
        assert!(!is_listed(&path));
    }
}
