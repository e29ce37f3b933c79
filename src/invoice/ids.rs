//! The names an invoice goes by: the merchant's order id, the service's invoice id, tilld's ref. Each with the length and
//! the characters that make it safe in a column and a log line; the ref in a path, too. The first two are shared, not copied: what decides takes
//! several of each for every claim.

use std::fmt;
use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Longest order id, in bytes.
pub const LONGEST_ID: usize = 128;
/// Longest invoice id, in bytes. Contract 2.3 shows no bound; this is far above any kind in use, and has room in a
/// path, a column and a log line.
pub const LONGEST_INVOICE_ID: usize = 255;

/// The merchant's own id of the order: `internalId` on the wire. 1 to 128 bytes, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OrderId(Arc<str>);

/// The service's id of the invoice, to the letter: the contract says that it is a string, and no more. 1 to 255 bytes, no
/// control characters, and neither `.` nor `..`, which no address can name, encoded or not. Whoever puts it into a path
/// encodes it.
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
        let good = (1..=LONGEST_ID).contains(&text.len()) && !has_control(&text);
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
    /// Accepts 1 to 255 bytes without control characters, but for `.` and `..`.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, IdError> {
        let text = text.into();
        let good = (1..=LONGEST_INVOICE_ID).contains(&text.len())
            && !has_control(&text)
            && !matches!(&*text, "." | "..");
        good.then_some(Self(text)).ok_or(IdError {
            what: "invoice id",
            wanted: "1 to 255 bytes without control characters, and not `.` or `..`",
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

/// True when a control character is in it. Seen by the bytes alone in nearly every id, since a notification has one.
fn has_control(text: &str) -> bool {
    if text.is_ascii() {
        text.bytes().any(|byte| byte.is_ascii_control())
    } else {
        text.chars().any(char::is_control)
    }
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

    /// Contract 2.3: a string. What cannot be told from an accident, or cannot be asked for, is none.
    #[test]
    fn an_id_is_any_text_of_one_line() {
        let dots = InvoiceId::new("..").expect_err("no id").to_string();
        assert!(dots.contains("not `.` or `..`"), "{dots}");
        for bad in [
            "",
            "..",
            ".",
            "a\n",
            "a\u{7f}",
            "a\u{85}",
            &"x".repeat(256),
            &"я".repeat(128),
        ] {
            assert!(InvoiceId::new(bad).is_err(), "`{bad}`");
        }
        for good in [
            "0f2d9b1e-77aa-4c1b",
            "INV/2026#17",
            "заявка 17",
            "a%2Fb",
            "?",
            "...",
            &"x".repeat(255),
        ] {
            let id = InvoiceId::new(good);
            assert_eq!(id.as_ref().map(InvoiceId::as_str), Ok(good));
        }
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
