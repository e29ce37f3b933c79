//! Settings that count for nothing since systemd hands the socket over, which is served as it is.
//!
//! Promises that whoever asked for another address is told so at each start, with where notifications are heard instead: one
//! who set an address for the world, and a certificate with it, would else wait for what nobody can send.

use std::net::SocketAddr;

use super::handed::{At, Handed};
use crate::config::{Origin, Settings};

/// Which keys hold for a socket that tilld makes itself.
const PUBLIC: [&str; 1] = ["listener.listen"];
const CONTROL: [&str; 3] = ["control.socket", "control.mode", "control.group"];

/// The keys that count for nothing beside what was handed over.
pub(super) fn keys(handed: &Handed) -> Vec<&'static str> {
    let public = handed.public.iter().flat_map(|_| PUBLIC);
    let control = handed.control.iter().flat_map(|_| CONTROL);
    public.chain(control).collect()
}

/// The address that somebody asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    address: SocketAddr,
    origin: Origin,
}

impl Asked {
    /// `listener.listen` and where it was set; `None` where nobody did. Nor did a file with the default's own value: a copy of
    /// the example changes nothing.
    pub(crate) fn of(settings: &Settings, origin: Origin) -> Option<Self> {
        let address = settings.listener.listen;
        let is_asked = match &origin {
            Origin::Default => false,
            Origin::File(_) => address != Settings::default().listener.listen,
            Origin::Variable(_) | Origin::Flag(_) => true,
        };
        is_asked.then_some(Self { address, origin })
    }

    /// What is said when `at` was handed over; `None` when it is the address that was asked for.
    pub(crate) fn against(&self, at: &At) -> Option<String> {
        let Self { address, origin } = self;
        (*at != At::Port(*address)).then(|| {
            format!(
                "`listener.listen`, set {origin}, counts for nothing: systemd listens on {at} and hands that over, and tilld hears \
                 nothing on {address}; hint: `systemctl disable --now tilld.socket`, then `systemctl restart tilld`, has tilld \
                 listen by itself; or let `ListenStream=` of the socket unit say the address, and not this setting"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of an address that was set there, when this one is handed over.
    fn said(address: &str, origin: Origin, at: &str) -> Option<String> {
        let mut settings = Settings::default();
        settings.listener.listen = address.parse().expect("an address");
        let at = at.parse().map_or(At::Local(at.into()), At::Port);
        Asked::of(&settings, origin)?.against(&at)
    }

    #[test]
    fn whoever_asked_for_another_address_is_told() {
        let (here, world) = ("127.0.0.1:8480", "0.0.0.0:8443");
        let file = || Origin::File("/etc/tilld/config.toml".into());
        let flag = || Origin::Flag("--listen".to_owned());
        let variable = || Origin::Variable("TILLD_LISTENER__LISTEN".to_owned());
        for (address, origin, at, is_told) in [
            (world, file(), here, true),
            (world, flag(), here, true),
            (world, variable(), here, true),
            (world, file(), "/run/tilld/public.sock", true),
            // By the letter, since what else it may be heard by is asked for in vain, too.
            (world, file(), "[::]:8443", true),
            (here, flag(), world, true),
            (here, file(), world, false),
            (here, Origin::Default, world, false),
            (world, file(), world, false),
            (world, flag(), world, false),
        ] {
            let told = said(address, origin.clone(), at);
            assert_eq!(told.is_some(), is_told, "{address} {origin} {at}: {told:?}");
        }
        let told = said(world, flag(), here).unwrap_or_default();
        assert!(
            told.starts_with(
                "`listener.listen`, set by the flag `--listen`, counts for nothing: systemd listens on 127.0.0.1:8480 "
            ),
            "{told}"
        );
    }
}
