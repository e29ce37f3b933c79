//! What the admin listener and the alarms are handed, and the listener's place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::control::{self, SocketError};
use super::status::{self, Login};
use super::{alarm, plain};
use crate::admin::{self, Socket};
use crate::client::Client;
use crate::config::{AdminPlace, Settings};
use crate::hook::launch;
use crate::hook::process::{Program, Surroundings};
use crate::ledger::{Reader, Writer};
use crate::listener::Heard;
use crate::outbox::Runs;
use crate::poller::Looked;
use crate::shutdown::Shutdown;

/// Where the program of `[attention]` runs, in the state directory; apart from the hooks', which the outbox tidies.
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
    Socket(std::os::unix::net::UnixListener),
}

/// Takes the place that is set, and says which it is.
pub(super) fn take(settings: &Settings) -> Result<Option<(Taken, String)>, PlaceError> {
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
            let failed = |source| PlaceError::Port(name.clone(), source);
            let socket = control::make(&path, None, control::MODE)?;
            socket.set_nonblocking(true).map_err(failed)?;
            Ok(Some((Taken::Socket(socket), name)))
        }
    }
}

impl Taken {
    /// To be waited for on this thread.
    pub(super) fn waited_for(self) -> io::Result<Socket> {
        match self {
            Self::Port(socket) => tokio::net::TcpListener::from_std(socket).map(Socket::Port),
            Self::Socket(socket) => tokio::net::UnixListener::from_std(socket).map(Socket::Local),
        }
    }
}

/// How everything stands, for the admin listener.
fn look(reader: Reader, settings: Arc<Settings>, state_dir: PathBuf) -> admin::Look {
    Box::new(move || {
        let (reader, settings) = (reader.clone(), Arc::clone(&settings));
        let state_dir = state_dir.clone();
        Box::pin(async move {
            // The login is not everybody's to know; that it is refused is.
            let login = (Login::Hidden, None);
            status::survey(&reader, &settings, &state_dir, login).await
        })
    })
}

/// The alarms, when a program is set.
pub(super) fn alarm(
    (writer, reader): (Writer, Reader),
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
    let survey = look(
        reader.clone(),
        Arc::new(settings.clone()),
        state_dir.to_owned(),
    );
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
            work_dir: state_dir.join(ALARM_DIRECTORY),
            home: launch::home(),
        },
    })
}

/// What the admin listener tells of.
pub(super) fn parts(
    (writer, reader): (Writer, Reader),
    (settings, state_dir): (&Settings, &Path),
    (heard, runs): (Arc<Heard>, Arc<Runs>),
    client: &Client,
    looked: &Arc<Looked>,
    draining: &Shutdown,
) -> admin::Parts {
    let shared = Arc::new(settings.clone());
    admin::Parts {
        look: look(reader.clone(), shared, state_dir.to_owned()),
        writer,
        reader,
        heard,
        runs,
        client: client.clone(),
        looked: Arc::clone(looked),
        cadence: plain::poller_settings(settings).cadence,
        listed: listed(settings),
        draining: draining.clone(),
    }
}

/// Every status name that stands on a list.
fn listed(settings: &Settings) -> Vec<String> {
    let lists = settings.statuses.lists();
    let all = [lists.open, lists.paid, lists.failed, lists.reversed];
    all.into_iter().flatten().collect()
}
