//! Reads a request's body, whole or not at all.
//!
//! A body that is too long by its own declaration is refused before a byte of it is read, and before `100 Continue`
//! is sent. hyper closes a connection whose body was not read to its end, so a refusal never reads on.
//!
//! A whole body is what saves a connection from eviction, so the reader tells [`Progress`] of it.

use std::future::{Future, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderValue, RETRY_AFTER};

use super::bodies::{Bodies, gather};
use super::progress::Progress;
use super::{Caller, Limits, Response, plain};
use crate::news;

/// Seconds after which a sender may come again that was evicted, or found no room for its body. At once would do for the
/// first, as newcomers are the last to be evicted; the second keeps it from coming with the very wall that it met.
const RETRY_AFTER_S: &str = "1";

/// A request's body, still to come. For [`read_body`].
#[derive(Debug)]
pub(crate) struct Body {
    incoming: Incoming,
    progress: Arc<Progress>,
}

impl Body {
    pub(super) fn new(incoming: Incoming, progress: Arc<Progress>) -> Self {
        Self { incoming, progress }
    }

    /// Whose it is.
    pub(crate) fn caller(&self) -> Caller {
        Caller::new(Arc::clone(&self.progress))
    }
}

/// Why there is no whole body. Nothing of the body is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    /// Longer than [`Limits::body_bytes`], or declared to be.
    #[error("the body is longer than the limit")]
    TooLarge,
    /// Not complete within [`Limits::body_time`].
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The client went away, or its framing is wrong.
    #[error("the body ended before it was complete")]
    Broken,
    /// The bodies that are here already leave no room for it.
    #[error("there is no room for the body")]
    NoRoom,
    /// Not complete when its connection had to make room for another. To be answered at once or not at all.
    #[error("the body was not complete when its connection had to make room")]
    Evicted,
}

impl BodyError {
    /// The answer for it: 413, 408, 400 or 503. Each of them ends the connection.
    pub(crate) fn response(self) -> Response {
        match self {
            Self::TooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE, "body too large\n"),
            Self::TooSlow => plain(StatusCode::REQUEST_TIMEOUT, "body too slow\n"),
            Self::Broken => plain(StatusCode::BAD_REQUEST, "bad request\n"),
            Self::NoRoom | Self::Evicted => {
                let mut busy = plain(StatusCode::SERVICE_UNAVAILABLE, "busy\n");
                let wait = HeaderValue::from_static(RETRY_AFTER_S);
                busy.headers_mut().insert(RETRY_AFTER, wait);
                busy
            }
        }
    }
}

/// The whole body, within [`Limits::body_bytes`] and [`Limits::body_time`].
pub(crate) async fn read_body(body: Body, limits: &Limits) -> Result<Bytes, BodyError> {
    read_body_among(body, limits, Bodies::unbounded(), ready(true)).await
}

/// The same, with room among these bodies. Whether the sender is known is asked when there is none left for others.
pub(crate) async fn read_body_among(
    body: Body,
    limits: &Limits,
    bodies: Bodies,
    is_known: impl Future<Output = bool>,
) -> Result<Bytes, BodyError> {
    let Body { incoming, progress } = body;
    let limit = u64::try_from(limits.body_bytes).unwrap_or(u64::MAX);
    if incoming.size_hint().lower() > limit {
        return Err(BodyError::TooLarge);
    }
    let mut whole = pin!(gather(incoming, limits.body_bytes, bodies, is_known));
    // Needs no waker: the connection's task, which evicts itself, polls this once more.
    let evicted = poll_fn(|_| {
        if progress.is_evicted() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    if progress.is_evicted() {
        return Err(BodyError::Evicted);
    }
    // Nearly always it has come with the head, and then no clock is asked.
    let at_once = poll_fn(|cx| Poll::Ready(whole.as_mut().poll(cx))).await;
    let read = match at_once {
        Poll::Ready(read) => Some(read),
        Poll::Pending => tokio::select! {
            biased;
            () = evicted => return Err(BodyError::Evicted),
            read = news::within(limits.body_time, whole) => read,
        },
    };
    let whole = read.unwrap_or(Err(BodyError::TooSlow))?;
    progress.whole();
    Ok(whole)
}
