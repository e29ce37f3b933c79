//! `/healthz`: whether the process can do its work at all. `/readyz`: whether it is doing it. Both ask the ledger's writing
//! thread for a turn; that a listener answers proves nothing of it.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};

use super::Parts;
use crate::http::Response;
use crate::ledger::{Reader, Writer};
use crate::news;
use crate::status::{LoginState, Reason};
use crate::telemetry::{chain, escape};

/// How long the writer may take for a turn. A batch of a slow disk takes a tenth of that; another program's lock on the
/// ledger may take longer, and then notifications wait for it too.
const TURN_WITHIN: Duration = Duration::from_secs(3);

/// 200 and `ok`, or 503 and why not.
pub(super) async fn healthz(parts: &Parts) -> Response {
    match turn(&parts.writer, &parts.reader).await {
        Ok(()) => answer(StatusCode::OK, "ok\n".to_owned()),
        Err(why) => answer(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// 200 when all is so, else 503; one line for each thing that was looked at.
pub(super) async fn readyz(parts: &Parts) -> Response {
    let (turn, looked) = tokio::join!(turn(&parts.writer, &parts.reader), (parts.look)());
    let (login, sockets) = match looked {
        Ok((_overview, report)) => {
            let login = match report.polling.login {
                LoginState::Good => Ok(()),
                state => Err(state.sentence().to_owned()),
            };
            let mut needs = report.needs.into_iter();
            let lost = needs.find(|need| need.reason == Reason::Socket);
            (login, lost.map_or(Ok(()), |need| Err(need.told)))
        }
        Err(error) => (Err(chain(&error)), Err(chain(&error))),
    };
    let (pulse, within) = &parts.poller;
    let poller = turns(pulse.still_for(), *within);
    let running = if parts.draining.is_requested() {
        Err("tilld stops".to_owned())
    } else {
        Ok(())
    };
    let found = [
        ("running", running),
        ("ledger", turn),
        ("login", login),
        ("poller", poller),
        ("sockets", sockets),
    ];
    let ready = found.iter().all(|(_, state)| state.is_ok());
    let mut text = String::new();
    for (name, state) in found {
        let state = state.err().unwrap_or_else(|| "ok".to_owned());
        text.extend([name, ": ", &escape(&state), "\n"]);
    }
    let status = if ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    answer(status, text)
}

/// A loop that turns at least so often does.
fn turns(still_for: Duration, within: Duration) -> Result<(), String> {
    if still_for <= within {
        return Ok(());
    }
    Err(format!(
        "it has not looked at what is due for {} s",
        still_for.as_secs()
    ))
}

/// The writing thread turns, and what it was last given could be stored.
async fn turn(writer: &Writer, reader: &Reader) -> Result<(), String> {
    match news::within(TURN_WITHIN, writer.lock_once()).await {
        Some(Ok(())) => {}
        Some(Err(error)) => return Err(chain(&error)),
        None => {
            return Err(format!(
                "the ledger's writer had no turn for this within {} s",
                TURN_WITHIN.as_secs()
            ));
        }
    }
    let health = reader.health();
    if let Some((_since_ms, reason)) = health.unstored {
        return Err(format!("nothing can be stored: {reason}"));
    }
    if health.log_full {
        return Err("the ledger's log has reached its bound".to_owned());
    }
    Ok(())
}

fn answer(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(bytes::Bytes::from(text).into());
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_late_when_it_turned_longer_ago_than_it_may() {
        let within = Duration::from_secs(70);
        assert_eq!(turns(within, within), Ok(()));
        let late = turns(within + Duration::from_millis(1_001), within);
        assert_eq!(
            late.expect_err("late"),
            "it has not looked at what is due for 71 s"
        );
    }
}
