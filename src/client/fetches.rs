//! How the service's answers to questions about invoices were numbered, since the start of the process: bounded however odd
//! an answer is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::error::Error;
use crate::clock::Reading;
use crate::secret::Secret;

/// The service's own clock as one of its answers told it: milliseconds since 1970, and when that was heard here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServiceClock(i64, Reading);

impl ServiceClock {
    /// What it shows at a moment, milliseconds since 1970. It goes on by the clock that nobody sets.
    pub(crate) const fn at(self, now: Reading) -> i64 {
        let Self(told_ms, _) = self;
        told_ms.saturating_add(self.age_ms(now))
    }

    /// How long before a moment it was heard, milliseconds.
    pub(crate) const fn age_ms(self, now: Reading) -> i64 {
        let Self(_, heard) = self;
        now.boot_ms.saturating_sub(heard.boot_ms)
    }
}

/// The statuses that are told apart; all others are `other`.
const CODES: [u16; 13] = [
    200, 301, 302, 400, 401, 403, 404, 408, 429, 500, 502, 503, 504,
];

/// What the service said of a token on a request that somebody waited for.
#[derive(Clone, Debug)]
pub(crate) struct TokenWord {
    /// Counts them.
    pub(crate) number: u64,
    /// The token.
    pub(crate) token: Secret,
    /// It was accepted.
    pub(crate) is_good: bool,
}

/// The counts, cheap to clone with the client that holds them.
#[derive(Debug, Default)]
pub(crate) struct Fetches {
    said: Mutex<Option<TokenWord>>,
    codes: [AtomicU64; CODES.len()],
    other: AtomicU64,
    none: AtomicU64,
    clock: watch::Sender<Option<ServiceClock>>,
}

impl Fetches {
    /// An answer bore the service's time, if it did.
    pub(super) fn dated(&self, service_ms: Option<i64>) {
        if let Some(service_ms) = service_ms {
            let clock = ServiceClock(service_ms, Reading::now());
            self.clock.send_replace(Some(clock));
        }
    }

    /// The service accepted this token, or rejected it.
    pub(crate) fn said_of(&self, token: &Secret, is_good: bool) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let number = said.as_ref().map_or(0, |said| said.number) + 1;
        let token = token.clone();
        *said = Some(TokenWord {
            number,
            token,
            is_good,
        });
    }

    /// The last word on a token.
    pub(crate) fn last_said(&self) -> Option<TokenWord> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.clone()
    }

    /// The service's clock, `None` until an answer told it.
    pub(crate) fn clock(&self) -> watch::Receiver<Option<ServiceClock>> {
        self.clock.subscribe()
    }

    /// A question was answered with this status.
    pub(super) fn answered(&self, status: u16) {
        let at = CODES.iter().position(|code| *code == status);
        let count = at.and_then(|at| self.codes.get(at));
        count.unwrap_or(&self.other).fetch_add(1, Ordering::Relaxed);
    }

    /// A question got no whole answer.
    pub(super) fn unanswered(&self, _why: &Error) {
        self.none.fetch_add(1, Ordering::Relaxed);
    }

    /// Every code that is told apart with its count; `none` for no answer.
    pub(crate) fn all(&self) -> Vec<(String, u64)> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let codes = CODES.iter().map(ToString::to_string);
        let mut all: Vec<(String, u64)> = codes.zip(self.codes.iter().map(read)).collect();
        all.push(("other".to_owned(), read(&self.other)));
        all.push(("none".to_owned(), read(&self.none)));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_codes_share_one_count() {
        let fetches = Fetches::default();
        for status in [200, 200, 404, 418, 999] {
            fetches.answered(status);
        }
        fetches.unanswered(&Error::LoginNeeded);
        let counted = |name: &str| {
            let all = fetches.all();
            all.iter()
                .find(|(code, _)| code == name)
                .map(|(_, count)| *count)
        };
        for (name, count) in [
            ("200", 2),
            ("404", 1),
            ("500", 0),
            ("other", 2),
            ("none", 1),
        ] {
            assert_eq!(counted(name), Some(count), "{name}");
        }
    }
}
