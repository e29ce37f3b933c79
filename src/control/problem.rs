//! An end without success as a problem document (RFC 9457), by the names and the numbers the command line has for it.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde::Serialize;

use super::feed::NoPlace;
use super::route::NoRoute;
use crate::answer::event::not_given;
use crate::answer::failure::{Exit, Failure};
use crate::answer::invoice::Shown;
use crate::answer::problem::Problem;
use crate::http::{self, BodyError, Refused, Response};
use crate::ledger::Restored;
use crate::telemetry::visible_json;

/// What a problem document is called (RFC 9457, section 6.1).
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Seconds after which a wish that failed for want of something that may come back is made again, where nobody names a time.
const AGAIN_S: u64 = 5;

/// What is written of an end, the names sorted.
#[derive(Serialize)]
pub(super) struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<i64>,
    code: u8,
    detail: String,
    error: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<i64>,
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    invoice: Option<Shown<'a>>,
    status: u16,
    title: &'static str,
    r#type: String,
}

/// The answer to a failure.
pub(super) fn response(failure: &Failure) -> Response {
    let (status, document) = document(failure, None);
    told(status, visible_json(&document), failure.again_in_s())
}

/// The document of a failure, and its status; with the invoice it is about.
pub(super) fn document<'a>(
    failure: &Failure,
    invoice: Option<Shown<'a>>,
) -> (StatusCode, Document<'a>) {
    let status = match failure.problem_type() {
        // What a repeated call may find settled.
        Some(Problem::Unsettled) if failure.again_in_s().is_some() => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ => status(failure.exit()),
    };
    let document = Document {
        invoice,
        ..document_of(status, failure)
    };
    (status, document)
}

fn document_of(status: StatusCode, failure: &Failure) -> Document<'static> {
    let exit = failure.exit();
    let (name, title) = match failure.problem_type() {
        Some(problem) => problem.words(),
        None => (exit.name(), title(exit)),
    };
    Document {
        after: None,
        code: exit.code(),
        detail: failure.line(),
        error: exit.name(),
        generation: None,
        hint: failure.way_out(),
        invoice: None,
        status: status.as_u16(),
        title,
        r#type: urn(name),
    }
}

/// The type of a problem.
fn urn(name: &str) -> String {
    format!("urn:tilld:problem:{name}")
}

/// The answer to a failure that HTTP has a status of its own for.
fn with_status(status: StatusCode, failure: &Failure) -> Response {
    let document = document_of(status, failure);
    told(status, visible_json(&document), failure.again_in_s())
}

/// The name of an end in words. There is no command line here.
const fn title(exit: Exit) -> &'static str {
    match exit {
        Exit::Usage => "request not understood",
        exit => exit.told().1,
    }
}

/// A request that cannot be understood, and why.
pub(super) fn bad(detail: impl Into<String>, hint: &str) -> Failure {
    Failure::new(Exit::Usage, detail.into()).hint(hint)
}

/// There is no such call.
pub(super) fn no_route(no_route: &NoRoute) -> Response {
    match no_route {
        NoRoute::Elsewhere => response(
            &Failure::new(Exit::NotFound, "there is no such call")
                .hint("`GET /v1/openapi.json` describes them all"),
        ),
        NoRoute::OtherMethod(allowed) => {
            let failure = bad(
                format!("this call takes {allowed}"),
                "`GET /v1/openapi.json` describes it",
            );
            let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED, &failure);
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static(allowed));
            response
        }
    }
}

