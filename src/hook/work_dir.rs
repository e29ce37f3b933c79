//! The fresh private directory a hook runs in, removed afterwards with whatever the hook left there.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::entropy;

/// The name of the document in the working directory.
const PAYLOAD_FILE: &str = "payload.json";

/// One working directory. Dropping it removes it.
#[derive(Debug)]
pub(super) struct WorkDir {
    path: PathBuf,
}

impl WorkDir {
    /// Makes a directory that only this user can enter, and in it `payload.json`, readable by this user only. Blocks.
    pub(super) fn create(parent: &Path, document: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)?;
        let path = parent.join(format!("{:016x}", u64::from_ne_bytes(entropy::bytes())));
        DirBuilder::new().mode(0o700).create(&path)?;
        let dir = Self { path };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.payload_file())?;
        file.write_all(document.as_bytes())?;
        Ok(dir)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the document lies.
    pub(super) fn payload_file(&self) -> PathBuf {
        self.path.join(PAYLOAD_FILE)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(dir = %self.path.display(), error = %error, "could not remove a hook's working directory");
        }
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
        drop(WorkDir { path });
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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
        drop(dir);
        assert_eq!(leftovers(&run), Vec::<PathBuf>::new());
    }
}
