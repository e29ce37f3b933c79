//! Which call a request makes. Pure.

use hyper::Method;
use percent_encoding::percent_decode_str;

use super::call::{Call, Nothing};
use crate::answer::failure::Failure;
use crate::answer::name::{Kind, Name};

/// The calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// Open an invoice.
    Create,
    /// Invoices, newest first.
    List,
    /// An order, or one invoice by its id or ref.
    Show(Name),
    /// The invoice that a name means, once it is decided.
    Wait(Name),
    /// The same, once the service was polled.
    Poll(Name),
    /// Events after a number.
    Events,
    /// How everything stands.
    Status,
    /// What this is in the words of OpenAPI.
    OpenApi,
}

impl Route {
    /// Refuses a query or a body where the call takes none; those that take one look at it themselves.
    pub(super) fn takes(&self, call: &Call) -> Result<(), Failure> {
        match self {
            Self::Create => {
                let Nothing {} = call.query()?;
                Ok(())
            }
            Self::List | Self::Wait(_) | Self::Events => call.has_no_body(),
            Self::Show(_) | Self::Poll(_) | Self::Status | Self::OpenApi => call.is_bare(),
        }
    }
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoRoute {
    /// There is nothing there.
    Elsewhere,
    /// There is, for other methods.
    OtherMethod(&'static str),
}

/// Finds the call. A trailing slash is another path, as everywhere else.
pub(super) fn route(method: &Method, path: &str) -> Result<Route, NoRoute> {
    let mut segments = path.strip_prefix('/').unwrap_or_default().split('/');
    if segments.next() != Some("v1") {
        return Err(NoRoute::Elsewhere);
    }
    let rest: Vec<&str> = segments.collect();
    let get = |route| only(method, &[Method::GET], "GET", route);
    // What is answered at once has a head of its own (RFC 9110, section 9.1). What goes on or waits has none: nobody wants to
    // wait for it.
    let read = |route| only(method, &[Method::GET, Method::HEAD], "GET, HEAD", route);
    match rest.as_slice() {
        ["invoices"] if method == Method::POST => Ok(Route::Create),
        ["invoices"] if [Method::GET, Method::HEAD].contains(method) => Ok(Route::List),
        ["invoices"] => Err(NoRoute::OtherMethod("GET, HEAD, POST")),
        ["orders", id] => read(Route::Show(Kind::Order.of(named(id)?))),
        ["invoices", by, text] => read(Route::Show(by_kind(by)?.of(named(text)?))),
        ["orders", id, call] => one(method, Kind::Order.of(named(id)?), call),
        ["invoices", by, text, call] => one(method, by_kind(by)?.of(named(text)?), call),
        ["events"] => get(Route::Events),
        ["status"] => read(Route::Status),
        ["openapi.json"] => read(Route::OpenApi),
        _ => Err(NoRoute::Elsewhere),
    }
}

/// A call about the one invoice that a name means.
fn one(method: &Method, name: Name, call: &str) -> Result<Route, NoRoute> {
    match call {
        "wait" => only(method, &[Method::GET], "GET", Route::Wait(name)),
        "poll" => only(method, &[Method::POST], "POST", Route::Poll(name)),
        _ => Err(NoRoute::Elsewhere),
    }
}

/// The kind of name that the segment in front of it says.
fn by_kind(segment: &str) -> Result<Kind, NoRoute> {
    match segment {
        "by-id" => Ok(Kind::Id),
        "by-ref" => Ok(Kind::Ref),
        _ => Err(NoRoute::Elsewhere),
    }
}

fn only(
    method: &Method,
    allowed: &[Method],
    name: &'static str,
    route: Route,
) -> Result<Route, NoRoute> {
    if allowed.contains(method) {
        Ok(route)
    } else {
        Err(NoRoute::OtherMethod(name))
    }
}

/// A segment as it was meant: `%2F` is a slash of an order id. What is no UTF-8 names nothing.
fn named(segment: &str) -> Result<String, NoRoute> {
    let name = percent_decode_str(segment).decode_utf8();
    let name = name.map_err(|_no_text| NoRoute::Elsewhere)?;
    if name.is_empty() {
        return Err(NoRoute::Elsewhere);
    }
    Ok(name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_its_place() {
        let order = |id: &str| Ok(Route::Show(Kind::Order.of(id)));
        let wait = |name: Name| Ok(Route::Wait(name));
        for (method, path, wanted) in [
            (Method::POST, "/v1/invoices", Ok(Route::Create)),
            (Method::GET, "/v1/invoices", Ok(Route::List)),
            (Method::GET, "/v1/orders/1042", order("1042")),
            (Method::GET, "/v1/orders/a%2Fb%25", order("a/b%")),
            (Method::GET, "/v1/orders/100%", order("100%")),
            (
                Method::GET,
                "/v1/invoices/by-id/wait",
                Ok(Route::Show(Kind::Id.of("wait"))),
            ),
            (Method::GET, "/v1/orders/1/wait", wait(Kind::Order.of("1"))),
            (
                Method::POST,
                "/v1/invoices/by-ref/1/poll",
                Ok(Route::Poll(Kind::Ref.of("1"))),
            ),
            (Method::GET, "/v1/events", Ok(Route::Events)),
            (Method::GET, "/v1/status", Ok(Route::Status)),
            (Method::GET, "/v1/openapi.json", Ok(Route::OpenApi)),
            (
                Method::PUT,
                "/v1/invoices",
                Err(NoRoute::OtherMethod("GET, HEAD, POST")),
            ),
            (Method::HEAD, "/v1/invoices", Ok(Route::List)),
            (Method::HEAD, "/v1/orders/1042", order("1042")),
            (Method::HEAD, "/v1/status", Ok(Route::Status)),
            (
                Method::HEAD,
                "/v1/orders/1/wait",
                Err(NoRoute::OtherMethod("GET")),
            ),
            (Method::HEAD, "/v1/events", Err(NoRoute::OtherMethod("GET"))),
            (
                Method::GET,
                "/v1/invoices/by-id/1/poll",
                Err(NoRoute::OtherMethod("POST")),
            ),
            (Method::GET, "/", Err(NoRoute::Elsewhere)),
            (Method::GET, "/v1", Err(NoRoute::Elsewhere)),
            (Method::GET, "/v1/invoices/", Err(NoRoute::Elsewhere)),
            (Method::GET, "/v1/invoices/by-id/", Err(NoRoute::Elsewhere)),
            (Method::GET, "/v1/orders/", Err(NoRoute::Elsewhere)),
            (Method::GET, "/v1/orders/%ff", Err(NoRoute::Elsewhere)),
            // A path that does not say what kind of name it holds is none.
            (Method::GET, "/v1/invoices/1042", Err(NoRoute::Elsewhere)),
            (
                Method::GET,
                "/v1/invoices/1042/wait",
                Err(NoRoute::Elsewhere),
            ),
            (Method::GET, "/v2/status", Err(NoRoute::Elsewhere)),
        ] {
            assert_eq!(route(&method, path), wanted, "{method} {path}");
        }
    }

    #[test]
    fn the_path_of_a_name_leads_to_it() {
        for kind in Kind::ALL {
            for text in ["1042", "a/b?c#d%", "заказ 1", "wait", ".."] {
                let name = kind.of(text);
                let path = format!("{}/wait", name.path());
                assert_eq!(route(&Method::GET, &path), Ok(Route::Wait(name)));
            }
        }
    }
}
