//! Who may speak to the sandbox: programs and browsers of this machine, and of the browsers only their own pages. A name
//! that points here from elsewhere (DNS rebinding) and a form on a foreign page are both turned away.

use std::net::IpAddr;

use hyper::StatusCode;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;

use crate::http::{Response, plain};

/// True for `localhost`, an address of 127.0.0.0/8 and `[::1]`, each with or without a port.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']').map_or(v6, |(address, _port)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    let address: Option<IpAddr> = name.parse().ok();
    name.eq_ignore_ascii_case("localhost") || address.is_some_and(|ip| ip.is_loopback())
}

/// Who was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Foreign {
    /// `Host` does not name this machine.
    Name,
    /// A page of another origin sent it.
    Page,
}

impl Foreign {
    /// The answer: 421 or 403.
    pub(crate) fn response(self) -> Response {
        match self {
            Self::Name => plain(
                StatusCode::MISDIRECTED_REQUEST,
                "the sandbox answers to loopback names only\n",
            ),
            Self::Page => plain(
                StatusCode::FORBIDDEN,
                "the request comes from a foreign page\n",
            ),
        }
    }
}

/// Turns away what does not name this machine in `Host`, and what a foreign page sent.
pub(crate) fn check(parts: &Parts) -> Result<(), Foreign> {
    let text = |name| {
        let header = parts.headers.get(name);
        header.map(|value| value.to_str().unwrap_or("?"))
    };
    let host = text(HOST).unwrap_or("");
    if !is_loopback(host) {
        return Err(Foreign::Name);
    }
    let own = format!("http://{host}");
    match text(ORIGIN) {
        Some(origin) if !parts.method.is_safe() && !origin.eq_ignore_ascii_case(&own) => {
            Err(Foreign::Page)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_names_and_no_others() {
        for good in [
            "localhost",
            "LOCALHOST:8490",
            "127.0.0.1",
            "127.9.9.9:1",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "shop.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }

    #[test]
    fn a_foreign_page_cannot_post() {
        let judged = |method: &str, host: &str, origin: Option<&str>| {
            let mut request = hyper::Request::builder().method(method).header(HOST, host);
            if let Some(origin) = origin {
                request = request.header(ORIGIN, origin);
            }
            let (parts, ()) = request.body(()).expect("a request").into_parts();
            check(&parts)
                .err()
                .map_or(200, |foreign| foreign.response().status().as_u16())
        };
        for (method, host, origin, wanted) in [
            ("POST", "127.0.0.1:1", None, 200),
            ("POST", "127.0.0.1:1", Some("http://127.0.0.1:1"), 200),
            ("POST", "127.0.0.1:1", Some("http://127.0.0.1:2"), 403),
            ("POST", "127.0.0.1:1", Some("null"), 403),
            ("POST", "127.0.0.1:1", Some("http://evil.example"), 403),
            ("GET", "127.0.0.1:1", Some("http://evil.example"), 200),
            ("GET", "evil.example", None, 421),
        ] {
            assert_eq!(
                judged(method, host, origin),
                wanted,
                "{method} {host} {origin:?}"
            );
        }
    }
}
