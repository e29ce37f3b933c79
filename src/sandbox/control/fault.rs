//! `POST /faults`: what the sandbox is to do wrong. Each key sets one fault, keys that are absent leave theirs as it is.
//! Counts are a number (so many times more), `true` (until changed) or `false`.
//!
//! | key | fault |
//! |---|---|
//! | `lose` | count: notifications that are never sent |
//! | `repeat`, `copies` | count: notifications sent with so many copies more (default 1) |
//! | `wrong_token` | count: notifications with a wrong token |
//! | `delay_ms` | every notification waits first |
//! | `reorder` | `true`: each notification waits for the next one of its invoice and goes after it |
//! | `presentation` | `header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/POINTER`, `hmac-sha256:header:NAME`, `standard-webhooks` or `none` |
//! | `hold_create_ms` | create answers wait while a notification of the new invoice goes first |
//! | `drop_create_answer` | count: the invoice is made, the connection closed without an answer |
//! | `api_status` | `{"endpoint", "status", "body"?, "retry_after_s"?, "times"?}`: what `login`, `token`, `create` or `fetch` answers instead of its own, once unless told otherwise |
//! | `reset` | `true`: all faults off, then the other keys |

use hyper::StatusCode;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use super::{done, read};
use crate::http::Response;
use crate::sandbox::routes::Refusal;
use crate::sandbox::state::faults::{ApiFault, Endpoint, Faults, Presentation, Times};
use crate::sandbox::world::World;

/// Longest delay and hold, ms: a test that waits longer than this is stuck.
const LONGEST_MS: u64 = 600_000;
/// Most copies of a repeated notification.
const MOST_COPIES: u32 = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    reset: Option<bool>,
    lose: Option<Count>,
    repeat: Option<Count>,
    copies: Option<u32>,
    wrong_token: Option<Count>,
    delay_ms: Option<u64>,
    reorder: Option<bool>,
    presentation: Option<String>,
    hold_create_ms: Option<u64>,
    drop_create_answer: Option<Count>,
    api_status: Option<AskedApi>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedApi {
    endpoint: String,
    status: u16,
    body: Option<String>,
    retry_after_s: Option<u64>,
    times: Option<Count>,
}

/// [`Times`] as JSON has it.
struct Count(Times);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let times = match Value::deserialize(deserializer)? {
            Value::Bool(true) => Some(Times::Always),
            Value::Bool(false) => Some(Times::Never),
            Value::Number(number) => number.as_u64().map(Times::next),
            Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
        };
        times
            .map(Self)
            .ok_or_else(|| de::Error::custom("a count is a whole number, true or false"))
    }
}

/// Sets faults and shows all of them.
pub(super) fn set(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    let asked: Asked = read(body)?;
    let bad = |what: &'static str| Refusal::new(StatusCode::BAD_REQUEST, what);
    let presentation = match asked.presentation.as_deref().map(Presentation::parse) {
        Some(None) => return Err(bad("no such presentation")),
        Some(Some(presentation)) => Some(presentation),
        None => None,
    };
    let api = asked.api_status.as_ref().map(api_fault).transpose();
    let api = api.map_err(bad)?;
    Ok(world.with(|state, _| {
        let faults = &mut state.faults;
        if asked.reset == Some(true) {
            *faults = Faults::default();
        }
        let put = |place: &mut Times, count: Option<Count>| {
            if let Some(Count(times)) = count {
                *place = times;
            }
        };
        put(&mut faults.lose, asked.lose);
        put(&mut faults.repeat, asked.repeat);
        put(&mut faults.wrong_token, asked.wrong_token);
        put(&mut faults.drop_create_answer, asked.drop_create_answer);
        faults.copies = asked.copies.unwrap_or(faults.copies).min(MOST_COPIES);
        faults.delay_ms = asked.delay_ms.unwrap_or(faults.delay_ms).min(LONGEST_MS);
        let hold_ms = asked.hold_create_ms.unwrap_or(faults.hold_create_ms);
        faults.hold_create_ms = hold_ms.min(LONGEST_MS);
        faults.reorder = asked.reorder.unwrap_or(faults.reorder);
        if let Some(presentation) = presentation {
            faults.presentation = presentation;
        }
        if let Some(api) = api {
            faults.set_api(api);
        }
        done(&view(faults))
    }))
}

fn api_fault(asked: &AskedApi) -> Result<ApiFault, &'static str> {
    if !(200..600).contains(&asked.status) {
        return Err("`status` of `api_status` is 200 to 599");
    }
    Ok(ApiFault {
        endpoint: Endpoint::parse(&asked.endpoint).ok_or("no such endpoint")?,
        status: asked.status,
        body: asked.body.clone().unwrap_or_default(),
        retry_after_s: asked.retry_after_s,
        times: asked.times.as_ref().map_or(Times::next(1), |count| count.0),
    })
}

/// The faults as `GET /state` shows them.
pub(super) fn view(faults: &Faults) -> Value {
    let api: Vec<Value> = faults
        .api()
        .iter()
        .map(|api| {
            json!({
                "endpoint": api.endpoint.word(),
                "status": api.status,
                "times": count(api.times),
            })
        })
        .collect();
    json!({
        "lose": count(faults.lose),
        "repeat": count(faults.repeat),
        "copies": faults.copies,
        "wrong_token": count(faults.wrong_token),
        "delay_ms": faults.delay_ms,
        "reorder": faults.reorder,
        "presentation": faults.presentation.word(),
        "hold_create_ms": faults.hold_create_ms,
        "drop_create_answer": count(faults.drop_create_answer),
        "api_status": api,
    })
}

fn count(times: Times) -> Value {
    match times {
        Times::Never => false.into(),
        Times::Always => true.into(),
        Times::Next(left) => left.into(),
    }
}
