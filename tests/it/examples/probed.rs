//! The control socket's description is believed by nobody: every answer of a real daemon is held against it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::{Beside, relay};
use crate::harness::{Probe, Setup, cannot_probe, dice, skip};

/// Times that are waited for are asked for in the right form and are none: what is looked at is the answers.
const NO_WAIT: &str = "[parameters]\n\"query.wait\" = 0\n\"query.timeout\" = 0\n";
/// A time that is really waited for, the shortest.
const SHORT_WAIT: &str =
    "[parameters]\n\"query.wait\" = 1\n\"query.timeout\" = 1\n\"header.Prefer\" = \"wait=1\"\n";

/// What the description cannot say of a right request: that an order id is 128 bytes and not letters at most, and that a number
/// is written without an exponent.
const NOT_SAID: &str = "positive_data_acceptance";

/// A stream of events goes on, so its end would be waited for.
const NO_STREAM: &str = "Accept: application/json";

/// No 5xx, no status, header, type or field that is not described, and nothing wrong is taken.
/// `TILLD_SEED` makes other requests up than usual.
#[test]
fn schemathesis_finds_nothing_that_is_not_described() {
    if let Some(why) = cannot_probe() {
        skip!("{why}");
    }
    let setup = Setup::new().quiet().sandbox(&["--pool=100000"]);
    let shop = Beside::start(setup.set("log_level", "\"info\""));
    // The one its examples name, so that they find something.
    shop.open("1042");
    let text = shop.world.tilld(&["control", "openapi"]).ends_with(0);
    let probe = Probe {
        dir: shop.dir.path(),
        description: &text.stdout,
        url: &format!("http://{}", relay::to(&shop.socket())),
        headers: &[NO_STREAM],
        parameters: NO_WAIT,
        without: NOT_SAID,
        phases: "examples,coverage,fuzzing",
        examples: 150,
        seed: dice::number("TILLD_SEED").unwrap_or(1),
    };
    probe.finds_nothing().tried(14, 100);
    let created = shop.world.requests("create");
    // Eight of those that are always made are right.
    assert!(
        created >= 8,
        "{created} creates came through to the service"
    );
}

/// The answers that only a daemon gives which waits, is full, or has no login: they are as described too.
#[test]
fn schemathesis_finds_nothing_in_waits_and_refusals_for_want_of_places() {
    if let Some(why) = cannot_probe() {
        skip!("{why}");
    }
    let setup = Setup::new()
        .quiet()
        .logged_out()
        .set("control.followers", 1);
    let shop = Beside::start(setup.set("log_level", "\"debug\""));
    let text = shop.world.tilld(&["control", "openapi"]).ends_with(0);
    let probe = Probe {
        dir: shop.dir.path(),
        description: &text.stdout,
        url: &format!("http://{}", relay::to(&shop.socket())),
        headers: &[NO_STREAM],
        parameters: SHORT_WAIT,
        // The 503 of a daemon without a login is no mistake of its own here.
        without: "positive_data_acceptance,not_a_server_error",
        phases: "examples,fuzzing",
        examples: 5,
        seed: 1,
    };
    let answered = |line: &str| {
        let log = shop.world.serve_log();
        let (start, _) = line.rsplit_once(' ').expect("words");
        let start = start.rsplit_once(' ').map_or(start, |(start, _)| start);
        let like: Vec<&str> = log.lines().filter(|told| told.contains(start)).collect();
        assert!(log.contains(line), "{line}: {like:#?}");
    };
    probe.finds_nothing();
    answered("POST /v1/invoices: 503, for");
    shop.world.login();
    shop.open("1042");
    probe.finds_nothing();
    answered("GET /v1/orders/1042/wait: 202, for");
    let mut follows = UnixStream::connect(shop.socket()).expect("the socket");
    follows
        .write_all(b"GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\n\r\n")
        .expect("sent");
    let mut begun = [0; 1];
    follows.read_exact(&mut begun).expect("it follows");
    probe.finds_nothing();
    answered("GET /v1/orders/1042/wait: 429, for");
}
