//! Who may speak to the sandbox, and whom it speaks to: this machine, both ways.
//!
//! Programs and browsers of this machine, and of the browsers only their own pages. A name that points here from elsewhere
//! (DNS rebinding) and a form on a foreign page are both turned away. What the sandbox sends goes to addresses that cannot
//! be anywhere else; an invoice with another notificationUrl is not even made.

use hyper::StatusCode;
use hyper::header::{HOST, ORIGIN};
use hyper::http::request::Parts;
use url::{Host, Url};

pub(crate) use crate::http::is_loopback;
use crate::http::{Response, is_own_address, is_own_name, plain};

/// An address as whoever sends to it reads it. `Err` is a host that is not this machine, in the spelling it was understood
/// in; empty when it is no web address at all.
pub(crate) fn on_this_machine(url: &str) -> Result<Url, String> {
    let url = Url::parse(url).map_err(|_no_address| String::new())?;
    let own = match url.host() {
        Some(Host::Domain(name)) => is_own_name(name),
        Some(Host::Ipv4(ip)) => is_own_address(ip.into()),
        Some(Host::Ipv6(ip)) => is_own_address(ip.into()),
        None => false,
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Err(String::new());
    }
    if own {
        Ok(url)
    } else {
        Err(url.host_str().unwrap_or_default().to_owned())
    }
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
    fn an_address_is_read_as_its_sender_reads_it() {
        for own in [
            "http://127.0.0.1:8480/n/ref",
            "https://127.9.9.9/",
            "http://[::1]:8480/n",
            "http://[::ffff:127.0.0.1]/",
            "http://LOCALHOST:80/n?a=b#c",
            "http://shop.localhost/n",
            "http://user:password@127.0.0.1/n",
            // Other spellings of 127.0.0.1.
            "http://2130706433/",
            "http://0x7f.1/",
            "http:\\\\127.0.0.1\\n",
        ] {
            assert!(on_this_machine(own).is_ok(), "{own}");
        }
        for (elsewhere, host) in [
            ("https://shop.example/n", "shop.example"),
            ("http://10.0.0.1/", "10.0.0.1"),
            ("http://0.0.0.0/", "0.0.0.0"),
            ("http://[2001:db8::1]:8480/", "[2001:db8::1]"),
            ("http://[::ffff:8.8.8.8]/", "[::ffff:808:808]"),
            ("http://127.0.0.1@shop.example/", "shop.example"),
            ("http://127.0.0.1:80@shop.example/", "shop.example"),
            ("http://shop.example\\@127.0.0.1/", "shop.example"),
            ("http://shop.example#@127.0.0.1/", "shop.example"),
            ("http://127.0.0.1.shop.example/", "127.0.0.1.shop.example"),
            ("http://localhost.shop.example/", "localhost.shop.example"),
            ("http://localtest.me/", "localtest.me"),
            ("http://134744072/", "8.8.8.8"),
            ("ftp://127.0.0.1/", ""),
            ("unix:/run/tilld.sock", ""),
            ("http://127.0.0.1:99999/", ""),
            ("n", ""),
        ] {
            assert_eq!(
                on_this_machine(elsewhere),
                Err(host.to_owned()),
                "{elsewhere}"
            );
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
