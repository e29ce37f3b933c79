//! `POST /faults`: what the sandbox is to do wrong. Each key sets one fault, keys that are absent leave theirs as it is.
//! Counts are a number (so many times more), `true` (until changed) or `false`.
//!
//! Of notifications, of all or with `invoice` (an invoice id or an order id, also of one that is not made yet) of one:
//!
//! | key | fault |
//! |---|---|
//! | `lose` | count: never sent |
//! | `repeat`, `copies` | count: sent with so many copies more (default 1) |
//! | `wrong_token`, `missing_token` | count: with a wrong token, with none |
//! | `torn` | count: the first try ends in the middle of the body |
//! | `slow` | count: the first try's body comes in pieces with pauses |
//! | `delay_ms` | each waits first |
//! | `reorder` | `true`: each waits for the next one of its invoice and goes after it |
//! | `give_up_ms` | the sender waits so long for an answer; 0: as long as usual |
//! | `presentation` | `header:NAME`, `bearer`, `basic-password`, `query:NAME`, `body:/POINTER`, `hmac-sha256:header:NAME`, `standard-webhooks` or `none` |
//!
//! Of the service:
//!
//! | key | fault |
//! |---|---|
//! | `rates` | `{"lose": 10, …}`: by chance, of a hundred: `lose`, `repeat`, `late`, `reorder`, `wrong_token`, `missing_token`, `torn`, `slow`, `api` |
//! | `clock_skew_ms` | `updatedAt` is so far off |
//! | `same_instant` | `true`: `updatedAt` stays when the status changes |
//! | `hold_create_ms` | create answers wait while a notification of the new invoice goes first |
//! | `drop_create_answer` | count: the invoice is made, the connection closed without an answer |
//! | `api_status` | `{"endpoint", "status"?, "body"?, "retry_after_s"?, "location"?, "kind"?, "times"?}`: what `login`, `token`, `create` or `fetch` answers instead of its own, once unless told otherwise. `kind` stands for a whole answer: `html`, `redirect`, `hang`, `cut` |
//! | `reset` | `true`: all faults off, then the other keys |

use std::collections::BTreeMap;

use hyper::StatusCode;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Value, json};

use super::{done, read};
use crate::http::Response;
use crate::sandbox::routes::Refusal;
use crate::sandbox::state::State;
use crate::sandbox::state::faults::{
    ApiFault, Chance, Endpoint, Faults, Presentation, StandIn, Telling, Times,
};
use crate::sandbox::world::World;

/// Longest delay, hold and patience, ms: a test that waits longer than this is stuck.
const LONGEST_MS: u64 = 600_000;
/// The service's clock is off by at most a day, ms.
const MOST_SKEW_MS: i64 = 86_400_000;
/// Most copies of a repeated notification.
const MOST_COPIES: u32 = 100;

/// What is to go wrong. Also what a step of a scenario says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Asked {
    reset: Option<bool>,
    invoice: Option<String>,
    lose: Option<Count>,
    repeat: Option<Count>,
    copies: Option<u32>,
    wrong_token: Option<Count>,
    missing_token: Option<Count>,
    torn: Option<Count>,
    slow: Option<Count>,
    delay_ms: Option<u64>,
    reorder: Option<bool>,
    give_up_ms: Option<u64>,
    presentation: Option<String>,
    rates: Option<BTreeMap<String, u8>>,
    clock_skew_ms: Option<i64>,
    same_instant: Option<bool>,
    hold_create_ms: Option<u64>,
    drop_create_answer: Option<Count>,
    api_status: Option<AskedApi>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedApi {
    endpoint: String,
    status: Option<u16>,
    body: Option<String>,
    retry_after_s: Option<u64>,
    location: Option<String>,
    kind: Option<String>,
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
    world.with(|state, _| {
        apply(state, asked).map_err(|what| Refusal::new(StatusCode::BAD_REQUEST, what))?;
        Ok(done(&view(&state.faults)))
    })
}

/// What is wrong with faults that are to be asked for later.
pub(in super::super) fn check(asked: &Value) -> Result<(), String> {
    let asked: Asked = serde_json::from_value(asked.clone()).map_err(|error| error.to_string())?;
    Ok(apply_to(&mut Faults::default(), asked)?)
}

/// Sets what is asked for. `Err` says what is wrong with it, and then nothing was set.
pub(in super::super) fn apply(state: &mut State, asked: Asked) -> Result<(), &'static str> {
    apply_to(&mut state.faults, asked)
}

