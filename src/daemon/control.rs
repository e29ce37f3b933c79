//! The control socket's place, and what is handed to those who serve it.
//!
//! A socket that systemd hands over is taken as it is. Otherwise it is made here: one that is left of a daemon that was killed
//! is removed first, under a lock beside it, so that of two daemons that start at once neither takes the other's away; it is
//! nobody's to connect to before its group and mode are set.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Start;
use super::kept::{Kept, Names};
use crate::admin::Look;
use crate::answer::failure::Failure;
use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::config::{LONGEST_PATH, Settings};
use crate::control::{self, Status};
use crate::file_lock::FileLock;
use crate::http::Limits;
use crate::ledger::{Reader, Writer};
use crate::parts;
use crate::wake::Wake;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// What alerts call it.
const WHAT: &str = "control socket";
/// The socket's name where no path is set.
pub(crate) const FILE: &str = "control.sock";
/// What the name of its lock ends with.
const LOCK: &str = ".lock";
/// The mode of a socket for which none is set: the owner's and the group's.
pub(super) const MODE: u32 = 0o660;
/// Bodies are orders; the rest is as on the public side.
const BODY_BYTES: usize = 64 * 1024;
/// How long a newcomer waits for a connection. Most calls are done in some milliseconds.
const FULL_TIME: Duration = Duration::from_secs(1);
/// How long requests in progress may go on at a stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Why there is no socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    /// Something else lies there.
    #[error("`{}` is there and is no socket", .0.display())]
    NoSocket(PathBuf),
    /// Unix sockets have shorter paths.
    #[error("`{}` has {} bytes, and the path of a Unix socket at most {LONGEST_PATH}", .0.display(), .0.as_os_str().len())]
    TooLong(PathBuf),
    /// Another program listens on it.
    #[error("another program listens on `{}`", .0.display())]
    Taken(PathBuf),
    /// There is no such group.
    #[error("there is no group `{0}` on this machine")]
    NoGroup(String),
    /// The operating system refused.
    #[error("could not {doing} `{}`", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The socket.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Where it is for these settings and this state directory, `runtime` being `$RUNTIME_DIRECTORY`.
pub(crate) fn path(settings: &Settings, state_dir: &Path, runtime: Option<&Path>) -> PathBuf {
    match (&settings.control.socket, runtime) {
        (Some(path), _) => path.clone(),
        (None, Some(runtime)) => runtime.join(FILE),
        (None, None) => state_dir.join(FILE),
    }
}

/// The number of a group.
pub(crate) fn group(name: &str) -> io::Result<Option<u32>> {
    let found = nix::unistd::Group::from_name(name)?;
    Ok(found.map(|group| group.gid.as_raw()))
}

/// Takes the socket that was handed over, or makes it.
pub(super) fn socket(start: &mut Start, names: &mut Names) -> Result<(Kept, PathBuf), SocketError> {
    let runtime = std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from);
    let default = path(&start.settings, &start.state_dir, runtime.as_deref());
    if let Some(inherited) = start.handed.control.take() {
        let inherited = Kept::from(inherited);
        let given = inherited.path().unwrap_or_default();
        let path = Some(given).filter(|given| *given != PathBuf::new());
        return Ok((names.watch(WHAT, inherited), path.unwrap_or(default)));
    }
    let control = &start.settings.control;
    let mode = control.mode_bits().unwrap_or(MODE);
    let group = control.group.as_deref();
    let group = group.map(|name| number_of(name, &default)).transpose()?;
    let made = make(&default, group, mode)?;
    Ok((names.keep(WHAT, made.into()), default))
}

fn number_of(group_name: &str, path: &Path) -> Result<u32, SocketError> {
    let found = group(group_name).map_err(|source| SocketError::Io {
        doing: "find the group of",
        path: path.to_owned(),
        source,
    })?;
    found.ok_or_else(|| SocketError::NoGroup(group_name.to_owned()))
}

