//! `tilld serve` as a child: started on a free port, stopped in order, its log kept in the directory of
//! what is played.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use super::command::{self, PATIENCE, told};
use super::directory::Directory;
use super::trouble::Trouble;

/// Ports tried: between letting a free one go and the daemon taking it, another program may have been quicker.
const PORT_TRIES: u32 = 5;
/// It is started again so often, with this pause in between, while port or lock are not free.
const START_TRIES: u32 = 50;
const START_PAUSE: Duration = Duration::from_millis(100);
/// How one ends that finds the ledger held.
const LEDGER_HELD: &str = "exit 11";
/// The daemon is given so long to stop in order. Its own bounds are shorter as it has nothing left to do.
const STOP_TIME: Duration = Duration::from_secs(10);
/// Lines of the log that are shown when something went wrong.
const TAIL_LINES: usize = 12;
/// Bytes of the log that are searched for them.
const TAIL_BYTES: u64 = 8192;

/// A running daemon. Dropping it kills it; [`Daemon::stop`] ends it in order.
#[derive(Debug)]
pub(in crate::cli) struct Daemon {
    child: Child,
    listen: SocketAddr,
}

/// How a start ended.
enum Started {
    Ready(Daemon),
    /// Another program has the port by now.
    PortTaken(Trouble),
}

impl Daemon {
    /// Has config and scripts written for an address to listen on, and starts the daemon with them. Once this returns,
    /// notifications can come.
    pub(in crate::cli) async fn start(
        directory: &Directory,
        write: impl Fn(SocketAddr) -> Result<(), Trouble>,
    ) -> Result<Self, Trouble> {
        let mut last = None;
        for _ in 0..PORT_TRIES {
            let listen = free_port().map_err(Trouble::NoPort)?;
            write(listen)?;
            match Self::start_on(directory, listen).await? {
                Started::Ready(daemon) => return Ok(daemon),
                Started::PortTaken(trouble) => last = Some(trouble),
            }
        }
        Err(last.unwrap_or_else(|| Trouble::NoPort(io::ErrorKind::AddrInUse.into())))
    }

    /// Starts it again where it listened before: the addresses it gave out stay good.
    pub(in crate::cli) async fn start_again(
        directory: &Directory,
        listen: SocketAddr,
    ) -> Result<Self, Trouble> {
        let mut tries = 0;
        loop {
            match Self::start_on(directory, listen).await {
                Ok(Started::Ready(daemon)) => return Ok(daemon),
                Ok(Started::PortTaken(trouble)) | Err(trouble) if tries >= START_TRIES => {
                    return Err(trouble);
                }
                // A connection of another program has the number for a moment.
                Ok(Started::PortTaken(_)) => {}
                // A child that was about to begin when its daemon was killed has the lock until it does.
                Err(Trouble::Command { end, .. }) if end == LEDGER_HELD => {}
                Err(trouble) => return Err(trouble),
            }
            tokio::time::sleep(START_PAUSE).await;
            tries += 1;
        }
    }

    async fn start_on(directory: &Directory, listen: SocketAddr) -> Result<Started, Trouble> {
        let path = directory.serve_log();
        let log = File::options().append(true).create(true).open(&path);
        let log = log.map_err(|source| Trouble::File { path, source })?;
        let run = |source| Trouble::Run {
            command: "serve".to_owned(),
            source,
        };
        let mut command = command::tilld(&directory.config(), &["serve"]);
        let mut child = command.stderr(log).spawn().map_err(run)?;
        let stdout = child.stdout.take().expect("stdout was piped");
        let mut lines = BufReader::new(stdout).lines();
        let line = timeout(PATIENCE, lines.next_line()).await;
        let line = line.map_err(|_elapsed| Trouble::TooSlow {
            command: "serve".to_owned(),
            limit_s: PATIENCE.as_secs(),
        })?;
        let said = line.map_err(run)?.unwrap_or_default();
        let answer: Value = serde_json::from_str(&said).unwrap_or_default();
        if answer.get("listen").is_some() {
            return Ok(Started::Ready(Self { child, listen }));
        }
        let status = child.wait().await.map_err(run)?;
        let error = answer.get("error").and_then(Value::as_str);
        let trouble = Trouble::Command {
            command: "serve".to_owned(),
            end: told(status),
            said: error.unwrap_or(&said).to_owned(),
        };
        let is_taken =
            TcpListener::bind(listen).is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        if is_taken {
            Ok(Started::PortTaken(trouble))
        } else {
            Err(trouble)
        }
    }

    /// Where notifications come to.
    pub(in crate::cli) fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Resolves when it ended by itself.
    pub(in crate::cli) async fn ended(&mut self) -> Trouble {
        match self.child.wait().await {
            Ok(status) => Trouble::DaemonEnded(told(status)),
            Err(error) => Trouble::DaemonEnded(error.to_string()),
        }
    }

    /// How it ended, when it did so by itself.
    pub(in crate::cli) fn has_ended(&mut self) -> Option<Trouble> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(Trouble::DaemonEnded(told(status)))
    }

    /// Kills it at once, as a power cut does, and waits until it is gone.
    pub(in crate::cli) async fn kill(mut self) -> Result<(), Trouble> {
        let killed = self.child.kill().await;
        killed.map_err(|source| Trouble::Run {
            command: "serve".to_owned(),
            source,
        })
    }

    /// Tells it to stop, and waits for its end. One that does not stop in time is killed.
    pub(in crate::cli) async fn stop(mut self) -> Result<(), Trouble> {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(id) = id.and_then(Pid::from_raw) {
            // Not reaped yet, so the pid is still its own. It may be on its way out already: Ctrl-C reaches it too.
            let told = kill_process(id, Signal::TERM);
            tracing::debug!(?told, "the daemon is told to stop");
        }
        let run = |source| Trouble::Run {
            command: "serve".to_owned(),
            source,
        };
        let Ok(ended) = timeout(STOP_TIME, self.child.wait()).await else {
            self.child.kill().await.map_err(run)?;
            return Err(Trouble::TooSlow {
                command: "serve".to_owned(),
                limit_s: STOP_TIME.as_secs(),
            });
        };
        let status = ended.map_err(run)?;
        if status.success() {
            Ok(())
        } else {
            Err(Trouble::otherwise(
                "the daemon to end in order",
                told(status),
            ))
        }
    }
}

/// An address of this machine that nobody listened on an instant ago.
fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// The last lines of the log, or why there are none.
pub(in crate::cli) fn tail(log: &Path) -> Vec<String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let from = file.metadata()?.len().saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let Ok(bytes) = read() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines.into_iter().skip(from).map(str::to_owned).collect()
}
