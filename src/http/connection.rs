//! One connection, from accept to close: hyper's future beside the connection's deadlines, its eviction and the stop.

use std::future::{Future as _, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::time::Duration;

use super::accept::Stream;
use super::framing::{detach, is_sound, length, take_host_of_target};
use super::head::Length;
use super::progress::{Late, Progress, Stand};
use super::socket::Socket;
use super::{Answer, Body, HangUp, Limits, Refused, Response, Service, Unserved};
use crate::shutdown::Shutdown;

/// hyper's smallest read buffer, in bytes; it panics below.
const SMALLEST_BUFFER: usize = 8 * 1024;

/// A stop that finds a client without a request waits so long, from the connection on, for one: who has just connected sends at
/// once, and closing would lose what is under way. One that is silent for longer is closed.
const NEWCOMER_TIME: Duration = Duration::from_secs(1);

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By the client, or by an answer that said so.
    Closed,
    /// By the client, inside a request.
    Broken,
    /// By the protocol: what came could not be read.
    Unread(Unserved),
    /// By a deadline.
    Late(Late),
    /// To make room for another.
    Evicted,
    /// By the stop, between two requests.
    Stopped,
}

/// The service wanted the connection closed without an answer.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the service hung up")]
struct HungUp;

/// What all connections of one listener share.
pub(super) struct Shared<S> {
    pub(super) service: S,
    pub(super) limits: Limits,
    pub(super) shutdown: Shutdown,
    /// Rung whenever a connection becomes one that could make room, or says that it does not.
    pub(super) freed: Arc<Notify>,
    /// Requests whose service panicked.
    pub(super) panics: AtomicU64,
    /// A newcomer waits and nobody makes room: the next answer is the last of its connection. Else those that ask for one
    /// thing after the other without a pause would keep all others out.
    pub(super) pressed: AtomicBool,
}

impl<S> Shared<S> {
    /// Whether this answer is to be the one that makes room. True once for each time that room is wanted.
    fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed) && self.pressed.swap(false, Ordering::Relaxed)
    }
}

/// Serves one connection until it ends. Never fails: a connection's trouble is its own.
pub(super) async fn run<I, S>(
    io: I,
    peer: S::Peer,
    progress: Arc<Progress>,
    shared: Arc<Shared<S>>,
) -> End
where
    I: Stream,
    S: Service,
{
    let look_every = shared.limits.write_time;
    let freed = Arc::clone(&shared.freed);
    let socket = Socket::new(io, Arc::clone(&progress), freed, look_every);
    let service = service_fn(|request| {
        let (progress, shared, peer) = (&progress, &shared, &peer);
        async move {
            let response = answer(request, peer.clone(), progress, shared).await;
            match response.extensions().get::<HangUp>() {
                // An error is how a service of hyper closes without an answer.
                Some(HangUp) => Err(HungUp),
                None => Ok(response),
            }
        }
    });
    let mut connection =
        pin!(builder::<I>(&shared.limits).serve_connection(TokioIo::new(socket), service));
    let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
    let mut asked = pin!(progress.asked());
    let mut stop = pin!(shared.shutdown.requested());
    // Whether the stop has woken this task, and whether hyper has been told: two things, since a half-received head is
    // waited for in between. hyper would close on it, if it is not the connection's first.
    let (mut woken, mut told) = (false, false);
    let mut waker = None;
    let end = poll_fn(|cx| {
        let mut leaves_at = None;
        // The connection goes first: bytes that are there already count before a newcomer, a deadline or a stop does.
        loop {
            if let Poll::Ready(result) = connection.as_mut().poll(cx) {
                return Poll::Ready(result.map_or_else(|error| broken(&error), |()| End::Closed));
            }
            while asked.as_mut().poll(cx).is_ready() {
                let was_idle = progress.stand() == Stand::Between;
                let was_unread = progress.is_unread();
                if progress.gives_way() {
                    if was_unread {
                        shared.service.unserved(Unserved::AnswerUnread, &peer);
                    } else if !was_idle {
                        shared.service.unserved(Unserved::Evicted, &peer);
                    }
                    // Lets a half-read request be answered 503, if the socket takes it at once. How that ends is no
                    // matter: the connection ends here.
                    return Poll::Ready(match connection.as_mut().poll(cx) {
                        Poll::Ready(_) | Poll::Pending => End::Evicted,
                    });
                }
                asked.set(progress.asked());
                shared.freed.notify_one();
            }
            // What all connections share is locked only to say who is to be woken.
            if !woken && !is_known(&mut waker, cx) {
                woken |= stop.as_mut().poll(cx).is_ready();
            }
            woken |= shared.shutdown.is_requested();
            if !woken || told {
                break;
            }
            match progress.stand() {
                Stand::Between => return Poll::Ready(End::Stopped),
                Stand::Fresh(since) => {
                    leaves_at = Some(since + NEWCOMER_TIME);
                    break;
                }
                Stand::Head => break,
                Stand::Request => {}
            }
            // Answers what is in progress with `Connection: close`; the next round lets hyper see it.
            told = true;
            connection.as_mut().graceful_shutdown();
        }
        let late = progress.deadline(&shared.limits);
        let late = late.map(|(at, late)| (at, End::Late(late)));
        let leaves = leaves_at.map(|at| (at, End::Stopped));
        let first = late.into_iter().chain(leaves).min_by_key(|(at, _)| *at);
        let Some((deadline, end)) = first else {
            return Poll::Pending;
        };
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx).map(|()| end)
    })
    .await;
    match end {
        End::Unread(why) => shared.service.unserved(why, &peer),
        End::Late(Late::Head) => shared.service.unserved(Unserved::HeadTooSlow, &peer),
        End::Late(Late::Write) => shared.service.unserved(Unserved::AnswerUnread, &peer),
        End::Closed | End::Broken | End::Late(_) | End::Evicted | End::Stopped => {}
    }
    end
}

