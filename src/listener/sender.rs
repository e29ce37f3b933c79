//! Who sent a request, for logs and refusals: the one who connected, or whom a trusted proxy names. Pure.
//!
//! Nothing is decided by it. Anybody can send the headers that proxies add to, so they are read only from a peer that the
//! merchant named, from the right, where the nearest proxy wrote last, and no further than through named ones (T22).
//! `Forwarded` (RFC 7239) counts only where there is no `X-Forwarded-For`: a proxy that writes the one hands the other on as it
//! was sent.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hyper::header::{FORWARDED, HeaderMap, HeaderName};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Proxies one behind another that are followed. More are nobody's setup.
const MOST_HOPS: usize = 16;

/// Says of an address, or of a program of this machine on a Unix socket, whether it is a proxy's whose word is taken.
type IsTrusted = Arc<dyn Fn(Option<IpAddr>) -> bool + Send + Sync>;

/// The proxies whose word is taken.
#[derive(Clone, Default)]
pub struct Trusted(Option<IsTrusted>);

impl fmt::Debug for Trusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trusted").field(&self.0.is_some()).finish()
    }
}

impl Trusted {
    /// Those this says yes to.
    pub fn these(is_trusted: impl Fn(Option<IpAddr>) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_trusted)))
    }

    /// Who sent a request that came from `peer`; `None` is a program of this machine on a Unix socket.
    pub(super) fn sender(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Option<IpAddr> {
        let Some(is_trusted) = &self.0 else {
            return peer;
        };
        if !is_trusted(peer) {
            return peer;
        }
        let named = if headers.contains_key(X_FORWARDED_FOR) {
            from_the_right(headers, &X_FORWARDED_FOR)
                .map(address)
                .take(MOST_HOPS)
                .collect::<Vec<_>>()
        } else {
            from_the_right(headers, &FORWARDED)
                .map(forwarded_for)
                .take(MOST_HOPS)
                .collect()
        };
        let mut sender = peer;
        for hop in named {
            // What is no address was written by somebody who does not say, or is a stranger's.
            let Some(hop) = hop else { break };
            sender = Some(hop);
            if !is_trusted(sender) {
                break;
            }
        }
        sender
    }
}

/// The entries of all lines of this name, the last one first.
fn from_the_right<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = headers
        .get_all(name)
        .iter()
        .map(|line| line.to_str().unwrap_or_default())
        .collect();
    lines
        .into_iter()
        .rev()
        .flat_map(|line| line.rsplit(',').map(str::trim))
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    let address = bare.parse().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

/// The address of `for=` in one element: `for=192.0.2.1;proto=https`, `For="[2001:db8::1]:80"`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
    let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    let node = node.trim();
    let quoted = node
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    address(quoted.unwrap_or(node))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(peer: &str, lines: &[(&'static str, &'static str)], wanted: &str) {
        let trusted = Trusted::these(|peer| {
            peer.is_none_or(|address| address.to_string().starts_with("10."))
        });
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().expect("a value"));
        }
        let sender = trusted.sender(peer.parse().ok(), &headers);
        let sender = sender.map_or_else(|| "unix".to_owned(), |address| address.to_string());
        assert_eq!(sender, wanted, "{peer} {lines:?}");
    }

    const XFF: &str = "x-forwarded-for";

    #[test]
    fn the_rightmost_address_that_is_no_trusted_proxy_counts() {
        check("10.0.0.1", &[(XFF, "203.0.113.7")], "203.0.113.7");
        check(
            "10.0.0.1",
            &[(XFF, "198.51.100.9, 203.0.113.7")],
            "203.0.113.7",
        );
        check(
            "10.0.0.1",
            &[(XFF, "198.51.100.9, 203.0.113.7, 10.0.0.2")],
            "203.0.113.7",
        );
        check(
            "10.0.0.1",
            &[(XFF, "198.51.100.9"), (XFF, "203.0.113.7")],
            "203.0.113.7",
        );
        check("10.0.0.1", &[(XFF, "10.0.0.3, 10.0.0.2")], "10.0.0.3");
        check("10.0.0.1", &[(XFF, "[2001:db8::7]:4711")], "2001:db8::7");
        check("10.0.0.1", &[(XFF, "::ffff:203.0.113.7")], "203.0.113.7");
        check("10.0.0.1", &[], "10.0.0.1");
        check("unix", &[(XFF, "203.0.113.7")], "203.0.113.7");
        check("unix", &[], "unix");
    }

    #[test]
    fn what_strangers_claim_has_no_effect() {
        check("203.0.113.7", &[(XFF, "198.51.100.9")], "203.0.113.7");
        check(
            "203.0.113.7",
            &[("forwarded", "for=198.51.100.9")],
            "203.0.113.7",
        );
        // Handed on by a proxy that writes the other header.
        check(
            "10.0.0.1",
            &[("forwarded", "for=198.51.100.9"), (XFF, "203.0.113.7")],
            "203.0.113.7",
        );
        // What stands left of something that is no address was written before it.
        check("10.0.0.1", &[(XFF, "198.51.100.9, unknown")], "10.0.0.1");
        check("10.0.0.1", &[(XFF, "198.51.100.9, , 10.0.0.2")], "10.0.0.2");
        let endless = "10.0.0.2,".repeat(500) + "10.0.0.2";
        let mut headers = HeaderMap::new();
        headers.insert(
            XFF,
            format!("203.0.113.7,{endless}").parse().expect("a value"),
        );
        let trusted = Trusted::these(|peer| peer.is_some_and(|address| address.is_ipv4()));
        let peer = "10.0.0.1".parse().ok();
        let followed = trusted
            .sender(peer, &headers)
            .map(|address| address.to_string());
        assert_eq!(followed.as_deref(), Some("10.0.0.2"));
        assert_eq!(Trusted::default().sender(peer, &headers), peer);
    }

    #[test]
    fn forwarded_is_read_as_the_rfc_writes_it() {
        let forwarded = "forwarded";
        for (value, wanted) in [
            ("for=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"),
            (
                "proto=https; For=\"[2001:db8:cafe::17]:4711\"",
                "2001:db8:cafe::17",
            ),
            ("for=198.51.100.9, for=203.0.113.7", "203.0.113.7"),
            ("for=_hidden", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            check("10.0.0.1", &[(forwarded, value)], wanted);
        }
    }
}
