//! An end without success as a problem document (RFC 9457), by the names and the numbers the command line has for it.

use hyper::StatusCode;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use super::route::NoRoute;
use crate::answer::failure::{Exit, Failure};
use crate::http::{self, Response};

/// What a problem document is called (RFC 9457, section 6.1).
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
/// Seconds after which a wish that failed for want of something that may come back is made again.
const AGAIN_S: HeaderValue = HeaderValue::from_static("5");

/// The answer to a failure.
pub(super) fn response(failure: &Failure) -> Response {
    let (status, document) = document(failure, None);
    told(status, document.to_string())
}

/// The same, with the invoice it is about.
pub(super) fn with_invoice(failure: &Failure, invoice: &Value) -> Response {
    let (status, document) = document(failure, Some(invoice));
    told(status, document.to_string())
}

/// The document of a failure, and its status.
pub(super) fn document(failure: &Failure, invoice: Option<&Value>) -> (StatusCode, Value) {
    let status = status(failure.exit());
    (status, of_status(failure, status, invoice))
}

/// The document of a failure that HTTP has a status of its own for.
fn of_status(failure: &Failure, status: StatusCode, invoice: Option<&Value>) -> Value {
    let exit = failure.exit();
    let mut document = json!({
        "type": format!("urn:tilld:problem:{}", exit.name()),
        "title": exit.told().1,
        "status": status.as_u16(),
        "detail": failure.line(),
        "hint": failure.way_out(),
        "error": exit.name(),
        "code": exit.code(),
    });
    if let (Value::Object(all), Some(invoice)) = (&mut document, invoice) {
        all.insert("invoice".to_owned(), invoice.clone());
    }
    document
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
            let status = StatusCode::METHOD_NOT_ALLOWED;
            let mut response = told(status, of_status(&failure, status, None).to_string());
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
        Exit::Config | Exit::Ownership => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A document that was made before.
pub(super) fn told(status: StatusCode, document: String) -> Response {
    let mut response = http::json(status, document);
    response.headers_mut().insert(CONTENT_TYPE, PROBLEM);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, AGAIN_S);
    }
    response
}

/// No more clients are taken up for waiting just now.
pub(super) fn busy(is_full: bool) -> Response {
    let (text, hint) = if is_full {
        (
            "as many follow events as may",
            "`control.followers` sets how many may",
        )
    } else {
        ("tilld stops", "ask again when it runs anew")
    };
    let failure = Failure::new(Exit::Error, text).hint(hint);
    let status = StatusCode::TOO_MANY_REQUESTS;
    let mut response = told(status, of_status(&failure, status, None).to_string());
    response.headers_mut().insert(RETRY_AFTER, AGAIN_S);
    response
}

/// There is no whole body, and why.
pub(super) fn no_body(error: http::BodyError) -> Response {
    let status = error.response().status();
    let failure = match error {
        http::BodyError::Evicted => Failure::new(Exit::Error, error).hint("ask again"),
        http::BodyError::TooLarge | http::BodyError::TooSlow | http::BodyError::Broken => bad(
            error.to_string(),
            "send at most 64 KiB, and all of it within 10 s",
        ),
    };
    told(status, of_status(&failure, status, None).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_bears_the_status_of_its_answer() {
        let locked = Failure::new(Exit::Ledger, "locked");
        let told = |document: &Value| document.get("status").and_then(Value::as_u64);
        let (status, usual) = document(&locked, None);
        assert_eq!((status.as_u16(), told(&usual)), (503, Some(503)));
        let other = of_status(&locked, StatusCode::METHOD_NOT_ALLOWED, None);
        assert_eq!(told(&other), Some(405));
    }
}
