//! When an open invoice may be given up. Pure. Our own clock says when to look, the service's clock says whether the time
//! has come: a clock of ours that was days ahead for a moment must not silence an invoice for good.

use super::{Heard, Schedule};

/// The service's clock and ours may differ by this much and still be taken to agree, milliseconds. Its times have whole
/// seconds only.
const CLOCKS_AGREE_MS: i64 = 60_000;
/// Where the service's answers bear no date: answers after the end that are wanted before an invoice is given up.
const UNDATED_ANSWERS: u32 = 3;
/// Where they bear none: the least time between the first of these answers and the last, by our clock, milliseconds.
const UNDATED_SPREAD_MS: i64 = 3_600_000;

/// Answers to questions that were sent after the end, by our clock, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// How many.
    pub answers: u32,
    /// When the first of these questions was sent, milliseconds since 1970.
    pub since_ms: Option<i64>,
}

impl Ended {
    /// Takes note of an answer to a question that was sent at `asked_ms`.
    #[must_use]
    pub fn answered(self, schedule: &Schedule, heard: &Heard, asked_ms: i64) -> Self {
        if asked_ms < end_ms(schedule, heard) {
            return Self::default();
        }
        match self.since_ms.filter(|since| *since <= asked_ms) {
            Some(_) => Self {
                answers: self.answers.saturating_add(1),
                ..self
            },
            // A first one, or the clock was set back since.
            None => Self {
                answers: 1,
                since_ms: Some(asked_ms),
            },
        }
    }
}

/// When an open invoice is given up, if no answer says more: the horizon after its payment window closed, or after it was
/// opened. Milliseconds since 1970.
pub fn end_ms(schedule: &Schedule, heard: &Heard) -> i64 {
    heard
        .expire_ms
        .unwrap_or(heard.created_ms)
        .saturating_add(schedule.horizon_ms)
}

/// True when the last answer, to a question sent at `asked_ms`, came late enough for the invoice to be given up.
pub(super) fn is_over(heard: &Heard, end_ms: i64, asked_ms: i64) -> bool {
    if let Some(service_ms) = heard.service_ms {
        return service_ms.saturating_add(CLOCKS_AGREE_MS) >= end_ms;
    }
    let spread = |since: i64| asked_ms.saturating_sub(since) >= UNDATED_SPREAD_MS;
    heard.ended.answers >= UNDATED_ANSWERS && heard.ended.since_ms.is_some_and(spread)
}