/// What HTTP calls an end.
pub(super) const fn status(exit: Exit) -> StatusCode {
    match exit {
        Exit::Ok => StatusCode::OK,
        Exit::Usage => StatusCode::BAD_REQUEST,
        Exit::NotFound => StatusCode::NOT_FOUND,
        Exit::Error | Exit::NotPaid | Exit::Unknown | Exit::TimeOut | Exit::Attention => {
            StatusCode::CONFLICT
        }
        Exit::NoRequisites
        | Exit::LoginNeeded
        | Exit::Unreachable
        | Exit::Ledger
        | Exit::LoginDenied
        | Exit::LoginExpired
        | Exit::LoginMaybe => StatusCode::SERVICE_UNAVAILABLE,
        Exit::Config | Exit::Ownership | Exit::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A document that was made before. What may pass is worth another try after so many seconds, or a few.
pub(super) fn told(status: StatusCode, document: String, again_in_s: Option<u64>) -> Response {
    let mut response = http::json(status, document);
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
    let is_passing = [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    if is_passing.contains(&status) {
        let seconds = again_in_s.unwrap_or(AGAIN_S).max(1);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// A client cannot be taken up for waiting just now.
pub(super) fn busy(no_place: NoPlace) -> Response {
    let (status, failure) = match no_place {
        NoPlace::Full => (
            StatusCode::TOO_MANY_REQUESTS,
            Failure::new(
                Exit::Error,
                "as many follow events or wait for an invoice as may",
            )
            .hint("`control.followers` sets how many may"),
        ),
        NoPlace::NoRoom => return no_room(),
        NoPlace::Stopping => (
            StatusCode::SERVICE_UNAVAILABLE,
            Failure::new(Exit::Error, "tilld stops").hint("ask again when it runs anew"),
        ),
        NoPlace::Unread => (
            StatusCode::SERVICE_UNAVAILABLE,
            Failure::new(Exit::Ledger, "the ledger could not be read")
                .hint("the log of `tilld serve` says why; ask again"),
        ),
    };
    with_status(status, &failure)
}

/// As many calls wait as may.
pub(super) fn no_room() -> Response {
    let failure = Failure::new(Exit::Error, "as many calls wait as may")
        .hint("`control.connections` sets how many: an eighth of it is kept for calls that wait for nothing");
    with_status(StatusCode::TOO_MANY_REQUESTS, &failure)
}

/// A number of an event that was given by a ledger that is not there any more, or by none.
pub(super) fn gone(after: i64, restored: Restored) -> Response {
    let failure = not_given(after, restored);
    let status = StatusCode::GONE;
    let document = Document {
        after: Some(restored.after),
        generation: Some(restored.generation),
        title: "the ledger was restored",
        r#type: urn("restored"),
        ..document_of(status, &failure)
    };
    told(status, visible_json(&document), None)
}

/// As many invoices are being asked about as may be.
pub(super) fn asking() -> Response {
    let failure = Failure::new(
        Exit::Error,
        "the service is being asked about as many invoices as may be",
    )
    .hint("ask again a little later; the ledger is told by itself when money comes");
    with_status(StatusCode::TOO_MANY_REQUESTS, &failure)
}

/// What is answered before any call is looked at.
pub(super) fn refused(refused: Refused) -> Response {
    let failure = match refused {
        Refused::Unsound => bad(
            "its framing is not clear",
            "send `Host` once, and the length of the body in one way",
        ),
        Refused::Panicked => Failure::new(Exit::Error, "tilld met a mistake of its own").hint(
            "the log of `tilld serve` says which; a create is not sent again when it is repeated",
        ),
        Refused::Full => Failure::new(Exit::Error, "every connection is taken")
            .hint("ask again; `control.connections` sets how many may be open"),
    };
    with_status(refused.status(), &failure)
}

/// A request whose body did not come whole. Each of these answers ends the connection.
pub(super) fn unread(error: BodyError) -> Response {
    let hint = match error {
        BodyError::TooLarge => {
            "an order is short: leave away what `GET /v1/openapi.json` does not name"
        }
        BodyError::TooSlow | BodyError::Broken => "send the whole body at once",
        BodyError::NoRoom | BodyError::Evicted => {
            "ask again; `control.connections` sets how many may be open"
        }
    };
    let exit = match error {
        BodyError::NoRoom | BodyError::Evicted => Exit::Error,
        BodyError::TooLarge | BodyError::TooSlow | BodyError::Broken => Exit::Usage,
    };
    let failure = Failure::new(exit, error).hint(hint);
    let plain = error.response();
    let mut response = with_status(plain.status(), &failure);
    for (name, value) in plain.headers() {
        if name != CONTENT_TYPE {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_bears_the_status_of_its_answer() {
        let locked = Failure::new(Exit::Ledger, "locked");
        let (status, usual) = document(&locked, None);
        assert_eq!((status.as_u16(), usual.status), (503, 503));
        let other = document_of(StatusCode::METHOD_NOT_ALLOWED, &locked);
        assert_eq!(other.status, 405);
    }
}
