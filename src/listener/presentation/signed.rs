//! Notifications that carry no token but a signature made with it. Bytes of any kind are judged, none makes a panic (A20).
//!
//! A signature is over the body's bytes as they came, a byte-order mark included: what the JSON in them means is looked at
//! elsewhere. What a request makes us compute depends on what it carries, never on how much of it is right, and is at most
//! one HMAC of the body for each of the two schemes and keys.

use std::cell::OnceCell;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use hyper::header::HeaderName;

use crate::invoice::notify_token::{NotifyToken, Signature, SigningKey};

use super::{Finding, Lines, MOST_VALUES, Tally};

/// The headers of Standard Webhooks 1.0.
pub(super) const ID: HeaderName = HeaderName::from_static("webhook-id");
pub(super) const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Signatures looked at in one `webhook-signature`. A sender has several while it changes keys; a header's size bounds the
/// work anyway, this bounds it by what makes sense.
const MOST_SIGNATURES: usize = 32;
/// Digits of a timestamp: any 64-bit integer.
const MOST_DIGITS: usize = 20;
/// Bytes of an HMAC-SHA256, its hex digits, and its base64 characters without and with padding.
const SIGNATURE_BYTES: usize = 32;
const HEX_CHARACTERS: usize = 2 * SIGNATURE_BYTES;
const BASE64_CHARACTERS: RangeInclusive<usize> = 43..=44;

/// The signature of one body, made when it is first needed and then kept for all headers that may carry it.
pub(super) struct BodySignature<'a> {
    token: &'a NotifyToken,
    body: &'a [u8],
    made: OnceCell<Signature>,
}

impl<'a> BodySignature<'a> {
    pub(super) fn of(token: &'a NotifyToken, body: &'a [u8]) -> Self {
        Self {
            token,
            body,
            made: OnceCell::new(),
        }
    }

    fn matches(&self, presented: &[u8]) -> bool {
        self.made
            .get_or_init(|| self.token.signature(SigningKey::Text, &[self.body]))
            .matches(presented)
    }
}

/// `hmac-sha256:header:NAME`.
pub(super) fn in_header(
    name: &HeaderName,
    lines: Lines<'_>,
    wanted: &BodySignature<'_>,
) -> Finding {
    let mut tally = Tally::default();
    for value in lines.get(name) {
        tally.take(
            &value,
            |value| value.is_empty(),
            |value| signature(value).is_some_and(|presented| wanted.matches(&presented)),
        );
    }
    tally.finding()
}

/// `standard-webhooks`. Any of several signatures suffices, and versions other than `v1` are left alone, as the scheme has
/// it. The timestamp must be a whole number and is part of what is signed, but no window is held against it: our clock
/// decides nothing (a shop's clock may be wrong for days), and a notification told again changes nothing, since the
/// invoice object in it has its own time and a claim that is known already is a repeat.
pub(super) fn standard_webhooks(token: &NotifyToken, lines: Lines<'_>, raw: &[u8]) -> Finding {
    let presented: Vec<&[u8]> = lines
        .get(&SIGNATURE)
        .take(MOST_VALUES)
        .flat_map(|value| value.split(u8::is_ascii_whitespace))
        .filter(|part| !part.is_empty())
        .take(MOST_SIGNATURES)
        .collect();
    if presented.is_empty() {
        return Finding::Nothing;
    }
    let (Some(id), Some(timestamp)) = (
        single(lines, &ID).filter(|id| is_id(id)),
        single(lines, &TIMESTAMP).filter(|timestamp| is_timestamp(timestamp)),
    ) else {
        return Finding::Wrong;
    };
    let parts = [id, b".", timestamp, b".", raw];
    let wanted = token.signature(SigningKey::WebhookSecret, &parts);
    let right = presented
        .iter()
        .filter_map(|part| base64(part.strip_prefix(b"v1,")?))
        .filter(|presented| wanted.matches(presented))
        // Counted to the end: the work must not tell which of them is right.
        .count();
    if right > 0 {
        Finding::Right
    } else {
        Finding::Wrong
    }
}

/// The value of a header that stands once, or several times alike.
fn single<'a>(lines: Lines<'a>, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = lines.get(name);
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

/// No full stop: what is signed could be divided in two ways otherwise (Standard Webhooks 1.0, "Signature scheme").
fn is_id(id: &[u8]) -> bool {
    !id.is_empty() && !id.contains(&b'.')
}

fn is_timestamp(text: &[u8]) -> bool {
    (1..=MOST_DIGITS).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// A signature as senders write it: hex in any case, or base64, behind an optional `sha256=`.
fn signature(text: &[u8]) -> Option<Vec<u8>> {
    const PREFIX: &[u8] = b"sha256=";
    let text = match text.split_at_checked(PREFIX.len()) {
        Some((prefix, rest)) if prefix.eq_ignore_ascii_case(PREFIX) => rest,
        _ => text,
    };
    // The length tells which, and lets nothing of another length be worked on.
    let decoded = match text.len() {
        HEX_CHARACTERS => hex(text),
        length if BASE64_CHARACTERS.contains(&length) => base64(text),
        _ => None,
    };
    decoded.filter(|bytes| bytes.len() == SIGNATURE_BYTES)
}

fn hex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let (pairs, odd) = text.as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? * 16 + digit(*low)?);
    odd.is_empty()
        .then(|| pairs.iter().map(byte).collect())
        .flatten()
}

/// Base64 in either alphabet, padded or not (RFC 4648 4 and 5).
pub(super) fn base64(text: &[u8]) -> Option<Vec<u8>> {
    const fn lenient(alphabet: &Alphabet) -> GeneralPurpose {
        let config = GeneralPurposeConfig::new();
        GeneralPurpose::new(
            alphabet,
            config.with_decode_padding_mode(DecodePaddingMode::Indifferent),
        )
    }
    const PLAIN: GeneralPurpose = lenient(&STANDARD);
    const FOR_URLS: GeneralPurpose = lenient(&URL_SAFE);
    let engine = if text.iter().any(|byte| b"-_".contains(byte)) {
        FOR_URLS
    } else {
        PLAIN
    };
    engine.decode(text).ok()
}
