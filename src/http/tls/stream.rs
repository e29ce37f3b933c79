//! A connection's bytes under TLS. The handshake is begun by the first read, and nothing is known of a client before it is over.

use std::io::{self, Result};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::Accept;
use tokio_rustls::server::TlsStream;

use super::super::accept::{Next, Room, Stream};

/// How far it has come. Boxed: the state of a session is some kilobytes, which are not to be moved about.
pub(super) enum Secure {
    Shaking(Box<Accept<TcpStream>>),
    Open(Box<TlsStream<TcpStream>>),
    /// The handshake came to nothing; the client was told what TLS has to say of it.
    Failed,
}

impl Secure {
    pub(super) fn new(handshake: Accept<TcpStream>) -> Self {
        Self::Shaking(Box::new(handshake))
    }

    /// The session, once the handshake is over.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<&mut TlsStream<TcpStream>>> {
        if let Self::Shaking(handshake) = self {
            *self = match ready!(Pin::new(&mut **handshake).poll(cx)) {
                Ok(stream) => Self::Open(Box::new(stream)),
                Err(error) => {
                    // Scanners and half-open probes come all day, and nobody can do anything about one.
                    tracing::debug!(reason = %error, "a TLS handshake came to nothing");
                    Self::Failed
                }
            };
        }
        Poll::Ready(match self {
            Self::Open(stream) => Ok(stream),
            Self::Shaking(_) | Self::Failed => Err(io::ErrorKind::ConnectionAborted.into()),
        })
    }

    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Shaking(handshake) => handshake.get_ref(),
            Self::Open(stream) => Some(stream.get_ref().0),
            Self::Failed => None,
        }
    }
}

impl Stream for Secure {
    const TELLS_LEAVING: bool = false;

    fn has_left(&self) -> bool {
        false
    }

    /// Whatever follows a request, a goodbye of TLS too, lies in front of the end.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        self.socket()
            .map_or(Poll::Ready(Next::End), |socket| socket.poll_next(cx))
    }

    /// What is served on a port is short.
    fn room(&self, _room: Room) {}
}

impl AsyncRead for Secure {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let stream = ready!(self.poll_open(cx))?;
        Pin::new(stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secure {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let stream = ready!(self.poll_open(cx))?;
        Pin::new(stream).poll_write(cx, bytes)
    }

    /// Nothing was written before the handshake is over.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut *self {
            Self::Open(stream) => Pin::new(stream).poll_flush(cx),
            Self::Shaking(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match &mut *self {
            Self::Open(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Shaking(handshake) => match handshake.get_mut() {
                Some(socket) => Pin::new(socket).poll_shutdown(cx),
                None => Poll::Ready(Ok(())),
            },
            Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
