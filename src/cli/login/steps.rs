//! The login in two steps, for programs that must not block: `--start` shows address and code and keeps the login request,
//! `--finish` goes on with it, as often as it takes. In between the device code lies in a private file.

use std::time::Duration;

use serde_json::json;

use super::super::context::Context;
use super::super::failure::{Exit, Failure};
use super::super::output::{print_json, talk};
use super::wait::{self, Stop};
use super::{Places, show};
use crate::answer::argv;
use crate::client::credentials::CredentialsError;
use crate::client::login::request::{LoginRequest, RequestError};
use crate::client::login::{FinishError, Finished, LoginError, Tick, finish as go_on};
use crate::clock;
use crate::invoice::moment::Moment;
use crate::wire::login::LoginStarted;

/// Keeps a login request for `--finish`, then shows it.
pub(super) fn keep(
    context: &Context,
    places: &Places,
    started: &LoginStarted,
    no_qr: bool,
) -> Result<Exit, Failure> {
    let began_ms = clock::wall_ms();
    let request = LoginRequest::begun(started, places.client.origin(), began_ms);
    let replaced = places.requests.begin(&request).map_err(unkept)?;
    show::show(
        context,
        started,
        began_ms,
        !no_qr,
        Some(("replaced", replaced.into())),
    )?;
    if replaced {
        talk("an earlier `login --start` is given up for this one");
    }
    talk(&format!("then run `{}`", finish_line()));
    Ok(Exit::Ok)
}

/// Goes on with what `--start` began, for up to `wait_s` seconds.
pub(super) async fn finish(
    context: &Context,
    places: &Places,
    wait_s: u64,
) -> Result<Exit, Failure> {
    let json = context.output.json();
    let request = places.requests.load().map_err(unkept)?;
    let request = request.ok_or_else(|| {
        Failure::new(Exit::NotFound, "no login is begun").hint(format!(
            "run `{}`; `tilld whoami` says whether an earlier one was finished",
            start_line()
        ))
    })?;
    let configured = places.client.origin();
    if request.origin != configured {
        let issued_by = request.origin;
        let error = format!(
            "the login was begun at `{issued_by}`, the configured service is `{configured}`"
        );
        return Err(Failure::new(Exit::LoginNeeded, error)
            .hint(format!("run `{}`, or set `service.url` back", start_line())));
    }
    let patience = Duration::from_secs(wait_s);
    let finished = wait::confirmed(json, Stop::listen(), async |countdown, cancel| {
        let tick = |tick: Tick<'_>| countdown.show(&tick);
        let requests = &places.requests;
        go_on(&places.client, requests, &request, patience, tick, cancel).await
    })
    .await;
    match finished.map_err(unfinished)? {
        Finished::Granted(issued) => {
            let kept = places.keep(issued, json);
            // The code is spent, whatever became of the token.
            let ended = places.requests.end_of(&request);
            kept?;
            ended.map_err(unkept)?;
            Ok(Exit::Ok)
        }
        Finished::Pending(request) => pending(&request, json).map(|()| Exit::TimeOut),
    }
}

/// Not confirmed yet.
fn pending(request: &LoginRequest, json: bool) -> Result<(), Failure> {
    let now_ms = clock::wall_ms();
    // Rounded up: whoever comes back then comes late enough.
    let next_s = request.pause(now_ms).as_millis().div_ceil(1_000);
    let left_s = request.left(now_ms).as_secs();
    if json {
        return print_json(&json!({
            "state": "pending",
            "verification_url": request.verification_url,
            "user_code": request.user_code,
            "expires_in_s": left_s,
            "expires_at": Moment::from_ms(request.expires_ms).to_string(),
            "next_poll_in_s": next_s,
        }));
    }
    talk(&format!(
        "not confirmed yet, as far as is known; the code is good for another {left_s} s, asked again in {next_s} s at the earliest"
    ));
    talk(&format!("hint: run `{}` again", finish_line()));
    Ok(())
}

/// A login that was not finished by this run.
fn unfinished(error: FinishError) -> Failure {
    match error {
        FinishError::Request(error) => unkept(error),
        FinishError::Gone => {
            Failure::new(Exit::Error, error).hint("`tilld whoami` says whether it was finished")
        }
        FinishError::Login(error @ LoginError::Cancelled { .. }) => {
            Failure::new(Exit::Error, error).hint(format!(
                "the earlier login, if any, still stands; `{}` goes on with this one",
                finish_line()
            ))
        }
        FinishError::Login(error) => wait::ended(error),
    }
}

/// The file with the login request.
pub(in crate::cli) fn unkept(error: RequestError) -> Failure {
    match error {
        RequestError::File(error) => CredentialsError::File(error).into(),
        RequestError::Unreadable { .. } => {
            Failure::new(Exit::Error, error).hint(format!("run `{}`", start_line()))
        }
    }
}

fn start_line() -> String {
    format!("{} --start", argv::login())
}

fn finish_line() -> String {
    format!("{} --finish", argv::login())
}
