//! What can come of a request. The split is by what the caller knows afterwards: that nothing left this machine, that
//! something may have arrived, or what the service said. No variant holds a secret, a body or a request address.

use std::time::Duration;

use super::gate::outage::Verdict;
use super::page::Page;
use crate::telemetry::{chain, escape};
use crate::wire::invoice::NotAnInvoice;
use crate::wire::json::ShapeError;

/// What a complete answer was cut off by.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cut {
    /// The connection, without its address.
    #[error(transparent)]
    Broken(reqwest::Error),
    /// The time for the whole exchange.
    #[error("it took longer than {} ms", .0.as_millis())]
    TooLong(Duration),
}

/// A request to the payment service that did not yield what was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No connection: name, route, TLS. The request certainly never left this machine.
    #[error("could not connect to the payment service")]
    NotSent {
        /// What the connection died of, without the address.
        #[source]
        source: reqwest::Error,
    },
    /// Sent, or perhaps sent, and no complete answer came: time-out, reset, cut body. The service may have acted.
    #[error("the payment service gave no complete answer")]
    Unanswered {
        /// What the exchange died of, without the address.
        #[source]
        source: Cut,
    },
    /// 401: the access token is not, or no longer, good.
    #[error("the payment service refused the login")]
    LoginNeeded,
    /// 403 for one invoice. Says nothing about others (A30).
    #[error("the payment service does not let this shop see the invoice{}", behind(text.as_deref()))]
    Forbidden {
        /// The service's clock, where the answer is dated: milliseconds since 1970.
        service_ms: Option<i64>,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// 404 or 410 for one invoice. Says nothing about others (A30).
    #[error("the payment service knows no such invoice{}", behind(text.as_deref()))]
    NotFound {
        /// The service's clock, where the answer is dated: milliseconds since 1970.
        service_ms: Option<i64>,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// 408, 429 or 5xx: later, perhaps.
    #[error("the payment service answered {status}{}", behind(text.as_deref()))]
    Busy {
        /// The HTTP status.
        status: u16,
        /// The service's wish from `Retry-After`, at most one hour.
        retry_after: Option<Duration>,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// Another 4xx: this request will never be taken.
    #[error("the payment service refused the request with {status}{}", behind(text.as_deref()))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// 3xx. Never followed: the token would travel to a place nobody configured.
    #[error("the payment service answered {status} and points to {}, which is not followed", target.as_deref().unwrap_or("nowhere"))]
    Redirected {
        /// The HTTP status.
        status: u16,
        /// Scheme, host and port it points to. Nothing behind them: a path or query may hold a secret.
        target: Option<String>,
    },
    /// A web page, of a firewall or a proxy: nobody asked the service.
    #[error("something else than the payment service answered {status} with {page}")]
    Page {
        /// The HTTP status.
        status: u16,
        /// What the page says of itself.
        page: Page,
    },
    /// 2xx, but not the service's word: a proxy, a maintenance page, a cut document (A31).
    #[error("the answer is not the payment service's")]
    NotTheService {
        /// What gives it away.
        #[source]
        why: Foreign,
    },
    /// The access token has characters no header can carry.
    #[error("the access token holds characters that cannot be sent")]
    TokenUnusable,
}

/// Why an answer in 2xx is not the service's word. Fixed words, nothing of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Foreign {
    /// Not one JSON object.
    #[error(transparent)]
    Shape(ShapeError),
    /// A JSON object, but no invoice.
    #[error(transparent)]
    Invoice(NotAnInvoice),
    /// A JSON object in which a field of the contract is missing, or is not of its kind.
    #[error("`{0}` is missing, or not what it must be")]
    Missing(&'static str),
    /// Another invoice than the one asked for.
    #[error("it is about another invoice")]
    OtherInvoice,
    /// Another order than the one the invoice was to be created for.
    #[error("it is about another order")]
    OtherOrder,
    /// More than the limit of one answer.
    #[error("it is larger than {} KiB", super::LARGEST_ANSWER / 1024)]
    TooLarge,
    /// A status that is no final answer (1xx) or none HTTP knows.
    #[error("its status is {0}")]
    Status(u16),
}

/// A create that did not yield an invoice.
///
/// The service documents no way to repeat a create without the danger of a second invoice (A32). So the one question is
/// whether it may have acted. It may have: no complete answer; a 2xx that cannot be read; any 5xx but the contract's own
/// 503, since a proxy says 502 or 504 after the service did its work, and a service that fails after storing says 500;
/// a 302 or 303, which are also how a server says "done, look there". It has not: the connection never stood; a 4xx,
/// which is a refusal (408 means the request never arrived whole); a 301, 307 or 308, which only point elsewhere.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateError {
    /// The 503 of contract 7: all requisites for the amount and method are occupied. Nothing was created.
    #[error("the payment service has no requisites free: {}", escape(text))]
    NoRequisites {
        /// The service's `error` text.
        text: String,
        /// The service's wish from `Retry-After`, at most one hour. About this create, not about other requests.
        retry_after: Option<Duration>,
    },
    /// An invoice may have been created. Never post again by itself.
    #[error("whether the invoice was created is not known")]
    OutcomeUnknown {
        /// What came instead of an answer.
        #[source]
        source: Error,
    },
    /// Certainly nothing was created.
    #[error("the invoice was not created")]
    NotCreated {
        /// Why.
        #[source]
        source: Error,
    },
}

impl Error {
    /// True when the same request may go well later without anybody doing anything.
    pub(crate) const fn is_transient(&self) -> bool {
        match self {
            Self::NotSent { .. }
            | Self::Unanswered { .. }
            | Self::Busy { .. }
            | Self::Page { .. }
            | Self::NotTheService { .. } => true,
            Self::LoginNeeded
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Redirected { .. }
            | Self::TokenUnusable => false,
        }
    }

    /// How long the service wants to be left alone, when it said so.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            Self::NotSent { .. }
            | Self::Unanswered { .. }
            | Self::LoginNeeded
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::Redirected { .. }
            | Self::Page { .. }
            | Self::NotTheService { .. }
            | Self::TokenUnusable => None,
        }
    }

    /// True when the service may have received the request and acted on it.
    pub(crate) const fn may_have_acted(&self) -> bool {
        match self {
            Self::Unanswered { .. } | Self::NotTheService { .. } => true,
            Self::Busy { status, .. } => *status >= 500,
            // A firewall's 4xx stands in the way; another page may stand in for an answer that was lost.
            Self::Page { status, .. } => !matches!(*status, 400..=499),
            // 301, 307 and 308 only point elsewhere; 302 and 303 are also how a server says "done, look there".
            Self::Redirected { status, .. } => !matches!(*status, 301 | 307 | 308),
            Self::NotSent { .. }
            | Self::LoginNeeded
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. }
            | Self::TokenUnusable => false,
        }
    }
}

