//! The sandbox's HTML: overview, cabinet, faults, payment pages. Plain forms without script, in English and Russian, readable
//! on a phone and by keyboard. Every page says that it is an imitation. What the state holds is escaped by maud; addresses are
//! checked when they come in.

mod activate;
mod cabinet;
mod faults;
mod frame;
mod home;
mod invoice;
mod lang;
mod pay;
#[cfg(test)]
mod tests;

use hyper::header::{ALLOW, HeaderValue, LOCATION, REFRESH};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use self::frame::Look;
use self::lang::Lang;
use super::form::Form;
use super::world::World;
use crate::http::{self, Response};

/// What a form that was posted led to.
enum Posted {
    /// Done; the page to show now.
    Done(String),
    /// Not done; why, in English and Russian.
    Refused(StatusCode, [&'static str; 2]),
    /// Not done, since it was not filled in so that it could be meant; why, in the page's language.
    Unfit(String),
}

const NO_PAGE: [&str; 2] = ["There is no such page.", "Такой страницы нет."];

/// Answers a request for a page.
pub(crate) fn answer(world: &World, parts: &Parts, body: &[u8]) -> Response {
    let path = parts.uri.path();
    let lang = Lang::of(&parts.headers);
    match parts.method {
        Method::GET | Method::HEAD => {
            let query = Form::parse(parts.uri.query().unwrap_or(""));
            show(world, path, &query, lang)
        }
        Method::POST => post(world, path, body, lang),
        _ => {
            let mut response = http::plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            let allowed = HeaderValue::from_static("GET, HEAD, POST");
            response.headers_mut().insert(ALLOW, allowed);
            response
        }
    }
}

fn show(world: &World, path: &str, query: &Form, lang: Lang) -> Response {
    if path == "/style.css" {
        return frame::stylesheet();
    }
    let token = world.form_token();
    world.with(|state, now| {
        let look = Look { lang, token, now };
        let page = match path {
            "/" => Some(home::page(state, &look)),
            "/activate" => Some(activate::page(state, query.get("code"), &look)),
            "/cabinet" => Some(cabinet::page(state, &look)),
            "/cabinet/faults" => Some(faults::page(state, query.get("invoice"), &look)),
            _ => {
                let merchants = path.strip_prefix("/cabinet/invoices/");
                let customers = path.strip_prefix("/pay/");
                let found = |opaque| state.invoice_of_page(opaque);
                match (merchants, customers) {
                    (Some(opaque), _) => {
                        found(opaque).map(|found| invoice::page(state, found, &look))
                    }
                    (None, Some(opaque)) => {
                        found(opaque).map(|found| pay::page(state, found, &look))
                    }
                    (None, None) => None,
                }
            }
        };
        let again_after_s = (path == "/activate")
            .then(|| activate::again_after_s(state, query.get("code"), now))
            .flatten();
        match page {
            Some(page) => again(look.respond(StatusCode::OK, page), again_after_s),
            None => message(&look, StatusCode::NOT_FOUND, NO_PAGE, None),
        }
    })
}

fn post(world: &World, path: &str, body: &[u8], lang: Lang) -> Response {
    let form = Form::parse(&String::from_utf8_lossy(body));
    let token = world.form_token();
    let is_ours = form.get("form_token") == Some(token);
    // These forms are posted to the address of the page they stand on.
    let is_page = ["/pay/", "/cabinet/invoices/"]
        .iter()
        .any(|start| path.starts_with(start));
    let back = if path == "/cabinet/faults" {
        Some(faults::way(form.get("invoice")))
    } else if path == "/activate" {
        Some(activate::way(form.get("code")))
    } else {
        is_page.then(|| path.to_owned())
    };
    let back = back.as_deref();
    world.with(|state, now| {
        let look = Look { lang, token, now };
        if !is_ours {
            let texts = [
                "This form is not from a page of this sandbox, or the sandbox was started anew. Reload the page and try again.",
                "Эта форма не со страницы этой песочницы, или песочница перезапущена. Обновите страницу и попробуйте снова.",
            ];
            return message(&look, StatusCode::FORBIDDEN, texts, back);
        }
        let posted = match path {
            "/activate" => activate::decide(state, &form, now),
            "/cabinet/revoke" => cabinet::revoke(state, &form, now),
            "/cabinet/faults" => faults::act(state, &form, &look),
            _ => match (path.strip_prefix("/cabinet/invoices/"), path.strip_prefix("/pay/")) {
                (Some(opaque), _) => invoice::act(state, opaque),
                (None, Some(opaque)) => pay::act(state, opaque, &form, now),
                (None, None) => Posted::Refused(StatusCode::NOT_FOUND, NO_PAGE),
            },
        };
        match posted {
            Posted::Done(next) => see(&look, &next),
            Posted::Unfit(why) => look.message(StatusCode::BAD_REQUEST, &why, back),
            Posted::Refused(status, texts) => {
                message(&look, status, texts, back.filter(|_| status != StatusCode::NOT_FOUND))
            }
        }
    })
}

/// Has the browser ask for the page again by itself.
fn again(mut response: Response, after_s: Option<u64>) -> Response {
    if let Some(seconds) = after_s {
        let headers = response.headers_mut();
        headers.insert(REFRESH, HeaderValue::from(seconds));
    }
    response
}

fn message(
    look: &Look<'_>,
    status: StatusCode,
    texts: [&'static str; 2],
    back: Option<&str>,
) -> Response {
    let [en, ru] = texts;
    look.message(status, look.t(en, ru), back)
}

/// Sends the browser to a page, so that reloading it posts nothing again.
fn see(look: &Look<'_>, next: &str) -> Response {
    let mut response = http::plain(StatusCode::SEE_OTHER, "see the page\n");
    match HeaderValue::from_str(next) {
        Ok(location) => drop(response.headers_mut().insert(LOCATION, location)),
        Err(_not_for_a_header) => {
            return message(
                look,
                StatusCode::BAD_REQUEST,
                ["That is no code.", "Это не код."],
                None,
            );
        }
    }
    response
}
