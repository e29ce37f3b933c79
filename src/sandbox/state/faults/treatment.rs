//! What is to be done with one notification.

use super::Presentation;
use crate::sandbox::state::notice::Sent;

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
    /// It was held until the next one of its invoice had gone out.
    pub(crate) reordered: bool,
}

impl Treatment {
    /// It takes its time by intention: newer ones do not wait for it.
    pub(crate) fn lets_others_pass(&self) -> bool {
        self.delay_ms > 0 || self.flow != Flow::Whole
    }

    /// How the body of a try comes: a line that is bad once is a good one the next time.
    pub(crate) fn flow_of(&self, attempt: u32) -> Flow {
        if attempt == 1 { self.flow } else { Flow::Whole }
    }

    /// What was done to a try, in the words of `POST /faults`, for the book.
    pub(crate) fn sent(&self, attempt: u32) -> Sent {
        let is_first = attempt == 1;
        let flow = self.flow_of(attempt);
        let counted = |word: &str, number: u64| format!("{word} {number}");
        let words = [
            self.lost.then(|| "lose".to_owned()),
            (is_first && self.reordered).then(|| "reorder".to_owned()),
            (is_first && self.delay_ms > 0).then(|| counted("delay_ms", self.delay_ms)),
            (self.copies > 1).then(|| counted("copies", u64::from(self.copies - 1))),
            (self.token == Token::Wrong).then(|| "wrong_token".to_owned()),
            (self.token == Token::Missing).then(|| "missing_token".to_owned()),
            (flow == Flow::Torn).then(|| "torn".to_owned()),
            (flow == Flow::Slow).then(|| "slow".to_owned()),
            self.give_up_ms.map(|ms| counted("give_up_ms", ms)),
        ];
        let presentation = match self.token {
            Token::Missing => Presentation::Missing,
            Token::Right | Token::Wrong => self.presentation.clone(),
        };
        Sent {
            presentation: Some(presentation).filter(|_| !self.lost),
            faults: words.into_iter().flatten().collect(),
        }
    }
}
