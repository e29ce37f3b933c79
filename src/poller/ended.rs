//! What a question of the daemon's rounds comes to: what the log says of it, and what the answer says about the token.

use super::ask::Nothing;
use super::login::{Mark, Word};
use crate::client::error::Error as FetchError;
use crate::invoice::transition::Decision;
use crate::ledger::{DueRow, InvoiceKey};
use crate::telemetry::chain;

/// How a question ended.
pub(super) struct Ended {
    /// The invoice.
    pub(super) key: InvoiceKey,
    /// The token it was asked with.
    pub(super) mark: Mark,
    /// What the answer says about that token.
    pub(super) word: Word,
}

impl Ended {
    /// Takes the end of a question, and tells of one that brought nothing.
    pub(super) fn of(row: &DueRow, mark: Mark, asked: &Result<Decision, Nothing>) -> Self {
        let word = match asked {
            Err(Nothing::Fetch { source, .. }) => said_of_the_token(source),
            Ok(_)
            | Err(Nothing::OtherOrder { .. } | Nothing::Read { .. } | Nothing::Store { .. }) => {
                Word::Accepted
            }
        };
        if let Err(nothing) = asked {
            tell(row, nothing);
        }
        Self {
            key: row.key,
            mark,
            word,
        }
    }
}

fn tell(row: &DueRow, nothing: &Nothing) {
    let order = &row.order_id;
    match nothing {
        // Said once, by whoever keeps the token.
        Nothing::Fetch {
            source: FetchError::LoginNeeded,
            ..
        } => {}
        Nothing::Fetch { source, .. } => {
            let reason = chain(source);
            tracing::warn!(order.id = %order, %reason, "nothing learnt about order {order}: {reason}");
        }
        Nothing::OtherOrder { .. } => {
            tracing::warn!(order.id = %order, "about order {order}: the answer names another order");
        }
        Nothing::Read { .. } => {
            tracing::warn!(order.id = %order, reason = %chain(nothing), "an answer was dropped");
        }
        Nothing::Store { .. } => {
            tracing::warn!(order.id = %order, reason = %chain(nothing), "an answer could not be recorded and is asked for again");
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
        | FetchError::NotTheService { .. }
        | FetchError::TokenUnusable => Word::Nothing,
    }
}
