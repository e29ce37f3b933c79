//! The only place that wires tasks: what runs beside what, who is told to stop, and in which order it ends.
//!
//! Three loops run: the listener, the poller and the outbox, each with the ledger's handles and in a thread of its own
//! (`apart`). Beside them stored invoices are looked over when the lists of status names changed. When one ends before it was
//! told to, or the writer does, the daemon stops the others and ends with an error, so that systemd starts it anew: a
//! daemon that lives on with a part of it dead would look well and do nothing.

mod apart;
pub(crate) mod control;
mod lock;
pub(crate) mod plain;
mod reassess;
mod schedule;
pub(crate) mod status;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sd_notify::NotifyState;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::config::Settings;
use crate::hook::UnknownSelector;
use crate::http::Certificates;
use crate::ledger::{self, Ledger, OpenError};
use crate::listener::{self, LedgerBook};
use crate::shutdown::Shutdown;
use crate::{outbox, poller};

pub(crate) use lock::{LockError, is_served};

use lock::ServeLock;
use plain::ListenerError;
use schedule::{BellError, CronBell};

/// Files are made readable by the group at most, and hooks inherit it: 0027.
const UMASK: u32 = 0o027;
/// On top of what the loops promise, a stop may take this long before the process ends all the same.
const STOP_MARGIN: Duration = Duration::from_secs(5);
/// Tries for the serve lock: a command that asks whether a daemon runs holds it for an instant, and so does a child that a
/// killed daemon was just beginning, until it becomes the hook's program. A second in all, for nobody starts again what ended
/// with the code for a held lock.
const LOCK_TRIES: u32 = 50;
/// Between two of them.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// What `serve` was given.
pub(crate) struct Start {
    /// The settings.
    pub settings: Settings,
    /// The state directory.
    pub state_dir: PathBuf,
    /// The address notifications come to, required and checked.
    pub public_url: String,
    /// The service.
    pub client: Client,
    /// The control socket, when systemd handed one over.
    pub control: Option<std::os::unix::net::UnixListener>,
    /// Called once with the address listened on, when notifications can come.
    pub ready: Box<dyn FnOnce(SocketAddr) + Send>,
}

