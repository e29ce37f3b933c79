//! The one directory of a demo or a scenario: everything it writes is in it. A temporary one is removed at the end; a named
//! one is kept, and only ever cleared of what an earlier one of its kind left there.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::cli::failure::{Exit, Failure};
use crate::entropy;
use crate::file_lock::FileLock;

/// Secrets lie in it: its owner alone may enter.
const MODE: u32 = 0o700;
/// The daemon's socket in it.
const SOCKET: &str = "/state/control.sock";
/// What the system has room for, bytes.
const LONGEST_SOCKET: usize = 107;

/// What works in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Kind {
    /// `tilld demo`.
    Demo,
    /// `tilld sandbox run`.
    Scenario,
}

impl Kind {
    /// What it is called.
    const fn word(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Scenario => "scenario",
        }
    }

    const fn command(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Scenario => "sandbox run",
        }
    }

    /// The file that makes a directory one of its own, and is locked while it runs.
    fn mark(self) -> String {
        format!(".tilld-{}", self.word())
    }

    /// All it writes beside the mark. Nothing else is ever removed from a named directory.
    const fn written(self) -> &'static [&'static str] {
        match self {
            Self::Demo => &[
                "config.toml",
                "fulfil.sh",
                "fulfilled.log",
                "cancelled.sh",
                "cancelled.log",
                "serve.log",
                "state",
            ],
            Self::Scenario => &[
                "config.toml",
                "fulfil.sh",
                "fulfilled.log",
                "runs",
                "serve.log",
                "state",
            ],
        }
    }
}

/// Why there is no directory.
#[derive(Debug, thiserror::Error)]
pub(in crate::cli) enum DirectoryError {
    /// Something of somebody else is in it.
    #[error("`{}` holds something and is no directory of a {}", .1.display(), .0.word())]
    NotOurs(Kind, PathBuf),
    /// Another one runs in it.
    #[error("another {} runs in `{}`", .0.word(), .1.display())]
    InUse(Kind, PathBuf),
    /// The config names files in it, and is UTF-8.
    #[error("`{}` is no UTF-8, which the config's paths must be", .0.display())]
    NotUtf8(PathBuf),
    /// A socket lies in it, whose address has little room.
    #[error("`{}` is too long for the socket in it, by {} bytes", .0.display(), .1)]
    TooLong(PathBuf, usize),
    /// It cannot be used.
    #[error("could not use `{}` as the {}'s directory", path.display(), kind.word())]
    Io {
        /// What for.
        kind: Kind,
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
            DirectoryError::NotOurs(..) | DirectoryError::NotUtf8(_) => {
                "name an empty directory, or one that does not exist yet".to_owned()
            }
            DirectoryError::InUse(kind, _) => {
                format!("stop that {} first, or name another directory", kind.word())
            }
            DirectoryError::TooLong(..) => {
                "name a directory with a shorter path: with `--dir`, or the one for temporary files \
                 with `TMPDIR`"
                    .to_owned()
            }
            DirectoryError::Io { .. } => {
                "name a directory you may write to with `--dir`".to_owned()
            }
        };
        Self::new(Exit::Error, error).hint(hint)
    }
}

/// The directory of a demo or a scenario.
#[derive(Debug)]
pub(in crate::cli) struct Directory {
    kind: Kind,
    path: PathBuf,
    is_kept: bool,
    /// Held while it runs.
    _mark: FileLock,
}

impl Directory {
    /// A new directory among the system's temporary ones. Dropping it removes it, unless it is kept.
    pub(in crate::cli) fn temporary(kind: Kind) -> Result<Self, DirectoryError> {
        let number = u32::from_ne_bytes(entropy::bytes());
        let name = format!("tilld-{}-{number:08x}", kind.word());
        // `TMPDIR` may be relative, and what is started in other directories must find it.
        let path = std::env::temp_dir().join(name);
        let path = std::path::absolute(&path).map_err(|source| DirectoryError::Io {
            kind,
            path: path.clone(),
            source,
        })?;
        too_long(&path)?;
        let made = DirBuilder::new().mode(MODE).create(&path);
        made.map_err(|source| DirectoryError::Io {
            kind,
            path: path.clone(),
            source,
        })?;
        Self::take(kind, path, false)
    }

