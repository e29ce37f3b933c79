//! What a poll's answer makes of a doubted claim. Asked when a claim is decided on, and again when what was heard is gone
//! through anew because the merchant's lists changed: both must end the same.

use super::SECOND_POLL_AFTER_MS;
use super::state::Claim;
use crate::invoice::sum::Verdict;

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
    let same = same_word(doubted, answer) || same_word(answer, doubted);
    if !(older || second || same) {
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

/// Whether what is heard says the same as what is known: same status and same verdict, whatever the instants are. One that
/// names no amount contradicts no other, and one that agrees contradicts none that named none.
pub fn same_word(known: &Claim, heard: &Claim) -> bool {
    let same = match (&known.verdict, &heard.verdict) {
        (_, Verdict::NoAmount) | (Verdict::NoAmount | Verdict::Unreadable, Verdict::Agrees) => true,
        (known, heard) => known == heard,
    };
    known.status == heard.status && same
}
