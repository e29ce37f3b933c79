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

/// What a proxy says that does not reach the service behind it.
const BAD_GATEWAY: &str =
    "<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1></body></html>";

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
    /// Nothing, until the client gives up, or [`super::waits`] ends it.
    Hang,
    /// Nothing: the connection is closed. What was asked is not done.
    Cut,
    /// What was asked is done, and its answer is lost: the connection is closed.
    DropAnswer,
}

/// The word for any of those that pass by themselves.
pub(super) const PASSING: &str = "";
/// The words of [`StandIn::by_word`].
const WORDS: [&str; 11] = [
    "401",
    "403",
    "404",
    "429",
    "500",
    "503",
    "html",
    "redirect",
    "hang",
    "cut",
    "drop_answer",
];
/// Where a redirect leads unless it is told.
pub(crate) const ELSEWHERE: &str = "/elsewhere";

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
        Self::plain(status, BAD_GATEWAY)
    }

    /// Elsewhere, where a client that carries a token must not follow.
    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        Self::Answer {
            status,
            body: String::new(),
            retry_after_s: None,
            location: Some(location.to_owned()),
        }
    }

    /// The word as it is kept, when it is one of [`StandIn::by_word`].
    pub(super) fn known_word(word: &str) -> Option<&'static str> {
        WORDS.into_iter().find(|known| *known == word)
    }

    /// The answer a rate's word stands for; a number chooses where it stands for several.
    pub(super) fn by_word(word: &str, number: u64) -> Option<Self> {
        let error = |status: u16| {
            let body = format!("{{\"error\":\"sandbox: {status}\"}}");
            Self::plain(status, &body)
        };
        match word {
            PASSING => Some(Self::passing(number)),
            "429" => Some(Self::busy()),
            // An object with an `error` would be the contract's word for no free requisites; an outage says nothing.
            "503" => Some(Self::plain(503, "")),
            "html" => Some(Self::html(502)),
            "redirect" => Some(Self::redirect(307, ELSEWHERE)),
            "hang" => Some(Self::Hang),
            "cut" => Some(Self::Cut),
            "drop_answer" => Some(Self::DropAnswer),
            status => status.parse().ok().map(error),
        }
    }

    fn busy() -> Self {
        Self::Answer {
            status: 429,
            body: "{\"error\":\"too many requests\"}".to_owned(),
            retry_after_s: Some(1),
            location: None,
        }
    }

    /// One of those that pass by themselves, chosen by a number.
    pub(crate) fn passing(number: u64) -> Self {
        match number % 6 {
            0 => Self::plain(500, "{\"error\":\"internal\"}"),
            1 => Self::html(502),
            2 => Self::html(503),
            3 => Self::busy(),
            4 => Self::redirect(307, ELSEWHERE),
            _ => Self::Cut,
        }
    }

    /// The word of the control listener and the pages.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Answer { status, .. } => status.to_string(),
            Self::Hang => "hang".to_owned(),
            Self::Cut => "cut".to_owned(),
            Self::DropAnswer => "drop_answer".to_owned(),
        }
    }
}
