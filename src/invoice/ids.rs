//! The names an invoice goes by: the merchant's order id, the service's invoice id, tilld's ref. Each with the alphabet
//! and length that make it safe in a path, a column and a log line. The first two are shared, not copied: what decides takes
//! several of each for every claim.

use std::fmt;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Longest order id and invoice id, in bytes.
pub const LONGEST_ID: usize = 128;

/// The merchant's own id of the order: `internalId` on the wire. 1 to 128 bytes, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderId(Arc<str>);

/// The service's id of the invoice: 1 to 128 characters of `A-Z a-z 0-9 - _ . ~ :`, at least one of them a letter or
/// digit, so that it is one path segment whatever a proxy does with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvoiceId(Arc<str>);

/// The unguessable path segment of one invoice's notificationUrl: 22 characters, 128 bits of entropy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvoiceRef(String);

/// A text that cannot serve as an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be {wanted}")]
pub struct IdError {
    what: &'static str,
    wanted: &'static str,
}

impl OrderId {
    /// Accepts 1 to 128 bytes without control characters.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, IdError> {
        let text = text.into();
        let good =
            !text.is_empty() && text.len() <= LONGEST_ID && !text.chars().any(char::is_control);
        good.then_some(Self(text)).ok_or(IdError {
            what: "order id",
            wanted: "1 to 128 bytes without control characters",
        })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl InvoiceId {
    /// Accepts 1 to 128 characters of the alphabet above.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, IdError> {
        let text = text.into();
        let good = text.len() <= LONGEST_ID
            && text.bytes().all(is_of_an_id)
            && text.bytes().any(|b| b.is_ascii_alphanumeric());
        good.then_some(Self(text)).ok_or(IdError {
            what: "invoice id",
            wanted: "1 to 128 of the characters `A-Z a-z 0-9 - _ . ~ :`, at least one of them a letter or digit",
        })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl InvoiceRef {
    /// A fresh ref from 128 bits of entropy. None begins with a hyphen: a command line would take it for a flag.
    pub fn from_entropy(bytes: [u8; 16]) -> Self {
        let mut text = URL_SAFE_NO_PAD.encode(bytes);
        if text.starts_with('-') {
            // Every 64th. `n` begins two of 64 then, which leaves 127.97 of the 128 bits.
            text.replace_range(..1, "n");
        }
        Self(text)
    }

    /// Accepts exactly the shape that [`InvoiceRef::from_entropy`] makes; anything else was never one of ours.
    pub fn parse(text: &str) -> Option<Self> {
        let known = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (text.len() == 22 && text.bytes().all(known)).then(|| Self(text.to_owned()))
    }

    /// The ref as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// True for the alphabet of an invoice id. Looked up, since a notification has one.
fn is_of_an_id(byte: u8) -> bool {
    const ALPHABET: [bool; 256] = {
        let mut all = [false; 256];
        let mut rest = all.as_mut_slice();
        let mut byte = 0_u8;
        while let [known, more @ ..] = rest {
            *known =
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~' | b':');
            byte = byte.wrapping_add(1);
            rest = more;
        }
        all
    };
    ALPHABET.get(usize::from(byte)).is_some_and(|known| *known)
}

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for InvoiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_in_a_path_and_a_log_line() {
        let dots = InvoiceId::new("..").expect_err("no id").to_string();
        assert!(dots.contains("at least one of them a letter"), "{dots}");
        for bad in ["", "..", ".", "a/b", "a b", "a%2f", "a\n", &"x".repeat(129)] {
            assert!(InvoiceId::new(bad).is_err(), "`{bad}`");
        }
        for byte in 0..=u8::MAX {
            let wanted = byte.is_ascii_alphanumeric() || b"-_.~:".contains(&byte);
            assert_eq!(is_of_an_id(byte), wanted, "{byte}");
        }
        assert!(InvoiceId::new("0f2d9b1e-77aa-4c1b").is_ok());
        assert!(OrderId::new("заказ №5 $(touch x)").is_ok());
        assert!(OrderId::new("a\nb").is_err());
    }

    #[test]
    fn no_ref_looks_like_a_flag() {
        for first in 0..=255 {
            let mut bytes = [7; 16];
            bytes[0] = first;
            let made = InvoiceRef::from_entropy(bytes);
            assert!(!made.as_str().starts_with('-'), "{made:?}");
            assert_eq!(InvoiceRef::parse(made.as_str()), Some(made));
        }
    }

    #[test]
    fn a_ref_reads_back() {
        let made = InvoiceRef::from_entropy([255; 16]);
        assert_eq!(InvoiceRef::parse(made.as_str()), Some(made));
        assert_eq!(InvoiceRef::parse("../../etc/passwd-xxxxx"), None);
    }
}
