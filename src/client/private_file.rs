//! A file that nobody else may read, replaced as a whole: 0600 from its first moment, in a directory of 0700 (A22).
//!
//! Whoever reads it sees the old text or the new, whatever happens in between, and the new one is on disk before
//! [`replace`] returns. Writers take turns by a lock on the directory.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};

use crate::file_lock::FileLock;
use crate::regular_file::{self, Rule, Unfit};
use crate::secret::Secret;

const FILE_MODE: u32 = 0o600;
const DIR_MODE: u32 = 0o700;
/// Mode of the state directory, should it have to be made: its reader group may enter (design 5).
const PARENT_MODE: u32 = 0o750;
/// Largest file read, in bytes. A token and a few words have less than one KiB.
const LARGEST: u64 = 64 * 1024;

/// What went wrong with the file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// The operating system said no.
    #[error("could not {what} `{}`", path.display())]
    Io {
        /// The step, as a verb.
        what: &'static str,
        /// The path it was about.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// Others may read it: it may have been read already.
    #[error("`{}` has mode {found:04o}, wanted is {wanted:04o} or tighter", path.display())]
    Permissions {
        /// The file or directory.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
        /// The loosest ones allowed.
        wanted: u32,
    },
    /// Another user's, who could read it and put another in its place.
    #[error("`{}` belongs to user {found}, not to user {wanted}", path.display())]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// Whose it must be.
        wanted: u32,
    },
    /// A pipe, a device, a directory.
    #[error("`{}` is {kind}, not a file", path.display())]
    NotAFile {
        /// Where it lies.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// Larger than anything that belongs there.
    #[error("`{}` is larger than {} KiB", path.display(), LARGEST / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
}

impl FileError {
    fn unfit(path: &Path, unfit: Unfit) -> Self {
        let path = path.to_owned();
        match unfit {
            Unfit::Io(source) => Self::Io {
                what: "read",
                path,
                source,
            },
            Unfit::Kind(kind) => Self::NotAFile { path, kind },
            Unfit::Owner { found, wanted } => Self::Owner {
                path,
                found,
                wanted,
            },
            Unfit::Mode(found) => Self::Permissions {
                path,
                found,
                wanted: FILE_MODE,
            },
            Unfit::TooLarge(_) => Self::TooLarge { path },
        }
    }
}

fn io_error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    move |source| FileError::Io {
        what,
        path: path.to_owned(),
        source,
    }
}

/// Reads the file. `None` when there is none. Refuses one that others may read or that is another user's than the directory above
/// its own, and one in a directory others may enter.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    let Some(dir) = path.parent() else {
        return read_as(path, None, others(FILE_MODE));
    };
    let about = match fs::metadata(dir) {
        Ok(about) => about,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(io_error("look at", dir)(cause)),
    };
    // Root may look at what is another's: by whose the directory above is, it is right or wrong for its owner too.
    let above = dir.parent().unwrap_or(Path::new("/"));
    let owner = fs::metadata(above)
        .map_err(io_error("look at", above))?
        .uid();
    let found = read_as(path, Some(owner), others(FILE_MODE))?;
    if found.is_none() {
        return Ok(None);
    }
    if ![owner, 0].contains(&about.uid()) {
        return Err(FileError::Owner {
            path: dir.to_owned(),
            found: about.uid(),
            wanted: owner,
        });
    }
    tight(dir, about.mode(), DIR_MODE)?;
    Ok(found)
}

/// Reads a file whose mode somebody else answers for, of this user or of root. `None` when there is none.
pub(super) fn read_foreign(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    read_as(path, Some(rustix::process::geteuid().as_raw()), 0)
}

fn read_as(path: &Path, owner: Option<u32>, closed: u32) -> Result<Option<Vec<u8>>, FileError> {
    let rule = Rule {
        owner,
        closed,
        largest: LARGEST,
    };
    match regular_file::read(path, rule) {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(missing) if missing.is_missing() => Ok(None),
        Err(unfit) => Err(FileError::unfit(path, unfit)),
    }
}

