//! What the endpoints of the contract answer instead of their own answers.

use super::Times;

/// The four endpoints of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Endpoint {
    /// `POST /api/v1/agent/login`
    Login,
    /// `POST /api/v1/agent/token`
    Token,
    /// `POST /api/v1/invoices`
    Create,
    /// `GET /api/v1/invoices/{id}`
    Fetch,
}

impl Endpoint {
    /// All four, in the contract's order.
    pub(crate) const ALL: [Self; 4] = [Self::Login, Self::Token, Self::Create, Self::Fetch];

    /// The word used on the control listener.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Token => "token",
            Self::Create => "create",
            Self::Fetch => "fetch",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|endpoint| endpoint.word() == word)
    }
}

/// An answer an endpoint gives instead of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiFault {
    /// Which endpoint.
    pub(crate) endpoint: Endpoint,
    /// What comes.
    pub(crate) answer: StandIn,
    /// How often.
    pub(crate) times: Times,
}

/// What comes in place of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// Another answer.
    Answer {
        /// HTTP status, 200 to 599.
        status: u16,
        /// Body, sent as it is. JSON when it starts with `{`, HTML otherwise.
        body: String,
        /// `Retry-After`, seconds.
        retry_after_s: Option<u64>,
        /// `Location`.
        location: Option<String>,
    },
    /// Nothing, until the client gives up.
    Hang,
    /// Nothing: the connection is closed. What was asked is not done.
    Cut,
}

impl StandIn {
    /// An answer without more than a status and a body.
    fn plain(status: u16, body: &str) -> Self {
        Self::Answer {
            status,
            body: body.to_owned(),
            retry_after_s: None,
            location: None,
        }
    }

    /// The error page of a proxy that does not reach the service behind it.
    pub(crate) fn html(status: u16) -> Self {
        Self::plain(
            status,
            "<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1></body></html>",
        )
    }

    /// Elsewhere, where a client that carries a token must not follow.
    pub(crate) fn redirect(location: &str) -> Self {
        Self::Answer {
            status: 307,
            body: String::new(),
            retry_after_s: None,
            location: Some(location.to_owned()),
        }
    }

    /// One of those that pass by themselves, chosen by a number.
    pub(crate) fn passing(number: u64) -> Self {
        match number % 6 {
            0 => Self::plain(500, "{\"error\":\"internal\"}"),
            1 => Self::html(502),
            2 => Self::html(503),
            3 => Self::Answer {
                status: 429,
                body: "{\"error\":\"too many requests\"}".to_owned(),
                retry_after_s: Some(1),
                location: None,
            },
            4 => Self::redirect("/elsewhere"),
            _ => Self::Cut,
        }
    }

    /// The word of the control listener and the pages.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Answer { status, .. } => status.to_string(),
            Self::Hang => "hang".to_owned(),
            Self::Cut => "cut".to_owned(),
        }
    }
}
