//! The control listener: JSON over loopback, for tests and demonstrations. It sets what the service does wrong, moves
//! invoices by dictate, plays the merchant, and shows everything that happened.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /` | these requests |
//! | `GET /state` | everything: invoices with their notifications and the answers to them, logins, tokens, counts, faults, speed |
//! | `POST /invoices/{id}/status` | `{"status"?, "amount"?, "currency"?, "updatedAt"?, "notify"?}`; one that was final and is open again occupies a requisite as before, or 409 |
//! | `POST /invoices/{id}/notify` | `{"times"?}` sends the invoice as it stands, so many times at once; gives the answers |
//! | `POST /faults` | see [`fault`]; `{"reset": true}` takes all off |
//! | `POST /tokens/issue` | `{"shop"?, "clientName"?}` gives a token as the cabinet would |
//! | `POST /tokens/revoke` | `{"token"?}` by id or text; without it all |
//! | `POST /pool` | `{"free": n}` lets exactly n more invoices have a requisite, of any method and amount |
//! | `POST /login/confirm` | `{"userCode", "shop"?}` confirms, for the first shop unless named |
//! | `POST /login/refuse` | `{"userCode"}` refuses |
//!
//! `{id}` is an invoice id or an order id, percent-encoded, which then means the newest invoice of that order.

pub(super) mod fault;
mod instead;
mod listed;
mod read;
mod view;

use std::ops::RangeInclusive;

use hyper::header::ALLOW;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use self::read::read;
use super::form::segment;
use super::notifier::Notifier;
use super::routes::Refusal;
use super::state::SHOPS;
use super::state::dictate::{DictateError, Dictated};
use super::state::login::{DecideError, find_shop};
use super::state::notice::Notice;
use super::world::World;
use crate::http::{self, Response};

/// Most notifications one request sends at once.
const MOST_TIMES: i64 = 1_000;
/// Most requisites that are free: more than anybody occupies.
const MOST_FREE: i64 = 1_000_000;

/// The commands that are no command about one invoice.
const COMMANDS: [&str; 6] = [
    "/faults",
    "/tokens/issue",
    "/tokens/revoke",
    "/pool",
    "/login/confirm",
    "/login/refuse",
];

fn done(what: &Value) -> Response {
    http::json(StatusCode::OK, what.to_string())
}

fn number<T: TryFrom<i64>>(
    value: i64,
    range: RangeInclusive<i64>,
    what: &'static str,
) -> Result<T, Refusal> {
    let refused = |what: fault::Lack| Refusal::new(StatusCode::BAD_REQUEST, what);
    fault::within(value, range, what).map_err(refused)
}

fn no_invoice() -> Refusal {
    undictated(DictateError::NoInvoice)
}

/// Answers one request of the control listener.
pub(crate) async fn answer(
    world: &World,
    notifier: &Notifier,
    parts: &Parts,
    body: &[u8],
) -> Response {
    let path = parts.uri.path();
    if is_from_elsewhere(parts) {
        let why = "the request comes from a foreign page";
        return Refusal::new(StatusCode::FORBIDDEN, why).response();
    }
    let answered = match (&parts.method, path) {
        (&(Method::GET | Method::HEAD), "/") => Ok(done(&listed::all())),
        (&(Method::GET | Method::HEAD), "/state") => {
            Ok(done(&world.with(|state, _| view::state(state))))
        }
        (&Method::POST, "/faults") => fault::set(world, body),
        (&Method::POST, "/tokens/issue") => issue(world, body),
        (&Method::POST, "/tokens/revoke") => revoke(world, body),
        (&Method::POST, "/pool") => pool(world, body),
        (&Method::POST, "/login/confirm") => confirm(world, body),
        (&Method::POST, "/login/refuse") => refuse_login(world, body),
        (&Method::POST, _) => invoice(world, notifier, path, body).await,
        _ if COMMANDS.contains(&path) || invoice_of(path).is_some() => Err(other_method("POST")),
        _ => Err(no_request()),
    };
    answered.unwrap_or_else(Refusal::response)
}

/// A browser says where a request comes from even where it sends no `Origin`, and programs say nothing.
fn is_from_elsewhere(parts: &Parts) -> bool {
    let site = parts.headers.get("sec-fetch-site");
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

fn no_request() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "no such request: `GET /` lists them")
}

fn other_method(allowed: &'static str) -> Refusal {
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    refusal.with(ALLOW, allowed)
}