/// What is to become of a file that was read.
pub(super) enum Change {
    /// It stays as it is.
    Keep,
    /// This takes its place.
    Replace(Secret),
    /// It goes.
    Remove,
}

/// Reads the file, decides and acts, all in one turn: no other writer comes in between. An old file that others may read
/// is an error, as for [`read`].
pub(super) fn change<T, E: From<FileError>>(
    path: &Path,
    decide: impl FnOnce(Option<Vec<u8>>) -> Result<(T, Change), E>,
) -> Result<T, E> {
    let (dir_path, dir) = locked_dir(path)?;
    let (answer, change) = decide(read(path)?)?;
    match change {
        Change::Keep => {}
        Change::Replace(text) => put(path, text.expose().as_bytes(), &dir_path, &dir)?,
        Change::Remove => drop(take_away(path, &dir_path, &dir)?),
    }
    Ok(answer)
}

/// Puts `text` in the file's place. Until it returns, and after an error, the old one stands.
pub(super) fn replace(path: &Path, text: &[u8]) -> Result<(), FileError> {
    let (dir_path, dir) = locked_dir(path)?;
    put(path, text, &dir_path, &dir)
}

fn put(path: &Path, text: &[u8], dir_path: &Path, dir: &File) -> Result<(), FileError> {
    let fresh = write_beside(path, text)?;
    if let Err(cause) = fs::rename(&fresh, path) {
        discard(&fresh);
        return Err(io_error("replace", path)(cause));
    }
    dir.sync_all().map_err(io_error("sync", dir_path))
}

/// Does all of [`replace`] but the last step, with `size` bytes of nothing. The old file is not touched.
pub(super) fn rehearse(path: &Path, size: usize) -> Result<(), FileError> {
    let (_dir_path, _dir) = locked_dir(path)?;
    let fresh = write_beside(path, &vec![b' '; size])?;
    fs::remove_file(&fresh).map_err(io_error("remove", &fresh))
}

/// Removes the file, and what a crash may have left beside it. False when there was none.
pub(super) fn remove(path: &Path) -> Result<bool, FileError> {
    let dir_path = path.parent().unwrap_or(Path::new("."));
    if !dir_path.exists() {
        return Ok(false);
    }
    let (dir_path, dir) = locked_dir(path)?;
    take_away(path, &dir_path, &dir)
}

fn take_away(path: &Path, dir_path: &Path, dir: &File) -> Result<bool, FileError> {
    discard(&beside(path));
    match fs::remove_file(path) {
        Ok(()) => dir
            .sync_all()
            .map_err(io_error("sync", dir_path))
            .map(|()| true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(io_error("remove", path)(cause)),
    }
}

/// The file's directory, made or tightened to 0700, open and locked. The lock ends with the handle.
fn locked_dir(path: &Path) -> Result<(PathBuf, FileLock), FileError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    if let Some(above) = dir.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(PARENT_MODE)
            .create(above)
            .map_err(io_error("make", above))?;
    }
    match DirBuilder::new().mode(DIR_MODE).create(dir) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
            return Err(io_error("make", dir)(cause));
        }
        Ok(()) | Err(_) => {}
    }
    let is_directory = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or_default();
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(is_directory)
        .open(dir)
        .map_err(io_error("open", dir))?;
    let found = open.metadata().map_err(io_error("look at", dir))?;
    if found.mode() & 0o7777 != DIR_MODE {
        open.set_permissions(Permissions::from_mode(DIR_MODE))
            .map_err(io_error("set the mode of", dir))?;
    }
    let held = FileLock::take(open, FlockOperation::LockExclusive)
        .map_err(|errno| io_error("lock", dir)(errno.into()))?;
    Ok((dir.to_owned(), held))
}

