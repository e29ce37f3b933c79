//! Where a notification carries its notify token, and whether what it carries is the right one. Pure.
//!
//! The contract does not show the place (section 6), so the usual ones are tried, each judged on its own: an empty or
//! missing place never makes up for another (A19). Every comparison is [`NotifyToken::matches`]; what was presented is
//! neither kept nor told, only the place is.

use std::fmt;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};

use crate::invoice::notify_token::NotifyToken;
use crate::wire::json::Object;

/// Values judged in one place. More are a place that occurs several times with different values, whatever they are.
const MOST_VALUES: usize = 8;

/// Where the sibling service's documents put the token, first; then what senders of this kind commonly use. Names that
/// could mean something else in an invoice object, such as `token`, are left out: what differs contradicts.
const USUAL: [&str; 7] = [
    "header:X-Notification-Token",
    "header:X-Webhook-Token",
    "header:X-Webhook-Secret",
    "bearer",
    "query:token",
    "query:notificationToken",
    "body:/notificationToken",
];

/// One place. `Display` gives it as it stands in the config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The value of a header.
    Header(HeaderName),
    /// `Authorization: Bearer …`; the scheme in any case.
    Bearer,
    /// A parameter of the query, percent-decoded.
    Query(String),
    /// A string in the body, by its JSON pointer (RFC 6901).
    Body(String),
}

/// A text that names no place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// Not of any known form.
    #[error(
        "`{0}` is no presentation; known are `header:NAME`, `bearer`, `query:NAME` and `body:/json/pointer`"
    )]
    Unknown(String),
    /// No place at all: no notification could ever be authentic.
    #[error("the list of presentations is empty")]
    None,
}

/// The places that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentations {
    places: Vec<Place>,
    choice: Choice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The usual ones: an `Authorization` of another scheme is somebody else's.
    Usual,
    /// The merchant's own: whatever stands there was meant as the token.
    Pinned,
}

/// A notification, as far as a token can stand in it.
#[derive(Clone, Copy, Debug)]
pub struct Carried<'a> {
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its query, without the question mark.
    pub query: Option<&'a str>,
    /// Its body.
    pub body: &'a Object,
}

/// What the places say together. Only [`Verdict::Right`] is authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No place carries anything.
    Missing,
    /// No place carries the token.
    Wrong,
    /// A place carries the token and, a second time, something else.
    Doubled,
    /// A place carries the token, another something else.
    Contradicting,
    /// Every place that carries anything carries the token; this is the first of them.
    Right(&'a Place),
}

impl Place {
    /// Reads a place as it stands in the config.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        let unknown = || PlaceError::Unknown(text.to_owned());
        match text.split_once(':') {
            None if text == "bearer" => Ok(Self::Bearer),
            Some(("header", name)) => name
                .parse()
                .map(Self::Header)
                .map_err(|_no_header_name| unknown()),
            Some(("query", name)) if !name.is_empty() => Ok(Self::Query(name.to_owned())),
            Some(("body", pointer)) if pointer.len() > 1 && pointer.starts_with('/') => {
                Ok(Self::Body(pointer.to_owned()))
            }
            _ => Err(unknown()),
        }
    }

    /// The values this place carries, blanks around them cut off, empty ones included: beside another value they are
    /// one that differs.
    fn values<'a>(&self, carried: Carried<'a>, choice: Choice) -> Vec<Presented<'a>> {
        match self {
            Self::Header(name) => carried
                .headers
                .get_all(name)
                .iter()
                .map(|value| Presented::Borrowed(value.as_bytes().trim_ascii()))
                .collect(),
            Self::Bearer => carried
                .headers
                .get_all(AUTHORIZATION)
                .iter()
                .filter_map(|value| bearer(value.as_bytes().trim_ascii(), choice))
                .collect(),
            Self::Query(name) => query(carried.query.unwrap_or_default(), name),
            Self::Body(pointer) => at(carried.body, pointer).into_iter().collect(),
        }
    }
}

/// One value, from wherever it came. No `Debug`: it may be the token.
enum Presented<'a> {
    Borrowed(&'a [u8]),
    Decoded(Vec<u8>),
}

