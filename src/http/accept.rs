//! Where connections come from, and what to do when none can be had.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, Instant};

use crate::telemetry::LogRate;

/// How long to wait after the system refused a connection for want of descriptors or memory. Short: the honest ones
/// wait in the backlog meanwhile. Not zero: the failing call returns at once and would spin.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// How often the same trouble is logged.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// What may lie unread with the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// As much as it keeps for anybody.
    Usual,
    /// As little as it can.
    Least,
}

/// How a client goes on whose request is with the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It sends nothing more.
    End,
    /// It has sent more, behind which its end cannot be seen.
    More,
}

/// What a connection is read from and written to.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The system tells a client that has gone from one that only sends nothing more.
    const TELLS_LEAVING: bool;

    /// The client has gone. Of meaning only once it sends nothing more, and where that can be told.
    fn has_left(&self) -> bool;

    /// Resolves when it is known how the client goes on, which nobody else is reading for. Takes nothing of what it sent.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next>;

    /// Whether as much as usual may lie unread with the system, or next to nothing, so that a write tells whether all that was
    /// written before is read.
    fn room(&self, room: Room);
}

/// A source of connections.
pub(super) trait Accept: Send {
    /// What a connection is read from and written to.
    type Io: Stream;
    /// What is known of who connects.
    type Peer: fmt::Display + Clone + Send + Sync + 'static;

    /// The next connection. Must lose none when dropped.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Io, Self::Peer)>> + Send;
}

impl Stream for TcpStream {
    const TELLS_LEAVING: bool = false;

    fn has_left(&self) -> bool {
        false
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut space = [0; 1];
        Poll::Ready(
            match ready!(self.poll_peek(cx, &mut ReadBuf::new(&mut space))) {
                Ok(1..) => Next::More,
                Ok(0) | Err(_) => Next::End,
            },
        )
    }

    /// What is served on a port is short.
    fn room(&self, _room: Room) {}
}

impl Accept for TcpListener {
    type Io = TcpStream;
    type Peer = SocketAddr;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Answers are written in one go; waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "could not set TCP_NODELAY");
        }
        Ok((stream, peer))
    }
}

/// True when only the one connection failed, so that the next can be accepted at once.
pub(super) fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// Tells about trouble at most once per [`LOG_EVERY`].
pub(super) struct Complaint(LogRate);

impl Default for Complaint {
    fn default() -> Self {
        Self(LogRate::new(1, LOG_EVERY))
    }
}

impl Complaint {
    pub(super) fn about(&self, error: &io::Error) {
        if self.0.turn(Instant::now().into_std()).is_none() {
            return;
        }
        tracing::warn!(
            %error,
            "could not accept connections: they wait in the backlog"
        );
    }
}
