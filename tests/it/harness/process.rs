//! Child processes of a scenario: their output goes into files, they are waited for with a bound, and none is left.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::{PATIENCE, wait_for, wait_until};

/// How much of a log is shown after a failure, bytes.
const SHOWN: usize = 16 * 1024;

/// What a command said, and how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    /// Exit code; 128 and the signal when one ended it.
    pub(crate) code: i32,
    /// Its data.
    pub(crate) stdout: String,
    /// Its talk.
    pub(crate) stderr: String,
}

/// A running child. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Process {
    /// Starts `command`; its output is appended to `NAME.out` and `NAME.err` in `dir`.
    #[track_caller]
    pub(crate) fn spawn(command: &mut Command, dir: &Path, name: &str) -> Self {
        Self::spawn_with(command, Stdio::null(), dir, name)
    }

    /// [`Process::spawn`] with this as its standard input.
    #[track_caller]
    pub(crate) fn spawn_with(command: &mut Command, stdin: Stdio, dir: &Path, name: &str) -> Self {
        let path = |end: &str| dir.join(format!("{name}.{end}"));
        let (stdout, stderr) = (path("out"), path("err"));
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            Stdio::from(file.expect("a log file"))
        };
        command.stdin(stdin);
        command.stdout(open(&stdout)).stderr(open(&stderr));
        let child = command.spawn().expect("the program starts");
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// [`Process::spawn`] with this as its stdout.
    #[track_caller]
    fn spawn_into(command: &mut Command, into: Stdio, dir: &Path, name: &str) -> Self {
        let path = |end: &str| dir.join(format!("{name}.{end}"));
        let (stdout, stderr) = (path("out"), path("err"));
        let errors = File::create(&stderr).expect("a log file");
        command.stdin(Stdio::null()).stdout(into).stderr(errors);
        let child = command.spawn().expect("the program starts");
        Self {
            child,
            stdout,
            stderr,
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// All it has written to stdout.
    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// All it has written to stderr.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of ours")
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw);
        // It may have ended by itself; whoever waits for it sees how.
        kill_process(pid.expect("a process id"), signal).unwrap_or_default();
        if signal == Signal::STOP {
            wait_until(PATIENCE, "all of its threads to stand still", || {
                self.stands_still()
            });
        }
    }

    /// True when none of its threads runs: a signal reaches a busy one a little later.
    fn stands_still(&self) -> bool {
        let threads = fs::read_dir(format!("/proc/{}/task", self.pid())).expect("a process");
        threads.flatten().all(|thread| {
            let about = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            about.contains("State:\tT") || about.contains("State:\tZ") || about.is_empty()
        })
    }

    /// Waits for its end; panics after `bound`.
    #[track_caller]
    pub(crate) fn wait(&mut self, bound: Duration) -> i32 {
        let what = format!("the end of process {}", self.pid());
        code(wait_for(bound, &what, || self.ended()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Nothing is asked of it any more.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Runs a command to its end, within [`PATIENCE`].
#[track_caller]
pub(crate) fn run(command: &mut Command, dir: &Path, name: &str) -> Ran {
    ran(Process::spawn(command, dir, name))
}

/// [`run`] with this as the command's stdout.
#[track_caller]
pub(super) fn run_into(command: &mut Command, stdout: Stdio, dir: &Path, name: &str) -> Ran {
    ran(Process::spawn_into(command, stdout, dir, name))
}

#[track_caller]
fn ran(mut process: Process) -> Ran {
    let code = process.wait(PATIENCE);
    Ran {
        code,
        stdout: process.stdout(),
        stderr: process.stderr(),
    }
}

fn code(status: ExitStatus) -> i32 {
    let signal = || status.signal().unwrap_or_default() + 128;
    status.code().unwrap_or_else(signal)
}

/// A text file; what is not there is empty.
pub(crate) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// The end of every log in `dir`, for a person who looks for the cause of a failure.
pub(crate) fn logs(dir: &Path) -> String {
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .collect();
    paths.sort();
    let shown = paths.iter().map(|path| {
        let text = read(path);
        let skipped = text.len().saturating_sub(SHOWN);
        let tail: String = text
            .char_indices()
            .filter(|(at, _)| *at >= skipped)
            .map(|(_, letter)| letter)
            .collect();
        format!("--- {}\n{tail}\n", path.display())
    });
    shown.collect()
}

/// Whether all that a daemon has logged so far is written: the thread that writes it waits for more. True of a process that has
/// ended, or has no such thread.
pub(crate) fn log_is_out(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let mut stats =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.all(|stat| {
        let name = stat
            .split_once('(')
            .and_then(|(_, rest)| rest.split_once(") "));
        name.is_none_or(|(name, rest)| name != "log" || rest.starts_with('S'))
    })
}

/// Every process whose parent is `parent`, with its state as `/proc` has it (`Z` is a zombie).
pub(crate) fn children(parent: u32) -> Vec<(u32, char)> {
    let parent = parent.to_string();
    let stat = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        (fields.next()? == parent).then_some((pid, state))
    };
    pids().filter_map(stat).collect()
}

/// The same of everybody below it: the launcher is the daemon's child, and the hooks are the launcher's.
pub(crate) fn descendants(parent: u32) -> Vec<(u32, char)> {
    let mut found = children(parent);
    let mut looked_at = 0;
    while let Some((pid, _)) = found.get(looked_at).copied() {
        found.extend(children(pid));
        looked_at += 1;
    }
    found
}

/// Command lines of the processes that name `dir` or work in it.
pub(crate) fn running_in(dir: &Path) -> Vec<String> {
    let named = dir.to_string_lossy().into_owned();
    let shown = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let works_there = fs::read_link(format!("/proc/{pid}/cwd"))
            .is_ok_and(|directory| directory.starts_with(dir));
        (works_there || line.contains(&named)).then(|| format!("{pid}: {line}"))
    };
    pids().filter_map(shown).collect()
}

fn pids() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}