/// The invoice and the command of a path such as `/invoices/{id}/status`.
fn invoice_of(path: &str) -> Option<(String, &str)> {
    let (id, command) = path.strip_prefix("/invoices/")?.rsplit_once('/')?;
    let is_one = !id.contains('/') && ["status", "notify"].contains(&command);
    is_one.then_some((segment(id)?, command))
}

async fn invoice(
    world: &World,
    notifier: &Notifier,
    path: &str,
    body: &[u8],
) -> Result<Response, Refusal> {
    match invoice_of(path) {
        Some((id, "status")) => status(world, &id, body),
        Some((id, _notify)) => {
            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            struct Asked {
                times: Option<i64>,
            }
            let asked: Asked = read(body)?;
            let times = number(
                asked.times.unwrap_or(1),
                1..=MOST_TIMES,
                "`times` is 1 to 1000",
            )?;
            let notice: Notice = world
                .with(|state, _| state.notice_of(&id))
                .ok_or_else(no_invoice)?;
            let answers = notifier.send_now(&notice, times).await;
            let answers: Vec<Value> = answers.iter().map(view::answer).collect();
            Ok(done(&json!({ "answers": answers })))
        }
        None if ["/", "/state"].contains(&path) => Err(other_method("GET, HEAD")),
        None => Err(no_request()),
    }
}

fn status(world: &World, id: &str, body: &[u8]) -> Result<Response, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Asked {
        status: Option<String>,
        amount: Option<String>,
        currency: Option<String>,
        updated_at: Option<String>,
        notify: Option<bool>,
    }
    let asked: Asked = read(body)?;
    let dictated = Dictated {
        status: asked.status,
        amount: asked.amount,
        currency: asked.currency,
        updated_at: asked.updated_at,
    };
    world.with(|state, now| {
        let notify = asked.notify.unwrap_or(true);
        let dictated = state.dictate(id, dictated, notify, now);
        dictated.map_err(undictated)?;
        let invoice = state.find_invoice(id).ok_or_else(no_invoice)?;
        Ok(done(&view::invoice(state, invoice)))
    })
}

fn issue(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "camelCase")]
    struct Asked {
        shop: Option<String>,
        client_name: Option<String>,
    }
    let asked: Asked = read(body)?;
    let shop = match asked.shop {
        None => 0,
        Some(name) => find_shop(&name).ok_or_else(|| undecided(DecideError::NoSuchShop))?,
    };
    let name = asked.client_name.unwrap_or_else(|| "control".to_owned());
    let issued = world.with(|state, now| state.issue_token(shop, name, now));
    let issued = issued.ok_or_else(|| {
        let why = "the sandbox holds no more tokens until some are revoked";
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, why)
    })?;
    Ok(http::json(StatusCode::OK, issued.to_json()))
}

fn revoke(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        token: Option<String>,
    }
    let asked: Asked = read(body)?;
    let revoked = world.with(|state, now| state.revoke_tokens(asked.token.as_deref(), now));
    Ok(done(&json!({ "revoked": revoked })))
}

fn pool(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        free: i64,
    }
    let asked: Asked = read(body)?;
    let free = number(asked.free, 0..=MOST_FREE, "`free` is 0 to 1000000")?;
    Ok(world.with(|state, _| {
        state.pool.set_free(free);
        done(&view::pool(state))
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Decide {
    user_code: String,
    shop: Option<String>,
}

fn confirm(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    let asked: Decide = read(body)?;
    let first = SHOPS.first().copied().unwrap_or_default();
    let shop = asked.shop.as_deref().unwrap_or(first);
    world
        .with(|state, now| state.decide_login(&asked.user_code, Some(shop), now))
        .map_err(undecided)?;
    Ok(done(&json!({ "confirmed": shop })))
}

fn refuse_login(world: &World, body: &[u8]) -> Result<Response, Refusal> {
    let asked: Decide = read(body)?;
    world
        .with(|state, now| state.decide_login(&asked.user_code, None, now))
        .map_err(undecided)?;
    Ok(done(&json!({ "refused": true })))
}

fn undictated(error: DictateError) -> Refusal {
    let status = match error {
        DictateError::NoInvoice => StatusCode::NOT_FOUND,
        DictateError::NoRequisites => StatusCode::CONFLICT,
        DictateError::Status | DictateError::TooLong => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, error.to_string())
}

fn undecided(error: DecideError) -> Refusal {
    let status = match error {
        DecideError::Unknown => StatusCode::NOT_FOUND,
        DecideError::Decided => StatusCode::CONFLICT,
        DecideError::NoSuchShop => StatusCode::BAD_REQUEST,
    };
    Refusal::new(status, error.to_string())
}
