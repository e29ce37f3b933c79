//! Places that carry the token itself: which values stand there, blanks around them cut off.

use hyper::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;

use crate::invoice::notify_token::NotifyToken;
use crate::wire::fields::{Field, Fields};

use super::signed::base64;
use super::{Carried, Lines, Place};

/// One value, from wherever it came. No `Debug`: it may be the token.
pub(super) enum Presented<'a> {
    Borrowed(&'a [u8]),
    Decoded(Vec<u8>),
    /// Something stands there that cannot be read as this place is, so that it is not the token.
    Unreadable,
}

impl Presented<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes().is_some_and(<[u8]>::is_empty)
    }

    pub(super) fn is(&self, token: &NotifyToken) -> bool {
        self.bytes().is_some_and(|bytes| token.matches(bytes))
    }

    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Borrowed(bytes) => Some(bytes),
            Self::Decoded(bytes) => Some(bytes),
            Self::Unreadable => None,
        }
    }
}

/// The schemes of `Authorization` that carry a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Bearer,
    Basic,
}

/// Hands over the values in a place, empty ones included: beside another value they are one that differs. `pinned` are all
/// places the merchant named, if he did.
pub(super) fn each_value<'a>(
    place: &Place,
    (carried, lines): (Carried<'a>, Lines<'a>),
    pinned: Option<&[Place]>,
    mut take: impl FnMut(Presented<'a>),
) {
    match place {
        Place::Header(name) => lines.get(name).map(Presented::Borrowed).for_each(take),
        Place::Bearer => authorization(Scheme::Bearer, lines, pinned).for_each(take),
        Place::BasicPassword => authorization(Scheme::Basic, lines, pinned).for_each(take),
        Place::Query(name) => {
            if let Some(all) = carried.query {
                query(all, name).for_each(take);
            }
        }
        Place::Body(pointer) => {
            if let Some(value) = at(carried.body, pointer) {
                take(value);
            }
        }
        // They carry no token.
        Place::Hmac(_) | Place::StandardWebhooks => {}
    }
}

/// The tokens of one scheme. Another scheme is nothing under `auto`, and when another pinned place reads it; else a
/// merchant who pinned this one meant what stands there to be it.
fn authorization<'a>(
    own: Scheme,
    lines: Lines<'a>,
    pinned: Option<&[Place]>,
) -> impl Iterator<Item = Presented<'a>> {
    let is_others = move |scheme: Option<Scheme>| match (pinned, scheme) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(places), Some(Scheme::Bearer)) => places.contains(&Place::Bearer),
        (Some(places), Some(Scheme::Basic)) => places.contains(&Place::BasicPassword),
    };
    let read = move |value: &'a [u8]| {
        let blank = value.iter().position(u8::is_ascii_whitespace);
        let (word, rest) = value.split_at(blank.unwrap_or(value.len()));
        let scheme = if word.eq_ignore_ascii_case(b"bearer") {
            Some(Scheme::Bearer)
        } else if word.eq_ignore_ascii_case(b"basic") {
            Some(Scheme::Basic)
        } else {
            None
        };
        match scheme {
            _ if value.is_empty() => Some(Presented::Borrowed(value)),
            Some(Scheme::Bearer) if own == Scheme::Bearer => {
                Some(Presented::Borrowed(rest.trim_ascii_start()))
            }
            Some(Scheme::Basic) if own == Scheme::Basic => Some(password(rest.trim_ascii_start())),
            other if is_others(other) => None,
            _ => Some(Presented::Unreadable),
        }
    };
    lines.get(&AUTHORIZATION).filter_map(read)
}

/// What stands behind the first colon. Blanks around it are cut off: `echo USER:TOKEN | base64` leaves a newline.
fn password(credentials: &[u8]) -> Presented<'_> {
    if credentials.is_empty() {
        return Presented::Borrowed(credentials);
    }
    let decoded = base64(credentials);
    let password = decoded.as_deref().and_then(|pair| {
        let colon = pair.iter().position(|byte| *byte == b':')?;
        pair.get(colon + 1..)
    });
    password.map_or(Presented::Unreadable, |password| {
        Presented::Decoded(password.trim_ascii().to_vec())
    })
}

fn query<'a>(query: &'a str, name: &str) -> impl Iterator<Item = Presented<'a>> {
    query.split('&').filter_map(move |pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decoded(key) == name.as_bytes())
            .then(|| Presented::Decoded(percent_decoded(value).trim_ascii().to_vec()))
    })
}

/// Undoes `%41`; a percent sign without two hex digits stays. `+` stays too: no token of ours has a blank, and senders
/// that do not encode send a plus as it is.
fn percent_decoded(text: &str) -> Vec<u8> {
    percent_decode_str(text).collect()
}

/// The string at a JSON pointer. Anything but a string is no token.
fn at<'a>(object: &'a Fields<'_>, pointer: &str) -> Option<Presented<'a>> {
    let pointer = pointer.strip_prefix('/')?;
    let (first, rest) = match pointer.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (pointer, None),
    };
    let top = if first.contains('~') {
        object.get(&first.replace("~1", "/").replace("~0", "~"))
    } else {
        object.get(first)
    };
    match (top?, rest) {
        (Field::Text(text), None) => Some(Presented::Borrowed(text.trim().as_bytes())),
        (field @ Field::Other(..), Some(rest)) => {
            let text = field.string_at(&format!("/{rest}"))?;
            Some(Presented::Decoded(text.trim().as_bytes().to_vec()))
        }
        (Field::Text(_), Some(_)) | (Field::Other(..), None) => None,
    }
}
