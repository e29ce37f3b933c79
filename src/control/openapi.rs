//! What the calls are in the words of OpenAPI 3.1: `tilld control openapi` prints it, `GET /v1/openapi.json` gives it.

use hyper::StatusCode;

use crate::http::{self, Response};

/// The text.
pub(crate) const TEXT: &str = include_str!("openapi.json");

/// It as an answer.
pub(super) fn response() -> Response {
    http::json(StatusCode::OK, TEXT)
}
