//! The sandbox's HTML: overview, cabinet, payment pages. Plain forms without script, readable on a phone. Every page says
//! that it is an imitation. What the state holds is escaped by maud; addresses are checked when they come in.

mod cabinet;
mod pay;

use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
};
use hyper::header::{REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use maud::{DOCTYPE, Markup, html};

use super::form::Form;
use super::world::World;
use crate::http::{self, Response};
use crate::invoice::moment::Moment;

const STYLE: &str = include_str!("style.css");

/// What a form that was posted led to.
enum Posted {
    /// Done; the page to show now.
    Done(String),
    /// Not done; why.
    Refused(StatusCode, &'static str),
}

/// Answers a request for a page.
pub(crate) fn answer(world: &World, parts: &Parts, body: &[u8]) -> Response {
    let path = parts.uri.path();
    let query = Form::parse(parts.uri.query().unwrap_or(""));
    match parts.method {
        Method::GET | Method::HEAD => show(world, path, &query),
        Method::POST => post(world, path, body),
        _ => http::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n"),
    }
}

fn show(world: &World, path: &str, query: &Form) -> Response {
    let token = world.form_token();
    let page = match path {
        "/style.css" => return stylesheet(),
        "/" => Some(world.with(|state, now| cabinet::overview(state, now))),
        "/activate" => {
            let code = query.get("code");
            Some(world.with(|state, now| cabinet::activate(state, code, token, now)))
        }
        "/cabinet" => Some(world.with(|state, now| cabinet::cabinet(state, token, now))),
        _ => path.strip_prefix("/pay/").and_then(|opaque| {
            world.with(|state, _| Some(pay::page(state, state.invoice_of_page(opaque)?, token)))
        }),
    };
    match page {
        Some(page) => respond(StatusCode::OK, page),
        None => message(StatusCode::NOT_FOUND, "There is no such page."),
    }
}

fn post(world: &World, path: &str, body: &[u8]) -> Response {
    let form = Form::parse(&String::from_utf8_lossy(body));
    if form.get("form_token") != Some(world.form_token()) {
        return message(
            StatusCode::FORBIDDEN,
            "This form is not from a page of this sandbox, or the sandbox was started anew. Reload the page and try again.",
        );
    }
    let posted = world.with(|state, now| match path {
        "/activate" => cabinet::decide(state, &form, now),
        "/cabinet/revoke" => cabinet::revoke(state, &form, now),
        _ => match path.strip_prefix("/pay/") {
            Some(opaque) => pay::act(state, opaque, &form, now),
            None => Posted::Refused(StatusCode::NOT_FOUND, "There is no such page."),
        },
    });
    match posted {
        Posted::Done(next) => see(&next),
        Posted::Refused(status, why) => message(status, why),
    }
}

/// Sends the browser to a page, so that reloading it posts nothing again.
fn see(next: &str) -> Response {
    let mut response = http::plain(StatusCode::SEE_OTHER, "see the page\n");
    match HeaderValue::from_str(next) {
        Ok(location) => drop(response.headers_mut().insert(LOCATION, location)),
        Err(_not_for_a_header) => return message(StatusCode::BAD_REQUEST, "That is no code."),
    }
    response
}

fn message(status: StatusCode, text: &str) -> Response {
    respond(
        status,
        layout(
            "Sandbox",
            &html! { h1 { (text) } p { a href="/" { "Overview" } } },
        ),
    )
}

fn respond(status: StatusCode, page: Markup) -> Response {
    // `no-referrer` would make browsers send `Origin: null` with the page's own forms.
    const HEADERS: [(HeaderName, &str); 4] = [
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let mut response = http::html(status, page.into_string());
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn stylesheet() -> Response {
    let mut response = http::plain(StatusCode::OK, STYLE);
    let kind = HeaderValue::from_static("text/css; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The frame of every page.
fn layout(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · sandbox" }
                link rel="stylesheet" href="/style.css";
            }
            body {
                header {
                    strong { "tilld sandbox" }
                    a href="/" { "Overview" }
                    a href="/activate" { "Confirm a login" }
                    a href="/cabinet" { "Cabinet" }
                }
                p.sandbox {
                    "This is a sandbox: an imitation of the payment service on this machine, kept in memory only. No money moves here. "
                    "Of the status names only " code { "new" } " is the service's own; all the others are this sandbox's invention."
                }
                main { (content) }
            }
        }
    }
}

/// The hidden field every form carries.
fn form_token(token: &str) -> Markup {
    html! { input type="hidden" name="form_token" value=(token); }
}

/// An instant as the pages show it.
fn instant(ms: i64) -> String {
    Moment::from_ms(ms).to_string()
}
