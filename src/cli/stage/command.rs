//! tilld's own commands, run as a merchant runs them: the same binary as a child, with a clean environment, in this
//! process group, so that Ctrl-C reaches all. A child that is let go of is killed; only a process that is itself
//! killed outright leaves one behind.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::trouble::Trouble;

/// This program, even when its file was replaced or removed since it started.
const SELF: &str = "/proc/self/exe";
/// What children get of the environment. Everything else could be a setting, a token or another service manager's word.
const PASSED_ON: [&str; 7] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "RUST_BACKTRACE",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];
/// A command is given so long, the wait for the login's next poll included. It usually takes a fraction of a second.
pub(in crate::cli) const PATIENCE: Duration = Duration::from_secs(15);
/// So much of what a command says on stderr is kept, bytes.
const MOST_SAID: u64 = 4096;

/// A command of this binary that answers in JSON under this config. Killed when its handle is dropped.
pub(in crate::cli) fn tilld(config: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(SELF);
    command.arg0("tilld").args(words);
    command.arg("--json").arg("--config").arg(config);
    command.env_clear();
    for name in PASSED_ON {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a command to its end and gives its answer.
pub(in crate::cli) async fn ask(config: &Path, words: &[&str]) -> Result<Value, Trouble> {
    let mut running = Running::start(config, words)?;
    let answer = running.line().await;
    running.end().await?;
    answer
}

/// A command that runs and answers line by line.
pub(in crate::cli) struct Running {
    /// The words it was started with, for what is said about it.
    command: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    talk: ChildStderr,
}

impl Running {
    /// Starts a command.
    pub(in crate::cli) fn start(config: &Path, words: &[&str]) -> Result<Self, Trouble> {
        let command: Vec<&str> = words
            .iter()
            .copied()
            .take_while(|word| !word.starts_with('-'))
            .collect();
        let command = command.join(" ");
        let mut child = tilld(config, words)
            .spawn()
            .map_err(|source| Trouble::Run {
                command: command.clone(),
                source,
            })?;
        let stdout = child.stdout.take().expect("stdout was piped");
        let talk = child.stderr.take().expect("stderr was piped");
        let lines = BufReader::new(stdout).lines();
        Ok(Self {
            command,
            child,
            lines,
            talk,
        })
    }

    /// The next line of its answer.
    pub(in crate::cli) async fn line(&mut self) -> Result<Value, Trouble> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.map_err(|_elapsed| self.too_slow())?;
        let line = line.map_err(|source| self.not_run(source))?;
        let said = line.unwrap_or_default();
        serde_json::from_str(&said).map_err(|_no_json| Trouble::NotJson {
            command: self.command.clone(),
            said,
        })
    }

    /// Waits for its end, which must be exit code 0.
    pub(in crate::cli) async fn end(mut self) -> Result<(), Trouble> {
        let end = async {
            let mut said = Vec::new();
            let mut talk = (&mut self.talk).take(MOST_SAID);
            talk.read_to_end(&mut said).await?;
            let status = self.child.wait().await?;
            Ok((status, said))
        };
        let ended = timeout(PATIENCE, end).await;
        let ended = ended.map_err(|_elapsed| self.too_slow())?;
        let (status, said) = ended.map_err(|source| self.not_run(source))?;
        if status.success() {
            return Ok(());
        }
        Err(Trouble::Command {
            command: self.command,
            end: told(status),
            said: String::from_utf8_lossy(&said).trim().to_owned(),
        })
    }

    fn too_slow(&self) -> Trouble {
        Trouble::TooSlow {
            command: self.command.clone(),
            limit_s: PATIENCE.as_secs(),
        }
    }

    fn not_run(&self, source: std::io::Error) -> Trouble {
        Trouble::Run {
            command: self.command.clone(),
            source,
        }
    }
}

/// `exit 1`, or the signal.
pub(in crate::cli) fn told(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit {code}"),
        None => status.to_string(),
    }
}
