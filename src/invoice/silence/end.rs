//! When an open invoice may be given up. Pure. Our own clock says when to look, the service's clock says whether the time
//! has come: a clock of ours that was days ahead for a moment must not silence an invoice for good.

use super::{Heard, Schedule};

/// The service's clock and ours may differ by this much and still be taken to agree, milliseconds. Its times have whole
/// seconds only.
const CLOCKS_AGREE_MS: i64 = 60_000;
/// Where the service's answers bear no date, or are refusals (403, 404): answers after the end that are wanted before an
/// invoice is given up. A refusal may be a proxy's mood.
const WEAK_ANSWERS: u32 = 3;
/// The least time between the first of these answers and the last, by our clock, milliseconds.
const WEAK_SPREAD_MS: i64 = 3_600_000;

/// Answers about the invoice, refusals too, to questions that were sent after the end, by our clock, one after the other.
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

/// True when the last answer, to a question sent at `asked_ms`, came late enough for the invoice to be given up. Time-outs
/// and outages never make it so: they are no answers.
pub(super) fn is_over(heard: &Heard, end_ms: i64, asked_ms: i64) -> bool {
    let spread = |since: i64| asked_ms.saturating_sub(since) >= WEAK_SPREAD_MS;
    let many = heard.ended.answers >= WEAK_ANSWERS && heard.ended.since_ms.is_some_and(spread);
    let Some(service_ms) = heard.service_ms else {
        return many;
    };
    let is_late = service_ms.saturating_add(CLOCKS_AGREE_MS) >= end_ms;
    // While questions fail, what was heard of it last, if anything, is a refusal.
    is_late && (heard.failures == 0 || many)
}
