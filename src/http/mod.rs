//! Serving HTTP/1.1 for the listener and the other sockets of the house: accept loop, limits, deadlines, drain.
//!
//! Relies on hyper for the protocol and on nothing else of ours but the wish to stop. Promises that whatever a client
//! does or leaves undone, it holds a connection only for a time and a size that stand in [`Limits`]; that a request
//! that was read whole is cut for another's sake only when its client has left answers unread; and that [`serve()`] returns
//! within its drain time.
//!
//! hyper's own header timeout is switched off: it knows neither idle nor write time and would be a second clock beside
//! [`progress`], which judges all of them in one place (A18).

mod accept;
mod bodies;
mod body;
mod caller;
mod connection;
mod flow;
mod framing;
mod full;
mod head;
mod host;
mod local;
mod named;
mod progress;
mod public;
mod serve;
mod socket;
#[cfg(test)]
mod tests;
mod tls;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, StatusCode};

pub(crate) use bodies::Bodies;
pub(crate) use body::{Body, BodyError, read_body, read_body_among};
pub(crate) use caller::Caller;
pub(crate) use flow::{Answer, Flow, NotTaken, Pieces};
pub(crate) use host::{is_loopback, is_own_address, is_own_name};
pub(crate) use local::{Local, serve_local};
pub(crate) use named::{Bind, Name, Named};
pub(crate) use public::{Peer, Public, serve_public};
pub(crate) use serve::{Served, serve};
pub(crate) use tls::{CertificateError, CertificateFiles, Certificates, TOLD_AHEAD_S, ends_at_s};

/// An answer. Nearly all have their whole body in memory, so that their size is known and their time bounded; see [`flow`]
/// for the others.
pub(crate) type Response = hyper::Response<Answer>;

/// What a client may cost. Every field is enforced; each has a test that sees it fire.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Request line and headers together, in bytes; more is answered 431. Values under 8 KiB count as 8 KiB in memory,
    /// the answer still comes at the value.
    pub header_bytes: usize,
    /// Whole body in bytes; more is answered 413, the rest is not read.
    pub body_bytes: usize,
    /// From the connection, or the first byte of a later request, to the end of its headers.
    pub header_time: Duration,
    /// The whole body, counted from the moment it is asked for; more is answered 408.
    pub body_time: Duration,
    /// From the answer being ready to its last byte being handed to the kernel. What earlier answers of the connection waited
    /// counts, unless the client made up for it by reading on.
    pub write_time: Duration,
    /// Between an answer and the first byte of the next request.
    pub idle_time: Duration,
    /// Connections at once. At the cap, the one that has been without a whole request for longest makes room, or has left its
    /// answers unread; where there is none, the next answer is the last of its connection.
    pub connections: usize,
    /// How long none makes room before newcomers are answered 503; without it they wait for room.
    pub full_time: Option<Duration>,
}

/// Common headers take 1 to 2 KiB; proxies that add their own stay under 8. nginx' largest default is 32 KiB.
const HEADER_BYTES: usize = 16 * 1024;
/// An invoice document is under 4 KiB. A mebibyte leaves room for a service that grows and still fits any machine.
const BODY_BYTES: usize = 1024 * 1024;
/// The service's senders give up after 5 to 10 s themselves; a slower head is no sender of ours.
const HEADER_TIME: Duration = Duration::from_secs(10);
/// As for the head.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Answers are short and fit the kernel's buffer at once; only a client that does not read takes longer.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// Long enough for a proxy to reuse its connections, short enough to forget one that went away.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// Half of the common limit of 1024 descriptors, so that ledger, hooks and polls always find some.
const CONNECTIONS: usize = 512;

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes: HEADER_BYTES,
            body_bytes: BODY_BYTES,
            header_time: HEADER_TIME,
            body_time: BODY_TIME,
            write_time: WRITE_TIME,
            idle_time: IDLE_TIME,
            connections: CONNECTIONS,
            full_time: None,
        }
    }
}

