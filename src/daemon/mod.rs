//! The only place that wires tasks: what runs beside what, who is told to stop, and in which order it ends.
//!
//! The listener, the control socket, the poller and the outbox run each with the ledger's handles and in a thread of its own
//! (`apart`); beside them the alarms, the looks over what is stored, and the admin listener (`begin`). When one ends before it was
//! told to, or the writer does, the daemon stops the others and ends with an error, so that systemd starts it anew: a
//! daemon that lives on with a part of it dead would look well and do nothing.

mod admin;
mod alarm;
mod apart;
mod begin;
mod clock_watch;
pub(crate) mod control;
pub(crate) mod handed;
mod kept;
mod loops;
mod reassess;
pub(crate) mod reload;
mod retention;
mod schedule;
mod serving_time;
mod signals;
mod starting;
mod systemd;
mod takers;
pub(crate) mod unheeded;
mod watchdog;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::client::gate::Gate;
use crate::config::Settings;
use crate::hook::UnknownSelector;
use crate::ledger::{self, Ledger, LockError, OpenError, ServeLock};
use crate::parts::ListenerError;

use crate::{fault, news, parts, poller, telemetry};

pub(crate) use apart::bound;
use begin::{Ground, Wishes, begin};
use handed::{At, Handed, Socket};
use kept::Names;
use reload::Reload;
use schedule::{BellError, CronBell};
use signals::{Signals, Wish};
use starting::Starting;
use systemd::Word;
use unheeded::Asked;

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
    /// The sockets that systemd handed over.
    pub handed: Handed,
    /// The address that somebody asked for.
    pub asked: Option<Asked>,
    /// Reads the settings again.
    pub read: reload::Read,
    /// Called once with the place listened on, when notifications can come.
    pub ready: Box<dyn FnOnce(&At) + Send>,
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

/// Runs until SIGTERM or SIGINT, then stops in order: no new work, running hooks finish, what was heard is stored.
/// A second SIGTERM or SIGINT ends running hooks at once; they run again after the next start.
pub(crate) async fn run(start: Start) -> Result<(), Error> {
    set_umask();
    let signals = Signals::new().map_err(Error::Signals)?;
    let furnished = apart::furnish().await.map_err(|source| Error::Thread {
        part: "what blocks",
        source,
    })?;
    tokio::select! {
        ended = serve(start, signals) => ended,
        never = apart::tend(furnished) => match never {},
    }
}

async fn serve(mut start: Start, mut signals: Signals) -> Result<(), Error> {
    let starting = Starting::begin().map_err(|source| Error::Thread {
        part: "the start",
        source,
    })?;
    ledger::prepare(&start.state_dir)?;
    // Before the ledger is opened: a newer tilld would bring it to its schema under the one that serves it.
    let lock = take_lock(&start.state_dir).await?;
    let unheeded = unheeded::keys(&start.handed);
    let mut names = Names::default();
    let (calls, control_path) = control::socket(&mut start, &mut names)?;
    let Start {
        settings,
        state_dir,
        public_url,
        client,
        handed,
        asked,
        read,
        ready,
    } = start;
    fault::point("start");
    // It tells how tilld is: no reason not to be.
    let admin_place = admin::take(&settings, &mut names).unwrap_or_else(|error| {
        let reason = telemetry::chain(&error);
        tracing::error!(%reason, "the admin listener is not there: {reason}; hint: look who has `listen` under [admin]");
        None
    });
    let ledger = Ledger::open(parts::ledger_options(&settings, state_dir.clone())?)?;
    let asked = asked.filter(|_| handed.public.is_some());
    let (socket, at) = public(handed.public, settings.listener.listen, &mut names).await?;
    let bell = CronBell::start(Duration::from_secs(settings.poller.cadence_s))
        .await
        .map_err(no_bell)?;

    let gate = Gate::new(parts::gate_limits(&settings));
    poller::heed_stored(&ledger.reader(), &gate).await;
    warn_of_setup(&settings);
    if let Some(unheeded) = asked.and_then(|asked| asked.against(&at)) {
        tracing::warn!("{unheeded}");
    }
    let wishes = Wishes::default();
    let ground = Ground {
        settings: &settings,
        state_dir: &state_dir,
        public_url: &public_url,
        client,
        ledger: &ledger,
        gate,
        names,
    };
    let (mut loops, mut aside, takers) =
        begin((socket, calls, admin_place), bell, ground, &wishes)?;
    let watching = loops.watch(ledger.writer(), wishes.stop.clone());
    let mut reload = Reload::new(read, settings, takers, unheeded);

    tracing::info!(control = %control_path.display(), "tilld answers on {}", control_path.display());
    tracing::info!(listen = %at, state_dir = %state_dir.display(), "tilld serves on {at}");
    drop(starting);
    lock.note(&control_path);
    let serves = format!("serves on {at}");
    systemd::tell(&[Word::Ready, Word::Alive, Word::Status(serves.clone())]);
    ready(&at);
    let heard = (&mut signals, &mut reload, serves.as_str());
    let ended = supervise(heard, &mut loops.running, &mut aside, &ledger).await;
    lock.forget();
    let within = loops.stop_within();
    stop(&mut signals, loops.running, within, &wishes).await;
    wishes.last.request();
    finish(aside, STOP_MARGIN).await;
    // Both hold the writer.
    drop(reload);
    watching.abort();
    drop(watching.await);
    ledger.close(STOP_MARGIN).await;
    drop(lock);
    // An accident has said where its commits are.
    if ended.is_ok() {
        log_stopped(&state_dir.join(ledger::FILE_NAME));
    }
    ended
}

