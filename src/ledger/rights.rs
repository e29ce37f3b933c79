//! Whose the ledger's files are, and who may do what with them (A44). Relies on what was made with these modes; promises one
//! sentence about the first file that somebody else owns, or that is open to more than its owner and its readers.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::{FILE_NAME, SECRET_DIRECTORY, SECRET_MODE, STATE_MODE};

/// Readable and writable by the owner, readable by the reader group.
const FILE_MODE: u32 = 0o640;
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

/// Looks at all there is in the state directory. What is not there yet is made as it should be.
pub(super) fn check(state_dir: &Path) -> Result<(), Wrong> {
    let runner = rustix::process::geteuid().as_raw();
    let file = |name: &str| (state_dir.join(name), FILE_MODE);
    let all = [
        (state_dir.to_owned(), STATE_MODE),
        (state_dir.join(SECRET_DIRECTORY), SECRET_MODE),
        file(FILE_NAME),
        file("ledger.db-wal"),
        file("ledger.db-shm"),
        file(super::restore::MARK),
    ];
    for (path, wanted) in all {
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
