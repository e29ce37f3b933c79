//! The waiting half of the device login (contract 4.2): polls until a token comes, the service ends the matter, or the
//! code's life is over. Sources: the contract and RFC 8628, 3.4 and 3.5; A34.
//!
//! [`wait_for_token`] does it in one go. [`finish()`] does it in as many goes as the caller likes, with a [`RequestStore`]
//! that remembers the login request in between. Both follow the same pure plan.

mod finish;
mod plan;
pub(crate) mod request;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::error::Error;
use super::{Client, TokenPoll};
use crate::secret::Secret;
use crate::shutdown::Shutdown;
use crate::telemetry::escape;
use crate::wire::login::{LoginStarted, TokenIssued};
pub(crate) use finish::{FinishError, Finished, finish};
use plan::Plan;
pub(crate) use request::RequestStore;

/// How often the caller hears how much time is left.
const TICK: Duration = Duration::from_secs(1);
/// Longest lifetime and interval taken from the service; longer ones would overflow an instant or outlast a merchant.
const LONGEST: Duration = Duration::from_hours(24);

/// Whoever can ask for the token once. The client in earnest, a script in tests.
pub(crate) trait PollToken {
    /// Asks once.
    fn poll_token(
        &self,
        device_code: &Secret,
    ) -> impl Future<Output = Result<TokenPoll, Error>> + Send;
}

impl PollToken for Client {
    fn poll_token(
        &self,
        device_code: &Secret,
    ) -> impl Future<Output = Result<TokenPoll, Error>> + Send {
        Client::poll_token(self, device_code)
    }
}

/// What the caller is told while it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick<'a> {
    /// What is left of the code's life.
    pub left: Duration,
    /// What the last poll met, when it yielded no answer.
    pub trouble: Option<&'a Error>,
}

/// A login that yielded no token. The old login stands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The merchant did not confirm in time.
    #[error("the login code has expired")]
    Expired {
        /// What the last poll met, when it yielded no answer.
        #[source]
        trouble: Option<Error>,
    },
    /// The merchant refused.
    #[error("the login was refused in the cabinet")]
    Denied,
    /// The service ended it with a word of its own.
    #[error("the payment service ended the login with {status}{}", text.as_deref().map(|text| format!(": {}", escape(text))).unwrap_or_default())]
    Ended {
        /// The HTTP status.
        status: u16,
        /// The service's `error` text.
        text: Option<String>,
    },
    /// An answer that may have held the token was lost, and no later one cleared it up.
    #[error("an answer was lost, and the login may have been granted in it")]
    MayHaveBeenGranted {
        /// How the last lost answer was lost; `None` when an earlier process lost it.
        #[source]
        lost: Option<Error>,
    },
    /// Asking could not go on.
    #[error("could not ask for the token")]
    Unaskable(#[source] Error),
    /// The caller wanted to stop.
    #[error("the login was cancelled{}", if *may_have_been_granted { " before an answer came that may have granted it" } else { "" })]
    Cancelled {
        /// True when a poll was under way or its answer lost: the token may have been issued all the same.
        may_have_been_granted: bool,
    },
}

/// Polls until the login is decided. Waits one interval before the first poll; what may pass (no connection, lost answers,
/// 408, 429, 5xx) is waited out until the code expires; a poll under way when it expires is heard out. Calls `on_tick`
/// about once a second while waiting.
pub(crate) async fn wait_for_token(
    service: &impl PollToken,
    started: &LoginStarted,
    mut on_tick: impl FnMut(Tick<'_>),
    cancel: &Shutdown,
) -> Result<TokenIssued, LoginError> {
    let deadline = Instant::now() + Duration::from_secs(started.expires_in_s).min(LONGEST);
    let mut plan = Plan::new(Duration::from_secs(started.interval_s), false);
    let mut wait = plan.interval();
    loop {
        let next = Instant::now() + wait;
        pause(next.min(deadline), deadline, &plan, &mut on_tick, cancel).await?;
        if next > deadline {
            return Err(plan.run_out());
        }
        let answer = ask(service, &started.device_code, cancel).await?;
        match plan.hear(answer) {
            Ok(pause) => wait = pause,
            Err(end) => return end,
        }
    }
}

/// Waits until `until`, with a tick each second. `Err` when the caller wants to stop.
async fn pause(
    until: Instant,
    deadline: Instant,
    plan: &Plan,
    on_tick: &mut impl FnMut(Tick<'_>),
    cancel: &Shutdown,
) -> Result<(), LoginError> {
    while Instant::now() < until {
        let now = Instant::now();
        on_tick(Tick {
            left: deadline.saturating_duration_since(now),
            trouble: plan.trouble(),
        });
        tokio::select! {
            () = sleep_until(until.min(now + TICK)) => {}
            () = cancel.requested() => {
                return Err(LoginError::Cancelled { may_have_been_granted: plan.is_unheard() });
            }
        }
    }
    Ok(())
}

/// Asks once, unless the caller wants to stop.
async fn ask(
    service: &impl PollToken,
    device_code: &Secret,
    cancel: &Shutdown,
) -> Result<Result<TokenPoll, Error>, LoginError> {
    tokio::select! {
        // An answer that is there is taken before a wish to stop: it may be the token.
        biased;
        answer = service.poll_token(device_code) => Ok(answer),
        () = cancel.requested() => Err(LoginError::Cancelled { may_have_been_granted: true }),
    }
}
