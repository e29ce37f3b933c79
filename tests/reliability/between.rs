//! What is put between the daemon and the kernel: `preload.c`, built with the machine's C compiler for this run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reliability/preload.c");

/// The library, and the directory it lies in.
#[derive(Debug)]
pub(crate) struct Between {
    dir: tempfile::TempDir,
}

/// How a daemon is wrong on purpose; `preload.c` says what each means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Late,
    Unsynced,
    Deaf,
    Lives,
    Aborts,
    Leaks,
}

impl Between {
    #[track_caller]
    pub(crate) fn build() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("cc");
        command.args(["-O2", "-shared", "-fPIC", "-o"]);
        command.arg(dir.path().join("between.so")).arg(SOURCE);
        let output = command.args(["-ldl", "-lpthread"]).output().expect("cc");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cc: {said}");
        Self { dir }
    }

    /// Where it records.
    pub(crate) fn record(&self) -> PathBuf {
        self.dir.path().join("record")
    }

    /// The variables of a daemon that is wrong so, as `env` and `strace -E` have them. What it does to the ledger in a directory
    /// is recorded.
    pub(crate) fn variables(&self, wrong: Option<Wrong>, recorded: Option<&Path>) -> Vec<String> {
        let path = |path: &Path| path.display().to_string();
        let mut all = vec![format!(
            "LD_PRELOAD={}",
            path(&self.dir.path().join("between.so"))
        )];
        if let Some(dir) = recorded {
            all.push(format!("BETWEEN_RECORD={}", path(&self.record())));
            all.push(format!("BETWEEN_DIR={}", path(dir)));
            // A new one is made beside its place.
            all.push("BETWEEN_MATCH=/ledger.".to_owned());
        } else {
            all.push("BETWEEN_MATCH=ledger.db".to_owned());
        }
        let word = wrong.map(|wrong| match wrong {
            Wrong::Late => "late",
            Wrong::Unsynced => "nosync",
            Wrong::Deaf => "deaf",
            Wrong::Lives => "lives",
            Wrong::Aborts => "aborts",
            Wrong::Leaks => "leaks",
        });
        all.extend(word.map(|word| format!("BETWEEN_WRONG={word}")));
        all
    }

    /// The program a daemon runs under whose clock can be taken from it: a file in this directory, named like one of its
    /// threads, is that thread's next look at the clock, which fails.
    pub(crate) fn without_a_clock(&self, wrong: Option<Wrong>) -> (Vec<String>, PathBuf) {
        let place = self.dir.path().join("clock");
        fs::create_dir_all(&place).expect("a directory");
        let mut words = self.program(wrong, None);
        words.push(format!("BETWEEN_CLOCK={}", place.display()));
        (words, place)
    }

    /// The program such a daemon runs under.
    pub(crate) fn program(&self, wrong: Option<Wrong>, recorded: Option<&Path>) -> Vec<String> {
        let mut words = vec!["/usr/bin/env".to_owned()];
        words.extend(self.variables(wrong, recorded));
        words
    }
}
