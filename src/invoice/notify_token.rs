//! The secret of one invoice, and the only comparison that decides whether a notification is authentic.
//!
//! Both sides are hashed and the digests compared in constant time, so length and content of a wrong token cost the
//! same (A20). An empty token equals nothing, not even an empty one (A19).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq as _;

use crate::secret::Secret;

/// Fewest characters the contract's usage implies for `notificationToken` (section 4.3).
pub const SHORTEST_TOKEN: usize = 32;

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
        let (own, theirs) = (
            digest(&SHA256, self.0.expose().as_bytes()),
            digest(&SHA256, presented),
        );
        let equal = own.as_ref().ct_eq(theirs.as_ref());
        bool::from(equal) && !presented.is_empty() && !self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_itself_matches() {
        let token = NotifyToken::from_entropy([7; 32]);
        let text = token.secret().expose().to_owned();
        assert_eq!(text.len(), 43);
        assert!(token.matches(text.as_bytes()));
        let longer = format!("{text}x");
        let shorter = text
            .as_bytes()
            .split_last()
            .map_or(b"".as_slice(), |(_, rest)| rest);
        let other_case = text.to_uppercase();
        let wrong: [&[u8]; 7] = [
            b"",
            b" ",
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
}