fn apply_to(faults: &mut Faults, asked: Asked) -> Result<(), &'static str> {
    let presentation = asked.presentation.as_deref().map(Presentation::parse);
    if presentation == Some(None) {
        return Err("no such presentation");
    }
    let api = asked.api_status.as_ref().map(api_fault).transpose()?;
    let mut rates = Vec::new();
    for (word, percent) in asked.rates.unwrap_or_default() {
        rates.push((Chance::parse(&word).ok_or("no such rate")?, percent));
    }
    if asked.reset == Some(true) {
        faults.reset();
    }
    let telling = match asked.invoice.as_deref() {
        Some(name) => faults
            .own(name)
            .ok_or("too many invoices with faults of their own")?,
        None => &mut faults.all,
    };
    for (place, count) in [
        (&mut telling.lose, asked.lose),
        (&mut telling.repeat, asked.repeat),
        (&mut telling.wrong_token, asked.wrong_token),
        (&mut telling.missing_token, asked.missing_token),
        (&mut telling.torn, asked.torn),
        (&mut telling.slow, asked.slow),
    ] {
        *place = count.map_or(*place, |Count(times)| times);
    }
    telling.copies = asked.copies.unwrap_or(telling.copies).min(MOST_COPIES);
    telling.delay_ms = asked.delay_ms.unwrap_or(telling.delay_ms).min(LONGEST_MS);
    telling.reorder = asked.reorder.unwrap_or(telling.reorder);
    if let Some(ms) = asked.give_up_ms {
        telling.give_up_ms = (ms > 0).then_some(ms.min(LONGEST_MS));
    }
    if let Some(presentation) = presentation {
        telling.presentation = presentation;
    }
    for (chance, percent) in rates {
        faults.rates.set(chance, percent);
    }
    let skew_ms = asked.clock_skew_ms.unwrap_or(faults.clock_skew_ms);
    faults.clock_skew_ms = skew_ms.clamp(-MOST_SKEW_MS, MOST_SKEW_MS);
    faults.same_instant = asked.same_instant.unwrap_or(faults.same_instant);
    let hold_ms = asked.hold_create_ms.unwrap_or(faults.hold_create_ms);
    faults.hold_create_ms = hold_ms.min(LONGEST_MS);
    if let Some(Count(times)) = asked.drop_create_answer {
        faults.drop_create_answer = times;
    }
    if let Some(api) = api {
        faults.set_api(api);
    }
    Ok(())
}

fn api_fault(asked: &AskedApi) -> Result<ApiFault, &'static str> {
    let answer = match (asked.kind.as_deref(), asked.status) {
        (Some("html"), status) => StandIn::html(status.unwrap_or(502)),
        (Some("redirect"), None) => {
            StandIn::redirect(asked.location.as_deref().unwrap_or("/elsewhere"))
        }
        (Some("hang"), None) => StandIn::Hang,
        (Some("cut"), None) => StandIn::Cut,
        (None, Some(status)) if (200..600).contains(&status) => StandIn::Answer {
            status,
            body: asked.body.clone().unwrap_or_default(),
            retry_after_s: asked.retry_after_s,
            location: asked.location.clone(),
        },
        (None, _) => return Err("`status` of `api_status` is 200 to 599"),
        (Some(_), _) => return Err("`kind` is `html`, `redirect`, `hang` or `cut`, and says all"),
    };
    Ok(ApiFault {
        endpoint: Endpoint::parse(&asked.endpoint).ok_or("no such endpoint")?,
        answer,
        times: asked.times.as_ref().map_or(Times::next(1), |count| count.0),
    })
}

/// The faults as `GET /state` shows them.
pub(in super::super) fn view(faults: &Faults) -> Value {
    let api: Vec<Value> = faults
        .api()
        .iter()
        .map(|api| {
            json!({
                "endpoint": api.endpoint.word(),
                "answer": api.answer.word(),
                "times": count(api.times),
            })
        })
        .collect();
    let rates: BTreeMap<&str, u8> = Chance::ALL
        .into_iter()
        .map(|chance| (chance.word(), faults.rates.get(chance)))
        .filter(|(_, percent)| *percent > 0)
        .collect();
    let own: BTreeMap<&str, Value> = faults
        .owners()
        .map(|(name, own)| (name, telling(own)))
        .collect();
    let mut shown = telling(&faults.all);
    if let Value::Object(shown) = &mut shown {
        shown.insert("own".to_owned(), json!(own));
        shown.insert("rates".to_owned(), json!(rates));
        shown.insert("clock_skew_ms".to_owned(), faults.clock_skew_ms.into());
        shown.insert("same_instant".to_owned(), faults.same_instant.into());
        shown.insert("hold_create_ms".to_owned(), faults.hold_create_ms.into());
        let dropped = count(faults.drop_create_answer);
        shown.insert("drop_create_answer".to_owned(), dropped);
        shown.insert("api_status".to_owned(), api.into());
    }
    shown
}

fn telling(telling: &Telling) -> Value {
    json!({
        "lose": count(telling.lose),
        "repeat": count(telling.repeat),
        "copies": telling.copies,
        "wrong_token": count(telling.wrong_token),
        "missing_token": count(telling.missing_token),
        "torn": count(telling.torn),
        "slow": count(telling.slow),
        "delay_ms": telling.delay_ms,
        "reorder": telling.reorder,
        "give_up_ms": telling.give_up_ms,
        "presentation": telling.presentation.as_ref().map(Presentation::word),
    })
}

fn count(times: Times) -> Value {
    match times {
        Times::Never => false.into(),
        Times::Always => true.into(),
        Times::Next(left) => left.into(),
    }
}
