//! What can be seen to be wrong with the public address before anybody asks it (A14).

use std::net::IpAddr;

use url::{Host, Url};

use super::Finding;
use crate::config::Settings;

const CHECK: &str = "public_url";

pub(super) fn look(settings: &Settings) -> Vec<Finding> {
    let Ok(public) = settings.require_public() else {
        let hint =
            "set `listener.public_url` to the address at which the service reaches this listener";
        return vec![Finding::fail(CHECK, "`listener.public_url` is not set").hint(hint)];
    };
    let service_is_here = settings
        .require_service()
        .is_ok_and(|service| reach(&service) == Reach::Machine);
    let mut findings = vec![where_it_is(&public, service_is_here)];
    findings.extend(slashes(&public));
    findings
}

/// From where an address can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Machine,
    Network,
    World,
}

fn reach(url: &Url) -> Reach {
    let of = |ip: IpAddr| match ip.to_canonical() {
        ip if ip.is_loopback() || ip.is_unspecified() => Reach::Machine,
        IpAddr::V4(ip) if ip.is_private() || ip.is_link_local() => Reach::Network,
        IpAddr::V6(ip) if ip.is_unique_local() || ip.is_unicast_link_local() => Reach::Network,
        IpAddr::V4(_) | IpAddr::V6(_) => Reach::World,
    };
    match url.host() {
        Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
            Reach::Machine
        }
        Some(Host::Domain(name))
            if !name.contains('.') || name.rsplit('.').next() == Some("local") =>
        {
            Reach::Network
        }
        Some(Host::Domain(_)) => Reach::World,
        Some(Host::Ipv4(ip)) => of(ip.into()),
        Some(Host::Ipv6(ip)) => of(ip.into()),
        None => Reach::Machine,
    }
}

fn where_it_is(public: &Url, service_is_here: bool) -> Finding {
    let host = public.host_str().unwrap_or_default();
    let hint = "set `listener.public_url` to a name that the internet knows, with a proxy or a port behind it that leads here";
    match reach(public) {
        Reach::World => Finding::ok(CHECK, format!("{public} is an address for all")),
        Reach::Machine if service_is_here => Finding::ok(
            CHECK,
            format!("{public} is an address of this machine, as the service's is"),
        ),
        Reach::Machine => Finding::fail(
            CHECK,
            format!(
                "`{host}` is this machine for this machine alone: the service cannot reach {public}"
            ),
        )
        .hint(hint),
        Reach::Network => Finding::fail(
            CHECK,
            format!("`{host}` is known in this network alone: the service cannot reach {public}"),
        )
        .hint(hint),
    }
}

/// A slash at the end is harmless; two in a row are another path to some proxies and the same to others.
fn slashes(public: &Url) -> Option<Finding> {
    let path = public.path().trim_end_matches('/');
    let doubled = path.contains("//") || public.path().ends_with("//");
    doubled.then(|| {
        Finding::fail(
            CHECK,
            format!(
                "its path `{}` has two slashes in a row, which a proxy may make one",
                public.path()
            ),
        )
        .hint("write one slash, here and in the proxy")
    })
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[track_caller]
    fn states(public: &str, service: &str) -> Vec<State> {
        let mut settings = Settings::default();
        settings.listener.public_url = Some(public.to_owned());
        settings.service.url = Some(service.to_owned());
        look(&settings)
            .into_iter()
            .map(|found| found.state)
            .collect()
    }

    #[test]
    fn an_address_that_nobody_else_knows_is_found() {
        let service = "https://service.example";
        for (public, state) in [
            ("https://shop.example/n", State::Ok),
            ("https://shop.example/n/", State::Ok),
            ("https://203.0.113.5/n", State::Ok),
            ("http://localhost:8480/n", State::Fail),
            ("http://127.0.0.1:8480", State::Fail),
            ("http://[::1]:8480", State::Fail),
            ("https://192.168.1.5/n", State::Fail),
            ("https://[fd00::1]/n", State::Fail),
            ("https://shopserver/n", State::Fail),
            ("https://shop.local/n", State::Fail),
        ] {
            assert_eq!(states(public, service), [state], "{public}");
        }
        assert_eq!(
            states("http://127.0.0.1:8480/n", "http://127.0.0.1:8490"),
            [State::Ok]
        );
        assert_eq!(
            states("https://shop.example/a//n", service),
            [State::Ok, State::Fail]
        );
        assert_eq!(look(&Settings::default()).len(), 1);
    }
}