/// Whose fault it is that hyper gave up.
fn broken(error: &hyper::Error) -> End {
    if error.is_parse_too_large() {
        End::Unread(Unserved::HeadTooLarge)
    } else if error.is_parse() {
        End::Unread(Unserved::Malformed)
    } else {
        End::Broken
    }
}

/// Whether this is the waker that was kept; keeps it.
fn is_known(kept: &mut Option<Waker>, cx: &Context<'_>) -> bool {
    let waker = cx.waker();
    let known = kept.as_ref().is_some_and(|kept| kept.will_wake(waker));
    if !known {
        *kept = Some(waker.clone());
    }
    known
}

fn builder<I: Stream>(limits: &Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .header_read_timeout(None)
        .max_header_size(limits.header_bytes)
        .max_buf_size(limits.header_bytes.max(SMALLEST_BUFFER))
        // Answers are short: copying one behind its head takes less than telling the kernel of two pieces.
        .writev(false)
        // A sender that shuts its writing side after the request still gets its answer. Where that is told from leaving,
        // `Socket` sees to it, and what a client that has left waited for ends with it.
        .half_close(!I::TELLS_LEAVING);
    builder
}

async fn answer<S: Service>(
    request: Request<Incoming>,
    peer: S::Peer,
    progress: &Arc<Progress>,
    shared: &Shared<S>,
) -> Response {
    let has_body = !request.body().is_end_stream();
    let length = length(request.headers());
    let (started, told) = progress.begin(has_body, length);
    let mut response = if is_sound(&request, told) {
        let mut request = request.map(|body| Body::new(body, Arc::clone(progress)));
        take_host_of_target(&mut request);
        if has_body && progress.is_body_to_come() {
            detach(&mut request);
        }
        guarded(&shared.service, request, peer.clone(), &shared.panics).await
    } else {
        shared.service.unserved(Unserved::Ambiguous, &peer);
        shared.service.refuses(Refused::Unsound)
    };
    let status = response.status();
    tracing::debug!(
        http.peer = %peer,
        http.status = status.as_u16(),
        http.elapsed_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "answered {status}"
    );
    // An answer of 503 is given before the body is whole where there was no room for it.
    let unread = has_body
        && (may_leave_the_body(status)
            || status == StatusCode::SERVICE_UNAVAILABLE && progress.is_half_read());
    // Where a chunked body ended only hyper knows, so the next head's beginning would not be known.
    let is_last = length == Length::Chunked;
    let stops = progress.is_evicted() || shared.shutdown.is_requested() || shared.is_pressed();
    if unread || is_last || ends_the_connection(status) || stops {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Answer::Flowing(flow) = response.body_mut() {
        progress.flows();
        flow.attach(Arc::clone(progress));
    }
    progress.answered(unread);
    response
}

/// The service's answer, or 500 when it panicked. The panic hook has told the panic itself.
async fn guarded<S: Service>(
    service: &S,
    request: Request<Body>,
    peer: S::Peer,
    panics: &AtomicU64,
) -> Response {
    let from = peer.clone();
    let mut call = pin!(async move { service.call(request, from).await });
    // Unwind safe: the future is dropped unused after a panic, and the service's own state is behind its own guards.
    let outcome = poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Some),
            Err(_payload) => Poll::Ready(None),
        },
    )
    .await;
    outcome.unwrap_or_else(|| {
        panics.fetch_add(1, Ordering::Relaxed);
        tracing::error!(http.peer = %peer, "a request panicked and was answered 500");
        service.refuses(Refused::Panicked)
    })
}

/// After these the next bytes of the connection cannot be trusted to be the start of a request.
fn ends_the_connection(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    )
}

/// Refusals that are decided before the body is read. 401 is not among them: it is given only after reading.
fn may_leave_the_body(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::UNAUTHORIZED
        || status == StatusCode::INTERNAL_SERVER_ERROR
}
