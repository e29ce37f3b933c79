//! The admin listener: how tilld is, for programs and people of this machine. `/healthz`, `/readyz`, `/metrics` and a page.
//!
//! Only reads, and only for names of this machine in `Host`. Relies on [`crate::http`] for what a client may cost. Promises
//! that no answer holds a secret or a customer's requisites, that none reads a table that grows without a bound, though an
//! index of what is not done may be counted through, and that
//! nothing it counts makes a notification wait: what is counted as it happens is counted in atomics, all else is read from
//! the ledger once, behind the last thing that was read.

mod census;
mod chart;
mod health;
mod metrics;
mod page;
mod tally;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ALLOW, HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};

use crate::client::Client;
use crate::clock;
use crate::http::{self, Limits, Local, Named, Response, is_loopback, plain, serve, serve_local};
use crate::ledger::{Overview, ReadError, Reader, Writer};
use crate::listener::Heard;
use crate::outbox::Runs;
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;
use crate::status::Report;
use crate::telemetry;

use tally::Tally;

/// Clients at once: a scraper, a probe and a few browsers.
const CONNECTIONS: usize = 32;
/// How long answers in progress may go on at the end.
const DRAIN: Duration = Duration::from_secs(1);

/// How everything stands, looked up anew for each question.
pub(crate) type Look = Arc<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(Overview, Report), ReadError>> + Send>>
        + Send
        + Sync,
>;

/// Where it listens.
pub(crate) enum Socket {
    /// A port of this machine.
    Port(tokio::net::TcpListener),
    /// A Unix socket.
    Local(Named),
}

/// What it tells of.
pub(crate) struct Parts {
    /// Asked for a turn.
    pub writer: Writer,
    /// Where rows are read.
    pub reader: Reader,
    /// How everything stands.
    pub look: Look,
    /// What the listener heard.
    pub heard: Arc<Heard>,
    /// How runs of hooks ended.
    pub runs: Arc<Runs>,
    /// How the service answered.
    pub client: Client,
    /// The poller's turns, and how often it turns at least: the same by which systemd is told that all goes on.
    pub poller: (Pulse, Duration),
    /// The status names that stand on a list; others share one label.
    pub listed: Vec<String>,
    /// The daemon's wish to stop; this listener goes on until its own.
    pub draining: Shutdown,
}

/// Answers until `shutdown` is requested.
pub(crate) async fn run(socket: Socket, parts: Parts, shutdown: Shutdown) {
    let admin = Admin(Arc::new(Inner {
        tally: Tally::new(parts.reader.clone(), clock::wall_ms()),
        parts,
    }));
    let limits = Limits {
        connections: CONNECTIONS,
        body_bytes: 0,
        ..Limits::default()
    };
    let served = match socket {
        Socket::Port(listener) => serve(listener, limits, OnPort(admin), shutdown, DRAIN).await,
        Socket::Local(listener) => {
            serve_local(listener, limits, OnSocket(admin), shutdown, DRAIN).await
        }
    };
    tracing::debug!(?served, "the admin listener has stopped");
}

#[derive(Clone)]
struct Admin(Arc<Inner>);

struct Inner {
    parts: Parts,
    tally: Tally,
}

#[derive(Clone)]
struct OnPort(Admin);

impl http::Service for OnPort {
    type Peer = SocketAddr;

    async fn call(&self, request: Request<http::Body>, _peer: SocketAddr) -> Response {
        self.0.answer(&request).await
    }
}

#[derive(Clone)]
struct OnSocket(Admin);

impl http::Service for OnSocket {
    type Peer = Local;

    async fn call(&self, request: Request<http::Body>, _peer: Local) -> Response {
        self.0.answer(&request).await
    }
}

impl Admin {
    async fn answer(&self, request: &Request<http::Body>) -> Response {
        let host = request.headers().get(HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
        if !is_loopback(host) {
            return plain(
                StatusCode::MISDIRECTED_REQUEST,
                "this listener answers to names of this machine only\n",
            );
        }
        let path = request.uri().path();
        if !["/", "/style.css", "/healthz", "/readyz", "/metrics"].contains(&path) {
            return plain(StatusCode::NOT_FOUND, "not found\n");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut response = plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "nothing can be changed here\n",
            );
            let allowed = HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(ALLOW, allowed);
            return response;
        }
        match path {
            "/style.css" => page::stylesheet(),
            "/healthz" => health::healthz(&self.0.parts).await,
            "/readyz" => health::readyz(&self.0.parts).await,
            "/metrics" => self.metrics().await,
            _ => self.page().await,
        }
    }

    async fn metrics(&self) -> Response {
        let (looked, counted) = tokio::join!((self.0.parts.look)(), self.0.tally.caught_up());
        let reader = &self.0.parts.reader;
        let looked = match looked {
            Ok((overview, report)) => metrics::Unfinished::count(&overview, reader)
                .await
                .map(|unfinished| (overview, report, unfinished)),
            Err(error) => Err(error),
        };
        match looked {
            Ok((overview, report, unfinished)) => {
                let seen = metrics::Seen {
                    overview: &overview,
                    unfinished,
                    report: &report,
                    census: counted.as_deref(),
                    now_ms: clock::wall_ms(),
                };
                metrics::response(&self.0.parts, &seen)
            }
            Err(error) => unreadable(&error),
        }
    }

    async fn page(&self) -> Response {
        let (looked, counted, lists) = tokio::join!(
            (self.0.parts.look)(),
            self.0.tally.caught_up(),
            page::Lists::read(&self.0.parts.reader)
        );
        match (looked, lists) {
            (Ok((overview, report)), Ok(lists)) => {
                let seen = page::Seen {
                    overview: &overview,
                    report: &report,
                    census: counted.as_deref(),
                    lists: &lists,
                    now_ms: clock::wall_ms(),
                };
                page::response(&seen)
            }
            (Err(error), _) | (_, Err(error)) => unreadable(&error),
        }
    }
}

fn unreadable(error: &ReadError) -> Response {
    let reason = telemetry::chain(error);
    tracing::warn!(%reason, "the admin listener could not read the ledger: {reason}");
    plain(
        StatusCode::SERVICE_UNAVAILABLE,
        "the ledger could not be read: the log says why\n",
    )
}
