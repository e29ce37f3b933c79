//! The only place that wires tasks: what runs beside what, who is told to stop, and in which order it ends.
//!
//! Three loops run: the listener, the poller and the outbox, each with the ledger's handles and in a thread of its own
//! (`apart`). Beside them stored invoices are looked over when the lists of status names changed. When one ends before it was
//! told to, or the writer does, the daemon stops the others and ends with an error, so that systemd starts it anew: a
//! daemon that lives on with a part of it dead would look well and do nothing.

mod admin;
mod alarm;
mod apart;
pub(crate) mod control;
pub(crate) mod handed;
mod lock;
mod loops;
pub(crate) mod plain;
mod reassess;
pub(crate) mod reload;
mod retention;
mod schedule;
mod signals;
mod starting;
pub(crate) mod status;
mod systemd;
mod takers;
mod watchdog;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::config::Settings;
use crate::hook::UnknownSelector;
use crate::ledger::{self, Ledger, OpenError};
use crate::listener::{self, LedgerBook};
use crate::shutdown::Shutdown;
use crate::{fault, outbox, poller};

pub(crate) use lock::{LockError, is_served};

use handed::{At, Handed, Socket};
use lock::ServeLock;
use loops::Loops;
use plain::ListenerError;
use reload::{Reload, Taker};
use schedule::{BellError, CronBell};
use signals::{Signals, Wish};
use starting::Starting;
use systemd::Word;

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
    /// The admin listener has no place.
    #[error("could not open the admin listener")]
    Admin(#[from] admin::PlaceError),
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
pub(crate) async fn run(mut start: Start) -> Result<(), Error> {
    set_umask();
    let mut signals = Signals::new().map_err(Error::Signals)?;
    let starting = Starting::begin().map_err(|source| Error::Thread {
        part: "the start",
        source,
    })?;
    ledger::prepare(&start.state_dir)?;
    // Before the ledger is opened: a newer tilld would bring it to its schema under the one that serves it.
    let lock = take_lock(&start.state_dir).await?;
    let (asked, control_path) = control::socket(&mut start)?;
    let Start {
        settings,
        state_dir,
        public_url,
        client,
        handed,
        read,
        ready,
    } = start;
    fault::point("start");
    let admin_place = admin::take(&settings)?;
    let ledger = Ledger::open(plain::ledger_options(&settings, state_dir.clone())?)?;
    let (socket, at) = public(handed.public, settings.listener.listen).await?;
    let bell = CronBell::start(Duration::from_secs(settings.poller.cadence_s))
        .await
        .map_err(Error::Bell)?;

    warn_of_setup(&settings);
    let wishes = Wishes::default();
    let ground = Ground {
        settings: &settings,
        state_dir: &state_dir,
        public_url: &public_url,
        client,
        ledger: &ledger,
    };
    let (mut loops, mut aside, takers) =
        begin((socket, asked, admin_place), bell, ground, &wishes)?;
    let watching = loops.watch(ledger.writer(), wishes.stop.clone());
    let mut reload = Reload::new(read, settings, takers);

    tracing::info!(control = %control_path.display(), "tilld answers on {}", control_path.display());
    tracing::info!(listen = %at, state_dir = %state_dir.display(), "tilld serves on {at}");
    drop(starting);
    let serves = format!("serves on {at}");
    systemd::tell(&[Word::Ready, Word::Alive, Word::Status(serves.clone())]);
    ready(&at);
    let heard = (&mut signals, &mut reload, serves.as_str());
    let ended = supervise(heard, &mut loops.running, &mut aside, &ledger).await;
    let within = loops.stop_within(&state_dir, reload.last());
    stop(&mut signals, loops.running, within, &wishes).await;
    wishes.last.request();
    finish(aside, STOP_MARGIN).await;
    // Both hold the writer.
    drop(reload);
    watching.abort();
    drop(watching.await);
    ledger.close(STOP_MARGIN).await;
    drop(lock);
    tracing::info!("tilld has stopped");
    ended
}

/// What stands before anything runs.
struct Ground<'a> {
    settings: &'a Settings,
    state_dir: &'a Path,
    public_url: &'a str,
    client: Client,
    ledger: &'a Ledger,
}

/// The listener's, the control socket's, and the admin listener's when there is one.
type Sockets = (
    Socket,
    std::os::unix::net::UnixListener,
    Option<(admin::Taken, String)>,
);

/// What all that runs is told.
#[derive(Default)]
struct Wishes {
    stop: Shutdown,
    hurry: Shutdown,
    /// For what can be asked while all others stop.
    last: Shutdown,
}

