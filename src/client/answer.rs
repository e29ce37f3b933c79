//! One exchange: send, read the answer within its limits, and sort it by its status.

use std::time::Duration;

use reqwest::header::HeaderValue;
use reqwest::{RequestBuilder, Response};

use super::LARGEST_ANSWER;
use super::error::{Cut, Error, Foreign};
use super::page::Page;
use super::retry_after;
use crate::clock;
use crate::invoice::observation::Report;
use crate::news;
use crate::retry_after::http_date;
use crate::secret::Secret;
use crate::wire::fields::Fields;
use crate::wire::invoice;
use crate::wire::problem;

/// An answer whose status line came. Its body may still be missing.
pub(super) struct Answer {
    status: u16,
    /// Of the service's own: an answer of the form that contract 7 shows.
    retry_after: Option<Duration>,
    /// The service's own clock: its `Date` (RFC 9110 6.6.1), milliseconds since 1970.
    service_ms: Option<i64>,
    /// Scheme, host and port a 3xx points to.
    target: Option<String>,
    /// The body, or why it could not be read. A refusal is a refusal whatever became of its body.
    body: Result<Vec<u8>, Error>,
    /// The service's `error` text, with every secret of the request cut out: some services echo what they were sent (A21).
    text: Option<String>,
    /// It is a web page, so not the service's.
    page: Option<Page>,
}

/// The `Authorization` header of an access token, marked so that no library prints it.
pub(super) fn bearer(token: &Secret) -> Result<HeaderValue, Error> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        .map_err(|_holds_the_token| Error::TokenUnusable)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Whether a header can carry an access token.
pub(crate) fn is_sendable(token: &Secret) -> bool {
    bearer(token).is_ok()
}

impl Answer {
    /// Sends the request and reads what comes, in this time at most: that counts as sent, since it may have struck at any point of
    /// the exchange. `hidden` are the secrets the request carries.
    pub(super) async fn receive(
        request: RequestBuilder,
        longest: Duration,
        what: &'static str,
        hidden: &[&Secret],
    ) -> Result<Self, Error> {
        let answer = news::within(longest, Self::of(request, what, hidden)).await;
        answer.unwrap_or_else(|| {
            let source = Cut::TooLong(longest);
            let error = Error::Unanswered { source };
            tracing::debug!(%error, "no answer to a {what}");
            Err(error)
        })
    }

    async fn of(
        request: RequestBuilder,
        what: &'static str,
        hidden: &[&Secret],
    ) -> Result<Self, Error> {
        let response = request.send().await.map_err(|cause| {
            let source = cause.without_url();
            if source.is_connect() || source.is_dns() || source.is_builder() {
                Error::NotSent { source }
            } else {
                let source = Cut::Broken(source);
                Error::Unanswered { source }
            }
        });
        let response =
            response.inspect_err(|error| tracing::debug!(%error, "no answer to a {what}"))?;
        let status = response.status().as_u16();
        tracing::debug!(http.status = status, "answer to a {what}");
        let date = response.headers().get(reqwest::header::DATE);
        let date = date.and_then(|value| value.to_str().ok());
        let service_ms = date.and_then(http_date);
        let target = pointed_to(&response);
        let headers = response.headers().clone();
        let body = read(response).await;
        let whole = body.as_deref().unwrap_or_default();
        let page = Page::of(&headers, whole, hidden);
        let text = body
            .as_ref()
            .ok()
            .filter(|_| status >= 400)
            .and_then(|body| problem::error_text(body, hidden));
        // What stands before the service wishes nothing in its name: a page of a proxy would stop checkout for an hour.
        let retry_after = text
            .as_ref()
            .and_then(|_own| retry_after::from_headers(&headers, clock::wall_ms()));
        Ok(Self {
            status,
            retry_after,
            service_ms,
            target,
            body,
            text,
            page,
        })
    }

    /// The service's own clock, milliseconds since 1970.
    pub(super) const fn service_ms(&self) -> Option<i64> {
        self.service_ms
    }

    /// The HTTP status.
    pub(super) const fn status(&self) -> u16 {
        self.status
    }

