//! Which of the few addresses of the listener a request is for. Pure.
//!
//! An address is `{public_path}/{ref}`. Exactly one trailing slash is the same address, since senders and proxies add
//! one; no other variant is: what a proxy might read differently must not be an address at all.

use hyper::Method;

use crate::invoice::ids::InvoiceRef;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A notification. `None`: the segment is no ref that was ever made, which is told like an unknown one.
    Notification(Option<InvoiceRef>),
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
pub fn route(public_path: &str, method: &Method, path: &str) -> Route {
    let Some(segment) = path
        .strip_prefix(public_path)
        .and_then(|rest| rest.strip_prefix('/'))
    else {
        return Route::Elsewhere;
    };
    let segment = segment.strip_suffix('/').unwrap_or(segment);
    if segment.is_empty() || segment.contains('/') {
        return Route::Elsewhere;
    }
    let reference = InvoiceRef::parse(segment);
    match (method, &reference) {
        (&Method::POST, _) => Route::Notification(reference),
        // A look at anything but a ref is answered 404: a 200 for every path would hide a mistyped address.
        (_, None) => Route::Elsewhere,
        (&Method::GET | &Method::HEAD, Some(_)) => Route::Look,
        (_, Some(_)) => Route::OtherMethod,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REF: &str = "AAAAAAAAAAAAAAAAAAAAAA";

    #[test]
    fn one_address_and_one_trailing_slash() {
        let known = || Route::Notification(InvoiceRef::parse(REF));
        let post = |public_path: &str, path: &str| {
            route(public_path, &Method::POST, &path.replace("REF", REF))
        };
        assert_eq!(post("/pay/n", "/pay/n/REF"), known());
        assert_eq!(post("/pay/n", "/pay/n/REF/"), known());
        assert_eq!(post("", "/REF"), known());
        assert_eq!(post("/n", "/n/never-a-ref"), Route::Notification(None));
        for elsewhere in [
            "/n", "/n/", "/n//", "/n//REF", "/n/REF//", "/n/x/REF", "/nREF", "/N/REF", "n/REF",
            "/REF", "/", "", "*", "/n%2fREF",
        ] {
            assert_eq!(post("/n", elsewhere), Route::Elsewhere, "`{elsewhere}`");
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
        let ask = |method: &Method, segment: &str| route("/n", method, &format!("/n/{segment}"));
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(ask(&method, REF), Route::Look);
            assert_eq!(ask(&method, "favicon.ico"), Route::Elsewhere);
        }
        for method in [Method::OPTIONS, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(ask(&method, REF), Route::OtherMethod);
            assert_eq!(ask(&method, "favicon.ico"), Route::Elsewhere);
        }
    }
}
