//! The service's API, as contract 4 shows it. Where it shows nothing (error texts, bounds) the answers are
//! the sandbox's own; a client must not rely on them.

use std::borrow::Cow;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{
    ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::de::IgnoredAny;

use super::form::segment;
use super::guard;
use super::state::State;
use super::state::faults::{Endpoint, StandIn, Ticket, Whose};
use super::state::invoice::CreateRefusal;
use super::state::login::{LoginRefusal, PollRefusal};
use super::world::World;
use crate::http::{self, Response};
use crate::wire::create::CreateRequest;
use crate::wire::{json, login, problem};

/// What is said of a notificationUrl of another machine. The service takes such addresses, and nobody is to learn otherwise.
const ELSEWHERE: &str = "the sandbox's own guard: `notificationUrl` does not lead to this machine, which alone the sandbox \
     notifies; use an address such as http://127.0.0.1:8480/n";

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

/// An endpoint, and the invoice id that stands in its path.
struct Asked {
    endpoint: Endpoint,
    id: String,
}

/// What a request asks for. `Err` is the answer when it is for nothing there is.
fn asked(method: &Method, path: &str) -> Result<Asked, Refusal> {
    let none = || Refusal::new(StatusCode::NOT_FOUND, "not_found");
    let (endpoint, id) = match path {
        "/api/v1/agent/login" => (Endpoint::Login, String::new()),
        "/api/v1/agent/token" => (Endpoint::Token, String::new()),
        "/api/v1/invoices" => (Endpoint::Create, String::new()),
        _ => match path.strip_prefix("/api/v1/invoices/") {
            Some(id) if !id.is_empty() && !id.contains('/') => {
                (Endpoint::Fetch, segment(id).ok_or_else(none)?)
            }
            _ => return Err(none()),
        },
    };
    // What is answered to a GET has a head of its own (RFC 9110, section 9.1).
    let (fits, allowed) = match endpoint {
        Endpoint::Login | Endpoint::Token | Endpoint::Create => (method == Method::POST, "POST"),
        Endpoint::Fetch => (method == Method::GET || method == Method::HEAD, "GET, HEAD"),
    };
    if fits {
        return Ok(Asked { endpoint, id });
    }
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed");
    Err(refusal.with(ALLOW, allowed))
}

/// Answers one request of the API.
pub(crate) fn answer(world: &World, parts: &Parts, body: &[u8]) -> Reply {
    world.with(|state, now| {
        let asked = match asked(&parts.method, parts.uri.path()) {
            Ok(asked) => asked,
            Err(refusal) => return Reply::Now(refusal.told(state)),
        };
        state.count(asked.endpoint);
        let whose = state.asks(asked.endpoint, &name(&asked, body));
        match state.faults.api_answer(asked.endpoint, &whose) {
            None => own(state, &whose, parts, &asked, body, now),
            Some(StandIn::DropAnswer) => {
                // Done, and nobody learns of it.
                let done = own(state, &whose, parts, &asked, body, now);
                if let Reply::Held(_, ticket, _) = done {
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
fn name(asked: &Asked, body: &[u8]) -> String {
    let object = || json::object(body).ok();
    let name = match asked.endpoint {
        Endpoint::Fetch => Some(asked.id.clone()),
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
    asked: &Asked,
    body: &[u8],
    now: i64,
) -> Reply {
    let replied = match asked.endpoint {
        Endpoint::Login => start_login(state, parts, body, now).map(Reply::Now),
        Endpoint::Token => poll_login(state, parts, body, now).map(Reply::Now),
        Endpoint::Create => shop(state, parts, now).and_then(|shop| {
            let object = object(parts, body)?;
            create(state, whose, shop, &object, now)
        }),
        Endpoint::Fetch => shop(state, parts, now)
            .and_then(|shop| fetch(state, shop, &asked.id))
            .map(Reply::Now),
    };
    replied.unwrap_or_else(|refusal| Reply::Now(refusal.told(state)))
}

/// The one JSON object of a body. Contract 4 says that bodies are JSON and come with
/// `Content-Type: application/json`; how strictly, is the sandbox's own.
fn object(parts: &Parts, body: &[u8]) -> Result<json::Object, Refusal> {
    let mut types = parts.headers.get_all(CONTENT_TYPE).iter();
    let kind = types.next().and_then(|kind| kind.to_str().ok());
    let essence = kind.and_then(|kind| kind.split(';').next());
    let is_json = essence.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    if !is_json || types.next().is_some() {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "a body comes with `Content-Type: application/json`",
        ));
    }
    let bad = |why: String| Refusal::new(StatusCode::BAD_REQUEST, why);
    // What a lenient reader forgives: RFC 8259 forbids to send a byte-order mark, and a string that holds an object is none.
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') | None => json::object(body).map_err(|shape| bad(shape.to_string())),
        Some(_) => Err(bad("the body is not one JSON object".to_owned())),
    }
}

/// Contract 4.1, 4.2 and 5: no Authorization header is sent. A client that sends one gives its token away.
fn no_authorization(parts: &Parts) -> Result<(), Refusal> {
    if parts.headers.contains_key(AUTHORIZATION) {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "no Authorization header is sent here",
        ));
    }
    Ok(())
}

fn start_login(
    state: &mut State,
    parts: &Parts,
    body: &[u8],
    now: i64,
) -> Result<Response, Refusal> {
    no_authorization(parts)?;
    let name = login::client_name(&object(parts, body)?).ok_or_else(|| bad_field("clientName"))?;
    let started = state.start_login(&name, now).map_err(|why| match why {
        LoginRefusal::NoName => bad_field("clientName"),
        LoginRefusal::Full => Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "the sandbox holds no more login requests",
        ),
    })?;
    let body = spelt(state, &started.to_json());
    Ok(http::json(StatusCode::CREATED, body))
}

fn poll_login(
    state: &mut State,
    parts: &Parts,
    body: &[u8],
    now: i64,
) -> Result<Response, Refusal> {
    no_authorization(parts)?;
    let code = login::device_code(&object(parts, body)?).ok_or_else(|| bad_field("deviceCode"))?;
    let issued = state.poll_login(&code, now).map_err(|why| match why {
        PollRefusal::Code(code) => Refusal::new(StatusCode::BAD_REQUEST, code),
        PollRefusal::Full => Refusal::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the sandbox holds no more tokens until some are revoked",
        ),
    })?;
    let body = spelt(state, &issued.to_json());
    Ok(http::json(StatusCode::OK, body))
}

fn spelt(state: &mut State, text: &str) -> String {
    let object = serde_json::from_str(text).expect("an object of ours");
    state.spell(&object)
}

/// The shop whose token the request carries.
fn shop(state: &mut State, parts: &Parts, now: i64) -> Result<usize, Refusal> {
    let unauthorized = || {
        let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized");
        refusal.with(WWW_AUTHENTICATE, "Bearer")
    };
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    let header = headers.next().ok_or_else(unauthorized)?;
    // Two readers could take two of them for the one that counts.
    if headers.next().is_some() {
        let twice = "more than one Authorization header";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, twice));
    }
    let header = header.to_str().ok().and_then(|text| text.split_once(' '));
    header
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .and_then(|(_, token)| state.shop_of_token(token.trim(), now))
        .ok_or_else(unauthorized)
}