/// Writes a new file in the same directory, to disk. A leftover of a crash is removed first: the lock says nobody is
/// writing it.
fn write_beside(path: &Path, text: &[u8]) -> Result<PathBuf, FileError> {
    let fresh = beside(path);
    discard(&fresh);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(&fresh)
        .and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
    match written {
        Ok(()) => Ok(fresh),
        Err(cause) => {
            discard(&fresh);
            Err(io_error("write", &fresh)(cause))
        }
    }
}

fn beside(path: &Path) -> PathBuf {
    path.with_added_extension("new")
}

/// Removes what is in the way. A failure shows at the next step, which creates the same name or leaves it unused.
fn discard(path: &Path) {
    drop(fs::remove_file(path));
}

/// What a mode must not have beyond this one.
const fn others(wanted: u32) -> u32 {
    0o777 & !(wanted | 0o700)
}

fn tight(path: &Path, mode: u32, wanted: u32) -> Result<(), FileError> {
    if mode & others(wanted) == 0 {
        return Ok(());
    }
    Err(FileError::Permissions {
        path: path.to_owned(),
        found: mode & 0o7777,
        wanted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("own file");
    }

    #[test]
    fn file_and_directory_are_tight_and_stay_so() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("state/secret/credentials");
        replace(&path, b"one").expect("written");
        assert_eq!(
            (mode(&path), mode(path.parent().expect("parent"))),
            (0o600, 0o700)
        );

        // A looser file and directory from elsewhere: refused when read, tightened when replaced.
        set_mode(&path, 0o644);
        assert!(matches!(
            read(&path),
            Err(FileError::Permissions {
                found: 0o644,
                wanted: 0o600,
                ..
            })
        ));
        set_mode(&path, 0o600);
        set_mode(path.parent().expect("parent"), 0o755);
        assert!(matches!(
            read(&path),
            Err(FileError::Permissions {
                found: 0o755,
                wanted: 0o700,
                ..
            })
        ));
        set_mode(&path, 0o644);
        replace(&path, b"two").expect("written");
        assert_eq!(
            (mode(&path), mode(path.parent().expect("parent"))),
            (0o600, 0o700)
        );
        assert_eq!(read(&path).expect("readable").as_deref(), Some(&b"two"[..]));
        assert_eq!(
            fs::read_dir(path.parent().expect("parent"))
                .expect("a directory")
                .count(),
            1
        );
    }

    #[test]
    fn a_leftover_of_a_crash_is_in_nobodys_way_and_does_not_outlive_a_logout() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("secret/credentials");
        assert!(!remove(&path).expect("nothing there"));
        replace(&path, b"one").expect("written");
        fs::write(beside(&path), b"half").expect("written");
        rehearse(&path, 1_024).expect("writable");
        assert_eq!(read(&path).expect("readable").as_deref(), Some(&b"one"[..]));
        fs::write(beside(&path), b"half").expect("written");
        assert!(remove(&path).expect("removed"));
        assert_eq!(
            fs::read_dir(home.path().join("secret"))
                .expect("a directory")
                .count(),
            0
        );
        assert!(!remove(&path).expect("nothing there"));
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("secret/credentials");
        replace(&path, b"one").expect("written");
        // A directory in the way of the new file stops any user, root too.
        fs::create_dir_all(beside(&path).join("x")).expect("made");
        assert!(matches!(
            replace(&path, b"two"),
            Err(FileError::Io { what: "write", .. })
        ));
        assert!(rehearse(&path, 1).is_err());
        assert_eq!(read(&path).expect("readable").as_deref(), Some(&b"one"[..]));
    }

    #[test]
    fn a_file_of_another_kind_is_not_swallowed_whole() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("large");
        fs::write(&path, vec![b'x'; 70_000]).expect("written");
        assert!(matches!(
            read_foreign(&path),
            Err(FileError::TooLarge { .. })
        ));
    }
}
