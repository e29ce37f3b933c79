//! Reads a request's body, whole or not at all.
//!
//! A body that is too long by its own declaration is refused before a byte of it is read, and before `100 Continue`
//! is sent. hyper closes a connection whose body was not read to its end, so a refusal never reads on.

use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};

use super::{Limits, Response, plain};

/// Why there is no whole body. Nothing of the body is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Longer than [`Limits::body_bytes`], or declared to be.
    #[error("the body is longer than the limit")]
    TooLarge,
    /// Not complete within [`Limits::body_time`].
    #[error("the body did not arrive in time")]
    TooSlow,
    /// The client went away, or its framing is wrong.
    #[error("the body ended before it was complete")]
    Broken,
}

impl BodyError {
    /// The answer for it: 413, 408 or 400. Each of them ends the connection.
    pub fn response(self) -> Response {
        match self {
            Self::TooLarge => plain(StatusCode::PAYLOAD_TOO_LARGE, "body too large\n"),
            Self::TooSlow => plain(StatusCode::REQUEST_TIMEOUT, "body too slow\n"),
            Self::Broken => plain(StatusCode::BAD_REQUEST, "bad request\n"),
        }
    }
}

/// The whole body, within [`Limits::body_bytes`] and [`Limits::body_time`].
pub async fn read_body(body: Incoming, limits: &Limits) -> Result<Bytes, BodyError> {
    let limit = u64::try_from(limits.body_bytes).unwrap_or(u64::MAX);
    if body.size_hint().lower() > limit {
        return Err(BodyError::TooLarge);
    }
    let whole = Limited::new(body, limits.body_bytes).collect();
    match tokio::time::timeout(limits.body_time, whole).await {
        Err(_elapsed) => Err(BodyError::TooSlow),
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(cause)) if cause.is::<LengthLimitError>() => Err(BodyError::TooLarge),
        Ok(Err(_cause)) => Err(BodyError::Broken),
    }
}
