//! The service's API, as the contract shows it (section 4). Where it shows nothing (error texts, bounds) the answers are
//! the sandbox's own; a client must not rely on them.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::de::IgnoredAny;

use super::state::State;
use super::state::faults::{Endpoint, StandIn, Ticket, Whose};
use super::state::invoice::CreateRefusal;
use super::world::World;
use crate::http::{self, Response};
use crate::wire::create::CreateRequest;
use crate::wire::{json, login, problem};

/// An answer that is ready, or one that waits or never comes.
pub(crate) enum Reply {
    /// Give it now.
    Now(Response),
    /// Give it after so long.
    Held(Response, Ticket, Duration),
    /// Close the connection instead.
    HangUp,
    /// Never, until the client gives up.
    Never(Ticket),
}

/// The endpoint a request is for; with its invoice id for a fetch. `Err` is the answer when there is none.
fn endpoint<'p>(method: &Method, path: &'p str) -> Result<(Endpoint, &'p str), Refusal> {
    let (endpoint, id, needed) = match path {
        "/api/v1/agent/login" => (Endpoint::Login, "", Method::POST),
        "/api/v1/agent/token" => (Endpoint::Token, "", Method::POST),
        "/api/v1/invoices" => (Endpoint::Create, "", Method::POST),
        _ => match path.strip_prefix("/api/v1/invoices/") {
            Some(id) if !id.is_empty() && !id.contains('/') => (Endpoint::Fetch, id, Method::GET),
            _ => return Err(Refusal::new(StatusCode::NOT_FOUND, "not_found")),
        },
    };
    if *method == needed {
        return Ok((endpoint, id));
    }
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    Err(refusal.allowing(needed))
}

/// Answers one request of the API.
pub(crate) fn answer(world: &World, parts: &Parts, body: &[u8]) -> Reply {
    let (endpoint, id) = match endpoint(&parts.method, parts.uri.path()) {
        Ok(found) => found,
        Err(refusal) => return Reply::Now(refusal.response()),
    };
    world.with(|state, now| {
        state.count(endpoint);
        let whose = state.asks(endpoint, &name(endpoint, id, body));
        match state.faults.api_answer(endpoint, &whose) {
            None => own(state, &whose, parts, (endpoint, id), body, now),
            Some(StandIn::DropAnswer) => {
                // Done, and nobody learns of it.
                if let Reply::Held(_, ticket, _) =
                    own(state, &whose, parts, (endpoint, id), body, now)
                {
                    state.faults.end_waiting(ticket);
                }
                Reply::HangUp
            }
            Some(StandIn::Cut) => Reply::HangUp,
            Some(StandIn::Hang) => {
                let ticket = state.faults.begin_waiting(&whose);
                ticket.map_or(Reply::HangUp, Reply::Never)
            }
            Some(StandIn::Answer {
                status,
                body,
                retry_after_s,
                location,
            }) => Reply::Now(instead(status, body, retry_after_s, location)),
        }
    })
}

/// What a request says of itself: faults of one invoice, and chance, go by it.
fn name(endpoint: Endpoint, id: &str, body: &[u8]) -> String {
    let object = || json::object(body).ok();
    let name = match endpoint {
        Endpoint::Fetch => Some(id.to_owned()),
        Endpoint::Create => object()
            .and_then(|object| CreateRequest::from_json(&object).ok())
            .map(|request| request.internal_id),
        Endpoint::Login => object().and_then(|object| login::client_name(&object)),
        Endpoint::Token => None,
    };
    name.unwrap_or_default()
}

/// What the service itself answers.
fn own(
    state: &mut State,
    whose: &Whose,
    parts: &Parts,
    (endpoint, id): (Endpoint, &str),
    body: &[u8],
    now: i64,
) -> Reply {
    match endpoint {
        Endpoint::Login => Reply::Now(start_login(state, body, now)),
        Endpoint::Token => Reply::Now(poll_login(state, body, now)),
        Endpoint::Create => match shop(state, parts, now) {
            Some(shop) => create(state, whose, shop, body, now),
            None => Reply::Now(refuse(StatusCode::UNAUTHORIZED, "unauthorized")),
        },
        Endpoint::Fetch => Reply::Now(match shop(state, parts, now) {
            Some(shop) => fetch(state, shop, id),
            None => refuse(StatusCode::UNAUTHORIZED, "unauthorized"),
        }),
    }
}

fn start_login(state: &mut State, body: &[u8], now: i64) -> Response {
    let name = json::object(body).ok().and_then(|o| login::client_name(&o));
    let started = name.and_then(|name| state.start_login(&name, now));
    match started {
        Some(started) => http::json(StatusCode::CREATED, spelt(state, &started.to_json())),
        None => bad_field("clientName"),
    }
}