    /// This directory, made when it is missing and cleared when an earlier one of its kind used it. It is kept.
    pub(in crate::cli) fn named(kind: Kind, path: &Path) -> Result<Self, DirectoryError> {
        let failed = |source| DirectoryError::Io {
            kind,
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(failed)?;
        too_long(&path)?;
        let made = DirBuilder::new().recursive(true).mode(MODE).create(&path);
        made.map_err(failed)?;
        let is_empty = fs::read_dir(&path).map_err(failed)?.next().is_none();
        if !is_empty && !path.join(kind.mark()).is_file() {
            return Err(DirectoryError::NotOurs(kind, path));
        }
        let directory = Self::take(kind, path, true)?;
        directory.clear().map_err(failed)?;
        Ok(directory)
    }

    fn take(kind: Kind, path: PathBuf, is_kept: bool) -> Result<Self, DirectoryError> {
        if path.to_str().is_none() {
            return Err(DirectoryError::NotUtf8(path));
        }
        let open = || {
            let mark = path.join(kind.mark());
            File::options()
                .append(true)
                .create(true)
                .truncate(false)
                .open(mark)
        };
        let failed = |source| DirectoryError::Io {
            kind,
            path: path.clone(),
            source,
        };
        let mark = open().map_err(failed)?;
        let mark = match FileLock::take(mark, FlockOperation::NonBlockingLockExclusive) {
            Ok(held) => held,
            Err(Errno::WOULDBLOCK) => return Err(DirectoryError::InUse(kind, path)),
            Err(errno) => return Err(failed(errno.into())),
        };
        if mark.metadata().map_err(failed)?.len() == 0 {
            let told = format!(
                "`tilld {}` works in this directory and clears it when it starts here again.\n",
                kind.command()
            );
            (&*mark).write_all(told.as_bytes()).map_err(failed)?;
        }
        Ok(Self {
            kind,
            path,
            is_kept,
            _mark: mark,
        })
    }

    fn clear(&self) -> io::Result<()> {
        for name in self.kind.written() {
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
    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves it there at the end.
    pub(in crate::cli) fn keep(&mut self) {
        self.is_kept = true;
    }

    /// True when it stays at the end.
    pub(in crate::cli) fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The config every `tilld` of it reads.
    pub(in crate::cli) fn config(&self) -> PathBuf {
        self.path.join("config.toml")
    }

    /// The state directory, with the ledger in it.
    pub(in crate::cli) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    /// What the daemon says.
    pub(in crate::cli) fn serve_log(&self) -> PathBuf {
        self.path.join("serve.log")
    }

    /// The script that is run for each paid order.
    pub(in crate::cli) fn fulfil(&self) -> PathBuf {
        self.path.join("fulfil.sh")
    }

    /// What is kept of the runs of a script that is judged.
    pub(in crate::cli) fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }

    /// What that script writes: a line for each order.
    pub(in crate::cli) fn fulfilled(&self) -> PathBuf {
        self.path.join("fulfilled.log")
    }

    /// The script that is run for each order that came to nothing.
    pub(in crate::cli) fn cancelled(&self) -> PathBuf {
        self.path.join("cancelled.sh")
    }

    /// What that script writes.
    pub(in crate::cli) fn cancelled_log(&self) -> PathBuf {
        self.path.join("cancelled.log")
    }
}

/// Whether the daemon's socket still fits. Looked at before anything is made.
fn too_long(path: &Path) -> Result<(), DirectoryError> {
    let length = path.as_os_str().len() + SOCKET.len();
    match length.checked_sub(LONGEST_SOCKET) {
        None | Some(0) => Ok(()),
        Some(over) => Err(DirectoryError::TooLong(path.to_owned(), over)),
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(dir = %self.path.display(), error = %error, "could not remove the directory");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_temporary_one_is_private_and_goes_away() {
        let directory = Directory::temporary(Kind::Demo).expect("made");
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
        let first = Directory::named(Kind::Demo, &path).expect("made");
        fs::create_dir(first.state()).expect("made");
        fs::write(first.config(), "old").expect("written");
        fs::write(path.join("notes"), "mine").expect("written");
        let beside = Directory::named(Kind::Demo, &path);
        assert!(
            matches!(beside, Err(DirectoryError::InUse(..))),
            "{beside:?}"
        );
        drop(first);
        let again = Directory::named(Kind::Demo, &path).expect("a demo's directory");
        assert!(!again.state().exists() && !again.config().exists());
        assert!(path.join("notes").exists());
    }

    #[test]
    fn one_whose_socket_would_not_fit_is_refused_before_it_is_made() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("a".repeat(LONGEST_SOCKET));
        let refused = Directory::named(Kind::Scenario, &path);
        assert!(matches!(refused, Err(DirectoryError::TooLong(..))));
        assert!(!path.exists());
    }

    #[test]
    fn somebody_elses_directory_is_refused() {
        let home = tempfile::tempdir().expect("a directory");
        let file = home.path().join("thesis");
        fs::write(&file, "years of work").expect("written");
        for path in [home.path(), &file] {
            assert!(Directory::named(Kind::Demo, path).is_err());
        }
        assert!(file.exists() && !home.path().join(Kind::Demo.mark()).exists());
    }
}
