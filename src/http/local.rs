//! The same over a Unix socket, whose clients the kernel names. One that leaves is noticed at once, whatever it waits for.

use std::fmt;
use std::io;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::Duration;

use super::accept::{Accept, Stream};
use super::serve::{Served, run};
use super::{Limits, Service};
use crate::shutdown::Shutdown;

/// Who connected, as the kernel noted it when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Its user.
    pub(crate) uid: u32,
    /// Its group.
    pub(crate) gid: u32,
    /// Its process, if it is one this system can see. It may have ended since.
    pub(crate) pid: Option<i32>,
}

impl fmt::Display for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "uid {} gid {}", self.uid, self.gid)?;
        match self.pid {
            Some(pid) => write!(f, " pid {pid}"),
            None => Ok(()),
        }
    }
}

impl Stream for UnixStream {
    const TELLS_LEAVING: bool = true;

    /// Writing nothing is refused once the other end is closed, and only then: when it is shut for writing alone, there is
    /// still somebody to write to.
    fn has_left(&self) -> bool {
        self.try_write(&[])
            .is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    }
}

impl Accept for UnixListener {
    type Io = UnixStream;
    type Peer = Local;

    async fn accept(&self) -> io::Result<(UnixStream, Local)> {
        let (stream, _nameless) = Self::accept(self).await?;
        let who = stream.peer_cred()?;
        let peer = Local {
            uid: who.uid(),
            gid: who.gid(),
            pid: who.pid(),
        };
        Ok((stream, peer))
    }
}

/// Serves a Unix socket as [`super::serve()`] serves a port.
pub(crate) async fn serve_local<S: Service<Peer = Local>>(
    listener: UnixListener,
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    run(listener, limits, service, shutdown, drain).await
}
