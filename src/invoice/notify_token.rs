//! The secret of one invoice, and the only comparisons that decide whether a notification is authentic.
//!
//! A token that was presented is cut or filled up to the length of ours and compared in constant time, so length and
//! content of a wrong one cost the same (A20). An empty token equals nothing, not even an empty one, and no signature is ever made
//! with an empty or short key (A19): a token has 32 bytes at least, by its type. Signatures are compared in constant time
//! as well.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use ring::hmac;
use subtle::ConstantTimeEq as _;

use crate::secret::Secret;

/// Fewest characters the usage in contract 4.3 implies for `notificationToken`.
pub const SHORTEST_TOKEN: usize = 32;

/// Longest token that is compared as it is, in bytes. Ours have 43; the digest a longer one is compared by takes several
/// times as long as all else that is looked at in a notification.
const LONGEST_COMPARED: usize = 64;

/// How a secret begins whose rest is a key in base64 (Standard Webhooks 1.0, "Signature scheme").
const ENCODED_KEY: &str = "whsec_";

/// Fewest bytes of such a key, by the same scheme.
const SHORTEST_KEY: usize = 24;

/// The `notificationToken` of one invoice: at least 32 characters. No `Display`; `Debug` shows a fixed word.
#[derive(Clone, Debug)]
pub struct NotifyToken(Secret);

impl NotifyToken {
    /// A fresh token from 256 bits of entropy: 43 characters of the URL-safe base64 alphabet.
    pub fn from_entropy(bytes: [u8; 32]) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// A token that was stored before. `None` when shorter than 32 characters.
    pub fn from_stored(text: String) -> Option<Self> {
        (text.len() >= SHORTEST_TOKEN).then(|| Self(Secret::new(text)))
    }

    /// The token as a secret, to be sent to the service or sealed.
    pub fn secret(&self) -> &Secret {
        &self.0
    }

    /// True when `presented` is this token. Takes the same time for every wrong one.
    pub fn matches(&self, presented: &[u8]) -> bool {
        let own = self.0.expose().as_bytes();
        if own.len() > LONGEST_COMPARED {
            return matches_by_digest(own, presented);
        }
        let cut = presented.get(..own.len()).unwrap_or(presented);
        let same_bytes = bool::from(filled(own).ct_eq(&filled(cut)));
        let same_length = bool::from(own.len().ct_eq(&presented.len()));
        same_bytes & same_length & !presented.is_empty() & !own.is_empty()
    }

    /// The HMAC-SHA256 (RFC 2104) of these parts, one behind the other.
    pub fn signature(&self, key: SigningKey, parts: &[&[u8]]) -> Signature {
        let text = self.0.expose();
        let decoded = match key {
            SigningKey::Text => None,
            SigningKey::WebhookSecret => decoded_key(text),
        };
        let bytes = decoded
            .as_deref()
            .filter(|key| key.len() >= SHORTEST_KEY)
            .unwrap_or(text.as_bytes());
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, bytes));
        for part in parts {
            context.update(part);
        }
        Signature(context.sign())
    }
}

/// What of the token is the key of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SigningKey {
    /// Its characters as they are, in UTF-8.
    Text,
    /// As Standard Webhooks serialises secrets: the decoded rest of a token `whsec_BASE64`. Any other token, and one whose
    /// rest is no base64 of at least 24 bytes, is its own key, as [`SigningKey::Text`]: tilld's tokens have no prefix.
    WebhookSecret,
}

/// What somebody who holds the token would have written under a notification. No `Debug`: it is as good as the token.
#[derive(Clone)]
pub struct Signature(hmac::Tag);

impl Signature {
    /// True when `presented` is this signature, byte for byte. Takes the same time for every wrong one of its length.
    pub fn matches(&self, presented: &[u8]) -> bool {
        bool::from(self.0.as_ref().ct_eq(presented))
    }
}

