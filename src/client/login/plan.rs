//! The poll plan of one login, pure: it is told each answer and says how long to wait before the next question, or how the
//! login ended (RFC 8628, 3.4 and 3.5; A34).

use std::time::Duration;

use super::{LONGEST, LoginError, TokenPoll};
use crate::client::error::Error;
use crate::wire::login::TokenIssued;

/// What `slow_down` adds to the interval, for good (RFC 8628, 3.5).
const SLOWER_BY: Duration = Duration::from_secs(5);

/// How long to wait next, and what an answer means.
#[derive(Debug)]
pub(super) struct Plan {
    interval: Duration,
    /// A question was asked whose answer may have been the token, and no later one has cleared it up. "Pending" clears it
    /// up: what is still pending was not granted.
    unheard: bool,
    /// How that answer was lost, when this process lost it.
    lost: Option<Error>,
    /// Trouble that can have granted nothing.
    trouble: Option<Error>,
}

impl Plan {
    /// A plan with this interval. `unheard` when an earlier process asked and its answer is not known.
    pub(super) fn new(interval: Duration, unheard: bool) -> Self {
        Self {
            interval: interval.min(LONGEST),
            unheard,
            lost: None,
            trouble: None,
        }
    }

    /// The time between two questions, as it has grown.
    pub(super) const fn interval(&self) -> Duration {
        self.interval
    }

    /// True while an answer that is not known may have been the token.
    pub(super) const fn is_unheard(&self) -> bool {
        self.unheard
    }

    /// Takes an answer. `Err` ends the login; `Ok` is how long to wait before the next question.
    pub(super) fn hear(
        &mut self,
        answer: Result<TokenPoll, Error>,
    ) -> Result<Duration, Result<TokenIssued, LoginError>> {
        match answer {
            Ok(TokenPoll::Issued(issued)) => Err(Ok(issued)),
            Ok(TokenPoll::Pending) => {
                self.clear();
                Ok(self.interval)
            }
            Ok(TokenPoll::SlowDown) => {
                self.clear();
                self.interval = (self.interval + SLOWER_BY).min(LONGEST);
                Ok(self.interval)
            }
            // A code that was redeemed by a lost answer is spent, and each service says that in its own way.
            Ok(TokenPoll::Denied) => Err(Err(self.end(LoginError::Denied))),
            Ok(TokenPoll::Expired) => Err(Err(self.run_out())),
            Ok(TokenPoll::Ended { status, text }) => {
                Err(Err(self.end(LoginError::Ended { status, text })))
            }
            Err(error) if error.is_transient() => {
                let wait = self.interval.max(error.retry_after().unwrap_or_default());
                if error.may_have_acted() {
                    (self.unheard, self.lost) = (true, Some(error));
                } else {
                    self.trouble = Some(error);
                }
                Ok(wait)
            }
            Err(error) => Err(Err(self.end(LoginError::Unaskable(error)))),
        }
    }

    /// The code's life is over.
    pub(super) fn run_out(&mut self) -> LoginError {
        let trouble = self.trouble.take();
        self.end(LoginError::Expired { trouble })
    }

    /// What the last question met, when it yielded no answer.
    pub(super) fn trouble(&self) -> Option<&Error> {
        self.lost.as_ref().or(self.trouble.as_ref())
    }

    /// The end this is, unless an unknown answer may have been the token.
    fn end(&mut self, plainly: LoginError) -> LoginError {
        if self.unheard {
            LoginError::MayHaveBeenGranted {
                lost: self.lost.take(),
            }
        } else {
            plainly
        }
    }

    fn clear(&mut self) {
        (self.unheard, self.lost, self.trouble) = (false, None, None);
    }
}
