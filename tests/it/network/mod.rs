//! The way to the service (A33): two addresses of which one swallows everything, a name that is not known yet, and proxies.
//! What is at stake: every request held up by a router that drops what it does not like, and a daemon that is dead until
//! somebody looks.

mod proxies;

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::harness::{Heard, PATIENCE, Service, Setup, skip, wait_until};

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
