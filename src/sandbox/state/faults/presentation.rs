//! Where a notification carries its notify token, or how it is signed with it.

use crate::invoice::ids::LONGEST_ID;

/// How a notification presents the invoice's notify token. The contract does not say; the header is what the sibling
/// service documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Presentation {
    /// In a header of this name.
    Header(String),
    /// `Authorization: Bearer …`
    Bearer,
    /// The password of HTTP Basic.
    BasicPassword,
    /// In the query, under this name.
    Query(String),
    /// In the body, at this JSON pointer.
    Body(String),
    /// Not itself: a header of this name carries the HMAC-SHA256 of the body, in hex.
    Hmac(String),
    /// Not itself: signed by the scheme of Standard Webhooks.
    StandardWebhooks,
    /// Nowhere.
    Missing,
}

impl Default for Presentation {
    fn default() -> Self {
        Self::Header("X-Notification-Token".to_owned())
    }
}

impl Presentation {
    /// One of each kind, the usual one first.
    pub(crate) const EXAMPLES: [&str; 8] = [
        "header:X-Notification-Token",
        "bearer",
        "basic-password",
        "query:token",
        "body:/notificationToken",
        "hmac-sha256:header:X-Signature",
        "standard-webhooks",
        "none",
    ];

    /// What [`Presentation::parse`] reads.
    pub(crate) const FORMS: [&str; 8] = [
        "header:NAME",
        "bearer",
        "basic-password",
        "query:NAME",
        "body:/POINTER",
        "hmac-sha256:header:NAME",
        "standard-webhooks",
        "none",
    ];

    /// Reads one of [`Presentation::FORMS`].
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |name: &str| {
            let fit = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
            (!name.is_empty() && name.len() <= LONGEST_ID && name.bytes().all(fit))
                .then(|| name.to_owned())
        };
        match text.split_once(':') {
            Some(("header", name)) => plain(name).map(Self::Header),
            Some(("query", name)) => plain(name).map(Self::Query),
            Some(("body", pointer)) => pointer
                .strip_prefix('/')
                .is_some_and(|rest| !rest.is_empty() && rest.len() <= LONGEST_ID)
                .then(|| Self::Body(pointer.to_owned())),
            Some(("hmac-sha256", rest)) => plain(rest.strip_prefix("header:")?).map(Self::Hmac),
            Some((_, _)) => None,
            None => match text {
                "bearer" => Some(Self::Bearer),
                "basic-password" => Some(Self::BasicPassword),
                "standard-webhooks" => Some(Self::StandardWebhooks),
                "none" => Some(Self::Missing),
                _ => None,
            },
        }
    }

    /// Not where it usually is: one of the places senders elsewhere use, chosen by a number.
    pub(crate) fn elsewhere(number: u64) -> Self {
        match number % 6 {
            0 => Self::Bearer,
            1 => Self::BasicPassword,
            2 => Self::Query("token".to_owned()),
            3 => Self::Body("/notificationToken".to_owned()),
            4 => Self::Hmac("X-Signature".to_owned()),
            _ => Self::StandardWebhooks,
        }
    }

    /// The text that [`Presentation::parse`] reads.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Header(name) => format!("header:{name}"),
            Self::Bearer => "bearer".to_owned(),
            Self::BasicPassword => "basic-password".to_owned(),
            Self::Query(name) => format!("query:{name}"),
            Self::Body(pointer) => format!("body:{pointer}"),
            Self::Hmac(name) => format!("hmac-sha256:header:{name}"),
            Self::StandardWebhooks => "standard-webhooks".to_owned(),
            Self::Missing => "none".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presentations_read_back() {
        let forms = Presentation::FORMS;
        for text in Presentation::EXAMPLES.into_iter().chain(forms) {
            assert_eq!(
                Presentation::parse(text).map(|p| p.word()).as_deref(),
                Some(text)
            );
        }
        for text in [
            "",
            "header:",
            "header:a b",
            "query:",
            "body:token",
            "body:/",
            "cookie:x",
            "hmac-sha256:",
            "hmac-sha256:header:",
            "hmac-sha256:query:x",
        ] {
            assert_eq!(Presentation::parse(text), None, "`{text}`");
        }
    }
}