/// These bytes with zeros behind them, by eight: so many are compared at once.
fn filled(bytes: &[u8]) -> [u64; LONGEST_COMPARED / 8] {
    let mut room = [0; LONGEST_COMPARED];
    if let Some(room) = room.get_mut(..bytes.len()) {
        room.copy_from_slice(bytes);
    }
    let mut words = [0; LONGEST_COMPARED / 8];
    for (word, eight) in words.iter_mut().zip(room.as_chunks().0) {
        *word = u64::from_le_bytes(*eight);
    }
    words
}

/// The comparison for a token of any length: of two digests, which are of one.
fn matches_by_digest(own: &[u8], presented: &[u8]) -> bool {
    let (own, theirs) = (digest(&SHA256, own), digest(&SHA256, presented));
    let equal = own.as_ref().ct_eq(theirs.as_ref());
    bool::from(equal) && !presented.is_empty()
}

fn decoded_key(token: &str) -> Option<Vec<u8>> {
    STANDARD.decode(token.strip_prefix(ENCODED_KEY)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_matches() {
        let own = NotifyToken::from_entropy([7; 32]);
        assert_eq!(own.secret().expose().len(), 43);
        let lengths = [32, LONGEST_COMPARED, LONGEST_COMPARED + 1, 200];
        let others = lengths
            .map(|length| NotifyToken::from_stored("t0".chars().cycle().take(length).collect()));
        for token in others.into_iter().flatten().chain([own]) {
            check(&token);
        }
    }

    fn check(token: &NotifyToken) {
        let text = token.secret().expose().to_owned();
        assert!(token.matches(text.as_bytes()));
        let longer = format!("{text}x");
        let shorter = text
            .as_bytes()
            .split_last()
            .map_or(b"".as_slice(), |(_, rest)| rest);
        let other_case = text.to_uppercase();
        let filled = format!("{text}\0");
        let wrong: [&[u8]; 8] = [
            b"",
            b" ",
            filled.as_bytes(),
            &[0xff; 43],
            longer.as_bytes(),
            shorter,
            other_case.as_bytes(),
            &[b'x'; 10_000],
        ];
        for presented in wrong {
            assert!(!token.matches(presented));
        }
    }

    #[test]
    fn a_stored_token_that_is_too_short_is_none() {
        assert!(NotifyToken::from_stored(String::new()).is_none());
        assert!(NotifyToken::from_stored("x".repeat(31)).is_none());
        assert!(NotifyToken::from_stored("x".repeat(32)).is_some());
    }

    /// The figures are those of Python's `hmac` module.
    #[test]
    fn a_signature_is_that_of_anybody_with_the_token() {
        let encoded = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let no_base64 = "whsec_-this-is-no-base64-but-long-enough-";
        let too_short = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for (token, key, hex) in [
            (
                encoded,
                SigningKey::Text,
                "c411163569e60debede583b0d2881f351732e1e27fb650ec4716fe21fd6f3433",
            ),
            (
                encoded,
                SigningKey::WebhookSecret,
                "a567c2c940db6c3d2d50fbaffb4eb4c7cf01838cf635e36cc69c840bd2eee5e4",
            ),
            (
                no_base64,
                SigningKey::WebhookSecret,
                "c567b635356da7c3c2f088146ff80e0fb7f0b1f157953fe034a95dc81233a6a0",
            ),
            (
                too_short,
                SigningKey::WebhookSecret,
                "909504b4a806be6d6c56c8ae07eb542cb90d218c28744ef7270617f98da376a8",
            ),
        ] {
            let token = NotifyToken::from_stored(token.to_owned()).expect("long enough");
            let signature = token.signature(key, &[b"a.", b"", b"b"]);
            let wanted: Vec<u8> = (0..hex.len())
                .step_by(2)
                .filter_map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
                .collect();
            assert!(signature.matches(&wanted), "{key:?}");
            assert!(!signature.matches(b""));
            assert!(!signature.matches(&[0; 32]));
            assert!(!signature.matches(wanted.split_at(31).0));
            let longer = [wanted.as_slice(), b"x"].concat();
            assert!(!signature.matches(&longer));
        }
    }
}
