//! Why a POST was refused: the fixed words of the ledger, the log and `tilld refusal list`, each with what it means to
//! the operator. The one table of them.

use super::notification::Misshapen;
use super::presentation::Verdict;
use crate::http::BodyError;
use crate::ledger::OWN_REQUEST;
use crate::wire::invoice::NotAnInvoice;
use crate::wire::json::ShapeError;

/// Why a POST was refused. A sender learns the status only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The body is compressed (415).
    BodyCompressed,
    /// The body is a form (415).
    BodyForm,
    /// The body is over the limit (413).
    BodyTooLarge,
    /// The body took too long (408).
    BodyTooSlow,
    /// The body broke off or was badly framed (400).
    BodyBroken,
    /// There is no body (400).
    BodyEmpty,
    /// The body is no JSON (400).
    BodyNotJson,
    /// The body is JSON, but no object (400).
    BodyNotAnObject,
    /// A name that matters occurs twice in it (400).
    BodyDoubledName,
    /// Its `id` is missing or no id (400).
    IdUnreadable,
    /// Its `status` is missing or no text (400).
    StatusUnreadable,
    /// The ref is none of ours (401).
    RefUnknown,
    /// The same, and `tilld doctor` made the request (401).
    Doctor,
    /// On the bare path, no invoice of ours has the id or the order id (401).
    InvoiceUnknown,
    /// No place carries a token (401).
    TokenMissing,
    /// No place carries the right token (401).
    TokenWrong,
    /// A signature is there that the token did not make over this body (401).
    SignatureWrong,
    /// A place carries the token and something else (401).
    TokenDoubled,
    /// A place carries the token, another something else (401).
    TokenContradicting,
    /// Our own copy of the token cannot be opened (401).
    TokenUnreadable,
    /// The token is right, the body is about another invoice (401).
    NotThisInvoice,
    /// The ledger could not read or store (503).
    LedgerUnavailable,
}

impl Reason {
    /// All of them, in the order they are judged in.
    pub const ALL: [Self; 22] = [
        Self::BodyCompressed,
        Self::BodyForm,
        Self::BodyTooLarge,
        Self::BodyTooSlow,
        Self::BodyBroken,
        Self::BodyEmpty,
        Self::BodyNotJson,
        Self::BodyNotAnObject,
        Self::BodyDoubledName,
        Self::IdUnreadable,
        Self::StatusUnreadable,
        Self::RefUnknown,
        Self::Doctor,
        Self::InvoiceUnknown,
        Self::TokenMissing,
        Self::TokenWrong,
        Self::SignatureWrong,
        Self::TokenDoubled,
        Self::TokenContradicting,
        Self::TokenUnreadable,
        Self::NotThisInvoice,
        Self::LedgerUnavailable,
    ];

    /// The word, and what it means.
    pub const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::BodyCompressed => (
                "body_compressed",
                "415: the body is compressed; the sender must send plain JSON",
            ),
            Self::BodyForm => (
                "body_form",
                "415: the body is a form; the sender must send plain JSON",
            ),
            Self::BodyTooLarge => (
                "body_too_large",
                "413: the body is over `listener.body_limit_bytes`",
            ),
            Self::BodyTooSlow => (
                "body_too_slow",
                "408: the body took longer than `listener.body_time_s`",
            ),
            Self::BodyBroken => (
                "body_broken",
                "400: the body broke off or was badly framed; look at the proxy",
            ),
            Self::BodyEmpty => ("body_empty", "400: there is no body"),
            Self::BodyNotJson => (
                "body_not_json",
                "400: the body is not one JSON document, or an object in it has more than 1024 names",
            ),
            Self::BodyNotAnObject => ("body_not_an_object", "400: the body is JSON, but no object"),
            Self::BodyDoubledName => (
                "body_doubled_name",
                "400: a field that matters stands twice in the body",
            ),
            Self::IdUnreadable => (
                "invoice_id_unreadable",
                "400: `id` is missing or cannot be an id",
            ),
            Self::StatusUnreadable => (
                "invoice_status_unreadable",
                "400: `status` is missing or cannot be a status",
            ),
            Self::RefUnknown => (
                "ref_unknown",
                "401: the last segment of the address is no ref of this ledger",
            ),
            Self::Doctor => (
                OWN_REQUEST,
                "401: a request of `tilld doctor`; `tilld status` does not count it",
            ),
            Self::InvoiceUnknown => (
                "invoice_unknown",
                "401: an address without a ref, and neither `id` nor `internalId` names one invoice of this ledger",
            ),
            Self::TokenMissing => (
                "token_missing",
                "401: no presentation carries a token; HEADERS may show where the sender puts it",
            ),
            Self::TokenWrong => (
                "token_wrong",
                "401: what a presentation carries is not this invoice's notify token",
            ),
            Self::SignatureWrong => (
                "signature_wrong",
                "401: a signature that this invoice's notify token did not make over this body; a proxy may have changed the body",
            ),
            Self::TokenDoubled => (
                "token_doubled",
                "401: a presentation carries the right token and, a second time, something else",
            ),
            Self::TokenContradicting => (
                "token_contradicting",
                "401: one presentation carries the right token, another something else; name the right one alone",
            ),
            Self::TokenUnreadable => (
                "token_unreadable",
                "503: tilld cannot open its own copy of the notify token; was `secret/ledger-key` replaced?",
            ),
            Self::NotThisInvoice => (
                "not_this_invoice",
                "401: the token is right, but the body is about another invoice or order",
            ),
            Self::LedgerUnavailable => (
                "ledger_unavailable",
                "503: the ledger could not be read or written at that moment; the sender must come again",
            ),
        }
    }

    /// The word.
    pub const fn as_str(self) -> &'static str {
        self.told().0
    }

    /// Reads a word back.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// Why this body could not be read. `None`: there was no room for it or its connection, which says nothing of the sender.
    pub(super) const fn of_body(error: BodyError) -> Option<Self> {
        match error {
            BodyError::TooLarge => Some(Self::BodyTooLarge),
            BodyError::TooSlow => Some(Self::BodyTooSlow),
            BodyError::Broken => Some(Self::BodyBroken),
            BodyError::NoRoom | BodyError::Evicted => None,
        }
    }

    /// Why this verdict is none to be trusted. `None`: it is.
    pub(super) const fn of_verdict(verdict: Verdict<'_>) -> Option<Self> {
        match verdict {
            Verdict::Missing => Some(Self::TokenMissing),
            Verdict::Wrong => Some(Self::TokenWrong),
            Verdict::SignatureWrong => Some(Self::SignatureWrong),
            Verdict::Doubled => Some(Self::TokenDoubled),
            Verdict::Contradicting => Some(Self::TokenContradicting),
            Verdict::Right(_) => None,
        }
    }
}

impl From<Misshapen> for Reason {
    fn from(misshapen: Misshapen) -> Self {
        match misshapen {
            Misshapen::Shape(ShapeError::Empty) => Self::BodyEmpty,
            Misshapen::Shape(ShapeError::NotJson) => Self::BodyNotJson,
            Misshapen::Shape(ShapeError::NotObject) => Self::BodyNotAnObject,
            Misshapen::Shape(ShapeError::DoubledName) => Self::BodyDoubledName,
            Misshapen::Invoice(NotAnInvoice::Id) => Self::IdUnreadable,
            Misshapen::Invoice(NotAnInvoice::Status) => Self::StatusUnreadable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_its_own_and_reads_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::parse("token_right"), None);
    }
}