/// What answers requests. It is called only with a request whose framing is beyond doubt: exactly one `Host` (HTTP/1.1)
/// and not both lengths. When the client goes away the future may be dropped at any `.await`: work that must be
/// finished belongs in a task of its own (A17). A panic is answered 500 and counted.
pub(crate) trait Service: Clone + Send + Sync + 'static {
    /// What is known of a client.
    type Peer: fmt::Display + Clone + Send + Sync + 'static;

    /// Answers one request of a client.
    fn call(
        &self,
        request: Request<Body>,
        peer: Self::Peer,
    ) -> impl Future<Output = Response> + Send;

    /// A client was closed or answered before the service had a whole request of it, or did not read its answer.
    fn unserved(&self, _why: Unserved, _peer: &Self::Peer) {}

    /// The answer to one that it was not asked, or could not answer.
    fn refuses(&self, refused: Refused) -> Response {
        refused.plain()
    }
}

/// Why a request is answered without the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its framing could be understood differently by two readers.
    Unsound,
    /// The service panicked.
    Panicked,
    /// Every connection is taken.
    Full,
}

/// Why the service had no request of a client, or the client no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// Two readers could have understood it differently: lines without a carriage return, two lengths or hosts, a coding that
    /// nobody undoes.
    Ambiguous,
    /// It is no HTTP.
    Malformed,
    /// Its head is over [`Limits::header_bytes`].
    HeadTooLarge,
    /// Its head took longer than [`Limits::header_time`].
    HeadTooSlow,
    /// It was not whole when another needed the room.
    Evicted,
    /// Every connection was taken.
    Full,
    /// It left its answers unread for longer than [`Limits::write_time`], or another needed the room.
    AnswerUnread,
    /// The bodies of others left no room for its own.
    BodiesFull,
}

impl Unserved {
    /// All of them.
    pub(crate) const ALL: [Self; 8] = [
        Self::Ambiguous,
        Self::Malformed,
        Self::HeadTooLarge,
        Self::HeadTooSlow,
        Self::Evicted,
        Self::Full,
        Self::AnswerUnread,
        Self::BodiesFull,
    ];

    /// Its word in figures and lines.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ambiguous => "ambiguous",
            Self::Malformed => "malformed",
            Self::HeadTooLarge => "head_too_large",
            Self::HeadTooSlow => "head_too_slow",
            Self::Evicted => "evicted",
            Self::Full => "connections_full",
            Self::AnswerUnread => "answer_unread",
            Self::BodiesFull => "bodies_full",
        }
    }
}

impl Refused {
    /// What HTTP calls it.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Unsound => StatusCode::BAD_REQUEST,
            Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Full => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn plain(self) -> Response {
        let text = match self {
            Self::Unsound => "bad request\n",
            Self::Panicked => "internal error\n",
            Self::Full => "too many connections\n",
        };
        plain(self.status(), text)
    }
}

/// An answer of plain text.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response {
    with_type(
        status,
        Bytes::from_static(text.as_bytes()),
        "text/plain; charset=utf-8",
    )
}

/// An answer that is an HTML page. Escaping is the caller's.
pub(crate) fn html(status: StatusCode, page: impl Into<Bytes>) -> Response {
    with_type(status, page.into(), "text/html; charset=utf-8")
}

/// An answer that goes on, of this type.
pub(crate) fn flowing(flow: Flow, kind: &'static str) -> Response {
    let mut response = Response::new(Answer::Flowing(flow));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer that is a JSON document, already serialised.
pub(crate) fn json(status: StatusCode, document: impl Into<Bytes>) -> Response {
    with_type(status, document.into(), "application/json")
}

/// An answer without a body and without a type.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Bytes::new().into());
    *response.status_mut() = status;
    response
}

/// No answer at all: the connection is closed instead. For the sandbox, which plays a service that goes away after it
/// did what it was asked.
pub(crate) fn hang_up() -> Response {
    let mut response = empty(StatusCode::INTERNAL_SERVER_ERROR);
    response.extensions_mut().insert(HangUp);
    response
}

/// Marks an answer that is not to be given.
#[derive(Clone, Copy, Debug)]
struct HangUp;

fn with_type(status: StatusCode, body: Bytes, kind: &'static str) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
