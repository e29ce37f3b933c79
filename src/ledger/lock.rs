//! The lock that lets one daemon run on a state directory, and tells commands whether one does.
//!
//! The kernel drops it with the process, so it cannot be left behind by a crash. Its file is its owner's alone: whoever may open
//! it may hold it, and a reader of the ledger must not keep the daemon from starting. A file can be deleted while it is held, so
//! the directory of the scripts' working directories is locked with it: what a daemon has open nobody but root can look at.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::file_lock::FileLock;
use crate::regular_file::{self, Rule, Unfit};

/// Most bytes that a daemon notes in its lock.
const NOTED: u64 = 64 * 1024;

/// The lock's file in the state directory.
const FILE_NAME: &str = "serve.lock";
const MODE: u32 = 0o600;
/// Where scripts have their working directories, below the state directory; its owner's alone.
pub(crate) const RUN_DIRECTORY: &str = "run";
const RUN_MODE: u32 = 0o700;
/// Where the kernel lists who holds what.
const LOCKS: &str = "/proc/locks";

/// Held by the one daemon; dropped with it.
#[derive(Debug)]
pub(crate) struct ServeLock {
    lock: FileLock,
    _run: Option<FileLock>,
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
        let take = |file| match FileLock::take(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(held()),
            taken => taken.map_err(|errno| failed(errno.into())),
        };
        let lock = take(file)?;
        let run = state_dir.join(RUN_DIRECTORY);
        // What is in the way of it keeps scripts from running, and nobody from serving.
        drop(DirBuilder::new().mode(RUN_MODE).create(&run));
        let run = open_directory(&run).ok();
        let lock = Self {
            lock,
            _run: run.map(take).transpose()?,
        };
        lock.forget();
        Ok(lock)
    }
}

fn open_directory(path: &Path) -> io::Result<File> {
    let is_directory = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or_default();
    OpenOptions::new()
        .read(true)
        .custom_flags(is_directory)
        .open(path)
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
    let noted = regular_file::read(&state_dir.join(FILE_NAME), Rule::open(NOTED)).ok()?;
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
    let lock = state_dir.join(FILE_NAME);
    let opened = regular_file::open(&lock).map(|(file, _)| file);
    let run = state_dir.join(RUN_DIRECTORY);
    is_locked(&lock, opened.map_err(Unfit::into_io)) || is_locked(&run, open_directory(&run))
}

fn is_locked(path: &Path, opened: io::Result<File>) -> bool {
    match opened {
        // A shared lock for an instant: it stands beside other askers' and only a daemon's refuses it. A daemon that starts
        // within this instant would find the lock taken, so it tries a few times (see `start`).
        Ok(file) => FileLock::take(file, FlockOperation::NonBlockingLockShared)
            .is_err_and(|errno| errno == Errno::WOULDBLOCK),
        Err(refused) if refused.kind() == io::ErrorKind::PermissionDenied => is_listed(path),
        Err(_missing) => false,
    }
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