/// Why the daemon did not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The ledger cannot be used.
    #[error(transparent)]
    Ledger(#[from] OpenError),
    /// Another daemon runs.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A hook's selector is unknown.
    #[error("could not read a hook's selectors")]
    Selector(#[from] UnknownSelector),
    /// Notifications cannot be heard as the settings say.
    #[error(transparent)]
    Listener(#[from] ListenerError),
    /// The address is taken or not ours.
    #[error("could not listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no control socket.
    #[error("could not open the control socket")]
    Control(#[from] control::SocketError),
    /// Signals cannot be heard.
    #[error("could not wait for signals")]
    Signals(#[source] io::Error),
    /// A thread of its own cannot be started.
    #[error("could not start the thread of {part}")]
    Thread {
        /// Which part's.
        part: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The scheduler cannot be started.
    #[error("could not start the poller's bell")]
    Bell(#[source] BellError),
    /// A part of the daemon ended before it was told to.
    #[error("{0} ended by itself")]
    Ended(&'static str),
}

/// Makes files readable by the group at most from now on, in this process and in the hooks it runs.
pub(crate) fn set_umask() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(UMASK));
}

/// Runs until SIGTERM, SIGINT or SIGHUP, then stops in order: no new work, running hooks finish, what was heard is stored.
/// A second SIGTERM or SIGINT ends running hooks at once; they run again after the next start.
pub(crate) async fn run(mut start: Start) -> Result<(), Error> {
    set_umask();
    let mut stop = StopSignals::new().map_err(Error::Signals)?;
    ledger::prepare(&start.state_dir)?;
    // Before the ledger is opened: a newer tilld would bring it to its schema under the one that serves it.
    let lock = take_lock(&start.state_dir).await?;
    let (asked, control_path) = control::socket(&mut start)?;
    let Start {
        settings,
        state_dir,
        public_url,
        client,
        control: _taken,
        ready,
    } = start;
    let ledger = Ledger::open(plain::ledger_options(&settings, state_dir.clone())?)?;
    let heard = plain::listener_settings(&settings, &public_url)?;
    let certificates = heard.certificates.clone();
    let hooks = plain::outbox_settings(&settings, &state_dir);
    let served = control::settings(&settings, &public_url);
    let within = [heard.drain, hooks.stop_within(), served.stop_within()];
    let within = within.into_iter().max().unwrap_or_default() + STOP_MARGIN;

    let (socket, address) = take_port(settings.listener.listen).await?;
    let bell = CronBell::start(Duration::from_secs(settings.poller.cadence_s))
        .await
        .map_err(Error::Bell)?;

    warn_of_setup(&settings);
    let shutdown = Shutdown::new();
    let bells = ledger.bells();
    let mut loops: JoinSet<&'static str> = JoinSet::new();
    let (reader, writer) = (ledger.reader(), ledger.writer());
    let book = LedgerBook {
        reader: reader.for_a_thread(),
        writer: writer.clone(),
    };
    let stopping = shutdown.clone();
    beside(&mut loops, "listener", "the listener", move || {
        listen(socket, heard, book, stopping)
    })?;
    let gate = Gate::new(plain::gate_limits(&settings));
    let parts = control::parts(
        (&settings, &state_dir),
        (writer.clone(), reader.clone()),
        (client.clone(), gate.clone()),
        bells.told,
    );
    let stopping = shutdown.clone();
    beside(&mut loops, "control", "the control socket", move || {
        answer(asked, served, parts, stopping)
    })?;
    let parts = poller::Parts {
        writer: writer.clone(),
        reader: reader.for_a_thread(),
        client,
        gate,
        store: Store::new(&state_dir),
        elsewhere: Elsewhere::of_daemon(),
    };
    let (polls, stopping) = (plain::poller_settings(&settings), shutdown.clone());
    beside(&mut loops, "poller", "the poller", move || async move {
        parts.reader.furnish().await;
        poller::run(parts, polls, bell, bells.ask, stopping).await;
    })?;
    let (over, all) = (writer.clone(), reader.clone());
    let stopping = shutdown.clone();
    loops.spawn(async move {
        reassess::run(over, all, stopping).await;
        "the look over stored invoices"
    });
    let hurry = Shutdown::new();
    let wishes = outbox::Wishes {
        stop: shutdown.clone(),
        hurry: hurry.clone(),
    };
    beside(&mut loops, "outbox", "the outbox", move || {
        outbox::run(writer, reader, hooks, bells.owed, wishes)
    })?;

    tracing::info!(control = %control_path.display(), "tilld answers on {}", control_path.display());
    tracing::info!(listen = %address, state_dir = %state_dir.display(), "tilld serves on {address}");
    tell_systemd(&[NotifyState::Ready]);
    ready(address);
    let ended = supervise(&mut stop, &mut loops, &ledger, certificates.as_ref()).await;
    tell_systemd(&[NotifyState::Stopping]);
    shutdown.request();
    let finished = finish(loops, within);
    tokio::pin!(finished);
    tokio::select! {
        () = &mut finished => {}
        name = stop.pressed() => {
            tracing::warn!(signal = name, "tilld is asked to stop again: running hooks are ended now");
            hurry.request();
            finished.await;
        }
    }
    ledger.close(STOP_MARGIN).await;
    drop(lock);
    tracing::info!("tilld has stopped");
    ended
}

/// Takes the listener's port, and says which it is. Each runtime has its own list of sockets to look at, so it is on none.
async fn take_port(address: SocketAddr) -> Result<(std::net::TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { address, source };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let taken = socket.local_addr().map_err(failed)?;
    Ok((socket.into_std().map_err(failed)?, taken))
}

/// Starts a part in a thread of its own. Its end is heard by its name.
fn beside<Part: Future<Output = ()>>(
    loops: &mut JoinSet<&'static str>,
    thread: &'static str,
    name: &'static str,
    part: impl FnOnce() -> Part + Send + 'static,
) -> Result<(), Error> {
    let ended =
        apart::start(thread, part).map_err(|source| Error::Thread { part: name, source })?;
    loops.spawn(async move {
        ended.await;
        name
    });
    Ok(())
}

/// Hears notifications until the stop.
async fn listen(
    socket: std::net::TcpListener,
    settings: listener::Settings,
    book: LedgerBook,
    stop: Shutdown,
) {
    let socket = match TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(reason = %error, "the listener's socket could not be waited for");
            return;
        }
    };
    book.reader.furnish().await;
    let served = listener::run(socket, settings, book, stop).await;
    tracing::info!(?served, "the listener has stopped");
}

/// Answers the shop until the stop.
async fn answer(
    socket: std::os::unix::net::UnixListener,
    settings: crate::control::Settings,
    parts: crate::control::Parts,
    stop: Shutdown,
) {
    let socket = match UnixListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!(reason = %error, "the control socket could not be waited for");
            return;
        }
    };
    let served = crate::control::run(socket, settings, parts, stop).await;
    tracing::info!(?served, "the control socket is closed");
}

/// Says what works, and not as anybody would want it.
fn warn_of_setup(settings: &Settings) {
    if settings.statuses.paid.is_empty() {
        tracing::warn!(
            "no status means paid yet: no invoice will ever count as paid until `[statuses] paid` names one"
        );
    }

    if let Some(advice) = advice_for(std::process::id()) {
        tracing::warn!("{advice}");
    }
}

/// What is said at the start when this process is the container's first: the kernel makes it the parent of every process
/// whose own parent has ended, and only its direct children are reaped here.
fn advice_for(pid: u32) -> Option<&'static str> {
    (pid == 1).then_some(
        "tilld is process 1: processes that hooks leave behind stay zombies; start the container with an init, \
         such as `docker run --init`",
    )
}

