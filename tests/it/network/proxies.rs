//! When a proxy stands between here and the service, and when not (A33). What is at stake: an access token, or the mere
//! fact of a request, shown to a proxy nobody asked for.

use std::fs;
use std::process::Command;

use super::{CREATE, serves};
use crate::harness::{Service, Setup, World, skip, under_test};

/// A name that exists nowhere: a request only gets somewhere through a proxy.
const REMOTE: &str = "http://pay.invalid";

/// A world whose service is [`REMOTE`], with this `service.proxy` if any.
fn remote(proxy: Option<&str>) -> World {
    let setup = Setup::new()
        .quiet()
        .service(REMOTE)
        .set("service.allow_plain_http", true)
        .not_served();
    match proxy {
        Some(proxy) => setup.set("service.proxy", format!("{proxy:?}")).start(),
        None => setup.start(),
    }
}

/// `invoice create` with a token and these variables.
fn create(world: &World, variables: &[(&str, &str)]) -> crate::harness::Ran {
    let mut all = vec![("SERVICE_TOKEN", "shop:token")];
    all.extend(variables);
    world.tilld_with(&all, &CREATE)
}

fn lines(service: &Service) -> Vec<String> {
    let heard = service.heard();
    heard
        .iter()
        .map(|heard| heard.line.trim_end().to_owned())
        .collect()
}

/// How a request looks that a proxy is to pass on.
const PASSED: &str = "POST http://pay.invalid/api/v1/invoices HTTP/1.1";

#[test]
fn without_a_word_of_the_config_no_proxy_is_used() {
    let proxy = Service::start(serves);
    let url = proxy.url();
    let world = remote(None);
    let variables = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ]
    .map(|name| (name, url.as_str()));
    let unreachable = create(&world, &variables).ends_with(8);
    assert!(
        unreachable.stderr.contains("could not connect"),
        "{unreachable:?}"
    );
    assert_eq!(lines(&proxy), [""; 0]);
}

#[test]
fn the_environments_proxy_is_used_when_the_config_says_so() {
    let proxy = Service::start(serves);
    let url = proxy.url();
    let world = remote(Some("environment"));
    for no in ["pay.invalid", "*", ".invalid"] {
        create(&world, &[("HTTP_PROXY", &url), ("NO_PROXY", no)]).ends_with(8);
    }
    create(&world, &[("HTTPS_PROXY", &url)]).ends_with(8);
    assert_eq!(lines(&proxy), [""; 0], "not for this service");
    create(
        &world,
        &[("HTTP_PROXY", &url), ("NO_PROXY", "shop.example")],
    )
    .ends_with(0);
    assert_eq!(lines(&proxy), [PASSED]);
    let polled = [("SERVICE_TOKEN", "shop:token"), ("all_proxy", &url)];
    world
        .tilld_with(&polled, &["invoice", "poll", "A-1"])
        .ends_with(0);
    let passed = "GET http://pay.invalid/api/v1/invoices/inv-1 HTTP/1.1";
    assert_eq!(lines(&proxy), [PASSED, passed]);
}

#[test]
fn the_configs_own_proxy_is_used_whatever_the_environment_says() {
    let (proxy, other) = (Service::start(serves), Service::start(serves));
    let world = remote(Some(&proxy.url()));
    let url = other.url();
    create(&world, &[("HTTP_PROXY", &url), ("NO_PROXY", "*")]).ends_with(0);
    assert_eq!(lines(&proxy), [PASSED]);
    assert_eq!(lines(&other), [""; 0]);
}

#[test]
fn an_encrypted_service_is_reached_through_a_tunnel_and_its_proxy_sees_nothing() {
    let proxy = Service::start(|_heard| (502, String::new()));
    let world = remote(Some(&proxy.url()));
    let https = ("TILLD_SERVICE__URL", "https://pay.invalid");
    let refused = create(&world, &[https]);
    if refused.code == 10 {
        skip!("no root certificates: {}", refused.stderr);
    }
    // The tunnel never stood, so nothing can have been opened.
    let refused = refused.ends_with(8);
    assert!(refused.stderr.contains("could not connect"), "{refused:?}");
    assert_eq!(world.invoice("A-1", "opening"), "refused");
    assert_eq!(lines(&proxy), ["CONNECT pay.invalid:443 HTTP/1.1"]);
    for heard in proxy.heard() {
        assert!(!format!("{heard:?}").contains("shop:token"), "{heard:?}");
    }
}

#[test]
fn a_service_on_this_machine_is_never_asked_through_a_proxy() {
    let (proxy, service) = (Service::start(serves), Service::start(serves));
    let url = proxy.url();
    let at_localhost = service.url().replace("127.0.0.1", "localhost");
    for setting in ["environment", &url] {
        let world = remote(Some(setting));
        let variables = [("HTTP_PROXY", url.as_str()), ("ALL_PROXY", &url)];
        for base in [&service.url(), &at_localhost] {
            let mut all = vec![("TILLD_SERVICE__URL", base.as_str())];
            all.extend(variables);
            let before = service.heard().len();
            create(&world, &all).ends_with(0);
            let order = "DELETE FROM secret; DELETE FROM poll; DELETE FROM history; DELETE FROM event; DELETE FROM invoice";
            world.neighbour().tamper(order);
            assert_eq!(service.heard().len(), before + 1, "{setting} {base}");
        }
    }
    assert_eq!(lines(&proxy), [""; 0]);
}

#[test]
fn a_proxy_that_would_put_a_secret_into_the_config_or_is_none_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("config.toml");
    let check = |proxy: &str| {
        fs::write(&file, format!("[service]\nproxy = {proxy:?}\n")).expect("written");
        let mut command = Command::new(under_test());
        command.env_clear().env("HOME", dir.path());
        command.args(["hook", "list", "--config"]).arg(&file);
        let ended = command.output().expect("tilld runs");
        let talk = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.code(), talk)
    };
    for proxy in [
        "http://proxy.example:3128",
        "http://10.0.0.1:8080/",
        "http://[::1]:1",
        "environment",
    ] {
        assert_eq!(check(proxy).0, Some(0), "{proxy}: {}", check(proxy).1);
    }
    for (proxy, why) in [
        ("http://me:hunter2@proxy.example:3128", "holds no secrets"),
        ("http://me@proxy.example:3128", "holds no secrets"),
        ("socks5://proxy.example:1080", "`http://HOST:PORT`"),
        ("https://proxy.example:3128", "`http://HOST:PORT`"),
        ("proxy.example:3128", "`http://HOST:PORT`"),
        ("yes", "`http://HOST:PORT`"),
        ("", "`http://HOST:PORT`"),
        ("http://proxy.example:3128/path", "end after the port"),
    ] {
        let (code, talk) = check(proxy);
        assert_eq!(code, Some(10), "{proxy}: {talk}");
        assert!(
            talk.contains("`service.proxy`") && talk.contains(why),
            "{talk}"
        );
        assert!(!talk.contains("hunter2"), "{talk}");
    }
}
