//! The few answers of the listener. Each is a status and at most a fixed word: nothing of ours and nothing of the
//! sender's is in them, and every 401 is the same to the byte.

use hyper::StatusCode;
use hyper::header::{ALLOW, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};

use crate::http::{Response, empty, plain};

/// Seconds after which a sender may try again when nothing can be stored. A lock held by another process or a full queue
/// is over by then; the sibling service's documents speak of 60 s between its tries anyway.
const RETRY_AFTER_S: &str = "10";

/// Stored durably, or known already. Senders count exactly 200 as delivered (A15).
pub(super) fn stored() -> Response {
    plain(StatusCode::OK, "ok\n")
}

/// Any doubt about the token, an unknown ref included.
pub(super) fn unauthorized() -> Response {
    // RFC 9110 11.6.1 wants the header; the scheme is one of those that are tried.
    with_header(
        plain(StatusCode::UNAUTHORIZED, "unauthorized\n"),
        (WWW_AUTHENTICATE, "Bearer"),
    )
}

/// The body is no notification, whoever sent it.
pub(super) fn misshapen() -> Response {
    plain(StatusCode::BAD_REQUEST, "not an invoice\n")
}

/// The body is compressed or a form.
pub(super) fn unsupported() -> Response {
    plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send plain JSON\n")
}

/// Nothing can be stored now. The sender must come again.
pub(super) fn unavailable() -> Response {
    with_header(
        plain(StatusCode::SERVICE_UNAVAILABLE, "try again later\n"),
        (RETRY_AFTER, RETRY_AFTER_S),
    )
}

/// The address is there (A13).
pub(super) fn present() -> Response {
    empty(StatusCode::OK)
}

/// The address does not have this method.
pub(super) fn other_method() -> Response {
    with_header(
        empty(StatusCode::METHOD_NOT_ALLOWED),
        (ALLOW, "GET, HEAD, POST"),
    )
}

/// There is no such address.
pub(super) fn elsewhere() -> Response {
    plain(StatusCode::NOT_FOUND, "not found\n")
}

fn with_header(
    mut response: Response,
    (name, value): (hyper::header::HeaderName, &'static str),
) -> Response {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    response
}
