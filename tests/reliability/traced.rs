//! Faults of the kernel's answers, by strace: from the daemon's start on, or for a while in one that runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{PATIENCE, Process, wait_until};

/// The calls that write the ledger durably. Builds differ in which of the two syncs they use.
pub(crate) const SYNCS: &str = "fsync,fdatasync";

/// The program that a daemon runs under, which injects `fault` into these calls on the paths, or on all where there are
/// none. With variables for the daemon.
pub(crate) fn from_start(
    trace: &Path,
    calls: &str,
    fault: &str,
    paths: &[PathBuf],
    variables: &[String],
) -> Vec<String> {
    // `-D`: tilld is the child, strace a grandchild, so that signals and exit code are tilld's own.
    let mut words: Vec<String> = ["strace", "-D"].map(str::to_owned).to_vec();
    words.extend(arguments(trace, calls, fault, paths));
    for variable in variables {
        words.extend(["-E".to_owned(), variable.clone()]);
    }
    words
}

fn arguments(trace: &Path, calls: &str, fault: &str, paths: &[PathBuf]) -> Vec<String> {
    let trace = trace.display().to_string();
    let mut words: Vec<String> = ["-f", "-qq", "-ttt", "-o", &trace]
        .map(str::to_owned)
        .to_vec();
    words.extend(["-e".to_owned(), format!("trace={calls}")]);
    if !fault.is_empty() {
        words.extend(["-e".to_owned(), format!("inject={calls}:{fault}")]);
    }
    for path in paths {
        words.extend(["-P".to_owned(), path.display().to_string()]);
    }
    words
}

/// A fault in a daemon that runs already, until it is let go.
#[derive(Debug)]
pub(crate) struct Tracer {
    strace: Process,
    trace: PathBuf,
}

impl Tracer {
    /// Begins to inject, or only to look where there is no fault; comes back when strace holds all of the daemon's threads.
    #[track_caller]
    pub(crate) fn attach(pid: u32, dir: &Path, name: &str, calls: &str, fault: &str) -> Self {
        let trace = dir.join(format!("{name}.trace"));
        let mut command = Command::new("strace");
        command.args(arguments(&trace, calls, fault, &[]));
        let strace = Process::spawn(command.arg("-p").arg(pid.to_string()), dir, name);
        let is_traced = || {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
            tasks.flatten().all(|task| {
                let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                !status.contains("TracerPid:\t0\n")
            })
        };
        wait_until(PATIENCE, "strace to be there", is_traced);
        Self { strace, trace }
    }

    /// Ends the fault; the daemon goes on. Gives how often it was injected.
    #[track_caller]
    pub(crate) fn let_go(mut self) -> usize {
        self.strace.signal(Signal::INT);
        self.strace.wait(PATIENCE);
        injected(&self.trace)
    }

    /// Lets go. Gives the lines of what was called.
    #[track_caller]
    pub(crate) fn calls(mut self) -> Vec<String> {
        self.strace.signal(Signal::INT);
        self.strace.wait(PATIENCE);
        let text = fs::read(&self.trace).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().map(str::to_owned).collect()
    }

    /// How often it was injected so far.
    pub(crate) fn injected(&self) -> usize {
        injected(&self.trace)
    }
}

/// How often a trace says that something was injected.
pub(crate) fn injected(trace: &Path) -> usize {
    let text = fs::read(trace).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .filter(|line| line.contains("(INJECTED)") || line.contains("(DELAYED)"))
        .count()
}
