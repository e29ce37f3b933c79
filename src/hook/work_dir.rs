//! The fresh private directory a hook runs in, removed afterwards with whatever the hook left there.

use std::fs::{self, DirBuilder, DirEntry, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::entropy;

/// The name of the document in the working directory.
const PAYLOAD_FILE: &str = "payload.json";

/// One working directory. Dropping it removes it.
#[derive(Debug)]
pub(super) struct WorkDir {
    path: PathBuf,
    is_removed: bool,
}

impl WorkDir {
    /// Makes a directory that only this user can enter, and in it `payload.json`, readable by this user only. Blocks, for
    /// three calls.
    pub(super) fn create(parent: &Path, document: &str) -> io::Result<Self> {
        let path = parent.join(format!("{:016x}", u64::from_ne_bytes(entropy::bytes())));
        let mut private = DirBuilder::new();
        let made = private.mode(0o700).create(&path);
        made.or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            private.recursive(true).create(parent)?;
            private.recursive(false).create(&path)
        })?;
        let dir = Self::at(path);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.payload_file())?;
        file.write_all(document.as_bytes())?;
        Ok(dir)
    }

    /// The root directory, which is left alone.
    pub(super) fn none() -> Self {
        let (path, is_removed) = (PathBuf::from("/"), true);
        Self { path, is_removed }
    }

    fn at(path: PathBuf) -> Self {
        let is_removed = false;
        Self { path, is_removed }
    }

    /// Removes it when nothing but the document is left in it, which two calls do. Otherwise it is given back. Blocks.
    pub(super) fn remove_bare(mut self) -> Result<(), Self> {
        if self.is_removed {
            return Ok(());
        }
        // Whatever keeps the document there keeps the directory as well.
        fs::remove_file(self.payload_file()).unwrap_or_default();
        self.is_removed = fs::remove_dir(&self.path).is_ok();
        if self.is_removed { Ok(()) } else { Err(self) }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the document lies: on the standard input alone, without a directory.
    pub(super) fn payload_file(&self) -> PathBuf {
        if self.is_removed {
            return PathBuf::from("/dev/stdin");
        }
        self.path.join(PAYLOAD_FILE)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let removed = fs::remove_dir_all(&self.path).or_else(|error| {
            if error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            // A hook may take from its directories what is needed to look into them; they are ours to open again.
            open_up(&self.path);
            fs::remove_dir_all(&self.path)
        });
        if let Err(error) = removed {
            tracing::warn!(dir = %self.path.display(), error = %error, "could not remove a hook's working directory");
        }
    }
}

/// Gives their owner every right to a directory and to those in it, as far as it can; no link is followed. Blocks.
fn open_up(path: &Path) {
    let mut closed = vec![path.to_owned()];
    while let Some(dir) = closed.pop() {
        // What cannot be opened is told when it cannot be removed.
        let opened = fs::set_permissions(&dir, Permissions::from_mode(0o700));
        let entries = opened.and_then(|()| fs::read_dir(&dir));
        let inner = entries.into_iter().flatten().flatten();
        let is_dir = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        closed.extend(inner.filter(is_dir).map(|entry| entry.path()));
    }
}

/// The directories an earlier daemon left in `parent`. Blocks.
pub fn leftovers(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect()
}

/// Removes what [`leftovers`] found, once nobody can run there any more. Blocks.
pub fn remove(leftovers: Vec<PathBuf>) {
    for path in leftovers {
        drop(WorkDir::at(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_private_and_vanishes_with_its_content() {
        let parent = tempfile::tempdir().expect("a directory");
        let run = parent.path().join("run");
        let dir = WorkDir::create(&run, "{}").expect("made");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(dir.path()), mode(&dir.payload_file())),
            (0o700, 0o600)
        );
        fs::create_dir(dir.path().join("sub")).expect("made");
        assert_eq!(leftovers(&run), [dir.path()]);
        let dir = dir.remove_bare().expect_err("it is not bare");
        drop(dir);
        assert_eq!(leftovers(&run), Vec::<PathBuf>::new());
        for taken_along in [true, false] {
            let dir = WorkDir::create(&run, "{}").expect("made");
            if taken_along {
                fs::remove_file(dir.payload_file()).expect("there");
            }
            assert!(dir.remove_bare().is_ok());
            assert_eq!(leftovers(&run), Vec::<PathBuf>::new());
        }
    }
}
