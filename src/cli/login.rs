//! `tilld login`: shows where to confirm and which code to compare, waits, and stores the token (design, section 9).
//!
//! Address and code come first, as plain lines of their own that no terminal width breaks (A35). No browser is opened and
//! the token is never shown. The old login stands until the new one is on disk.

use std::convert::Infallible;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use url::Url;

use super::context::Context;
use super::failure::{Exit, Failure};
use super::output::{escape, print, print_json, talk};
use super::service;
use crate::client::Client;
use crate::client::address::is_loopback_url;
use crate::client::credentials::{Credentials, CredentialsError, ENV_TOKEN, Store};
use crate::client::login::{LoginError, Tick, wait_for_token};
use crate::clock;
use crate::shutdown::Shutdown;
use crate::wire::login::{LoginStarted, TokenIssued};

/// Flags of `login`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// Where the machine's name is read.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Runs `login`.
pub(super) async fn run(_args: Args, context: Context) -> Result<Exit, Failure> {
    let client = service::client(&context)?;
    let store = service::store(&context)?;
    // Before the code is asked for: a token that was issued and cannot be stored is lost, and stays good.
    store
        .check_writable()
        .map_err(|error| unprepared(error).context("could not prepare to store the login"))?;
    let settings = context.settings()?;
    let name = settings.client_name.clone().unwrap_or_else(default_name);
    let started = client
        .start_login(&name)
        .await
        .map_err(|error| service::failure(error, None).context("could not begin the login"))?;
    let json = context.output.json();
    show(&started, settings.service.cabinet_url.as_deref(), json)?;
    let issued = confirmed(&client, &started, json).await?;
    keep(&client, &store, issued, json)?;
    if std::env::var_os(ENV_TOKEN).is_some() {
        talk(&format!(
            "warning: `{ENV_TOKEN}` is set and outranks this login for single commands"
        ));
    }
    Ok(Exit::Ok)
}

/// No place to store the login. No token was asked for yet.
fn unprepared(error: CredentialsError) -> Failure {
    if !error.is_unfit_place() {
        return error.into();
    }
    Failure::new(Exit::Ownership, error).hint(
        "make the state directory and give it to the user tilld runs as, or name another one with `--state-dir` or `state_dir`; no token was asked for",
    )
}

/// Doubts first, then address and code, each on a line of its own.
fn show(started: &LoginStarted, cabinet: Option<&str>, json: bool) -> Result<(), Failure> {
    let doubts = doubts(&started.verification_url, cabinet);
    for doubt in &doubts {
        talk(&format!(
            "warning: {doubt}; confirm nothing there unless you know why"
        ));
    }
    if json {
        return print_json(&json!({
            "verification_url": started.verification_url,
            "user_code": started.user_code,
            "expires_in_s": started.expires_in_s,
            "expires_at_ms": expires_ms(started),
            "warnings": doubts,
        }));
    }
    let (address, code) = (
        escape(&started.verification_url),
        escape(&started.user_code),
    );
    print(&format!("{address}\n{code}\n")).map_err(Failure::from_write)?;
    talk("open the address, choose the shop, compare the code, confirm");
    Ok(())
}

fn expires_ms(started: &LoginStarted) -> i64 {
    let life = i64::try_from(started.expires_in_s).unwrap_or(i64::MAX);
    clock::wall_ms().saturating_add(life.saturating_mul(1_000))
}

/// Waits for the merchant, showing the time left; Ctrl-C and SIGTERM end it with the old login intact.
async fn confirmed(
    client: &Client,
    started: &LoginStarted,
    json: bool,
) -> Result<TokenIssued, Failure> {
    let cancel = Shutdown::new();
    let mut countdown = Countdown::new(json);
    let end = {
        let wait = wait_for_token(client, started, |tick| countdown.show(&tick), &cancel);
        tokio::select! {
            end = wait => end,
            never = stop(&cancel) => match never {},
        }
    };
    countdown.clear();
    end.map_err(ended)
}

/// Turns Ctrl-C and SIGTERM into a wish to stop. Never returns: the wait notices the wish and ends in its own way.
async fn stop(cancel: &Shutdown) -> Infallible {
    if let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancel.request();
    }
    std::future::pending().await
}

/// Puts the new login in the place of the old one.
fn keep(client: &Client, store: &Store, issued: TokenIssued, json: bool) -> Result<(), Failure> {
    let TokenIssued { token, shop_name } = issued;
    let credentials = Credentials {
        token,
        shop_name,
        origin: client.origin(),
        stored_ms: clock::wall_ms(),
    };
    store.store(&credentials).map_err(|error| {
        Failure::new(Exit::LoginMaybe, error)
            .context("the token was issued but could not be stored")
            .hint(format!(
                "revoke it in the cabinet, mend the cause and {} again",
                service::log_in()
            ))
    })?;
    let (shop, path) = (&credentials.shop_name, store.path().display().to_string());
    if json {
        return print_json(&json!({ "shop_name": shop, "stored_in": path }));
    }
    print(&format!("logged in for shop {}\n", escape(shop))).map_err(Failure::from_write)?;
    talk(&format!("the token is kept in {path}"));
    Ok(())
}

/// The exit code and the way out of a login that yielded no token.
fn ended(error: LoginError) -> Failure {
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
struct Countdown {
    live: bool,
    troubled: bool,
}

impl Countdown {
    fn new(json: bool) -> Self {
        let live = !json && io::stderr().is_terminal();
        Self {
            live,
            troubled: false,
        }
    }

    fn show(&mut self, tick: &Tick<'_>) {
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

/// `tilld on HOST`, as the merchant sees it in the cabinet.
fn default_name() -> String {
    let host = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
    match host.trim() {
        "" => "tilld".to_owned(),
        host => format!("tilld on {host}"),
    }
}

/// What does not look right about a verification address, in words for a person. Empty when nothing is.
fn doubts(address: &str, cabinet: Option<&str>) -> Vec<String> {
    let Ok(url) = Url::parse(address) else {
        return vec!["the address is not a URL".to_owned()];
    };
    let mut doubts = Vec::new();
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback_url(address)) {
        doubts.push("the address is not https".to_owned());
    }
    let configured = cabinet.and_then(|cabinet| Url::parse(cabinet).ok());
    if let Some(wanted) = configured.as_ref().and_then(Url::host_str) {
        let host = url.host_str().unwrap_or_default();
        if host != wanted {
            doubts.push(format!(
                "the address leads to `{}`, the configured cabinet is `{wanted}`",
                escape(host)
            ));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_does_not_look_right_is_called_out() {
        let cabinet = Some("https://cabinet.example");
        for (address, count) in [
            ("https://cabinet.example/activate?code=A", 0),
            ("https://cabinet.example:8443/activate", 0),
            ("https://cabinet.example.evil/activate", 1),
            ("https://cabinet.example@evil.example/activate", 1),
            ("http://cabinet.example/activate", 1),
            ("http://evil.example/activate", 2),
            ("http://127.0.0.1:8481/activate", 1),
            ("javascript:alert(1)", 2),
            ("activate", 1),
        ] {
            assert_eq!(doubts(address, cabinet).len(), count, "{address}");
        }
        assert_eq!(doubts("http://127.0.0.1:8481/activate", None).len(), 0);
        assert_eq!(
            doubts("http://127.0.0.1/activate", Some("http://127.0.0.1:1")).len(),
            0
        );
    }
}
