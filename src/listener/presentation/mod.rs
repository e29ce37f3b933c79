//! Where a notification proves its notify token, and whether what it carries is the right one. Pure.
//!
//! Contract 6 does not show the place, so the usual ones are tried, each judged on its own: an empty or
//! missing place never makes up for another (A19). Every comparison is `NotifyToken`'s, in constant time; what was
//! presented is neither kept nor told, only the place is.

mod place;
mod plain;
mod signed;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};

use crate::invoice::notify_token::NotifyToken;
use crate::wire::fields::Fields;

pub use self::place::{Place, PlaceError};

use self::plain::Presented;
use self::signed::BodySignature;

/// Values judged in one place. More are a place that occurs several times with different values, whatever they are.
const MOST_VALUES: usize = 8;

/// Where the sibling service's documents put the token, first; then what senders of this kind commonly use, the token
/// itself before signatures made with it. Names that could mean something else in an invoice object, such as `token`, are
/// left out: what differs contradicts.
const USUAL: [&str; 14] = [
    "header:X-Notification-Token",
    "header:X-Webhook-Token",
    "header:X-Webhook-Secret",
    "bearer",
    "query:token",
    "query:notificationToken",
    "body:/notificationToken",
    "basic-password",
    "standard-webhooks",
    "hmac-sha256:header:X-Notification-Signature",
    "hmac-sha256:header:X-Signature",
    "hmac-sha256:header:X-Signature-256",
    "hmac-sha256:header:X-Webhook-Signature",
    "hmac-sha256:header:X-Hub-Signature-256",
];

/// The places that count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentations {
    places: Vec<Place>,
    choice: Choice,
}

/// Whose list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The usual places: what cannot be told to be meant as the token is somebody else's.
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
    pub body: &'a Fields<'a>,
    /// Its body's bytes as they came, which signatures are over.
    pub raw: &'a [u8],
}

/// What the places say together. Only [`Verdict::Right`] is authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No place carries anything.
    Missing,
    /// No place carries the token.
    Wrong,
    /// No place carries the token, and a signature is there that was not made with it over this body.
    SignatureWrong,
    /// A place carries the token and, a second time, something else.
    Doubled,
    /// A place carries the token, another something else.
    Contradicting,
    /// The token is there and nothing speaks against it; this is the first place that carries it.
    Right(&'a Place),
}

/// What one place says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finding {
    /// Nothing stands there, or only what is empty.
    Nothing,
    /// The token, or a signature made with it, as often as anything stands there.
    Right,
    /// Something else.
    Wrong,
    /// Both.
    Doubled,
}

/// The values of a place, as they are judged one by one; all of them, whatever the first one is.
#[derive(Default)]
struct Tally {
    all: usize,
    right: usize,
    given: bool,
}

impl Tally {
    fn take<T>(&mut self, value: &T, is_empty: impl Fn(&T) -> bool, is_right: impl Fn(&T) -> bool) {
        self.given |= !is_empty(value);
        self.right += usize::from(self.all < MOST_VALUES && is_right(value));
        self.all += 1;
    }

