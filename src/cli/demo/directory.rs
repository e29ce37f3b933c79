//! The one directory of a demo: everything it writes is in it. A temporary one is removed at the end; a named one is
//! kept, and only ever cleared of what an earlier demo left there.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::cli::failure::{Exit, Failure};
use crate::entropy;

/// Secrets lie in it: its owner alone may enter.
const MODE: u32 = 0o700;
/// Makes a directory a demo's, and is locked while the demo runs.
const MARK: &str = ".tilld-demo";
/// All a demo writes beside the mark. Nothing else is ever removed from a named directory.
const WRITTEN: [&str; 7] = [
    "config.toml",
    "fulfil.sh",
    "fulfilled.log",
    "cancelled.sh",
    "cancelled.log",
    "serve.log",
    "state",
];

/// Why there is no directory for the demo.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    /// Something of somebody else is in it.
    #[error("`{}` holds something and is no directory of a demo", .0.display())]
    NotOurs(PathBuf),
    /// Another demo runs in it.
    #[error("another demo runs in `{}`", .0.display())]
    InUse(PathBuf),
    /// The config names files in it, and is UTF-8.
    #[error("`{}` is no UTF-8, which the config's paths must be", .0.display())]
    NotUtf8(PathBuf),
    /// It cannot be used.
    #[error("could not use `{}` as the demo's directory", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The system's word.
        #[source]
        source: io::Error,
    },
}

impl From<DirectoryError> for Failure {
    fn from(error: DirectoryError) -> Self {
        let hint = match &error {
            DirectoryError::NotOurs(_) | DirectoryError::NotUtf8(_) => {
                "name an empty directory, or one that does not exist yet"
            }
            DirectoryError::InUse(_) => "stop that demo first, or name another directory",
            DirectoryError::Io { .. } => "name a directory you may write to with `--dir`",
        };
        Self::new(Exit::Error, error).hint(hint)
    }
}

/// The directory of a demo.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    is_kept: bool,
    /// Open and locked while this demo runs.
    _mark: File,
}

impl Directory {
    /// A new directory among the system's temporary ones. Dropping it removes it, unless it is kept.
    pub(super) fn temporary() -> Result<Self, DirectoryError> {
        let name = format!("tilld-demo-{:08x}", u32::from_ne_bytes(entropy::bytes()));
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(MODE).create(&path);
        made.map_err(|source| DirectoryError::Io {
            path: path.clone(),
            source,
        })?;
        Self::take(path, false)
    }

    /// This directory, made when it is missing and cleared when an earlier demo used it. It is kept.
    pub(super) fn named(path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Io {
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(failed)?;
        let made = DirBuilder::new().recursive(true).mode(MODE).create(&path);
        made.map_err(failed)?;
        let is_empty = fs::read_dir(&path).map_err(failed)?.next().is_none();
        if !is_empty && !path.join(MARK).is_file() {
            return Err(DirectoryError::NotOurs(path));
        }
        let directory = Self::take(path, true)?;
        directory.clear().map_err(failed)?;
        Ok(directory)
    }

    fn take(path: PathBuf, is_kept: bool) -> Result<Self, DirectoryError> {
        if path.to_str().is_none() {
            return Err(DirectoryError::NotUtf8(path));
        }
        let open = || {
            let mark = path.join(MARK);
            File::options()
                .append(true)
                .create(true)
                .truncate(false)
                .open(mark)
        };
        let failed = |source| DirectoryError::Io {
            path: path.clone(),
            source,
        };
        let mut mark = open().map_err(failed)?;
        match mark.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(DirectoryError::InUse(path)),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        if mark.metadata().map_err(failed)?.len() == 0 {
            let told =
                b"`tilld demo` works in this directory and clears it when it starts here again.\n";
            mark.write_all(told).map_err(failed)?;
        }
        Ok(Self {
            path,
            is_kept,
            _mark: mark,
        })
    }

    fn clear(&self) -> io::Result<()> {
        for name in WRITTEN {
            let path = self.path.join(name);
            let removed = if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Where it is: an absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there at the end.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// True when it stays at the end.
    pub(super) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The config every `tilld` of the demo reads.
    pub(super) fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The state directory, with the ledger in it.
    pub(super) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// What the daemon says.
    pub(super) fn serve_log(&self) -> PathBuf {
        self.path.join("serve.log")
    }

    /// The script that is run for each paid order.
    pub(super) fn fulfil(&self) -> PathBuf {
        self.path.join("fulfil.sh")
    }

    /// What that script writes: a line for each order.
    pub(super) fn fulfilled(&self) -> PathBuf {
        self.path.join("fulfilled.log")
    }

    /// The script that is run for each order that came to nothing.
    pub(super) fn cancelled(&self) -> PathBuf {
        self.path.join("cancelled.sh")
    }

    /// What that script writes.
    pub(super) fn cancelled_log(&self) -> PathBuf {
        self.path.join("cancelled.log")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(dir = %self.path.display(), error = %error, "could not remove the demo's directory");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_temporary_one_is_private_and_goes_away() {
        let directory = Directory::temporary().expect("made");
        let path = directory.path().to_owned();
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        fs::create_dir(directory.state()).expect("made");
        drop(directory);
        assert!(!path.exists());
    }

    #[test]
    fn a_named_one_is_cleared_of_what_a_demo_wrote_and_of_nothing_else() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("demo");
        let first = Directory::named(&path).expect("made");
        fs::create_dir(first.state()).expect("made");
        fs::write(first.config(), "old").expect("written");
        fs::write(path.join("notes"), "mine").expect("written");
        let beside = Directory::named(&path);
        assert!(
            matches!(beside, Err(DirectoryError::InUse(_))),
            "{beside:?}"
        );
        drop(first);
        let again = Directory::named(&path).expect("a demo's directory");
        assert!(!again.state().exists() && !again.config().exists());
        assert!(path.join("notes").exists());
    }

    #[test]
    fn somebody_elses_directory_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("thesis");
        fs::write(&file, "years of work").expect("written");
        for path in [home.path(), &file] {
            assert!(Directory::named(path).is_err());
        }
        assert!(file.exists() && !home.path().join(MARK).exists());
    }
}
