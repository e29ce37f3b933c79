//! A Unix socket that is bound again when its name is gone: whoever cleans `/run` cuts off every client for good otherwise.
//!
//! Relies on its caller for how a socket is made at the path. Promises to look at the name every [`LOOK_EVERY`], and to go on
//! with the old socket until there is another one.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};

/// From one look at the name to the next.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Why a socket of another program is not bound here.
const OF_ANOTHER: &str = "its file is gone, and systemd makes it";

/// Makes a socket at the path, or says in one line why there is none.
pub(crate) type Bind = Box<dyn Fn() -> Result<net::UnixListener, String> + Send + Sync>;

/// A file, told from another one that takes its name and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    created: Option<SystemTime>,
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let about = fs::symlink_metadata(path).ok()?;
        Some(Self {
            device: about.dev(),
            inode: about.ino(),
            created: about.created().ok(),
        })
    }
}

/// The name of a socket.
pub(crate) struct Name {
    path: PathBuf,
    /// What it leads to while it leads here.
    mark: Option<Mark>,
    /// How another is made; `None` where another program makes it.
    bind: Option<Bind>,
    /// Why no client can connect by it.
    lost: watch::Sender<Option<String>>,
}

impl Name {
    /// It leads to the socket that is served.
    pub(crate) fn new(path: PathBuf, bind: Option<Bind>) -> Self {
        let mark = Mark::of(&path);
        let lost = watch::Sender::default();
        Self {
            path,
            mark,
            bind,
            lost,
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Why no client can connect by it, while that is so.
    pub(crate) fn lost(&self) -> watch::Receiver<Option<String>> {
        self.lost.subscribe()
    }

    /// Another socket, when it no longer leads to the one that is served and one can be bound.
    fn look(&mut self) -> Option<UnixListener> {
        if self.mark.is_some() && Mark::of(&self.path) == self.mark {
            self.lost.send_replace(None);
            return None;
        }
        let bound = self
            .bind
            .as_ref()
            .map_or_else(|| Err(OF_ANOTHER.to_owned()), |bind| bind());
        let bound = bound.and_then(|socket| waited_for(socket).map_err(|error| error.to_string()));
        let path = self.path.display();
        match bound {
            Ok(socket) => {
                tracing::warn!(socket = %path, "the socket `{path}` was removed: it is bound again");
                self.mark = Mark::of(&self.path);
                self.lost.send_replace(None);
                Some(socket)
            }
            Err(reason) => {
                if self.lost.borrow().as_ref() != Some(&reason) {
                    tracing::error!(socket = %path, %reason, "no client can connect to `{path}`: {reason}");
                    self.lost.send_replace(Some(reason));
                }
                None
            }
        }
    }
}

/// A socket, which keeps its name if it has one to keep.
pub(crate) struct Named {
    socket: Mutex<Arc<UnixListener>>,
    name: Option<Mutex<(Name, Instant)>>,
}

impl Named {
    /// What waits for connections now, and the name it is to keep. In the runtime that serves it.
    pub(crate) fn new(socket: net::UnixListener, name: Option<Name>) -> io::Result<Self> {
        let socket = Mutex::new(Arc::new(waited_for(socket)?));
        let name = name.map(|name| Mutex::new((name, Instant::now())));
        Ok(Self { socket, name })
    }

    /// The next connection. Loses none when dropped.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let socket = Arc::clone(&held(&self.socket));
            let Some(name) = &self.name else {
                return socket.accept().await.map(|(stream, _nameless)| stream);
            };
            let look_at = held(name).1;
            tokio::select! {
                accepted = socket.accept() => return accepted.map(|(stream, _nameless)| stream),
                () = sleep_until(look_at) => self.look(&mut held(name)),
            }
        }
    }

    fn look(&self, (name, look_at): &mut (Name, Instant)) {
        if let Some(other) = name.look() {
            *held(&self.socket) = Arc::new(other);
        }
        *look_at = Instant::now() + LOOK_EVERY;
    }
}

fn waited_for(socket: net::UnixListener) -> io::Result<UnixListener> {
    socket.set_nonblocking(true)?;
    UnixListener::from_std(socket)
}

fn held<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