/// Says whether the ledger's file alone has every commit: a copy of it is complete only then.
fn log_stopped(ledger: &Path) {
    let pages = ledger::unmoved_pages(ledger).unwrap_or_default();
    if pages > 0 {
        tracing::warn!(
            pages,
            "tilld has stopped; the newest commits are in `{}-wal` only: another program keeps them there, or they were too many \
             for a stop. Copy the ledger by `tilld db backup`, or with this file",
            ledger.display()
        );
    } else {
        tracing::info!("tilld has stopped");
    }
}

/// Stops what runs, within this time; sooner when somebody wishes it once more.
async fn stop(
    signals: &mut Signals,
    running: JoinSet<&'static str>,
    within: Duration,
    wishes: &Wishes,
) {
    let stops = format!("stops, within {} s", within.as_secs());
    systemd::tell(&[Word::Stopping, Word::Status(stops)]);
    wishes.stop.request();
    let finished = finish(running, within);
    tokio::pin!(finished);
    tokio::select! {
        () = &mut finished => {}
        name = signals.pressed() => {
            tracing::warn!(signal = name, "tilld is asked to stop again: running hooks are ended now");
            wishes.hurry.request();
            finished.await;
        }
    }
}

/// The socket that was handed over, or the listener's port, and where that is. Each runtime has its own list of sockets to look
/// at, so it is on none.
async fn public(
    handed: Option<Socket>,
    address: SocketAddr,
    names: &mut Names,
) -> Result<(Socket, At), Error> {
    let failed = |source| Error::Listen { address, source };
    let socket = if let Some(socket) = handed {
        socket
    } else {
        let port = TcpListener::bind(address).await.map_err(failed)?;
        Socket::Port(port.into_std().map_err(failed)?)
    };
    let at = socket.at().map_err(failed)?;
    let socket = match socket {
        Socket::Local(kept) => Socket::Local(names.watch("listener's socket", kept)),
        port @ Socket::Port(_) => port,
    };
    Ok((socket, at))
}

fn no_bell(error: BellError) -> Error {
    match error {
        BellError::Thread(source) => Error::Thread {
            part: "the poller's bell",
            source,
        },
        other @ (BellError::Scheduler(_) | BellError::Ended) => Error::Bell(other),
    }
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

/// Waits for the wish to stop, or for a part that ends without it; reads the settings again meanwhile, as often as wished.
async fn supervise(
    (signals, reload, serves): (&mut Signals, &mut Reload, &str),
    loops: &mut JoinSet<&'static str>,
    aside: &mut JoinSet<&'static str>,
    ledger: &Ledger,
) -> Result<(), Error> {
    let ended = loop {
        tokio::select! {
            wish = signals.wish() => match wish {
                Wish::Stop(name) => {
                    tell_stop(name);
                    return Ok(());
                }
                // A disk that never answers would keep it from its end.
                Wish::Reload => tokio::select! {
                    () = reload.again(serves) => {}
                    name = signals.pressed() => {
                        tell_stop(name);
                        return Ok(());
                    }
                },
            },
            Some(ended) = loops.join_next() => break ended,
            Some(ended) = aside.join_next() => break ended,
            () = ledger.writer_ended() => break Ok("the ledger's writer"),
        }
    };
    let name = ended.unwrap_or("a part that panicked");
    tracing::error!("{name} ended by itself: tilld stops, to be started anew");
    Err(Error::Ended(name))
}

fn tell_stop(signal: &str) {
    tracing::info!(signal, "tilld is asked to stop");
}

/// Waits for the loops, and drops what is left of them after the time they promised.
async fn finish(mut loops: JoinSet<&'static str>, within: Duration) {
    let all = async { while loops.join_next().await.is_some() {} };
    if news::within(within, all).await.is_none() {
        tracing::error!(
            within_s = within.as_secs(),
            "a part of tilld did not stop in time and is cut off"
        );
        loops.shutdown().await;
    }
}

async fn take_lock(state_dir: &Path) -> Result<ServeLock, LockError> {
    for _ in 1..LOCK_TRIES {
        match ServeLock::take(state_dir) {
            Err(LockError::Held { .. }) => tokio::time::sleep(LOCK_PAUSE).await,
            other => return other,
        }
    }
    ServeLock::take(state_dir)
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
