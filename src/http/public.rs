//! The socket that the world reaches: a port, or a Unix socket behind a proxy of the same machine.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::time::Duration;

use super::accept::Accept;
use super::named::Named;
use super::serve::{Served, run};
use super::tls::{Certificates, serve_secured};
use super::{Limits, Service};
use crate::shutdown::Shutdown;

/// Where connections come in.
pub(crate) enum Public {
    /// On a port.
    Port(TcpListener),
    /// On a Unix socket.
    Local(Named),
}

impl From<TcpListener> for Public {
    fn from(listener: TcpListener) -> Self {
        Self::Port(listener)
    }
}

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody on a network, or on this machine by way of it.
    Net(SocketAddr),
    /// A program of this machine, most likely a proxy.
    Local,
}

impl Peer {
    /// Its address, where it has one.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Net(address) => Some(address.ip()),
            Self::Local => None,
        }
    }

    /// The host alone, as logs and refusals have it.
    pub(crate) fn host(self) -> String {
        self.ip()
            .map_or_else(|| "unix".to_owned(), |ip| ip.to_string())
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(address) => address.fmt(f),
            Self::Local => f.write_str("unix"),
        }
    }
}

/// A listener whose clients are told as [`Peer`]s.
struct ByPeer<L>(L);

impl Accept for ByPeer<TcpListener> {
    type Io = TcpStream;
    type Peer = Peer;

    async fn accept(&self) -> io::Result<(TcpStream, Peer)> {
        let (stream, address) = Accept::accept(&self.0).await?;
        Ok((stream, Peer::Net(address)))
    }
}

impl Accept for ByPeer<Named> {
    type Io = UnixStream;
    type Peer = Peer;

    async fn accept(&self) -> io::Result<(UnixStream, Peer)> {
        let stream = self.0.accept().await?;
        Ok((stream, Peer::Local))
    }
}

/// Serves the socket as [`super::serve()`] serves a port; a port over TLS, when there are certificates.
pub(crate) async fn serve_public<S: Service<Peer = Peer>>(
    (socket, certificates): (Public, Option<Certificates>),
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    match (socket, certificates) {
        (Public::Port(port), Some(certificates)) => {
            serve_secured((port, certificates), limits, service, shutdown, drain).await
        }
        (Public::Port(port), None) => run(ByPeer(port), limits, service, shutdown, drain).await,
        (Public::Local(local), certificates) => {
            if certificates.is_some() {
                tracing::warn!(
                    "`listener.tls_certificate` counts for nothing on a Unix socket: the proxy there speaks TLS"
                );
            }
            run(ByPeer(local), limits, service, shutdown, drain).await
        }
    }
}
