//! What a poll's answer makes of a doubted claim. Asked when a claim is decided on, and again when what was heard is gone
//! through anew because the merchant's lists changed: both must end the same.

use super::SECOND_POLL_AFTER_MS;
use super::state::Claim;

/// What becomes of a doubted claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubted {
    /// It counts among the claims from now on.
    Counts,
    /// It was denied.
    Dropped,
    /// A second answer must tell.
    Stays,
}

/// Judges a doubted claim by an answer; `second`: one before it said the same. Against a claim that is not older, or has no
/// instant, the answer may come from a place that lags behind.
pub fn judged_by(doubted: &Claim, answer: &Claim, second: bool) -> Doubted {
    let older = doubted.at.is_some() && doubted.at < answer.at;
    let counts = doubted.at.is_some() && (answer.at.is_none() || doubted.at <= answer.at);
    // The same word with another instant is no contradiction.
    if !(older || second || same_word(doubted, answer)) {
        Doubted::Stays
    } else if counts {
        Doubted::Counts
    } else {
        Doubted::Dropped
    }
}

/// True when an answer that was first heard so long ago (milliseconds) is now heard for the second time. A clock set back
/// must not hold it for ever.
pub fn is_second(waited_ms: Option<i64>) -> bool {
    waited_ms.is_some_and(|waited| !(0..SECOND_POLL_AFTER_MS).contains(&waited))
}

/// Same status and same verdict, whatever the instants are.
pub fn same_word(one: &Claim, other: &Claim) -> bool {
    one.status == other.status && one.verdict == other.verdict
}