    /// True for a 4xx that will stay one: the service has judged the request.
    pub(super) const fn is_final_refusal(&self) -> bool {
        matches!(self.status, 400..=499) && !matches!(self.status, 408 | 429)
    }

    /// The answer, unless it is a page of something else than the service.
    pub(super) fn of_the_service(mut self) -> Result<Self, Error> {
        let status = self.status;
        match self.page.take() {
            Some(page) if !matches!(status, 300..=399) => Err(Error::Page { status, page }),
            Some(_) | None => Ok(self),
        }
    }

    /// Status and `error` text of a refusal. A refusal whose body did not arrive may have said anything.
    pub(super) fn into_problem(self) -> Result<(u16, Option<String>), Error> {
        self.body.map(|_read| (self.status, self.text))
    }

    /// How long the service wants to be left alone, when it said so.
    pub(super) const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The text of the contract's 503 on create; a proxy's 503 has none.
    pub(super) fn no_requisites(&self) -> Option<String> {
        self.text.clone().filter(|_| self.status == 503)
    }

    /// The answer if it is a 2xx; otherwise the error its status stands for, a final 4xx being named by `refusal`.
    pub(super) fn success(self, refusal: fn(Self) -> Error) -> Result<Self, Error> {
        let answer = self.of_the_service()?;
        match answer.status {
            200..=299 => Ok(answer),
            300..=399 => Err(Error::Redirected {
                status: answer.status,
                target: answer.target,
            }),
            408 | 429 | 500..=599 => Err(Error::Busy {
                status: answer.status,
                retry_after: answer.retry_after,
                text: answer.text,
            }),
            400..=499 => Err(refusal(answer)),
            other => Err(Error::NotTheService {
                why: Foreign::Status(other),
            }),
        }
    }

    /// A final 4xx of a request that is not about one invoice.
    pub(super) fn refused(self) -> Error {
        match self.status {
            401 => Error::LoginNeeded,
            status => Error::Refused {
                status,
                text: self.text,
            },
        }
    }

    /// A final 4xx of a request about one invoice.
    pub(super) fn refused_one(self) -> Error {
        let service_ms = self.service_ms;
        match self.status {
            403 => Error::Forbidden {
                service_ms,
                text: self.text,
            },
            404 | 410 => Error::NotFound {
                service_ms,
                text: self.text,
            },
            _ => self.refused(),
        }
    }

    /// What is read of the body, which is one JSON object.
    pub(super) fn object<T>(
        self,
        read: impl FnOnce(&Fields<'_>) -> Result<T, &'static str>,
    ) -> Result<T, Error> {
        let body = self.body?;
        let fields = Fields::read(&body).map_err(|why| Error::NotTheService {
            why: Foreign::Shape(why),
        })?;
        read(&fields).map_err(|field| Error::NotTheService {
            why: Foreign::Missing(field),
        })
    }

    /// The body as an invoice, without these secrets.
    pub(super) fn invoice(self, hidden: &[&Secret]) -> Result<Report, Error> {
        let service_ms = self.service_ms;
        let body = self.body?;
        let fields = Fields::read(&body).map_err(|why| Error::NotTheService {
            why: Foreign::Shape(why),
        })?;
        let decoded = invoice::decode(&fields).map_err(|why| Error::NotTheService {
            why: Foreign::Invoice(why),
        })?;
        Ok(Report {
            service_ms,
            ..decoded.without(hidden)
        })
    }
}

/// Reads a body in pieces, so that an endless one costs no more than the limit.
async fn read(mut response: Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    loop {
        let piece = response.chunk().await.map_err(|cause| Error::Unanswered {
            source: Cut::Broken(cause.without_url()),
        })?;
        let Some(piece) = piece else { return Ok(body) };
        if body.len() + piece.len() > LARGEST_ANSWER {
            return Err(Error::NotTheService {
                why: Foreign::TooLarge,
            });
        }
        body.extend_from_slice(&piece);
    }
}

fn pointed_to(response: &Response) -> Option<String> {
    let target = response
        .headers()
        .get(reqwest::header::LOCATION)?
        .to_str()
        .ok()?;
    let url = response.url().join(target).ok()?;
    // The whole of it tells http from https and one port from another, where only that is wrong with `service.url`.
    url.has_host().then(|| url.origin().ascii_serialization())
}