impl CreateError {
    /// Sorts an error by whether the service may have acted.
    pub(super) fn sort(source: Error) -> Self {
        if source.may_have_acted() {
            Self::OutcomeUnknown { source }
        } else {
            Self::NotCreated { source }
        }
    }

    /// True when nothing was created for a reason that may pass within minutes: the same create may be sent again. Not
    /// for 408, which says that the service waited for a request it saw beginning.
    pub(crate) const fn may_be_sent_again(&self) -> bool {
        match self {
            Self::NoRequisites { .. }
            | Self::NotCreated {
                source: Error::NotSent { .. } | Error::Busy { status: 429, .. },
            } => true,
            Self::NotCreated { .. } | Self::OutcomeUnknown { .. } => false,
        }
    }

    /// How long the service wants to be left alone, when it said so.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoRequisites { retry_after, .. } => *retry_after,
            Self::OutcomeUnknown { source } | Self::NotCreated { source } => source.retry_after(),
        }
    }
}

fn behind(text: Option<&str>) -> String {
    text.map(|text| format!(": {}", escape(text)))
        .unwrap_or_default()
}

/// What the end of a request says about the service being there, for the gate. An answer about this one request, refusal
/// or not, is a sign of life; so is a wish to be left alone. A proxy's page, a cut answer or none at all is not (A29, A31).
impl Error {
    /// The verdict on the service.
    pub(crate) fn verdict(&self) -> Verdict {
        let is_alive = match self {
            Self::TokenUnusable => return Verdict::Nothing,
            Self::LoginNeeded
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Refused { .. } => true,
            Self::Busy { status, text, .. } => match *status {
                // 408: nobody read the request. 502 to 504: what stands before the service met nobody, whatever it says.
                408 | 502..=504 => false,
                _ => text.is_some(),
            },
            Self::NotTheService { why } => match why {
                Foreign::OtherInvoice | Foreign::OtherOrder => true,
                Foreign::Shape(_)
                | Foreign::Invoice(_)
                | Foreign::Missing(_)
                | Foreign::TooLarge
                | Foreign::Status(_) => false,
            },
            Self::NotSent { .. }
            | Self::Unanswered { .. }
            | Self::Redirected { .. }
            | Self::Page { .. } => false,
        };
        match self {
            _ if !is_alive => Verdict::Outage(chain(self)),
            Self::Busy { .. } => Verdict::Busy,
            _ => Verdict::Alive,
        }
    }
}

