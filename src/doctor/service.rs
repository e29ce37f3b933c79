//! The login, and the service: whether it can be reached, and whether its clock and ours agree.

use super::{Finding, Patient};
use crate::client::credentials::{Elsewhere, Store};
use crate::clock;
use crate::status::StoredLogin;
use crate::telemetry::chain;

const LOGIN: &str = "login";
const SERVICE: &str = "service";
const CLOCK: &str = "clock";
/// Clocks may differ by this much; a `Date` has whole seconds, and an answer takes a moment. Milliseconds.
const AGREES_MS: i64 = 5_000;
/// From here on a payment window is judged wrongly. Milliseconds.
const WRONG_MS: i64 = 60_000;

pub(super) async fn look(patient: &Patient<'_>) -> Vec<Finding> {
    let mut findings = vec![login(patient)];
    let Some(client) = patient.client else {
        let told = "not asked: `service.url` is not set, or cannot be used";
        findings.push(
            Finding::fail(SERVICE, told)
                .hint("set `service.url` to the address the service answers at"),
        );
        return findings;
    };
    let before_ms = clock::wall_ms();
    match client.knock().await {
        Ok((status, service_ms)) => {
            findings.push(judge_status(&client.origin(), status));
            findings.push(judge_clock(service_ms, before_ms, clock::wall_ms()));
        }
        Err(error) => {
            let told = format!("{} gives no answer: {}", client.origin(), chain(&error));
            let hint = "look at the network and at `service.url`; where all goes through a proxy, `service.proxy` names it";
            findings.push(Finding::fail(SERVICE, told).hint(hint));
            findings.push(Finding::warn(
                CLOCK,
                "not compared: the service gave no answer",
            ));
        }
    }
    findings
}

/// Where the daemon would find a token, and whether it may be read as it should be. Never what it is.
fn login(patient: &Patient<'_>) -> Finding {
    let origin = patient.client.map(crate::client::Client::origin);
    let store = Store::new(patient.state_dir);
    let file = store.path().display().to_string();
    match store.load() {
        Ok(Some(_)) => {}
        Ok(None) => {
            return match Elsewhere::of_daemon().systemd_token() {
                Ok(Some(_)) => Finding::ok(LOGIN, "a token is there, as a systemd credential"),
                Ok(None) if is_of_unit(patient) => {
                    Finding::ok(LOGIN, "the daemon has a token, as a credential of its unit")
                }
                Ok(None) => Finding::fail(LOGIN, format!("none is stored in `{file}`"))
                    .hint("run `tilld login` as the user tilld runs as"),
                Err(error) => Finding::fail(LOGIN, chain(&error)),
            };
        }
        Err(error) => {
            let hint = if error.is_permission() {
                "give the file to the state directory's owner alone: mode 0600"
            } else {
                "run `tilld login` anew, as the user tilld runs as"
            };
            return Finding::fail(LOGIN, chain(&error)).hint(hint);
        }
    }
    let found = origin.map(|origin| store.find(&Elsewhere::of_daemon(), &origin));
    match found {
        Some(Err(error)) => Finding::fail(LOGIN, chain(&error)).hint("run `tilld login` anew"),
        Some(Ok(_)) | None => Finding::ok(
            LOGIN,
            format!("a token is stored in `{file}`, for its owner alone"),
        ),
    }
}

/// The daemon that runs polls with a token that is stored nowhere.
fn is_of_unit(patient: &Patient<'_>) -> bool {
    let login = patient.report.map(|report| &report.login);
    matches!(login, Some(StoredLogin::Stored { .. }))
}

/// Contract 7 does not show what is answered to somebody without a token, so any word of it will do but one: 5xx
/// says that whoever stands there is in trouble, or has the service behind it in vain (RFC 9110 15.6).
fn judge_status(origin: &str, status: u16) -> Finding {
    let told = format!("{origin} answers ({status})");
    if status < 500 {
        return Finding::ok(SERVICE, told);
    }
    Finding::warn(SERVICE, format!("{told}: it is in trouble, or only what stands in front of it is there")).hint(
        "no invoice can be opened and none be asked for while it lasts: try again later, and compare `service.url` with the address \
         that the service was given to you at",
    )
}

/// Between the question and its answer the service's clock showed a whole second.
fn judge_clock(service_ms: Option<i64>, before_ms: i64, after_ms: i64) -> Finding {
    let Some(service_ms) = service_ms else {
        return Finding::warn(CLOCK, "not compared: the service's answers bear no `Date`");
    };
    let ahead_ms = before_ms
        .saturating_sub(service_ms.saturating_add(999))
        .max(0);
    let behind_ms = service_ms.saturating_sub(after_ms).max(0);
    let (off_ms, way) = if ahead_ms > 0 {
        (ahead_ms, "ahead of")
    } else {
        (behind_ms, "behind")
    };
    let told = format!(
        "this machine's clock is {} s {way} the service's",
        off_ms / 1_000
    );
    let hint = "set the clock by NTP (`timedatectl set-ntp true`): payment windows and the order of claims are judged by times";
    match off_ms {
        0..=AGREES_MS => Finding::ok(CLOCK, "this machine's clock and the service's agree"),
        ..=WRONG_MS => Finding::warn(CLOCK, told).hint(hint),
        _ => Finding::fail(CLOCK, told).hint(hint),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_service_in_trouble_is_no_service_that_is_well() {
        for (status, state) in [
            (200, State::Ok),
            (302, State::Ok),
            (401, State::Ok),
            (404, State::Ok),
            (499, State::Ok),
            (500, State::Warn),
            (502, State::Warn),
            (503, State::Warn),
            (599, State::Warn),
        ] {
            let found = judge_status("https://service.example", status);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.told.contains(&status.to_string()), "{found:?}");
        }
    }

    #[test]
    fn clocks_may_differ_a_little() {
        let at = 1_795_860_120_000;
        for (service_ms, state) in [
            (Some(at), State::Ok),
            (Some(at - 5_900), State::Ok),
            (Some(at + 5_000), State::Ok),
            (Some(at - 30_000), State::Warn),
            (Some(at + 30_000), State::Warn),
            (Some(at - 90_000), State::Fail),
            (Some(at + 90_000), State::Fail),
            (None, State::Warn),
        ] {
            let found = judge_clock(service_ms, at, at + 40);
            assert_eq!(found.state, state, "{found:?}");
        }
        let ahead = judge_clock(Some(at - 90_000), at, at);
        assert_eq!(
            ahead.told,
            "this machine's clock is 89 s ahead of the service's"
        );
    }
}
