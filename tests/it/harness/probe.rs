//! Requests nobody would think of: schemathesis makes them of a description, right and wrong ones, and holds every answer
//! against it. The description is believed by nobody.
//!
//! One probe at a time in this process: each fills a machine of two cores.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

static PROBING: Mutex<()> = Mutex::new(());

/// How something is probed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe<'a> {
    /// Where it may write.
    pub(crate) dir: &'a Path,
    /// The `OpenAPI` text.
    pub(crate) description: &'a str,
    /// Where requests go.
    pub(crate) url: &'a str,
    /// Header lines of every request.
    pub(crate) headers: &'a [&'a str],
    /// What parameters are always, as schemathesis has it in its own config.
    pub(crate) parameters: &'a str,
    /// Checks that are left out.
    pub(crate) without: &'a str,
    /// Which kinds of requests are made.
    pub(crate) phases: &'a str,
    /// Made-up requests of each kind.
    pub(crate) examples: u32,
    /// Other ones make other requests up.
    pub(crate) seed: u64,
}

/// Why nothing can be probed here. `.ci/run` puts the library into its place.
pub(crate) fn cannot_probe() -> Option<String> {
    let library = library();
    let is_there = library.join("schemathesis").exists();
    (!is_there).then(|| format!("schemathesis is not in {}", library.display()))
}

fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/schemathesis")
}

impl Probe<'_> {
    /// Makes the requests: nothing may be found. Gives what was said of it.
    #[track_caller]
    pub(crate) fn finds_nothing(&self) -> Said {
        let _alone = PROBING.lock().unwrap_or_else(PoisonError::into_inner);
        let file = |name: &str, text: &str| fs::write(self.dir.join(name), text).expect("written");
        file("openapi.json", self.description);
        file("schemathesis.toml", self.parameters);
        let (examples, seed) = (self.examples.to_string(), self.seed.to_string());
        let mut command = Command::new("python3");
        command
            .env("PYTHONPATH", library())
            // What it takes out of sets comes in an order that a seed of their hashes decides.
            .env("PYTHONHASHSEED", &seed)
            .current_dir(self.dir)
            .stdin(Stdio::null())
            .args(["-m", "schemathesis.cli"])
            .args(["--config-file", "schemathesis.toml"])
            .args(["run", "openapi.json", "--checks", "all"])
            .args(["--exclude-checks", self.without])
            .args(["--phases", self.phases, "--max-examples", &examples])
            // No bound of time: a slow machine makes the same requests, and a quick one no more of them.
            .args(["--request-timeout", "30"])
            .args(["--suppress-health-check", "all", "--continue-on-failure"])
            .args(["--seed", &seed, "--url", self.url]);
        for line in self.headers {
            command.args(["--header", line]);
        }
        let output = command.output().expect("python3 runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seed {seed}: {said}{talk}");
        Said(said)
    }
}

/// What schemathesis said.
#[derive(Debug)]
pub(crate) struct Said(String);

impl Said {
    /// All the operations of the description were tried, by so many requests at least.
    #[track_caller]
    pub(crate) fn tried(&self, operations: u32, at_least: u32) {
        let Self(said) = self;
        let made: Option<u32> = said.lines().find_map(|line| {
            let (count, _) = line.trim().split_once(" generated, ")?;
            count.trim().parse().ok()
        });
        assert!(made.is_some_and(|made| made > at_least), "{said}");
        assert!(said.contains(&format!("Tested: {operations}")), "{said}");
    }
}