/// Waits for the wish to stop, or for a part that ends without it.
async fn supervise(
    stop: &mut StopSignals,
    loops: &mut JoinSet<&'static str>,
    ledger: &Ledger,
    certificates: Option<&Certificates>,
) -> Result<(), Error> {
    let ended = loop {
        let stop = tokio::select! {
            name = stop.requested() => name,
            Some(ended) = loops.join_next() => break ended,
            () = ledger.writer_ended() => break Ok("the ledger's writer"),
        };
        match (stop, certificates) {
            // Told where it is done; what was there stays.
            (HANGUP, Some(certificates)) => drop(certificates.reload_and_tell()),
            (name, _) => {
                tracing::info!(signal = name, "tilld is asked to stop");
                return Ok(());
            }
        }
    };
    let name = ended.unwrap_or("a part that panicked");
    tracing::error!("{name} ended by itself: tilld stops, to be started anew");
    Err(Error::Ended(name))
}

/// Waits for the loops, and drops what is left of them after the time they promised.
async fn finish(mut loops: JoinSet<&'static str>, within: Duration) {
    let all = async { while loops.join_next().await.is_some() {} };
    if tokio::time::timeout(within, all).await.is_err() {
        tracing::error!(
            within_s = within.as_secs(),
            "a part of tilld did not stop in time and is cut off"
        );
        loops.shutdown().await;
    }
}

async fn take_lock(state_dir: &std::path::Path) -> Result<ServeLock, LockError> {
    for _ in 1..LOCK_TRIES {
        match ServeLock::take(state_dir) {
            Err(LockError::Held { .. }) => tokio::time::sleep(LOCK_PAUSE).await,
            other => return other,
        }
    }
    ServeLock::take(state_dir)
}

/// Without a socket this does nothing; trouble with it must not stop the daemon.
fn tell_systemd(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(reason = %error, "systemd could not be told");
    }
}

/// What a SIGHUP is called.
const HANGUP: &str = "SIGHUP";

/// SIGTERM, SIGINT and SIGHUP. A certificate is read again at a SIGHUP; where there is none, it is a wish to stop in order as
/// well, and a terminal that goes away takes no hook with it halfway.
struct StopSignals {
    terminate: Signal,
    hangup: Signal,
    interrupt: Signal,
}

impl StopSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next wish to stop that somebody repeats on purpose. A SIGHUP is not: it may come together with SIGTERM.
    async fn pressed(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    async fn requested(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.hangup.recv() => HANGUP,
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::advice_for;

    #[test]
    fn only_the_first_process_of_a_container_is_told_to_have_an_init() {
        assert!(advice_for(1).is_some_and(|advice| advice.contains("docker run --init")));
        assert_eq!(advice_for(2), None);
    }
}