    fn finding(&self) -> Finding {
        match self.right {
            _ if !self.given => Finding::Nothing,
            0 => Finding::Wrong,
            right if right == self.all => Finding::Right,
            _ => Finding::Doubled,
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

    /// Only these places.
    pub fn only<T: AsRef<str>>(places: &[T]) -> Result<Self, PlaceError> {
        if places.is_empty() {
            return Err(PlaceError::None);
        }
        let places: Result<Vec<Place>, _> = places
            .iter()
            .map(|text| Place::parse(text.as_ref()))
            .collect();
        let places = places?;
        for (number, place) in places.iter().enumerate() {
            let mut earlier = places.iter().take(number);
            if let Some(other) = earlier.find(|other| other.clashes_with(place)) {
                return Err(PlaceError::Clash(other.clone(), place.clone()));
            }
        }
        Ok(Self {
            places,
            choice: Choice::Pinned,
        })
    }

    /// The names of the headers that any of the places reads, in small letters; some twice.
    pub(crate) fn header_names(&self) -> impl Iterator<Item = String> {
        let names = self.places.iter().flat_map(Place::headers);
        names.map(|name| name.as_str().to_owned())
    }

    /// The places, in the order they are looked at.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// True for the merchant's own list.
    pub const fn is_pinned(&self) -> bool {
        matches!(self.choice, Choice::Pinned)
    }

    /// Compares everything that is carried in a place that counts with `token`. The work depends on what was presented,
    /// never on how much of it is right.
    pub fn judge(&self, token: &NotifyToken, carried: Carried<'_>) -> Verdict<'_> {
        let body_signature = BodySignature::of(token, carried.raw);
        let lines = Lines::of(carried.headers);
        let (mut right, mut doubled, mut contradicted) = (None, false, false);
        let (mut token_wrong, mut signature_wrong) = (false, false);
        for place in &self.places {
            match self.look(place, token, (carried, lines), &body_signature) {
                Finding::Nothing => {}
                Finding::Right => right = right.or(Some(place)),
                Finding::Doubled => {
                    right = right.or(Some(place));
                    doubled = true;
                }
                Finding::Wrong => {
                    contradicted |= self.contradicts(place);
                    token_wrong |= !place.is_signed();
                    signature_wrong |= place.is_signed();
                }
            }
        }
        match right {
            Some(_) if doubled => Verdict::Doubled,
            Some(_) if contradicted => Verdict::Contradicting,
            Some(place) => Verdict::Right(place),
            None if token_wrong => Verdict::Wrong,
            None if signature_wrong => Verdict::SignatureWrong,
            None => Verdict::Missing,
        }
    }

    fn look(
        &self,
        place: &Place,
        token: &NotifyToken,
        (carried, lines): (Carried<'_>, Lines<'_>),
        body_signature: &BodySignature<'_>,
    ) -> Finding {
        if !lines.may_have(place) {
            return Finding::Nothing;
        }
        match place {
            Place::Header(_)
            | Place::Bearer
            | Place::BasicPassword
            | Place::Query(_)
            | Place::Body(_) => {
                let pinned = self.is_pinned().then_some(self.places.as_slice());
                let mut tally = Tally::default();
                plain::each_value(place, (carried, lines), pinned, |value| {
                    tally.take(&value, Presented::is_empty, |value| value.is(token));
                });
                tally.finding()
            }
            Place::Hmac(name) => signed::in_header(name, lines, body_signature),
            Place::StandardWebhooks => signed::standard_webhooks(token, lines, carried.raw),
        }
    }

    /// Whether something else in this place speaks against the token in another one. Under `auto` a signature does not,
    /// since it may be made with a key of the shop's or be over something else; and neither does a password, since a
    /// proxy in front of tilld that asks for one passes it on.
    fn contradicts(&self, place: &Place) -> bool {
        self.is_pinned() || !(place.is_signed() || *place == Place::BasicPassword)
    }
}

/// The headers of one notification, to be asked for many names of which it has few.
#[derive(Clone, Copy)]
struct Lines<'a> {
    headers: &'a HeaderMap,
    /// A bit for each length that one of their names has, modulo 64: no name of another length is there.
    lengths: u64,
}

impl<'a> Lines<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let lengths = headers
            .keys()
            .fold(0, |lengths, name| lengths | length_bit(name));
        Self { headers, lengths }
    }

    /// False when the header that a place is in is not there. It is asked of most places.
    #[inline]
    fn may_have(self, place: &Place) -> bool {
        match place {
            Place::Header(name) | Place::Hmac(name) => self.lengths & length_bit(name) != 0,
            Place::Bearer | Place::BasicPassword => self.lengths & length_bit(&AUTHORIZATION) != 0,
            Place::StandardWebhooks => self.lengths & length_bit(&signed::SIGNATURE) != 0,
            Place::Query(_) | Place::Body(_) => true,
        }
    }

    /// The values of a header, blanks around them cut off.
    fn get(self, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
        let may_be = self.lengths & length_bit(name) != 0;
        let all = may_be.then(|| self.headers.get_all(name).into_iter());
        all.into_iter()
            .flatten()
            .map(|value| value.as_bytes().trim_ascii())
    }
}

#[inline]
fn length_bit(name: &HeaderName) -> u64 {
    1 << (name.as_str().len() % 64)
}

#[cfg(test)]
mod tests;
