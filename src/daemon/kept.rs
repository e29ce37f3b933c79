//! The Unix sockets that this daemon answers on, and whether clients can still connect to each.
//!
//! Relies on [`crate::http::Named`] for the looks at a name. Promises to bind a lost one that was made here with the mode and the
//! group that it had, and to leave those of systemd to systemd.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::control;
use crate::http::{Bind, Name, Named};
use crate::status::Need;
use crate::telemetry::chain;

/// A Unix socket, and the name it keeps if it has one.
pub(crate) struct Kept {
    socket: UnixListener,
    name: Option<Name>,
}

impl From<UnixListener> for Kept {
    fn from(socket: UnixListener) -> Self {
        Self { socket, name: None }
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl Kept {
    /// Where it was bound; empty where that is no path.
    pub(super) fn path(&self) -> io::Result<PathBuf> {
        let at = self.socket.local_addr()?;
        Ok(at.as_pathname().map(Path::to_owned).unwrap_or_default())
    }

    /// To be waited for, by the runtime this is called in.
    pub(super) fn waited_for(self) -> io::Result<Named> {
        Named::new(self.socket, self.name)
    }
}

/// The names by which clients connect.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<(&'static str, PathBuf, watch::Receiver<Option<String>>)>);

impl Names {
    /// Has a socket that was made here keep its name.
    pub(super) fn keep(&mut self, what: &'static str, kept: Kept) -> Kept {
        let place = kept.path().unwrap_or_default();
        let about = fs::symlink_metadata(&place).ok();
        let group = about.as_ref().map(MetadataExt::gid);
        let mode = about.map_or(control::MODE, |about| about.permissions().mode() & 0o777);
        let bind: Bind = {
            let place = place.clone();
            Box::new(move || control::make(&place, group, mode).map_err(|error| chain(&error)))
        };
        self.named(what, kept, Name::new(place, Some(bind)))
    }

    /// Has a socket of systemd watched, which alone makes it as its unit says. One that cannot be seen from here is not: it may
    /// lie in another file system, as a container has, or under a `/tmp` that is not this service's own.
    pub(super) fn watch(&mut self, what: &'static str, kept: Kept) -> Kept {
        let place = kept.path().unwrap_or_default();
        let is_socket = |about: fs::Metadata| about.file_type().is_socket();
        if !fs::symlink_metadata(&place).is_ok_and(is_socket) {
            return kept;
        }
        self.named(what, kept, Name::new(place, None))
    }

    fn named(&mut self, what: &'static str, kept: Kept, name: Name) -> Kept {
        self.0.push((what, name.path().to_owned(), name.lost()));
        Kept {
            name: Some(name),
            ..kept
        }
    }

    /// An alert for each that no client can connect by.
    pub(super) fn needs(&self) -> Vec<Need> {
        let lost = self.0.iter().filter_map(|(what, path, lost)| {
            let why = lost.borrow().clone()?;
            Some(Need::lost_socket(what, path, &why))
        });
        lost.collect()
    }
}
