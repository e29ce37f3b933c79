//! Waiting for the merchant: the time left on a terminal, the wish to stop by Ctrl-C or SIGTERM, and what each end of a
//! login means to whoever called it.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::super::failure::{Exit, Failure};
use super::super::output::{escape, talk};
use super::super::service;
use super::qr::is_dumb;
use crate::client::login::{LoginError, Tick};
use crate::shutdown::Shutdown;

/// Ctrl-C and SIGTERM, heard from the moment it is made: a signal that comes earlier than somebody waits for it is kept.
pub(super) struct Stop(Option<(Signal, Signal)>);

impl Stop {
    pub(super) fn listen() -> Self {
        // Without them the process ends the plain way, with the same result.
        let interrupt = signal(SignalKind::interrupt()).ok();
        Self(interrupt.zip(signal(SignalKind::terminate()).ok()))
    }

    /// Resolves when somebody wants to stop.
    async fn wished(&mut self) {
        match &mut self.0 {
            Some((interrupt, terminate)) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }

    /// Does something that may be dropped at any moment, unless somebody wants to stop.
    pub(super) async fn unless_wished<T>(
        &mut self,
        doing: impl Future<Output = T>,
    ) -> Result<T, LoginError> {
        tokio::select! {
            biased;
            done = doing => Ok(done),
            () = self.wished() => Err(LoginError::Cancelled { may_have_been_granted: false }),
        }
    }
}

/// Waits for the merchant by `wait`, with the time left in sight, until it ends by itself or is told to stop.
pub(super) async fn confirmed<T>(
    json: bool,
    mut stop: Stop,
    wait: impl AsyncFnOnce(&mut Countdown, &Shutdown) -> T,
) -> T {
    let cancel = Shutdown::new();
    let mut countdown = Countdown::new(json);
    let end = {
        let mut wait = std::pin::pin!(wait(&mut countdown, &cancel));
        tokio::select! {
            biased;
            end = &mut wait => end,
            () = stop.wished() => {
                cancel.request();
                // It notices the wish and ends in its own way.
                wait.await
            }
        }
    };
    countdown.clear();
    end
}

/// The exit code and the way out of a login that yielded no token.
pub(super) fn ended(error: LoginError) -> Failure {
    let log_in = service::log_in();
    let revoke = format!(
        "look in the cabinet's list of tokens, revoke what is new there, and {log_in} again"
    );
    let (exit, hint) = match &error {
        LoginError::Expired { .. } => (Exit::LoginExpired, format!("{log_in} again")),
        LoginError::Denied => (
            Exit::LoginDenied,
            format!("{log_in} again to be asked anew"),
        ),
        LoginError::MayHaveBeenGranted { .. }
        | LoginError::Cancelled {
            may_have_been_granted: true,
        } => (Exit::LoginMaybe, revoke),
        LoginError::Cancelled {
            may_have_been_granted: false,
        } => (
            Exit::Error,
            "the earlier login, if any, still stands".to_owned(),
        ),
        LoginError::Ended { .. } | LoginError::Unaskable(_) => (
            Exit::Error,
            format!("the earlier login, if any, still stands; {log_in} again"),
        ),
    };
    Failure::new(exit, error).hint(hint)
}

/// The time left, on one line of a terminal. Without a terminal, a line when trouble begins and nothing else.
pub(super) struct Countdown {
    live: bool,
    troubled: bool,
}

impl Countdown {
    fn new(json: bool) -> Self {
        let live = !json && io::stderr().is_terminal() && !is_dumb();
        Self {
            live,
            troubled: false,
        }
    }

    pub(super) fn show(&mut self, tick: &Tick<'_>) {
        if let Some(trouble) = tick.trouble.filter(|_| !self.troubled) {
            self.clear();
            talk(&format!("{}; still trying", escape(&trouble.to_string())));
        }
        self.troubled = tick.trouble.is_some();
        if self.live {
            self.draw(&time_left(tick.left));
        }
    }

    /// Takes the line away, so that what follows stands alone.
    fn clear(&self) {
        if self.live {
            self.draw("");
        }
    }

    #[expect(clippy::unused_self, reason = "drawing belongs to the countdown")]
    fn draw(&self, text: &str) {
        // Back to the first column, and the rest of the line erased. A terminal that went away cannot be told so.
        drop(write!(io::stderr().lock(), "\r\u{1b}[K{text}"));
    }
}

fn time_left(left: Duration) -> String {
    let seconds = left.as_secs();
    format!("waiting, {}:{:02} left", seconds / 60, seconds % 60)
}
