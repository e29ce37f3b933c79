//! Where the payment service is: the configured base address, judged once. Every request address is built from it, so an
//! access token cannot leave for another origin.

use std::net::IpAddr;

use reqwest::Url;

use crate::invoice::ids::InvoiceId;

/// The service's base address. A path prefix is kept: `https://pay.example/gw` asks `https://pay.example/gw/api/v1/…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    base: Url,
}

/// Why a text is no base address. The text is not repeated: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// Not an absolute URL with a host.
    #[error("the service address is not a URL such as `https://pay.example`")]
    NotAUrl,
    /// Another scheme than `https` or `http`.
    #[error("the service address must begin with `https://`")]
    Scheme,
    /// `user:password@` in it: credentials come from the login and nowhere else.
    #[error("the service address must not hold a user name or password")]
    UserInfo,
    /// A query or a fragment: request paths are put behind the address.
    #[error("the service address must not hold a `?` or `#` part")]
    QueryOrFragment,
    /// Plain http to a host that is not this machine.
    #[error(
        "the service address is plain http to another machine, which would show the token to the network"
    )]
    PlainHttp,
}

impl Address {
    /// Reads a base address. Plain http is taken for loopback hosts only, unless `allow_plain_http`.
    pub(crate) fn parse(text: &str, allow_plain_http: bool) -> Result<Self, AddressError> {
        let base = Url::parse(text.trim()).map_err(|_cause| AddressError::NotAUrl)?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(AddressError::Scheme);
        }
        if base.host_str().is_none_or(str::is_empty) {
            return Err(AddressError::NotAUrl);
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(AddressError::UserInfo);
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(AddressError::QueryOrFragment);
        }
        let address = Self { base };
        if address.is_plain() && !allow_plain_http && !is_loopback(&address.base) {
            return Err(AddressError::PlainHttp);
        }
        Ok(address)
    }

    /// Scheme, host and port, as text: what a stored token is bound to.
    pub(crate) fn origin(&self) -> String {
        self.base.origin().ascii_serialization()
    }

    /// True when the service is on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        is_loopback(&self.base)
    }

    /// True for plain http.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    /// The base address itself.
    pub(super) fn base(&self) -> Url {
        self.base.clone()
    }

    /// `POST` here to begin a login (contract 4.1).
    pub(super) fn login(&self) -> Url {
        self.under(&["agent", "login"])
    }

    /// `POST` here for the token (contract 4.2).
    pub(super) fn token(&self) -> Url {
        self.under(&["agent", "token"])
    }

    /// `POST` here to create an invoice (contract 4.3).
    pub(super) fn invoices(&self) -> Url {
        self.under(&["invoices"])
    }

    /// `GET` one invoice here (contract 4.4). The id is one path segment whatever it holds.
    pub(super) fn invoice(&self, id: &InvoiceId) -> Url {
        self.under(&["invoices", id.as_str()])
    }

    fn under(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["api", "v1"]).extend(segments);
        }
        url
    }
}

/// True when the host of `text` is this machine: `localhost` or an address of a loopback network. For addresses the
/// service names, such as the verification address, too.
pub(crate) fn is_loopback_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| is_loopback(&url))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || literal
            .parse::<IpAddr>()
            .is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_keep_the_token_safe_are_taken() {
        for (text, wanted) in [
            ("https://pay.example", Ok(())),
            ("https://пример.рф:8443/gw/", Ok(())),
            ("http://127.0.0.1:8080", Ok(())),
            ("http://127.9.9.9", Ok(())),
            ("http://[::1]:80", Ok(())),
            ("http://[::ffff:127.0.0.1]", Ok(())),
            ("http://localhost:1", Ok(())),
            ("", Err(AddressError::NotAUrl)),
            ("pay.example", Err(AddressError::NotAUrl)),
            ("https://", Err(AddressError::NotAUrl)),
            ("ftp://pay.example", Err(AddressError::Scheme)),
            ("https://me:pw@pay.example", Err(AddressError::UserInfo)),
            ("https://me@pay.example", Err(AddressError::UserInfo)),
            (
                "https://pay.example/?a=1",
                Err(AddressError::QueryOrFragment),
            ),
            ("https://pay.example/#x", Err(AddressError::QueryOrFragment)),
            ("http://pay.example", Err(AddressError::PlainHttp)),
            ("http://10.0.0.1", Err(AddressError::PlainHttp)),
            (
                "http://localhost.evil.example",
                Err(AddressError::PlainHttp),
            ),
            (
                "http://127.0.0.1.evil.example",
                Err(AddressError::PlainHttp),
            ),
        ] {
            assert_eq!(Address::parse(text, false).map(drop), wanted, "`{text}`");
        }
        assert!(Address::parse("http://10.0.0.1", true).is_ok());
    }

    #[test]
    fn a_path_prefix_is_kept_and_an_id_is_one_segment() {
        let id = InvoiceId::new("inv:~.1").expect("an id");
        for (base, wanted) in [
            (
                "https://a.example",
                "https://a.example/api/v1/invoices/inv:~.1",
            ),
            (
                "https://a.example/gw",
                "https://a.example/gw/api/v1/invoices/inv:~.1",
            ),
            (
                "https://a.example/gw/",
                "https://a.example/gw/api/v1/invoices/inv:~.1",
            ),
        ] {
            let address = Address::parse(base, false).expect(base);
            assert_eq!(address.invoice(&id).as_str(), wanted);
            assert_eq!(address.origin(), "https://a.example");
        }
    }

    /// The contract says of an id that it is a string. Whatever it holds, it names one invoice and leads nowhere else.
    #[test]
    fn an_id_is_encoded_into_its_segment() {
        let address = Address::parse("https://a.example/gw", false).expect("an address");
        for (id, wanted) in [
            ("INV/2026#17", "INV%2F2026%2317"),
            ("a?b=1&c", "a%3Fb=1&c"),
            ("a%2Fb", "a%252Fb"),
            ("%2e%2e", "%252e%252e"),
            ("../../agent/login", "..%2F..%2Fagent%2Flogin"),
            ("..\\x", "..%5Cx"),
            (
                " заявка 17 ",
                "%20%D0%B7%D0%B0%D1%8F%D0%B2%D0%BA%D0%B0%2017%20",
            ),
            ("...", "..."),
        ] {
            let url = address.invoice(&InvoiceId::new(id).expect(id));
            let segment = url.path().strip_prefix("/gw/api/v1/invoices/");
            assert_eq!(segment, Some(wanted), "{id}");
            assert!(url.query().is_none() && url.fragment().is_none(), "{url}");
        }
    }
}
