//! Which names in `Host` are this machine's own. Pure. A socket that is for this machine alone answers to no other: a name
//! that points here today and elsewhere tomorrow would let a foreign page ask in a browser's name (DNS rebinding).

use std::net::IpAddr;

/// True for `localhost`, a name that ends in `.localhost`, an address of 127.0.0.0/8 (also within IPv6) and `[::1]`, each
/// with or without a port. Other names may point here today and elsewhere tomorrow.
pub(crate) fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']').map_or(v6, |(address, _port)| address),
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    let address: Option<IpAddr> = name.parse().ok();
    address.map_or_else(|| is_own_name(name), is_own_address)
}

/// True for names that never leave the machine (RFC 6761, section 6.3).
pub(crate) fn is_own_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let above = name.strip_suffix("localhost");
    above.is_some_and(|above| above.is_empty() || (above.len() > 1 && above.ends_with('.')))
}

/// True for addresses of the loopback, also within IPv6.
pub(crate) fn is_own_address(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
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
            "[::ffff:127.0.0.1]:80",
            "shop.localhost",
            "a.b.LocalHost:80",
        ] {
            assert!(is_loopback(good), "{good}");
        }
        for bad in [
            "",
            "shop.example",
            "localhost.evil.example",
            "evillocalhost",
            ".localhost",
            "localhost.",
            "[::ffff:10.0.0.1]",
            "127.0.0.1.evil.example:80",
            "10.0.0.1",
            "[::2]",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(bad), "{bad}");
        }
    }
}
