//! Which of the few addresses of the listener a request is for. Pure.
//!
//! An address is `{public_path}/{ref}`, or the bare `{public_path}` for invoices whose notificationUrl was not made by
//! tilld. Exactly one trailing slash is the same address, since senders and proxies add one; no other variant is: what a
//! proxy might read differently must not be an address at all.

use hyper::{Method, Uri};
use url::Url;

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
fn public_path(public_url: &str) -> String {
    let behind_scheme = public_url
        .split_once("://")
        .map_or(public_url, |(_, rest)| rest);
    let path = behind_scheme
        .split_once('/')
        .map_or_else(String::new, |(_, path)| format!("/{path}"));
    let end = path.find(['?', '#']).unwrap_or(path.len());
    path.split_at(end).0.trim_end_matches('/').to_owned()
}

/// `public_url` as requests name it.
#[derive(Clone, Debug)]
pub struct PublicAddress {
    /// In front of the ref, see [`public_path`].
    pub path: String,
    /// In the letters of a request: lower case, no Unicode. Empty when the URL has none, which no target names.
    host: String,
    port: Option<u16>,
}

impl PublicAddress {
    /// Of the URL that the settings have.
    pub fn of(public_url: &str) -> Self {
        let url = Url::parse(public_url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        Self {
            path: public_path(public_url),
            host: host.to_owned(),
            port: url.as_ref().and_then(Url::port_or_known_default),
        }
    }

    /// Sorts a request by its method and target.
    pub fn route<'t>(&self, method: &Method, target: &'t Uri) -> Route<'t> {
        if self.is_meant(target) {
            route(&self.path, method, target.path())
        } else {
            Route::Elsewhere
        }
    }

    /// Whether a target is for this host: most name none, one in absolute form does (RFC 9112 3.2.2). A proxy that ends TLS
    /// may change the scheme and leave the port out.
    fn is_meant(&self, target: &Uri) -> bool {
        let Some(named) = target.authority() else {
            return true;
        };
        let is_web = matches!(target.scheme_str(), Some("http" | "https"));
        let has_port = named.port().is_some();
        is_web
            && !named.as_str().contains('@')
            && named.host().eq_ignore_ascii_case(&self.host)
            && (!has_port || named.port_u16() == self.port)
    }
}

/// Sorts by method and path. `public_path` begins with a slash and does not end with one, or is empty.
fn route<'p>(public_path: &str, method: &Method, path: &'p str) -> Route<'p> {
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
    fn a_target_in_absolute_form_names_the_public_host() {
        let meant = |public_url: &str, target: &str| {
            let target: Uri = target.parse().expect("a target");
            PublicAddress::of(public_url).is_meant(&target)
        };
        for (public_url, target) in [
            ("https://shop.example/n", "/n/REF"),
            ("https://shop.example/n", "*"),
            ("https://shop.example/n", "https://shop.example/n/REF"),
            ("https://shop.example/n", "http://SHOP.example/n/REF"),
            ("https://shop.example/n", "https://shop.example:443/n/REF"),
            ("http://127.0.0.1:8480/n", "http://127.0.0.1:8480/n/REF"),
            ("http://[::1]:8480/n", "http://[::1]:8480/n/REF"),
            ("https://пример.рф/n", "https://xn--e1afmkfd.xn--p1ai/n/REF"),
        ] {
            assert!(meant(public_url, target), "{public_url} {target}");
        }
        for target in [
            "http://other.example/n/REF",
            "https://shop.example:8443/n/REF",
            "https://shop.example@other.example/n/REF",
            "https://user@shop.example/n/REF",
            "ftp://shop.example/n/REF",
            "shop.example:443",
        ] {
            assert!(!meant("https://shop.example/n", target), "{target}");
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
