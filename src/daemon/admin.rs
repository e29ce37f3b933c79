//! What the admin listener and the alarms are handed, and the listener's place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use super::control::{self, SocketError};
use super::kept::{Kept, Names};
use super::loops::Turns;
use super::{Error, alarm, apart};
use crate::admin::{self, Socket};
use crate::config::{AdminPlace, Settings};
use crate::hook::launch;
use crate::hook::process::{Program, Surroundings};
use crate::ledger::{Reader, Writer};
use crate::outbox::Runs;
use crate::shutdown::Shutdown;
use crate::status::{self, FromCaller, Need, Sight};

/// Where the program of `[attention]` runs; apart from the hooks', which the outbox tidies.
const ALARM_DIRECTORY: &str = "alarm";

/// Why it does not listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    /// The port is taken or not ours.
    #[error("could not listen on {0}")]
    Port(String, #[source] io::Error),
    /// There is no socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// A place that is taken, not yet waited for.
pub(super) enum Taken {
    Port(std::net::TcpListener),
    Socket(Kept),
}

/// Takes the place that is set, and says which it is.
pub(super) fn take(
    settings: &Settings,
    names: &mut Names,
) -> Result<Option<(Taken, String)>, PlaceError> {
    match settings.admin.place() {
        None => Ok(None),
        Some(AdminPlace::Port(address)) => {
            let failed = |source| PlaceError::Port(address.to_string(), source);
            let socket = std::net::TcpListener::bind(address).map_err(failed)?;
            socket.set_nonblocking(true).map_err(failed)?;
            let taken = socket.local_addr().map_err(failed)?;
            Ok(Some((Taken::Port(socket), format!("http://{taken}/"))))
        }
        Some(AdminPlace::Socket(path)) => {
            let name = path.display().to_string();
            let socket = control::make(&path, None, control::MODE)?;
            let kept = names.keep("admin socket", socket.into());
            Ok(Some((Taken::Socket(kept), name)))
        }
    }
}

impl Taken {
    /// To be waited for on this thread.
    pub(super) fn waited_for(self) -> io::Result<Socket> {
        match self {
            Self::Port(socket) => tokio::net::TcpListener::from_std(socket).map(Socket::Port),
            Self::Socket(socket) => socket.waited_for().map(Socket::Local),
        }
    }
}

/// Begins to tell how the daemon is, in a thread of its own, until the stop: when there is a place for it.
pub(super) fn begin(
    place: Option<(Taken, String)>,
    parts: admin::Parts,
    stop: Shutdown,
) -> Result<JoinSet<&'static str>, Error> {
    const NAME: &str = "the admin listener";
    let mut aside = JoinSet::new();
    if let Some((taken, at)) = place {
        let ended = apart::start("admin", None, move || tell(taken, parts, stop))
            .map_err(|source| Error::Thread { part: NAME, source })?;
        aside.spawn(async move {
            ended.await;
            NAME
        });
        tracing::info!(admin = %at, "tilld tells how it is on {at}");
    }
    Ok(aside)
}

async fn tell(taken: Taken, parts: admin::Parts, stop: Shutdown) {
    match taken.waited_for() {
        Ok(socket) => admin::run(socket, parts, stop).await,
        Err(error) => {
            tracing::error!(reason = %error, "the admin listener's socket could not be waited for");
        }
    }
}

/// How everything stands by the settings that are in use, for the shop, the admin listener and the alarms.
pub(super) fn look(
    reader: Reader,
    in_use: watch::Receiver<Settings>,
    state_dir: PathBuf,
    (names, poller, runs): (Names, Turns, Arc<Runs>),
) -> admin::Look {
    let sight = Sight::of_daemon();
    Arc::new(move || {
        let (reader, settings) = (reader.clone(), in_use.borrow().clone());
        let state_dir = state_dir.clone();
        let mut daemon = names.needs();
        daemon.extend(stalled(&poller));
        let wanting = runs.wanting();
        daemon.extend(wanting.map(|(since_ms, why)| Need::starts_fail(since_ms, &why)));
        let caller = FromCaller {
            daemon,
            sight: sight.clone(),
            ..FromCaller::default()
        };
        Box::pin(async move { status::survey(&reader, &settings, &state_dir, caller).await })
    })
}

/// A poller that has not turned for longer than it may.
fn stalled((pulse, within): &Turns) -> Option<Need> {
    let still_for = pulse.still_for();
    (still_for > *within).then(|| Need::stalled("the poller", still_for.as_secs()))
}

/// The alarms, when a program is set.
pub(super) fn alarm(
    (writer, reader): (Writer, Reader),
    survey: &admin::Look,
    settings: &Settings,
    state_dir: &Path,
) -> Option<alarm::Parts> {
    let (path, args) = settings.attention.run.split_first()?;
    let program = Program {
        path: path.into(),
        args: args.to_vec(),
        timeout: Duration::from_secs(settings.attention.timeout_s),
        grace: alarm::GRACE,
    };
    let survey = Arc::clone(survey);
    let look: alarm::Look = Box::new(move || {
        let survey = survey();
        Box::pin(async move { survey.await.map(|(_overview, report)| report.needs) })
    });
    Some(alarm::Parts {
        look,
        writer,
        reader,
        program,
        around: Surroundings {
            launcher: launch::launcher(),
            work_dir: alarms_in(state_dir).join(ALARM_DIRECTORY),
            home: launch::home(),
        },
    })
}

/// Where the program's own directory is made: not on the ledger's disk where systemd gives another place, since a full one is
/// what it may have to tell of.
fn alarms_in(state_dir: &Path) -> PathBuf {
    let runtime = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    runtime
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| state_dir.to_owned())
}

/// Every status name that stands on a list.
pub(super) fn listed(settings: &Settings) -> Vec<String> {
    let lists = settings.statuses.lists();
    let all = [lists.open, lists.paid, lists.failed, lists.reversed];
    all.into_iter().flatten().collect()
}
