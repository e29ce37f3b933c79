//! The second step of a login in two steps: asks about a login request that was kept, as far as its interval and the
//! caller's patience allow. Whatever it does not decide is kept for the next time.

use std::time::Duration;

use tokio::time::Instant;

use super::plan::Plan;
use super::request::{LoginRequest, RequestError, RequestStore, Turn};
use super::{LoginError, PollToken, Tick, ask, pause};
use crate::clock;
use crate::shutdown::Shutdown;
use crate::wire::login::TokenIssued;

/// What came of finishing.
#[derive(Debug)]
pub(crate) enum Finished {
    /// The token. The request is still there: whoever stored the token discards it.
    Granted(TokenIssued),
    /// Not decided within the caller's patience.
    Pending(LoginRequest),
}

/// Why finishing yielded neither a token nor "pending".
#[derive(Debug, thiserror::Error)]
pub(crate) enum FinishError {
    /// The file with the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Another process finished the login, or began a new one, in the meantime.
    #[error("the login request is not there any more: it was finished or replaced meanwhile")]
    Gone,
    /// The login ended without a token, or the caller wanted to stop; only then the request is still there.
    #[error(transparent)]
    Login(#[from] LoginError),
}

/// Asks about `request` until it is decided or `patience` is over. Never asks earlier than the interval allows, whoever
/// asked last. Waits for the next question only if it comes within the patience.
pub(crate) async fn finish(
    service: &impl PollToken,
    store: &RequestStore,
    request: &LoginRequest,
    patience: Duration,
    mut on_tick: impl FnMut(Tick<'_>),
    cancel: &Shutdown,
) -> Result<Finished, FinishError> {
    let code = &request.device_code;
    let give_up = Instant::now() + patience;
    let mut plan = Plan::new(request.interval, request.unheard);
    loop {
        match store.turn(code, clock::wall_ms())? {
            Turn::Gone => return Err(FinishError::Gone),
            Turn::RunOut(kept) => {
                // Said only by the file when another process asked last.
                let mut plan = if kept.unheard == plan.is_unheard() {
                    plan
                } else {
                    Plan::new(kept.interval, kept.unheard)
                };
                store.end(code)?;
                return Err(plan.run_out().into());
            }
            Turn::Early(kept, wait) => {
                let (now, left) = (Instant::now(), kept.left(clock::wall_ms()));
                // Past its end only that end is left to be said.
                let next = now + wait.min(left);
                if next > give_up {
                    return Ok(Finished::Pending(kept));
                }
                pause(next, now + left, &plan, &mut on_tick, cancel).await?;
            }
            Turn::Ask(kept) => {
                if kept.unheard != plan.is_unheard() || kept.interval != plan.interval() {
                    plan = Plan::new(kept.interval, kept.unheard);
                }
                let answer = ask(service, code, cancel).await?;
                match plan.hear(answer) {
                    Ok(wait) => store.heard(
                        code,
                        clock::wall_ms(),
                        (plan.interval(), wait, plan.is_unheard()),
                    )?,
                    Err(Ok(issued)) => return Ok(Finished::Granted(issued)),
                    Err(Err(end)) => {
                        store.end(code)?;
                        return Err(end.into());
                    }
                }
            }
        }
    }
}