/// Makes a socket: whoever may write by its group and mode may connect.
pub(super) fn make(
    path: &Path,
    group: Option<u32>,
    mode: u32,
) -> Result<UnixListener, SocketError> {
    let failed = |doing: &'static str| {
        move |source| SocketError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    };
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(SocketError::TooLong(path.to_owned()));
    }
    let _held = lock(path)?;
    remove_left(path)?;
    // Made without the right to write for anybody but the owner: the umask is 0027.
    let socket = UnixListener::bind(path).map_err(failed("make the socket"))?;
    // By the file itself: who may write to the directory may put another one in its place.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlags::PATH | OFlags::NOFOLLOW).bits().cast_signed())
        .open(path)
        .map_err(failed("open"))?;
    let about = file.metadata().map_err(failed("look at"))?;
    if !about.file_type().is_socket() {
        return Err(SocketError::NoSocket(path.to_owned()));
    }
    let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
    if group.is_some_and(|group| group != about.gid()) {
        chown(&itself, None, group).map_err(failed("give a group to"))?;
    }
    fs::set_permissions(&itself, fs::Permissions::from_mode(mode))
        .map_err(failed("set the mode of"))?;
    Ok(socket)
}

/// The lock under which the socket's place is looked at and taken. It is let go once the socket is there to be met; its file
/// stays, as one that is removed is no lock. Whoever finds it taken finds another daemon that starts.
fn lock(path: &Path) -> Result<FileLock, SocketError> {
    let mut name = path.to_owned().into_os_string();
    name.push(LOCK);
    let name = PathBuf::from(name);
    let failed = |source| SocketError::Io {
        doing: "lock",
        path: name.clone(),
        source,
    };
    let file = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(&name)
        .map_err(failed)?;
    match FileLock::take(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(held) => Ok(held),
        Err(Errno::WOULDBLOCK) => Err(SocketError::Taken(path.to_owned())),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Connects, without waiting for room where many wait already.
fn probe(path: &Path) -> rustix::io::Result<()> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Removes the socket of a daemon that is gone.
fn remove_left(path: &Path) -> Result<(), SocketError> {
    let Ok(about) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !about.file_type().is_socket() {
        return Err(SocketError::NoSocket(path.to_owned()));
    }
    let failed = |doing: &'static str| {
        move |source| SocketError::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    };
    match probe(path) {
        // Somebody listens, if with no room for one more.
        Ok(()) | Err(Errno::WOULDBLOCK) => Err(SocketError::Taken(path.to_owned())),
        // Nobody listens; any other trouble says nothing about that.
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed("remove what is left of")),
        Err(error) => Err(failed("see who listens on")(error.into())),
    }
}

/// What clients may cost, and how invoices are opened for them.
pub(super) fn settings(settings: &Settings, public_url: &str) -> control::Settings {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    control::Settings {
        limits: Limits {
            body_bytes: BODY_BYTES,
            connections: count(settings.control.connections),
            full_time: Some(FULL_TIME),
            ..Limits::default()
        },
        followers: count(settings.control.followers),
        waits: count(settings.control.waits()),
        drain: DRAIN,
        opening: parts::opening_settings(settings, public_url),
    }
}

/// What it works with: the ledger, the service and the gate that all of this process share.
pub(super) fn parts(
    (look, store): (Look, Store),
    (writer, reader): (Writer, Reader),
    (client, gate): (Client, Gate),
    told: Wake,
) -> control::Parts {
    control::Parts {
        status: status(look),
        writer,
        reader: reader.for_clients(),
        own: reader.for_a_thread(),
        client,
        gate,
        store,
        elsewhere: Elsewhere::of_daemon(),
        told,
    }
}

/// How everything stands, for clients: the login is not theirs to know.
fn status(look: Look) -> Status {
    Box::new(move || {
        let looked = look();
        Box::pin(async move {
            let (_overview, report) = looked.await.map_err(Failure::from)?;
            Ok(serde_json::to_value(report).expect("plain data"))
        })
    })
}
