//! A notification that became due, and the book of what came of it.

use std::sync::Arc;

use super::faults::{Presentation, Whose};
use crate::secret::Secret;

/// Attempts kept per invoice; the oldest go first. A notification has three tries, an invoice a handful of notifications.
pub(crate) const MOST_ATTEMPTS: usize = 60;

/// A notification to be sent: the invoice object as it stood when it became due. `Debug` shows no token.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    /// Which invoice.
    pub(crate) invoice: u64,
    /// What chance goes by, beside the number.
    pub(crate) key: u64,
    /// Its id.
    pub(crate) id: String,
    /// The order it is for.
    pub(crate) order: String,
    /// The how-manieth notification of this invoice, from 1.
    pub(crate) number: u64,
    /// Where to.
    pub(crate) url: String,
    /// The invoice's notify token.
    pub(crate) token: Secret,
    /// The status it carries, for the book.
    pub(crate) status: String,
    /// The invoice object. Shared with the book.
    pub(crate) body: Arc<str>,
    /// It was held until the next one of its invoice had gone out.
    pub(crate) reordered: bool,
    /// What was wrong on purpose with the `updatedAt` it carries, for the book.
    pub(crate) dated: Option<String>,
}

impl Notice {
    /// Whose it is, and which of theirs.
    pub(crate) fn whose(&self) -> Whose {
        Whose {
            names: [self.id.clone(), self.order.clone()],
            draw: [self.key, self.number],
        }
    }
}

/// How a try of a notification was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Where its token stood. `None`: it was not sent.
    pub(crate) presentation: Option<Presentation>,
    /// What was done wrong to it, in the words of `POST /faults`.
    pub(crate) faults: Vec<String>,
}

/// What came of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The shop answered with this HTTP status.
    Code(u16),
    /// The shop did not answer; why, in a few words.
    None(&'static str),
    /// Lost on purpose.
    Lost,
    /// Not sent: the sandbox sends to loopback addresses only.
    NotLoopback,
    /// Dropped: too many notifications were waiting.
    Overflow,
}

impl Answer {
    /// As the cabinet and the control listener show it.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Code(code) => code.to_string(),
            Self::None(why) => format!("no answer: {why}"),
            Self::Lost => "lost on purpose".to_owned(),
            Self::NotLoopback => "not sent: not a loopback address".to_owned(),
            Self::Overflow => "dropped: too many were waiting".to_owned(),
        }
    }
}

/// One attempt to deliver a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Which notification of its invoice.
    pub(crate) notice: u64,
    /// Which try, from 1.
    pub(crate) number: u32,
    /// When, ms.
    pub(crate) at_ms: i64,
    /// The status it carried.
    pub(crate) status: String,
    /// How it was sent.
    pub(crate) sent: Sent,
    /// The body as it was to be sent: whole, and without the token that a presentation puts into it.
    pub(crate) body: Arc<str>,
    /// What came of it.
    pub(crate) answer: Answer,
}
