//! The names the sandbox looks up: `localhost` and what ends in `.localhost` (RFC 6761, section 6.3), which are this machine
//! whatever a name server says. No other name is ever asked about, so nothing leaves this machine by a name.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::sandbox::guard;

/// Looks names up without asking anybody.
#[derive(Clone, Copy, Debug)]
pub(in crate::sandbox) struct OwnNames;

/// A name of another machine.
#[derive(Debug, thiserror::Error)]
#[error("the sandbox looks up no names of other machines")]
struct OtherMachine;

impl Resolve for OwnNames {
    fn resolve(&self, name: Name) -> Resolving {
        let found = addresses(name.as_str()).map_err(Into::into);
        Box::pin(std::future::ready(found))
    }
}

/// The addresses of a name, tried in this order. The port is the asker's.
fn addresses(name: &str) -> Result<Addrs, OtherMachine> {
    if !guard::is_loopback(name) {
        return Err(OtherMachine);
    }
    let own = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    Ok(Box::new(own.into_iter().map(|ip| SocketAddr::new(ip, 0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_are_this_machine_and_others_are_not_looked_up() {
        for own in ["localhost", "shop.localhost"] {
            let found: Vec<_> = addresses(own).expect(own).collect();
            assert!(found.iter().all(|address| address.ip().is_loopback()));
            assert_eq!(found.len(), 2, "{own}");
        }
        for other in ["shop.example", "localhost.example"] {
            assert!(addresses(other).is_err(), "{other}");
        }
    }
}
