//! What a question of the daemon's rounds comes to: what the log says of it, and what the answer says about the token.
//!
//! Promises that the log says something new: nothing of what an outage met, which the gate tells, and not one by one when
//! many questions brought no answer. At the level `debug` it says all.

use std::time::Instant;

use super::ask::Nothing;
use super::login::{Mark, Word};
use crate::client::error::Error as FetchError;
use crate::client::gate::outage::Verdict;
use crate::invoice::transition::Decision;
use crate::ledger::{DueRow, InvoiceKey};
use crate::telemetry::{LogRate, chain};

/// How a question ended.
pub(super) struct Ended {
    /// The invoice.
    pub(super) key: InvoiceKey,
    /// The token it was asked with.
    pub(super) mark: Mark,
    /// What the answer says about that token.
    pub(super) word: Word,
    order_id: String,
    nothing: Option<Nothing>,
}

impl Ended {
    /// Takes the end of a question.
    pub(super) fn of(row: DueRow, mark: Mark, asked: Result<Decision, Nothing>) -> Self {
        let nothing = asked.err();
        let word = said_by(nothing.as_ref());
        Self {
            key: row.key,
            mark,
            word,
            order_id: row.order_id,
            nothing,
        }
    }

    /// Tells of a question that brought nothing; `is_out` when the service gives nobody an answer.
    pub(super) fn tell(&self, unanswered: &LogRate, is_out: bool) {
        let Some(nothing) = &self.nothing else {
            return;
        };
        let order = &self.order_id;
        match nothing {
            // Said once, by whoever keeps the token.
            Nothing::Fetch {
                source: FetchError::LoginNeeded,
                ..
            } => {}
            Nothing::Fetch { source, .. } => {
                let reason = chain(source);
                let is_known = is_out && matches!(source.verdict(), Verdict::Outage(_));
                if !is_known && is_told(unanswered) {
                    tracing::warn!(order.id = %order, %reason, "nothing learnt about order {order}: {reason}");
                } else {
                    tracing::debug!(order.id = %order, %reason, "nothing learnt about order {order}: {reason}");
                }
            }
            Nothing::OtherOrder { .. } if !is_told(unanswered) => {
                tracing::debug!(order.id = %order, "about order {order}: the answer names another order");
            }
            Nothing::OtherOrder { .. } => {
                tracing::warn!(order.id = %order, "about order {order}: the answer names another order");
            }
            Nothing::Read { .. } => {
                tracing::warn!(order.id = %order, reason = %chain(nothing), "an answer was dropped");
            }
            // The ledger tells why, once a minute.
            Nothing::Store { .. } => {
                tracing::debug!(order.id = %order, reason = %chain(nothing), "an answer could not be recorded and is asked for again");
            }
        }
    }
}

/// True when a question that brought nothing is told by itself.
fn is_told(unanswered: &LogRate) -> bool {
    let Some(untold) = unanswered.turn(Instant::now()) else {
        return false;
    };
    if untold > 0 {
        tracing::warn!(
            untold,
            "{untold} more questions brought nothing; at the level `debug` each is told"
        );
    }
    true
}

/// What the end of a question says of its token.
pub(super) fn said_by(nothing: Option<&Nothing>) -> Word {
    match nothing {
        Some(Nothing::Fetch { source, .. }) => said_of_the_token(source),
        None | Some(Nothing::OtherOrder { .. } | Nothing::Read { .. } | Nothing::Store { .. }) => {
            Word::Accepted
        }
    }
}

/// A service that says about an invoice that there is none, or that this shop may not see it, knows whose token it is.
fn said_of_the_token(error: &FetchError) -> Word {
    match error {
        FetchError::LoginNeeded => Word::Refused,
        FetchError::Forbidden { .. } | FetchError::NotFound { .. } => Word::Accepted,
        FetchError::NotSent { .. }
        | FetchError::Unanswered { .. }
        | FetchError::Busy { .. }
        | FetchError::Refused { .. }
        | FetchError::Redirected { .. }
        | FetchError::Page { .. }
        | FetchError::NotTheService { .. }
        | FetchError::TokenUnusable => Word::Nothing,
    }
}
