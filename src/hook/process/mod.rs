//! One run of a hook's program, from the start of its process to the last of its descendants in its group.
//!
//! In steps, so that the process can be named in the ledger while nothing of the program has run yet: [`Waiting::start`]
//! gives a process that waits for its order, [`Waiting::prepare`] makes what it needs, and [`Launched::run`] sends the
//! order. Promises: own process group, fixed environment, bounded output, an end within timeout and
//! grace, no zombie. The result is the direct child's: a descendant that holds the pipes changes nothing, and what is
//! left of the group after a normal end is ended too. A descendant that left the group (`setsid`) lives on.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::capture::Reading;
use super::exposed::{self, Exposed};
use super::group::Leader;
use super::launch::{self, is_want};
use super::launcher::Launcher;
use super::order::Order;
use super::payload::{self, Facts};
use super::work_dir::WorkDir;
use crate::news;
use crate::process_mark::ProcessMark;
use crate::shutdown::Shutdown;

/// Where programs that a hook calls by name are looked for.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The locale of a hook: texts are UTF-8, everything else as everywhere.
const LANG: &str = "C.UTF-8";

/// How long the pipes are still read after the program ended; only a descendant can keep them open longer (A36).
const DRAIN: Duration = Duration::from_millis(500);

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute path of the program.
    pub path: PathBuf,
    /// Its arguments, exactly as configured: nothing from a payload comes in here (A39).
    pub args: Vec<String>,
    /// How long it may run.
    pub timeout: Duration,
    /// How long it may go on after SIGTERM.
    pub grace: Duration,
}

/// What is the same for every run.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// What starts the processes: [`launch::launcher`].
    pub launcher: Launcher,
    /// Where the fresh working directories are made.
    pub work_dir: PathBuf,
    /// `HOME` of the hook: [`launch::home`].
    pub home: PathBuf,
}

/// How a run ended, of a program or of a request to the shop's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The program ended with this exit code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It ran longer than it may, and was ended.
    TimedOut,
    /// It never ran; why. Of an address: nothing was sent.
    NotStarted(String),
    /// It never ran, for want of something that may come back: of processes, memory, descriptors, room. No attempt at all.
    Wanting(String),
    /// It was not run, since others than root and tilld's user could change it; how.
    Exposed(String),
    /// The shop's address answered.
    Answered {
        /// The HTTP status.
        status: u16,
        /// How long the shop wants to be left alone, when it said so.
        retry_after: Option<Duration>,
    },
    /// The shop's address did not answer; why. What was sent may have reached it.
    NoAnswer(String),
    /// tilld stops, and ended it: no failure.
    Interrupted,
}

