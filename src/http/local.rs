//! The same over a Unix socket, whose clients the kernel names. One that leaves is noticed at once, whatever it waits for.

use std::fmt;
use std::io;
use std::task::{Context, Poll};

use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::UnixStream;
use tokio::time::Duration;

use super::accept::{Accept, Next, Room, Stream};
use super::named::Named;
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

/// What lies unread in the kernel at most, bytes. It doubles this for what it needs itself; this is what Linux has by itself.
const USUAL_BYTES: usize = 104 * 1024;
/// The same where it is looked whether all is read. The kernel's own least is some 4.5 KiB, into which six or seven pieces
/// fit, however short.
const LEAST_BYTES: usize = 1024;

impl Stream for UnixStream {
    const TELLS_LEAVING: bool = true;

    /// Writing nothing is refused once the other end is closed, and only then: when it is shut for writing alone, there is
    /// still somebody to write to.
    fn has_left(&self) -> bool {
        self.try_write(&[])
            .is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
    }

    /// hyper reads on while a request is with the service, and [`super::socket`] tells of the end.
    fn poll_next(&self, _cx: &mut Context<'_>) -> Poll<Next> {
        Poll::Pending
    }

    /// The kernel counts what was written to a Unix socket against the writer until it is read, but by no safe means tells how
    /// much that is. Whether it is more than there is room for, the next write tells.
    fn room(&self, room: Room) {
        let bytes = match room {
            Room::Usual => USUAL_BYTES,
            Room::Least => LEAST_BYTES,
        };
        if let Err(error) = set_socket_send_buffer_size(self, bytes) {
            tracing::debug!(%error, "could not set SO_SNDBUF");
        }
    }
}

impl Accept for Named {
    type Io = UnixStream;
    type Peer = Local;

    async fn accept(&self) -> io::Result<(UnixStream, Local)> {
        let stream = Self::accept(self).await?;
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
    listener: Named,
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    run(listener, limits, service, shutdown, drain).await
}