/// Begins all that runs. Gives with it who takes up other settings meanwhile.
fn begin(
    (socket, asked, admin_place): Sockets,
    bell: CronBell,
    ground: Ground<'_>,
    wishes: &Wishes,
) -> Result<(Loops, JoinSet<&'static str>, Vec<Taker>), Error> {
    let Ground {
        settings,
        state_dir,
        public_url,
        client,
        ledger,
    } = ground;
    let heard = plain::listener_settings(settings, public_url)?;
    let served = control::settings(settings, public_url);
    let bells = ledger.bells();
    let others = heard.drain.max(served.stop_within()).max(alarm::GRACE);
    let mut loops = Loops::new(settings, others);
    let counted = Arc::clone(&heard.heard);
    let certificates = heard.certificates.clone();
    let (reader, writer) = (ledger.reader(), ledger.writer());
    let book = LedgerBook {
        reader: reader.for_a_thread(),
        writer: writer.clone(),
    };
    let stop = wishes.stop.clone();
    loops.begin("listener", "the listener", None, move |_pulse| {
        listen(socket, heard, book, stop)
    })?;
    let gate = Gate::new(plain::gate_limits(settings));
    let (in_use, settings_in_use) = watch::channel(settings.clone());
    let look = admin::look(
        reader.clone(),
        settings_in_use.clone(),
        state_dir.to_owned(),
    );
    let parts = control::parts(
        (settings_in_use, state_dir),
        (writer.clone(), reader.clone()),
        (client.clone(), gate.clone()),
        bells.told,
    );
    let stop = wishes.stop.clone();
    loops.begin("control", "the control socket", None, move |_pulse| {
        answer(asked, served, parts, stop)
    })?;
    let looked = Arc::new(poller::Looked::default());
    let asked_of = client.clone();
    let parts = poller::Parts {
        writer: writer.clone(),
        reader: reader.for_a_thread(),
        client,
        gate,
        store: Store::new(state_dir),
        elsewhere: Elsewhere::of_daemon(),
        looked: Arc::clone(&looked),
    };
    let (polls, stop) = (plain::poller_settings(settings), wishes.stop.clone());
    let turns = Some(polls.turns_within());
    loops.begin("poller", "the poller", turns, move |pulse| async move {
        parts.reader.furnish().await;
        poller::run(parts, polls, bell, (bells.ask, pulse), stop).await;
    })?;
    look_after(
        &mut loops.running,
        (&writer, &reader),
        settings,
        &wishes.stop,
    );
    let handed_over = plain::outbox_settings(settings, state_dir);
    let runs = Arc::clone(&handed_over.runs);
    let (hooks, hooks_in_use) = watch::channel(handed_over);
    let mut takers = takers::all(in_use, (writer.clone(), hooks), state_dir);
    takers.extend(certificates.map(takers::certificates));
    if let Some(parts) = admin::alarm((writer.clone(), reader.clone()), &look, settings, state_dir)
    {
        let stop = wishes.stop.clone();
        loops.running.spawn(async move {
            alarm::run(parts, stop).await;
            "the alarms"
        });
    }
    let parts = crate::admin::Parts {
        writer: writer.clone(),
        reader: reader.clone(),
        look,
        heard: counted,
        runs,
        client: asked_of,
        looked,
        cadence: admin::cadence(settings),
        listed: admin::listed(settings),
        draining: wishes.stop.clone(),
    };
    let aside = admin::begin(admin_place, parts, wishes.last.clone())?;
    let Wishes { stop, hurry, .. } = wishes;
    let (stop, hurry) = (stop.clone(), hurry.clone());
    let turns = Some(outbox::TURNS_WITHIN);
    loops.begin("outbox", "the outbox", turns, move |pulse| {
        let wishes = outbox::Wishes { stop, hurry, pulse };
        outbox::run(writer, reader, hooks_in_use, bells.owed, wishes)
    })?;
    Ok((loops, aside, takers))
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
async fn public(handed: Option<Socket>, address: SocketAddr) -> Result<(Socket, At), Error> {
    let failed = |source| Error::Listen { address, source };
    let socket = if let Some(socket) = handed {
        socket
    } else {
        let port = TcpListener::bind(address).await.map_err(failed)?;
        Socket::Port(port.into_std().map_err(failed)?)
    };
    let at = socket.at().map_err(failed)?;
    Ok((socket, at))
}

/// Looks over what is stored, beside all that comes from outside: once after the lists changed, and for what is old.
fn look_after(
    loops: &mut JoinSet<&'static str>,
    (writer, reader): (&ledger::Writer, &ledger::Reader),
    settings: &Settings,
    stop: &Shutdown,
) {
    let (over, all, stopping) = (writer.clone(), reader.clone(), stop.clone());
    loops.spawn(async move {
        reassess::run(over, all, stopping).await;
        "the look over stored invoices"
    });
    let (emptier, walker, stopping) = (writer.clone(), reader.clone(), stop.clone());
    let keep = plain::retention(settings);
    loops.spawn(async move {
        retention::run(emptier, walker, keep, stopping).await;
        "the emptying of old invoices"
    });
}

/// Hears notifications until the stop.
async fn listen(socket: Socket, settings: listener::Settings, book: LedgerBook, stop: Shutdown) {
    let socket = match socket.waited_for() {
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
                    tracing::info!(signal = name, "tilld is asked to stop");
                    return Ok(());
                }
                Wish::Reload => reload.again(serves),
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
