//! What goes wrong with notifications: with all of them, or with those of one invoice.

use super::{Presentation, Times};

/// Faults of notifications. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Telling {
    /// Never sent.
    pub(crate) lose: Times,
    /// Sent more than once.
    pub(crate) repeat: Times,
    /// Copies beyond the first of a repeated one; at least 1 when it shows.
    pub(crate) copies: u32,
    /// Each waits so long first, ms.
    pub(crate) delay_ms: u64,
    /// Each is held until the next one of its invoice has gone out.
    pub(crate) reorder: bool,
    /// Carry a wrong token of the right length.
    pub(crate) wrong_token: Times,
    /// Carry no token.
    pub(crate) missing_token: Times,
    /// End in the middle of their body, with the connection.
    pub(crate) torn: Times,
    /// Their body comes in pieces, with pauses.
    pub(crate) slow: Times,
    /// The sender waits so long for an answer, ms. `None`: as long as it does otherwise.
    pub(crate) give_up_ms: Option<u64>,
    /// Where the token stands. `None`: where it stands otherwise.
    pub(crate) presentation: Option<Presentation>,
}

/// What a notification carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// The invoice's own token.
    Right,
    /// Another one of the same length.
    Wrong,
    /// None.
    Missing,
}

/// How its body comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// At once.
    Whole,
    /// The first half, then the connection closes.
    Torn,
    /// In pieces with pauses.
    Slow,
}

/// What is to be done with one notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// Never send it.
    pub(crate) lost: bool,
    /// Send it so often: 1, or more when repeated.
    pub(crate) copies: u32,
    /// What it carries.
    pub(crate) token: Token,
    /// How its first try comes; later ones come whole.
    pub(crate) flow: Flow,
    /// Wait so long first, ms.
    pub(crate) delay_ms: u64,
    /// Wait so long for an answer, ms, when not as long as otherwise.
    pub(crate) give_up_ms: Option<u64>,
    /// Where the token stands.
    pub(crate) presentation: Presentation,
}