impl Ending {
    /// True when a stored result tells of an answer: what was kept beside it is the answer's body.
    pub fn is_answer(result: &str) -> bool {
        result.starts_with("http ")
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signalled(signal) => write!(f, "signal {signal}"),
            Self::TimedOut => f.write_str("timeout"),
            Self::NotStarted(why) | Self::Wanting(why) | Self::Exposed(why) => {
                write!(f, "not started: {why}")
            }
            Self::Answered {
                status: status @ 300..=399,
                ..
            } => write!(f, "http {status}, redirects are not followed"),
            Self::Answered { status, .. } => write!(f, "http {status}"),
            Self::NoAnswer(why) => write!(f, "no answer: {why}"),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// First and last part of its standard output, or of the answer's body, any bytes.
    pub stdout: Vec<u8>,
    /// First and last part of its standard error, any bytes.
    pub stderr: Vec<u8>,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The working directory could not be made.
    #[error("could not make the working directory in `{}`", .0.display())]
    WorkDir(PathBuf, #[source] io::Error),
    /// Others than root and tilld's user could change what is run.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// There is no launcher, or it could start no process.
    #[error("could not start a process")]
    Spawn(#[source] io::Error),
    /// The program, its arguments and its environment are more than can be.
    #[error("what the program is to be told is too long")]
    TooLong,
}

impl LaunchError {
    /// What an attempt that ended by it comes to.
    pub fn ending(&self) -> Ending {
        match self {
            Self::WorkDir(_, cause) | Self::Spawn(cause) if is_want(cause) => {
                Ending::Wanting(self.why())
            }
            Self::Exposed(how) => Ending::Exposed(how.to_string()),
            Self::WorkDir(..) | Self::Spawn(_) | Self::TooLong => Ending::NotStarted(self.why()),
        }
    }

    /// What happened and its cause in one line, as it is stored with the attempt.
    pub fn why(&self) -> String {
        match self {
            Self::WorkDir(_, cause) | Self::Spawn(cause) => format!("{self}: {cause}"),
            Self::Exposed(_) | Self::TooLong => self.to_string(),
        }
    }
}

/// A process that waits for its order, whichever that will be. Dropping it ends the process; nothing has run.
#[derive(Debug)]
pub struct Waiting {
    leader: Leader,
    stdin: pipe::Sender,
    stdout: Reading,
    stderr: Reading,
}

/// A process that waits, and all that the program needs. Dropping it ends the process; nothing has run.
#[derive(Debug)]
pub struct Launched {
    leader: Leader,
    stdin: pipe::Sender,
    stdout: Reading,
    stderr: Reading,
    /// The order, and the document behind it.
    told: Vec<u8>,
    timeout: Duration,
    grace: Duration,
    // Last, so that it is removed after everything that might still write to it.
    work_dir: WorkDir,
}

/// What a program is told that is no hook's: a document, and variables that may name its file.
pub struct Told {
    /// The document.
    pub document: String,
    /// The variables, made when the document's file is known.
    pub variables: Variables,
}

/// Makes variables from the path of the document's file.
pub type Variables = Box<dyn FnOnce(&Path) -> Vec<(&'static str, OsString)> + Send>;

/// The whole environment of a hook: nothing of tilld's own is handed down.
pub fn environment(
    around: &Surroundings,
    facts: &Facts,
    payload_file: &Path,
) -> Vec<(&'static str, OsString)> {
    let told = payload::variables(facts, payload_file);
    fixed(around).into_iter().chain(told).collect()
}

/// What is the same for every program.
fn fixed(around: &Surroundings) -> [(&'static str, OsString); 3] {
    [
        ("PATH", PATH.into()),
        ("HOME", around.home.clone().into()),
        ("LANG", LANG.into()),
    ]
}

/// Whether a program runs without a directory of its own when none can be made.
#[derive(Clone, Copy)]
enum DirNeed {
    /// A hook may write there what it cannot do without.
    Required,
    /// What an alert says may be why: a full disk.
    Optional,
}

/// As [`launch()`], for a program that is told of something else than an event.
pub async fn launch_told(
    program: &Program,
    around: &Surroundings,
    told: Told,
) -> Result<Launched, LaunchError> {
    let waiting = Waiting::start(&around.launcher).await?;
    let Told {
        document,
        variables,
    } = told;
    let variables = |file: &Path| {
        let fixed = fixed(around).into_iter();
        fixed.chain(variables(file)).collect()
    };
    waiting
        .make_ready(program, around, (document, DirNeed::Optional), variables)
        .await
}

/// Starts the process that will run the program.
pub async fn launch(
    program: &Program,
    around: &Surroundings,
    facts: &Facts,
) -> Result<Launched, LaunchError> {
    let waiting = Waiting::start(&around.launcher).await?;
    waiting.prepare(program, around, facts).await
}

impl Waiting {
    /// Starts one.
    pub async fn start(launcher: &Launcher) -> Result<Self, LaunchError> {
        let start = async {
            let (its_stdin, stdin) = io::pipe()?;
            let (stdout, its_stdout) = io::pipe()?;
            let (stderr, its_stderr) = io::pipe()?;
            let streams = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
            let leader = Leader::start(launcher, streams).await?;
            Ok(Self {
                leader,
                stdin: pipe::Sender::from_owned_fd(OwnedFd::from(stdin))?,
                stdout: Reading::start(OwnedFd::from(stdout))?,
                stderr: Reading::start(OwnedFd::from(stderr))?,
            })
        };
        start.await.map_err(LaunchError::Spawn)
    }

    /// The process that will run the program: the same before and after.
    pub fn mark(&self) -> &ProcessMark {
        self.leader.mark()
    }

    /// False for one that somebody killed, or whose launcher somebody killed.
    pub fn waits(&mut self) -> bool {
        self.leader.runs()
    }

    /// Makes what the program needs.
    pub async fn prepare(
        self,
        program: &Program,
        around: &Surroundings,
        facts: &Facts,
    ) -> Result<Launched, LaunchError> {
        let variables = |file: &Path| environment(around, facts, file);
        let document = (payload::document(facts), DirNeed::Required);
        self.make_ready(program, around, document, variables).await
    }

    async fn make_ready(
        self,
        program: &Program,
        around: &Surroundings,
        (document, need): (String, DirNeed),
        variables: impl FnOnce(&Path) -> Vec<(&'static str, OsString)>,
    ) -> Result<Launched, LaunchError> {
        // Not in place, though to hand it over takes longer than it does: a disk that never answers must hold this run alone,
        // and not the time limits of all others.
        let (parent, content) = (around.work_dir.clone(), document.clone());
        let (path, args) = (program.path.clone(), program.args.clone());
        let made = tokio::task::spawn_blocking(move || {
            let user = rustix::process::geteuid().as_raw();
            exposed::of_run(&path, &args, user)
                .map_or_else(|| Ok(WorkDir::create(&parent, &content)), Err)
        });
        let work_dir = match made.await {
            Ok(made) => made?,
            Err(panicked) => Err(io::Error::other(panicked)),
        };
        let work_dir = match (work_dir, need) {
            (Ok(work_dir), _) => work_dir,
            (Err(error), DirNeed::Optional) => {
                tracing::warn!(dir = %around.work_dir.display(), %error, "a program runs without a directory of its own: {error}");
                WorkDir::none()
            }
            (Err(error), DirNeed::Required) => {
                return Err(LaunchError::WorkDir(around.work_dir.clone(), error));
            }
        };
        let variables = variables(&work_dir.payload_file());
        let order = Order {
            dir: work_dir.path().to_owned(),
            program: program.path.clone(),
            args: program.args.iter().map(OsString::from).collect(),
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect(),
        };
        let mut told = order.write().ok_or(LaunchError::TooLong)?;
        told.extend_from_slice(document.as_bytes());
        let Self {
            leader,
            stdin,
            stdout,
            stderr,
        } = self;
        Ok(Launched {
            leader,
            stdin,
            stdout,
            stderr,
            told,
            timeout: program.timeout,
            grace: program.grace,
            work_dir,
        })
    }
}

impl Launched {
    /// The process that will run the program: the same before and after.
    pub fn mark(&self) -> &ProcessMark {
        self.leader.mark()
    }

    /// Where the document lies while the program runs.
    pub fn payload_file(&self) -> PathBuf {
        self.work_dir.payload_file()
    }

    /// Ends the process before anything of the program has run.
    pub async fn withdraw(mut self) {
        self.leader.kill_group().await;
    }

    /// Lets the program run, and waits for its end: at the latest timeout and grace from now, or grace after the wish
    /// to stop, each plus a short drain.
    pub async fn run(self, stop: &Shutdown) -> Finished {
        // Dropped from the last to the first, should this be cut short: the directory after the process.
        let Self {
            work_dir,
            stdin,
            mut stdout,
            mut stderr,
            mut leader,
            told,
            timeout: longest,
            grace,
        } = self;
        // Ends with this function at the latest: a program that never reads its input holds nobody (and is no failure).
        let feeding = AbortOnDropHandle::new(tokio::spawn(feed(stdin, told)));
        let deadline = Instant::now() + longest;
        let forced = tokio::select! {
            biased;
            () = leader.exited() => None,
            () = stop.requested() => Some(Ending::Interrupted),
            () = sleep_until(deadline) => Some(Ending::TimedOut),
        };
        let judged_at = deadline.min(Instant::now());
        // Its end may have come while this process stood still, and wait to be read.
        let has_ended =
            forced.is_some() && news::before(judged_at, leader.exited()).await.is_some();
        let forced = forced.filter(|_| !has_ended);
        if forced.is_some() {
            leader.end_group(grace).await;
        }
        drop(feeding);
        let drained = async { tokio::join!(stdout.ended(), stderr.ended()) };
        // Not in time is the descendant's doing, and no matter: what was written until now is kept.
        let is_drained = news::within(DRAIN, drained).await.is_some();
        if !is_drained {
            tracing::debug!("a descendant of a hook still holds its output");
        }
        if !(is_drained && leader.left_nobody()) {
            leader.end_group(grace).await;
        }
        let (stdout, stderr) = (stdout.take().await, stderr.take().await);
        let status = leader.reap();
        let removed = tokio::task::spawn_blocking(move || drop(work_dir.remove_bare())).await;
        if let Err(error) = removed {
            tracing::warn!(error = %error, "could not remove a hook's working directory");
        }
        let ending = forced.unwrap_or_else(|| ending(status, &stderr));
        Finished {
            ending,
            stdout,
            stderr,
        }
    }
}

/// Sends the order and the document in one piece: a daemon that is killed leaves no program that runs without its input.
/// (What goes beyond the 64 KiB a pipe holds can still be cut: no part of an order runs, and the document's file in the
/// working directory is whole.)
async fn feed(mut stdin: impl AsyncWrite + Unpin, told: Vec<u8>) {
    if let Err(error) = stdin.write_all(&told).await {
        // A program may close its input unread.
        tracing::debug!(reason = %error, "a hook did not take all of its input");
    }
}

/// What the child's end means. The launcher's word that there was no program is told apart from a program's own 126 or 127.
fn ending(status: io::Result<ExitStatus>, stderr: &[u8]) -> Ending {
    let status = match status {
        Ok(status) => status,
        Err(error) => return Ending::NotStarted(format!("its end was lost: {error}")),
    };
    let refused = || {
        let line = stderr
            .strip_prefix(launch::COULD_NOT_START.as_bytes())?
            .strip_suffix(b"\n")?;
        Some(String::from_utf8_lossy(line).into_owned())
    };
    if status.code() == Some(i32::from(launch::WANTING))
        && let Some(why) = refused()
    {
        return Ending::Wanting(why);
    }
    let launchers_code = |code: i32| {
        [launch::NOT_FOUND, launch::NOT_RUNNABLE]
            .map(i32::from)
            .contains(&code)
    };
    match (status.code(), status.signal()) {
        (Some(code), _) if launchers_code(code) => {
            refused().map_or(Ending::Exited(code), Ending::NotStarted)
        }
        (Some(code), _) => Ending::Exited(code),
        (None, Some(signal)) => Ending::Signalled(signal),
        (None, None) => Ending::NotStarted("it has not ended".to_owned()),
    }
}

#[cfg(test)]
mod tests;
