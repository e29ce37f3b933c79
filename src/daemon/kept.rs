//! The Unix sockets that this daemon answers on, and whether clients can still connect to each.
//!
//! Relies on [`crate::http::Named`] for the looks at a name. Promises to bind a lost one with the mode and the group that it had.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::control;
use crate::http::{Name, Named};
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
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(&'static str, PathBuf, watch::Receiver<Option<String>>)>);

impl Names {
    /// Has a socket keep its name. `is_here`: the name leads to it now.
    pub(super) fn keep(&mut self, what: &'static str, kept: Kept, is_here: bool) -> Kept {
        let path = kept.path().unwrap_or_default();
        if path.as_os_str().is_empty() {
            return kept;
        }
        let about = fs::symlink_metadata(&path).ok().filter(|_| is_here);
        let group = about.as_ref().map(MetadataExt::gid);
        let mode = about.map_or(control::MODE, |about| about.permissions().mode() & 0o777);
        let place = path.clone();
        let bind = move || control::make(&place, group, mode).map_err(|error| chain(&error));
        let name = Name::new(path.clone(), is_here, Box::new(bind));
        self.0.push((what, path, name.lost()));
        Kept {
            name: Some(name),
            ..kept
        }
    }

    /// An alert for each that nobody can connect by.
    pub(super) fn needs(&self) -> Vec<Need> {
        let lost = self.0.iter().filter_map(|(what, path, lost)| {
            let why = lost.borrow().clone()?;
            Some(Need::lost_socket(what, path, &why))
        });
        lost.collect()
    }
}
