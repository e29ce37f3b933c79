//! The way to the service: two addresses of which one swallows everything, and proxies (A33). What is at stake: every
//! request held up by a router that drops what it does not like, and an access token shown to a proxy nobody asked for.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::harness::{Heard, PATIENCE, Service, Setup, World, skip, wait_until};

/// Connections opened to fill a queue of two before the port counts as one that cannot be filled.
const MOST_TRIED: usize = 64;

/// A port at which SYNs are dropped, as by a router on the way: its queue is full and nobody takes from it.
struct BlackHole {
    _listener: TcpListener,
    _filling: Vec<TcpStream>,
}

impl BlackHole {
    fn at(address: SocketAddr) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(async {
            let socket = TcpSocket::new_v6().ok()?;
            socket.bind(address).ok()?;
            socket.listen(1).ok()?.into_std().ok()
        })?;
        let mut filling = Vec::new();
        while filling.len() < MOST_TRIED {
            match TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
                Ok(stream) => filling.push(stream),
                Err(_silence) => {
                    return Some(Self {
                        _listener: listener,
                        _filling: filling,
                    });
                }
            }
        }
        None
    }
}

/// Why there is no [`Hosts`].
const NO_HOSTS: &str =
    "no table of hosts of one's own: `unshare --mount` or `mount --bind` is refused";

/// A table of hosts that only the programs under it see, and that may change while they run.
struct Hosts {
    dir: tempfile::TempDir,
    mount: String,
}

impl Hosts {
    fn new(text: &str) -> Option<Self> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("hosts");
        let mount = format!(
            "mount --bind '{}' /etc/hosts && exec \"$@\"",
            file.display()
        );
        let hosts = Self { dir, mount };
        hosts.say(text);
        let under = hosts.under();
        let mut words = under.iter().chain(&["true"]);
        let mut tried = Command::new(words.next()?);
        let tried = tried.args(words).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success()).then_some(hosts)
    }

    /// Changes it in its place.
    fn say(&self, text: &str) {
        fs::write(self.dir.path().join("hosts"), text).expect("a table of hosts");
    }

    /// The program under which it is seen, and which becomes the one behind it.
    fn under(&self) -> Vec<&str> {
        let mut under = vec!["unshare", "--mount"];
        if !rustix::process::geteuid().is_root() {
            under.extend(["--map-current-user", "--keep-caps"]);
        }
        under.extend(["/bin/sh", "-c", &self.mount, "sh"]);
        under
    }
}

/// `invoice create` of order A-1.
const CREATE: [&str; 7] = [
    "invoice",
    "create",
    "--json",
    "--order=A-1",
    "--amount=599.80",
    "--currency=RUB",
    "--method=SBP",
];

/// The service's own answers: an invoice of the order that was asked for.
fn serves(heard: &Heard) -> (u16, String) {
    let body: Value = serde_json::from_str(&heard.body).unwrap_or_default();
    let order = body
        .get("internalId")
        .cloned()
        .unwrap_or_else(|| json!("A-1"));
    let document = json!({
        "id": "inv-1", "direction": "in", "status": "new", "paymentMethod": "SBP", "amount": "599.80", "currency": "RUB",
        "createdAt": "2026-01-01T00:00:00.000Z", "updatedAt": "2026-01-01T00:00:00.000Z", "internalId": order,
    });
    (200, document.to_string())
}

/// Both addresses of `localhost` are looked up anew for each request, and the first of them swallows it.
#[test]
fn an_address_that_swallows_everything_costs_a_moment_and_no_time_out() {
    let service = Service::start(serves);
    let port: u16 = service
        .url()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let Some(_hole) = BlackHole::at(SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port))) else {
        skip!("no black hole at [::1]:{port}");
    };
    // Not every machine's own table has both.
    let Some(hosts) = Hosts::new("::1 localhost\n127.0.0.1 localhost\n") else {
        skip!("{NO_HOSTS}");
    };
    let under = hosts.under();
    let world = Setup::new()
        .quiet()
        .service(&format!("http://localhost:{port}"))
        .set("service.connect_timeout_s", 25)
        .set("service.request_timeout_s", 28)
        .not_served()
        .start();
    for args in [["login"].as_slice(), &CREATE, &["invoice", "poll", "A-1"]] {
        let start = Instant::now();
        world.tilld_under(&under, args).ends_with(0);
        // A login is two requests and a second's pause; the time-out would be 25 s for each request.
        let took = start.elapsed();
        assert!(took < PATIENCE / 2, "{args:?} took {took:?}");
    }
    let heard = service.heard();
    assert!(heard.iter().any(|heard| heard.line.starts_with("GET ")));
    // It does swallow everything: alone it costs the whole time-out, and nothing was sent.
    let alone = [
        ("TILLD_SERVICE__URL", format!("http://[::1]:{port}")),
        ("TILLD_SERVICE__CONNECT_TIMEOUT_S", "1".to_owned()),
        ("SERVICE_TOKEN", "shop:token".to_owned()),
    ];
    let alone = alone
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    world
        .tilld_with(&alone, &["invoice", "poll", "A-1"])
        .ends_with(8);
    assert_eq!(service.heard().len(), heard.len());
}

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
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
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

/// A daemon that starts before the network does takes notifications at once, and asks as soon as the name is known.
#[test]
fn a_daemon_that_starts_without_a_resolver_takes_notifications_and_catches_up() {
    let name = "127.0.0.1 service.invalid\n";
    let Some(hosts) = Hosts::new(name) else {
        skip!("{NO_HOSTS}");
    };
    let under = hosts.under();
    let service = Service::start(|heard| {
        let (status, text) = serves(heard);
        let paid = text
            .replace("\"new\"", "\"paid\"")
            .replace("T00:00:00.000Z", "T00:01:00.000Z");
        let is_asked = heard.line.starts_with("GET ");
        (status, if is_asked { paid } else { text })
    });
    let mut world = Setup::new()
        .noting_hook("fulfil", &["paid"])
        .service(&service.url().replace("127.0.0.1", "service.invalid"))
        .set("service.allow_plain_http", true)
        .under(&under)
        .not_served()
        .start();
    world.tilld_under(&under, &["login"]).ends_with(0);
    world.tilld_under(&under, &CREATE).ends_with(0);
    let heard = service.heard();
    let create = &heard.last().expect("a create").body;
    let create: Value = serde_json::from_str(create).expect("JSON");
    let token = create.get("notificationToken").and_then(Value::as_str);
    let token = [("X-Notification-Token", token.expect("a token"))];

    hosts.say("");
    world.start_serve();
    wait_until(PATIENCE, "a question that fails", || {
        world.serve_log().contains("could not connect")
    });
    let waiting =
        json!({ "id": "inv-1", "status": "waiting", "updatedAt": "2026-01-01T00:00:01.000Z" });
    let told = world.notify(&world.invoice("A-1", "ref"), &token, &waiting.to_string());
    assert_eq!(told.status, 200);
    assert_eq!(world.invoice("A-1", "status"), "waiting");

    hosts.say(name);
    // What the failed questions put off comes first.
    wait_until(PATIENCE * 2, "the question", || {
        world.invoice("A-1", "outcome") == "paid"
    });
    world.settle();
    assert_eq!(world.hook_log("fulfil").len(), 1);
}
