//! A wall clock that a test sets, for the daemon alone: it runs under libfaketime, which leaves its monotonic clock as it
//! is. What a machine without a battery does at boot, or a time server does to it, is then one line.

use std::fs;
use std::path::{Path, PathBuf};

/// Where Debian and its kin put the library, by machine.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
];

/// The daemon's wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    dir: tempfile::TempDir,
    library: &'static str,
}

impl Clock {
    /// A clock that goes right so far; `None` where libfaketime is not there.
    pub(crate) fn find() -> Option<Self> {
        let library = LIBRARIES
            .into_iter()
            .find(|path| Path::new(path).exists())?;
        let dir = tempfile::tempdir().expect("a directory");
        let clock = Self { dir, library };
        clock.set("+0");
        Some(clock)
    }

    /// Sets it: `+180` is so many seconds ahead, `-3600` behind, `+30d` days; `@1970-01-01 00:00:10` goes on from there.
    pub(crate) fn set(&self, time: &str) {
        let new = self.dir.path().join("new");
        fs::write(&new, format!("{time}\n")).expect("written");
        fs::rename(new, self.file()).expect("in place at once");
    }

    /// The program the daemon is to run under, see [`super::Setup::under`].
    pub(crate) fn program(&self) -> Vec<String> {
        let file = self.file();
        let words = [
            "env".to_owned(),
            format!("LD_PRELOAD={}", self.library),
            format!("FAKETIME_TIMESTAMP_FILE={}", file.display()),
            "FAKETIME_NO_CACHE=1".to_owned(),
            "DONT_FAKE_MONOTONIC=1".to_owned(),
            "NO_FAKE_STAT=1".to_owned(),
        ];
        words.to_vec()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("clock")
    }
}