fn poll_login(state: &mut State, body: &[u8], now: i64) -> Response {
    let code = json::object(body).ok().and_then(|o| login::device_code(&o));
    let Some(code) = code else {
        return bad_field("deviceCode");
    };
    match state.poll_login(&code, now) {
        Ok(issued) => http::json(StatusCode::OK, spelt(state, &issued.to_json())),
        Err(error) => refuse(StatusCode::BAD_REQUEST, error),
    }
}

fn spelt(state: &mut State, text: &str) -> String {
    let object = serde_json::from_str(text).expect("an object of ours");
    state.spell(&object)
}

/// The shop whose token the request carries.
fn shop(state: &mut State, parts: &Parts, now: i64) -> Option<usize> {
    let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        state.shop_of_token(token.trim(), now)
    } else {
        None
    }
}

fn create(state: &mut State, whose: &Whose, shop: usize, body: &[u8], now: i64) -> Reply {
    let request = match json::object(body) {
        Err(shape) => return Reply::Now(refuse(StatusCode::BAD_REQUEST, &shape.to_string())),
        Ok(object) => match CreateRequest::from_json(&object) {
            Err(field) => return Reply::Now(bad_field(field)),
            Ok(request) => request,
        },
    };
    let payment_url = state.rules.payment_url.clone();
    let (id, body) = match state.create_invoice(shop, request, now) {
        Ok(invoice) => (invoice.id.clone(), invoice.body(&payment_url)),
        Err(refusal) => {
            return Reply::Now(match refusal {
                CreateRefusal::Field(field) => bad_field(field),
                CreateRefusal::NoRequisites => {
                    refuse(StatusCode::SERVICE_UNAVAILABLE, problem::NO_REQUISITES)
                }
                CreateRefusal::Full => refuse(
                    StatusCode::TOO_MANY_REQUESTS,
                    "the sandbox holds no more open invoices",
                ),
            });
        }
    };
    let response = http::json(StatusCode::CREATED, state.spell(&body));
    let hold_ms = state.faults.hold_create_ms(whose);
    if hold_ms > 0 {
        state.notify_of(&id);
    }
    if state.faults.drops_create_answer(whose) {
        return Reply::HangUp;
    }
    let held = (hold_ms > 0).then(|| state.faults.begin_waiting(whose));
    match held.flatten() {
        Some(ticket) => Reply::Held(response, ticket, Duration::from_millis(hold_ms)),
        None => Reply::Now(response),
    }
}

fn fetch(state: &mut State, shop: usize, id: &str) -> Response {
    let found = state.fetch_invoice(shop, id);
    let body = found.map(|invoice| invoice.body(&state.rules.payment_url));
    match body {
        Some(body) => http::json(StatusCode::OK, state.spell(&body)),
        None => refuse(StatusCode::NOT_FOUND, "not_found"),
    }
}

/// A request that is not done: an HTTP status and the text of the contract's `error` object.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Cow<'static, str>,
    /// The method that would do (RFC 9110, section 15.5.6).
    allow: Option<Method>,
}

impl Refusal {
    /// Refuses with this status and this text.
    pub(crate) fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            error: error.into(),
            allow: None,
        }
    }

    fn allowing(mut self, method: Method) -> Self {
        self.allow = Some(method);
        self
    }

    /// The answer.
    pub(crate) fn response(self) -> Response {
        let mut response = refuse(self.status, &self.error);
        let allow = self.allow.as_ref().map(Method::as_str);
        if let Some(allow) = allow.and_then(|name| HeaderValue::from_str(name).ok()) {
            response.headers_mut().insert(ALLOW, allow);
        }
        response
    }
}

fn refuse(status: StatusCode, error: &str) -> Response {
    http::json(status, problem::to_json(error))
}

fn bad_field(field: &str) -> Response {
    refuse(
        StatusCode::BAD_REQUEST,
        &format!("`{field}` is missing or has the wrong form"),
    )
}

/// An answer that was told.
fn instead(
    status: u16,
    body: String,
    retry_after_s: Option<u64>,
    location: Option<String>,
) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let begins_so = body.trim_start().starts_with(['{', '[']);
    let kind = if begins_so || serde_json::from_str::<IgnoredAny>(&body).is_ok() {
        HeaderValue::from_static("application/json")
    } else {
        HeaderValue::from_static("text/html; charset=utf-8")
    };
    let mut response = if body.is_empty() {
        http::empty(status)
    } else {
        let mut whole = http::json(status, Bytes::from(body));
        whole.headers_mut().insert(CONTENT_TYPE, kind);
        whole
    };
    let headers = response.headers_mut();
    if let Some(seconds) = retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(location) = location.and_then(|text| HeaderValue::from_str(&text).ok()) {
        headers.insert(LOCATION, location);
    }
    response
}
