//! Networks as settings name them: an address, or an address and the length of its prefix. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The word for programs of this machine that connect to a Unix socket.
const UNIX: &str = "unix";
/// Most networks in a list: each is compared with an address that a proxy names.
const MOST: usize = 64;

/// Somebody who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// From an address that begins with the same bits.
    Net {
        /// With nothing behind the prefix.
        address: IpAddr,
        /// The length of the prefix, bits.
        prefix: u8,
    },
    /// From this machine, on a Unix socket.
    Unix,
}

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8`, an address alone, or `unix`. What has bits behind its prefix is none: it was meant otherwise.
    pub fn parse(text: &str) -> Option<Self> {
        if text == UNIX {
            return Some(Self::Unix);
        }
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= whole)?
            }
            Some(_) => return None,
            None => whole,
        };
        (cut(address, prefix) == address).then_some(Self::Net { address, prefix })
    }

    /// Whether whoever connected from there is one of these; without an address it was on a Unix socket. An address of IPv4 in
    /// the dress of IPv6 counts as what it is.
    pub fn holds(&self, peer: Option<IpAddr>) -> bool {
        match (self, peer.map(|address| address.to_canonical())) {
            (Self::Unix, peer) => peer.is_none(),
            (Self::Net { .. }, None) => false,
            (Self::Net { address, prefix }, Some(peer)) => {
                peer.is_ipv4() == address.is_ipv4() && cut(peer, *prefix) == *address
            }
        }
    }

    /// What a list of them must be, when it is not.
    pub(super) fn rule(list: &[String]) -> Option<String> {
        if list.len() > MOST {
            return Some("must be at most 64 addresses and networks".to_owned());
        }
        let place = list.iter().position(|text| Self::parse(text).is_none())?;
        Some(format!(
            "must list addresses such as `127.0.0.1` and networks such as `10.0.0.0/8`, with no bit set behind the prefix, or \
             `unix`: entry {} is none of these",
            place + 1
        ))
    }
}

/// The address with nothing but zeros behind the prefix.
fn cut(address: IpAddr, prefix: u8) -> IpAddr {
    let zeros = |whole: u32| whole.saturating_sub(u32::from(prefix));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(zeros(32)).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(zeros(128)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_what_begins_alike() {
        for (network, address, holds) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("fd00::/8", "fdab::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::1/128", "2001:db8::1", true),
            ("unix", "on a Unix socket", true),
            ("unix", "127.0.0.1", false),
            ("0.0.0.0/0", "on a Unix socket", false),
        ] {
            let parsed = Network::parse(network).expect("a network");
            let address = address.parse().ok();
            assert_eq!(parsed.holds(address), holds, "{network} {address:?}");
        }
    }

    #[test]
    fn what_is_no_network_is_told_by_its_place() {
        for text in [
            "",
            "localhost",
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "1.2.3",
            "::/129",
            " ::1",
        ] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
        let list = ["::1", "10.0.0.1/8"].map(str::to_owned);
        assert!(Network::rule(&list).is_some_and(|rule| rule.contains("entry 2 ")));
        assert!(Network::rule(&vec!["::1".to_owned(); 65]).is_some());
        assert_eq!(Network::rule(&[]), None);
    }
}