fn create(
    state: &mut State,
    whose: &Whose,
    shop: usize,
    object: &json::Object,
    now: i64,
) -> Result<Reply, Refusal> {
    let request = CreateRequest::from_json(object).map_err(bad_field)?;
    if let Err(host) = guard::on_this_machine(&request.notification_url) {
        if host.is_empty() {
            return Err(bad_field("notificationUrl"));
        }
        tracing::warn!(
            sandbox.host = host,
            "no invoice was made: its notificationUrl leads to {host}, and the sandbox notifies this machine alone"
        );
        return Err(Refusal::new(StatusCode::BAD_REQUEST, ELSEWHERE));
    }
    let made = state.create_invoice(shop, request, now);
    let made = made.map(|invoice| invoice.id.clone());
    let id = made.map_err(|why| match why {
        CreateRefusal::Field(field) => bad_field(field),
        CreateRefusal::NoRequisites => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem::NO_REQUISITES)
        }
        CreateRefusal::Full => Refusal::new(
            StatusCode::TOO_MANY_REQUESTS,
            "the sandbox holds no more open invoices",
        ),
    })?;
    let told = state.tell(&id).unwrap_or_default();
    let response = http::json(StatusCode::CREATED, told);
    let hold_ms = state.faults.hold_create_ms(whose);
    if hold_ms > 0 {
        state.notify_of(&id);
    }
    if state.faults.drops_create_answer(whose) {
        return Ok(Reply::HangUp);
    }
    let held = (hold_ms > 0).then(|| state.faults.begin_waiting(whose));
    Ok(match held.flatten() {
        Some(ticket) => Reply::Held(response, ticket, Duration::from_millis(hold_ms)),
        None => Reply::Now(response),
    })
}

fn fetch(state: &mut State, shop: usize, id: &str) -> Result<Response, Refusal> {
    let is_its = state.fetch_invoice(shop, id).is_some();
    let told = is_its.then(|| state.tell(id)).flatten();
    let told = told.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, "not_found"))?;
    Ok(http::json(StatusCode::OK, told))
}

/// A request that is not done: an HTTP status and the text of the contract's `error` object.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    error: Cow<'static, str>,
    /// A header that belongs to the status (RFC 9110): which method would do, how to authenticate.
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    /// Refuses with this status and this text.
    pub(crate) fn new(status: StatusCode, error: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            error: error.into(),
            header: None,
        }
    }

    /// With this header.
    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// The answer.
    pub(crate) fn response(self) -> Response {
        let body = problem::to_json(&self.error);
        self.saying(body)
    }

    /// The answer as the service gives it: its object is spelt as freely as all others.
    fn told(self, state: &mut State) -> Response {
        let body = spelt(state, &problem::to_json(&self.error));
        self.saying(body)
    }

    fn saying(self, body: String) -> Response {
        let mut response = http::json(self.status, body);
        if let Some((name, value)) = self.header {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

fn bad_field(field: &str) -> Refusal {
    let text = format!("`{field}` is missing or has the wrong form");
    Refusal::new(StatusCode::BAD_REQUEST, text)
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
