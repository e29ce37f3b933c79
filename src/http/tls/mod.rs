//! TLS on a port: a connection is one like any other, whose first bytes happen to be a handshake.
//!
//! Relies on rustls for the protocol, TLS 1.2 and 1.3 alone, and on [`Certificates`] for what is shown. The handshake is done
//! where the head is read, so it has the head's time, counts for the cap, and makes room like a head that does not come.

mod certificates;
mod dates;
mod files;
mod stream;

use std::io;

use tokio::net::TcpListener;
use tokio::time::Duration;
use tokio_rustls::TlsAcceptor;

use super::accept::Accept;
use super::public::Peer;
use super::serve::{Served, run};
use super::{Limits, Service};
use crate::shutdown::Shutdown;

pub(crate) use certificates::{Certificates, TOLD_AHEAD_S};
pub(crate) use dates::ends_at_s;
pub(crate) use files::{CertificateError, CertificateFiles};

use stream::Secure;

/// A port that speaks TLS.
struct Secured {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Accept for Secured {
    type Io = Secure;
    type Peer = Peer;

    async fn accept(&self) -> io::Result<(Secure, Peer)> {
        let (stream, peer) = Accept::accept(&self.listener).await?;
        Ok((Secure::new(self.acceptor.accept(stream)), Peer::Net(peer)))
    }
}

/// Serves a port as [`super::serve_public()`] does, over TLS with these certificates, which are looked at again meanwhile.
pub(super) async fn serve_secured<S: Service<Peer = Peer>>(
    (listener, certificates): (TcpListener, Certificates),
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    let acceptor = TlsAcceptor::from(certificates.config());
    let secured = Secured { listener, acceptor };
    let (served, ()) = tokio::join!(
        run(secured, limits, service, shutdown.clone(), drain),
        certificates.keep_fresh(shutdown),
    );
    served
}
