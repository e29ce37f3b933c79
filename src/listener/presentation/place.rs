//! The places a notification can prove its notify token in, and how each is written in the config.

use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderName};

use super::signed;

/// Every form a place is written in, as messages list them.
const FORMS: &str = "`header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/json/pointer`, \
                     `hmac-sha256:header:NAME` and `standard-webhooks`";

/// One place. `Display` gives it as it stands in the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of a header.
    Header(HeaderName),
    /// `Authorization: Bearer …`; the scheme in any case.
    Bearer,
    /// The password of `Authorization: Basic …` (RFC 7617); the scheme in any case, the user name whatever it is.
    BasicPassword,
    /// A parameter of the query, percent-decoded.
    Query(String),
    /// A string in the body, by its JSON pointer (RFC 6901).
    Body(String),
    /// A header with the HMAC-SHA256 of the body's bytes as they came, keyed with the token.
    Hmac(HeaderName),
    /// The three headers of Standard Webhooks 1.0, keyed with the token.
    StandardWebhooks,
}

/// Places that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Not of any known form.
    #[error("`{0}` is no presentation; known are {FORMS}")]
    Unknown(String),
    /// No place at all: no notification could ever be authentic.
    #[error("the list of presentations is empty")]
    None,
    /// What is right in one of them is wrong in the other, so that nothing could ever be authentic.
    #[error("the presentations `{0}` and `{1}` read the same header as two different things")]
    Clash(Place, Place),
}

impl Place {
    /// Reads a place as it stands in the config.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let unknown = || PlaceError::Unknown(text.to_owned());
        let header = |name: &str| name.parse().map_err(|_no_header_name| unknown());
        match text.split_once(':') {
            None => match text {
                "bearer" => Ok(Self::Bearer),
                "basic-password" => Ok(Self::BasicPassword),
                "standard-webhooks" => Ok(Self::StandardWebhooks),
                _ => Err(unknown()),
            },
            Some(("header", name)) => header(name).map(Self::Header),
            Some(("query", name)) if !name.is_empty() => Ok(Self::Query(name.to_owned())),
            Some(("body", pointer)) if pointer.len() > 1 && pointer.starts_with('/') => {
                Ok(Self::Body(pointer.to_owned()))
            }
            Some(("hmac-sha256", rest)) => {
                let name = rest.strip_prefix("header:").ok_or_else(unknown)?;
                header(name).map(Self::Hmac)
            }
            Some(_) => Err(unknown()),
        }
    }

    /// True when it carries a signature instead of the token itself.
    pub const fn is_signed(&self) -> bool {
        match self {
            Self::Hmac(_) | Self::StandardWebhooks => true,
            Self::Header(_)
            | Self::Bearer
            | Self::BasicPassword
            | Self::Query(_)
            | Self::Body(_) => false,
        }
    }

    /// True when both read one header, and not as two schemes of `Authorization`, each of which leaves the other's alone.
    pub(super) fn clashes_with(&self, other: &Self) -> bool {
        let by_scheme = |place: &Self| matches!(place, Self::Bearer | Self::BasicPassword);
        let share = |name| other.headers().contains(&name);
        self != other
            && !(by_scheme(self) && by_scheme(other))
            && self.headers().into_iter().any(share)
    }

    /// The headers it reads.
    pub(crate) fn headers(&self) -> Vec<HeaderName> {
        match self {
            Self::Header(name) | Self::Hmac(name) => vec![name.clone()],
            Self::Bearer | Self::BasicPassword => vec![AUTHORIZATION],
            Self::Query(_) | Self::Body(_) => Vec::new(),
            Self::StandardWebhooks => [signed::ID, signed::TIMESTAMP, signed::SIGNATURE].to_vec(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Bearer => f.write_str("bearer"),
            Self::BasicPassword => f.write_str("basic-password"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
            Self::Hmac(name) => write!(f, "hmac-sha256:header:{name}"),
            Self::StandardWebhooks => f.write_str("standard-webhooks"),
        }
    }
}