impl CreateError {
    /// The verdict on the service.
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::NoRequisites { .. } => Verdict::Alive,
            Self::OutcomeUnknown { source } | Self::NotCreated { source } => source.verdict(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strangers_text_cannot_steer_the_terminal() {
        let error = Error::Refused {
            status: 400,
            text: Some("a\u{1b}[2Jb\n\u{202e}c".into()),
        };
        assert_eq!(
            error.to_string(),
            "the payment service refused the request with 400: a\\u001b[2Jb\\n\\u202ec"
        );
    }

    #[test]
    fn a_create_is_unknown_exactly_when_the_service_may_have_acted() {
        let busy = |status| Error::Busy {
            status,
            retry_after: None,
            text: None,
        };
        let foreign = || Error::NotTheService {
            why: Foreign::TooLarge,
        };
        for (error, unknown) in [
            (busy(500), true),
            (busy(502), true),
            (busy(504), true),
            (foreign(), true),
            (busy(429), false),
            (busy(408), false),
            (Error::LoginNeeded, false),
            (
                Error::Refused {
                    status: 422,
                    text: None,
                },
                false,
            ),
            (
                Error::Redirected {
                    status: 307,
                    target: None,
                },
                false,
            ),
            (
                Error::Redirected {
                    status: 303,
                    target: None,
                },
                true,
            ),
            (Error::TokenUnusable, false),
        ] {
            let shown = error.to_string();
            let sorted = CreateError::sort(error);
            assert_eq!(
                matches!(sorted, CreateError::OutcomeUnknown { .. }),
                unknown,
                "{shown}"
            );
        }
    }

    #[test]
    fn only_what_met_no_service_is_evidence_of_an_outage() {
        let busy = |status, retry_after: Option<u64>, text: Option<&str>| Error::Busy {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            text: text.map(str::to_owned),
        };
        let foreign = |why| Error::NotTheService { why };
        let redirected = Error::Redirected {
            status: 302,
            target: None,
        };
        let refused = Error::Refused {
            status: 422,
            text: None,
        };
        for (error, alive) in [
            (busy(408, None, None), false),
            (busy(429, None, Some("slow down")), true),
            (busy(429, None, None), false),
            (busy(500, None, None), false),
            (busy(500, None, Some("oops")), true),
            (busy(502, None, Some("oops")), false),
            (busy(503, Some(1), Some("oops")), false),
            (busy(504, None, None), false),
            (busy(520, None, None), false),
            (redirected, false),
            (foreign(Foreign::TooLarge), false),
            (foreign(Foreign::Missing("id")), false),
            (foreign(Foreign::OtherInvoice), true),
            (foreign(Foreign::OtherOrder), true),
            (Error::LoginNeeded, true),
            (
                Error::NotFound {
                    service_ms: None,
                    text: None,
                },
                true,
            ),
            (
                Error::Forbidden {
                    service_ms: None,
                    text: None,
                },
                true,
            ),
            (refused, true),
        ] {
            let verdict = error.verdict();
            let is_out = matches!(verdict, Verdict::Outage(_));
            assert_eq!(!is_out, alive, "{error:?}: {verdict:?}");
            let is_busy = matches!(error, Error::Busy { .. });
            assert_eq!(verdict == Verdict::Busy, alive && is_busy, "{error:?}");
        }
        assert_eq!(Error::TokenUnusable.verdict(), Verdict::Nothing);
    }
}
