//! Whose the ledger's files are, and who may do what with them (A44). Relies on what was made with these modes; promises one
//! sentence about the first file that somebody else owns, or that is open to more than its owner and its readers.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{FILE_NAME, SECRET_DIRECTORY, SECRET_MODE, STATE_MODE};

/// Readable and writable by the owner, readable by the reader group.
const FILE_MODE: u32 = 0o640;
/// The owner's alone.
const SECRET_FILE_MODE: u32 = 0o600;
/// What of a mode says who may do what.
const PERMISSIONS: u32 = 0o777;

/// A file or directory that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    /// Another user's.
    #[error("`{path}` belongs to user {found}, and tilld runs as user {wanted}")]
    Owner {
        /// Which.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// Who runs.
        wanted: u32,
    },
    /// Open to others, or closed to its owner.
    #[error("`{path}` has mode {found:04o}, and {wanted:04o} is wanted")]
    Mode {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
        /// As it should be.
        wanted: u32,
    },
}

impl Wrong {
    /// The line that puts it right.
    pub(crate) fn remedy(&self) -> String {
        match self {
            Self::Owner { path, wanted, .. } => {
                format!(
                    "`sudo chown {wanted} {}`, or run tilld as its owner",
                    path.display()
                )
            }
            Self::Mode { path, wanted, .. } => format!("`chmod {wanted:04o} {}`", path.display()),
        }
    }
}

/// What lies in the state directory, itself first, with the mode it must have at most.
const MODES: [(&str, u32); 6] = [
    ("", STATE_MODE),
    (SECRET_DIRECTORY, SECRET_MODE),
    (FILE_NAME, FILE_MODE),
    ("ledger.db-wal", FILE_MODE),
    ("ledger.db-shm", FILE_MODE),
    (super::restore::MARK, FILE_MODE),
];

/// What is secret. Whoever reads one of these judges it itself, so that a command which needs none is not kept from its work.
const SECRET_MODES: [(&str, u32); 2] = [
    ("secret/ledger-key", SECRET_FILE_MODE),
    ("secret/credentials", SECRET_FILE_MODE),
];

/// Looks at all there is in the state directory that the ledger is opened with. What is not there yet is made as it should
/// be.
pub(super) fn check(state_dir: &Path) -> Result<(), Wrong> {
    let runner = rustix::process::geteuid().as_raw();
    look(state_dir, MODES, runner)
}

/// The same of all there is, and for whoever runs tilld: the owner of the directory.
pub(crate) fn check_all(state_dir: &Path, owner: u32) -> Result<(), Wrong> {
    look(state_dir, MODES.into_iter().chain(SECRET_MODES), owner)
}

fn look(
    state_dir: &Path,
    all: impl IntoIterator<Item = (&'static str, u32)>,
    runner: u32,
) -> Result<(), Wrong> {
    for (name, wanted) in all {
        let path = match name {
            "" => state_dir.to_owned(),
            name => state_dir.join(name),
        };
        match fs::metadata(&path) {
            Ok(about) => judge(&path, (about.uid(), about.mode()), (runner, wanted))?,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
            // What may not be looked at is for the step that needs it to report.
            Err(_) => {}
        }
    }
    Ok(())
}

fn judge(
    path: &Path,
    (owner, mode): (u32, u32),
    (runner, wanted): (u32, u32),
) -> Result<(), Wrong> {
    if owner != runner {
        return Err(Wrong::Owner {
            path: path.to_owned(),
            found: owner,
            wanted: runner,
        });
    }
    let found = mode & PERMISSIONS;
    let owners = wanted & 0o700;
    if found & !wanted != 0 || found & owners != owners {
        return Err(Wrong::Mode {
            path: path.to_owned(),
            found,
            wanted,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_what_is_wanted_is_enough_for_others_and_not_for_the_owner() {
        let path = Path::new("/var/lib/tilld/ledger.db");
        let look =
            |owner, mode| judge(path, (owner, mode), (7, 0o640)).map_err(|wrong| wrong.to_string());
        for mode in [0o100_640, 0o100_600, 0o102_640] {
            assert_eq!(look(7, mode), Ok(()), "{mode:o}");
        }
        for (owner, mode, told) in [
            (
                7,
                0o100_644,
                "`/var/lib/tilld/ledger.db` has mode 0644, and 0640 is wanted",
            ),
            (
                7,
                0o100_660,
                "`/var/lib/tilld/ledger.db` has mode 0660, and 0640 is wanted",
            ),
            (
                7,
                0o100_440,
                "`/var/lib/tilld/ledger.db` has mode 0440, and 0640 is wanted",
            ),
            (
                8,
                0o100_640,
                "`/var/lib/tilld/ledger.db` belongs to user 8, and tilld runs as user 7",
            ),
        ] {
            assert_eq!(look(owner, mode), Err(told.to_owned()));
        }
    }
}
