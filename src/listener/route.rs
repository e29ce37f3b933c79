//! Which of the few addresses of the listener a request is for. Pure.
//!
//! An address is `{public_path}/{ref}`, or the bare `{public_path}` for invoices whose notificationUrl was not made by
//! tilld. Exactly one trailing slash is the same address, since senders and proxies add one; no other variant is: what a
//! proxy might read differently must not be an address at all.

use hyper::Method;

use crate::invoice::ids::InvoiceRef;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'p> {
    /// A notification, on an address that ends in this segment. One that is no ref is told like an unknown one.
    Notification(&'p str),
    /// A notification without a segment: its body names the invoice.
    Bare,
    /// A look whether the address answers (A13). Tells nothing.
    Look,
    /// A method that an address does not have.
    OtherMethod,
    /// No address of ours.
    Elsewhere,
}

/// The path of `public_url` in the form [`route`] takes: `https://shop.example/pay/` gives `/pay`, without a path it is
/// empty. The service puts the ref behind it.
pub fn public_path(public_url: &str) -> String {
    let behind_scheme = public_url
        .split_once("://")
        .map_or(public_url, |(_, rest)| rest);
    let path = behind_scheme
        .split_once('/')
        .map_or_else(String::new, |(_, path)| format!("/{path}"));
    let end = path.find(['?', '#']).unwrap_or(path.len());
    path.split_at(end).0.trim_end_matches('/').to_owned()
}

/// Sorts a request by its method and path. `public_path` begins with a slash and does not end with one, or is empty.
pub fn route<'p>(public_path: &str, method: &Method, path: &'p str) -> Route<'p> {
    let Some(rest) = path.strip_prefix(public_path) else {
        return Route::Elsewhere;
    };
    let segment = match rest {
        // Without a public path, the address without any slash is no path at all.
        "" if !public_path.is_empty() => "",
        "/" => "",
        _ => match rest.strip_prefix('/') {
            // `//` is a segment left out, not the bare path with one trailing slash.
            None | Some("/") => return Route::Elsewhere,
            Some(segment) => segment.strip_suffix('/').unwrap_or(segment),
        },
    };
    if segment.contains('/') {
        return Route::Elsewhere;
    }
    let bare = segment.is_empty();
    match method {
        &Method::POST if bare => Route::Bare,
        &Method::POST => Route::Notification(segment),
        // A look at anything but a ref is answered 404: a 200 for every path would hide a mistyped address.
        _ if !bare && InvoiceRef::parse(segment).is_none() => Route::Elsewhere,
        &Method::GET | &Method::HEAD => Route::Look,
        _ => Route::OtherMethod,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REF: &str = "AAAAAAAAAAAAAAAAAAAAAA";

    /// `REF` in the path stands for a ref.
    #[track_caller]
    fn check(public_path: &str, method: &Method, path: &str, wanted: Route<'_>) {
        let path = path.replace("REF", REF);
        let told = route(public_path, method, &path);
        assert_eq!(told, wanted, "{method} `{path}` below `{public_path}`");
    }

    #[test]
    fn one_address_and_one_trailing_slash() {
        let post = |public_path: &str, path: &str, wanted: Route<'_>| {
            check(public_path, &Method::POST, path, wanted);
        };
        let known = Route::Notification(REF);
        post("/pay/n", "/pay/n/REF", known);
        post("/pay/n", "/pay/n/REF/", known);
        post("", "/REF", known);
        post("/n", "/n/never-a-ref", Route::Notification("never-a-ref"));
        post("/n", "/n", Route::Bare);
        post("/n", "/n/", Route::Bare);
        post("", "/", Route::Bare);
        for elsewhere in [
            "/n//", "/n///", "/n//REF", "/n/REF//", "/n/x/REF", "/nREF", "/N", "/N/REF", "n",
            "n/REF", "/REF", "/", "", "*", "/n%2f", "/n%2fREF",
        ] {
            post("/n", elsewhere, Route::Elsewhere);
        }
        for elsewhere in ["", "*", "//", "///", "//REF"] {
            post("", elsewhere, Route::Elsewhere);
        }
    }

    #[test]
    fn the_public_path_is_what_stands_behind_the_host() {
        for (url, path) in [
            ("https://shop.example/pay/n", "/pay/n"),
            ("https://shop.example:8443/pay/", "/pay"),
            ("https://пример.рф/", ""),
            ("http://127.0.0.1:8480", ""),
            ("https://shop.example/a//?x=/y#/z", "/a"),
        ] {
            assert_eq!(public_path(url), path, "{url}");
        }
    }

    #[test]
    fn looking_is_free_and_all_else_is_not_allowed() {
        let ask = |method: &Method, wanted: Route<'_>| {
            for path in ["/n/REF", "/n/", "/n"] {
                check("/n", method, path, wanted);
            }
            check("", method, "/", wanted);
            check("/n", method, "/n/favicon.ico", Route::Elsewhere);
            check("/n", method, "/", Route::Elsewhere);
        };
        for method in [Method::GET, Method::HEAD] {
            ask(&method, Route::Look);
        }
        for method in [Method::OPTIONS, Method::PUT, Method::DELETE, Method::PATCH] {
            ask(&method, Route::OtherMethod);
        }
    }
}