impl Presented<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Decoded(bytes) => bytes,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Bearer => f.write_str("bearer"),
            Self::Query(name) => write!(f, "query:{name}"),
            Self::Body(pointer) => write!(f, "body:{pointer}"),
        }
    }
}

impl Presentations {
    /// The usual places.
    pub fn auto() -> Self {
        let places = USUAL.iter().filter_map(|text| Place::parse(text).ok());
        Self {
            places: places.collect(),
            choice: Choice::Usual,
        }
    }

    /// The places, in the order they are looked at.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Only these places.
    pub fn only<T: AsRef<str>>(places: &[T]) -> Result<Self, PlaceError> {
        if places.is_empty() {
            return Err(PlaceError::None);
        }
        let places: Result<_, _> = places
            .iter()
            .map(|text| Place::parse(text.as_ref()))
            .collect();
        Ok(Self {
            places: places?,
            choice: Choice::Pinned,
        })
    }

    /// Compares everything that is carried in a place that counts with `token`. The work depends on what was presented,
    /// never on how much of it is right.
    pub fn judge(&self, token: &NotifyToken, carried: Carried<'_>) -> Verdict<'_> {
        let (mut right, mut wrong, mut doubled) = (None, false, false);
        for place in &self.places {
            let values = place.values(carried, self.choice);
            let judged = values.len().min(MOST_VALUES);
            let matching = values
                .iter()
                .take(MOST_VALUES)
                .filter(|value| token.matches(value.bytes()))
                .count();
            let all_empty = values.iter().all(|value| value.bytes().is_empty());
            if all_empty {
                continue;
            }
            if matching > 0 && right.is_none() {
                right = Some(place);
            }
            doubled |= matching > 0 && (matching < judged || judged < values.len());
            wrong |= matching == 0;
        }
        match right {
            Some(_) if doubled => Verdict::Doubled,
            Some(_) if wrong => Verdict::Contradicting,
            Some(place) => Verdict::Right(place),
            None if wrong => Verdict::Wrong,
            None => Verdict::Missing,
        }
    }
}

impl Verdict<'_> {
    /// The word for logs and refusals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "token_missing",
            Self::Wrong => "token_wrong",
            Self::Doubled => "token_doubled",
            Self::Contradicting => "token_contradicting",
            Self::Right(_) => "token_right",
        }
    }
}

/// The token of an `Authorization` value. Another scheme is nothing under the usual places, and a wrong value when
/// `bearer` was pinned.
fn bearer(value: &[u8], choice: Choice) -> Option<Presented<'_>> {
    let blank = value.iter().position(u8::is_ascii_whitespace);
    let (scheme, rest) = value.split_at(blank.unwrap_or(value.len()));
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(Presented::Borrowed(rest.trim_ascii_start()));
    }
    match choice {
        Choice::Usual => None,
        Choice::Pinned => Some(Presented::Borrowed(value)),
    }
}

fn query<'a>(query: &'a str, name: &str) -> Vec<Presented<'a>> {
    query
        .split('&')
        .filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decoded(key) == name.as_bytes())
                .then(|| Presented::Decoded(percent_decoded(value).trim_ascii().to_vec()))
        })
        .collect()
}

/// Undoes `%41`; a percent sign without two hex digits stays. `+` stays too: no token of ours has a blank, and senders
/// that do not encode send a plus as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let escaped = match (*first, after) {
            (b'%', [high, low, after @ ..]) => hex(*high)
                .zip(hex(*low))
                .map(|(high, low)| (high * 16 + low, after)),
            _ => None,
        };
        let (byte, after) = escaped.unwrap_or((*first, after));
        decoded.push(byte);
        rest = after;
    }
    decoded
}

/// The string at a JSON pointer. Anything but a string is no token.
fn at<'a>(object: &'a Object, pointer: &str) -> Option<Presented<'a>> {
    let (first, rest) = match pointer.strip_prefix('/')?.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (pointer.strip_prefix('/')?, None),
    };
    let top = object.get(&first.replace("~1", "/").replace("~0", "~"))?;
    let value = match rest {
        Some(rest) => top.pointer(&format!("/{rest}"))?,
        None => top,
    };
    let text = value.as_str()?;
    Some(Presented::Borrowed(text.trim().as_bytes()))
}

#[cfg(test)]
mod tests;
