//! The description is believed by nobody: schemathesis makes requests of it, right and wrong ones, and holds every answer of
//! a real daemon against it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use super::{Beside, relay};
use crate::harness::{Setup, skip};

/// Where `.ci/run` puts it.
fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/schemathesis")
}

/// Times that are waited for are asked for in the right form and are none: what is looked at is the answers.
const NO_WAIT: &str = "[parameters]\n\"query.wait\" = 0\n\"query.timeout\" = 0\n";
/// A time that is really waited for, the shortest.
const SHORT_WAIT: &str =
    "[parameters]\n\"query.wait\" = 1\n\"query.timeout\" = 1\n\"header.Prefer\" = \"wait=1\"\n";

/// Seconds it may take; those it needs not for the requests that it always makes are for made-up ones.
const MAX_TIME_S: &str = "60";

/// One at a time: each fills a machine of two cores.
static PROBING: Mutex<()> = Mutex::new(());

/// What the description cannot say of a right request: that an order id is 128 bytes and not letters at most, and that a number
/// is written without an exponent.
const NOT_SAID: &str = "positive_data_acceptance";

/// How a daemon is probed.
struct Probe<'a> {
    parameters: &'a str,
    /// Checks that are left out.
    without: &'a str,
    phases: &'a str,
    examples: &'a str,
    max_time_s: &'a str,
}

fn probe(shop: &Beside, seed: &str, how: &Probe<'_>) -> Output {
    let _alone = PROBING.lock().unwrap_or_else(PoisonError::into_inner);
    let dir = shop.dir.path();
    let text = shop.world.tilld(&["control", "openapi"]).ends_with(0);
    fs::write(dir.join("openapi.json"), text.stdout).expect("written");
    fs::write(dir.join("schemathesis.toml"), how.parameters).expect("written");
    let mut command = Command::new("python3");
    command
        .env("PYTHONPATH", library())
        .current_dir(dir)
        .stdin(Stdio::null())
        .args([
            "-m",
            "schemathesis.cli",
            "--config-file",
            "schemathesis.toml",
        ])
        .args(["run", "openapi.json", "--checks", "all"])
        .args(["--exclude-checks", how.without])
        .args(["--phases", how.phases, "--max-examples", how.examples])
        .args(["--max-time", how.max_time_s, "--request-timeout", "30"])
        .args(["--suppress-health-check", "all", "--continue-on-failure"])
        // A stream of events goes on, so its end would be waited for.
        .args(["--header", "Accept: application/json"])
        .args(["--seed", seed])
        .arg(format!("--url=http://{}", relay::to(&shop.socket())));
    command.output().expect("python3 runs")
}

/// No 5xx, no status, header, type or field that is not described, and nothing wrong is taken.
/// `TILLD_SEED` makes other requests up than usual.
#[test]
fn schemathesis_finds_nothing_that_is_not_described() {
    if !library().join("schemathesis").exists() {
        skip!("schemathesis is not in {}", library().display());
    }
    let setup = Setup::new().quiet().sandbox(&["--pool=100000"]);
    let shop = Beside::start(setup.set("log_level", "\"info\""));
    // The one its examples name, so that they find something.
    shop.open("1042");
    let seed = std::env::var("TILLD_SEED").unwrap_or_else(|_none| "1".to_owned());
    let how = Probe {
        parameters: NO_WAIT,
        without: NOT_SAID,
        phases: "examples,coverage,fuzzing",
        examples: "20",
        max_time_s: MAX_TIME_S,
    };
    let probed = probe(&shop, &seed, &how);
    let said = String::from_utf8_lossy(&probed.stdout);
    assert!(
        probed.status.success(),
        "seed {seed}: {said}{}",
        String::from_utf8_lossy(&probed.stderr)
    );
    let made: Option<u32> = said.lines().find_map(|line| {
        let (count, _) = line.trim().split_once(" generated, ")?;
        count.trim().parse().ok()
    });
    // A busy machine makes fewer; a run that was cut short makes none of them.
    let at_least = 100;
    assert!(made.is_some_and(|made| made > at_least), "{said}");
    assert!(said.contains("Tested: 8"), "{said}");
    let created = shop.world.requests("create");
    assert!(
        created > 10,
        "{created} creates came through to the service"
    );
}

/// The answers that only a daemon gives which waits, is full, or has no login: they are as described too.
#[test]
fn schemathesis_finds_nothing_in_waits_and_refusals_for_want_of_places() {
    if !library().join("schemathesis").exists() {
        skip!("schemathesis is not in {}", library().display());
    }
    let setup = Setup::new()
        .quiet()
        .logged_out()
        .set("control.followers", 1);
    let shop = Beside::start(setup.set("log_level", "\"debug\""));
    let how = Probe {
        parameters: SHORT_WAIT,
        // The 503 of a daemon without a login is no mistake of its own here.
        without: "positive_data_acceptance,not_a_server_error",
        phases: "examples,fuzzing",
        examples: "3",
        max_time_s: "10",
    };
    let finds_nothing = || {
        let probed = probe(&shop, "1", &how);
        let said = String::from_utf8_lossy(&probed.stdout);
        let talk = String::from_utf8_lossy(&probed.stderr);
        assert!(probed.status.success(), "{said}{talk}");
    };
    let answered = |line: &str| {
        let log = shop.world.serve_log();
        let (start, _) = line.rsplit_once(' ').expect("words");
        let start = start.rsplit_once(' ').map_or(start, |(start, _)| start);
        let like: Vec<&str> = log.lines().filter(|told| told.contains(start)).collect();
        assert!(log.contains(line), "{line}: {like:#?}");
    };
    finds_nothing();
    answered("POST /v1/invoices: 503, for");
    shop.world.login();
    shop.open("1042");
    finds_nothing();
    answered("GET /v1/invoices/1042/wait: 202, for");
    let mut follows = UnixStream::connect(shop.socket()).expect("the socket");
    follows
        .write_all(b"GET /v1/events HTTP/1.1\r\nHost: t\r\nAccept: text/event-stream\r\n\r\n")
        .expect("sent");
    let mut begun = [0; 1];
    follows.read_exact(&mut begun).expect("it follows");
    finds_nothing();
    answered("GET /v1/invoices/1042/wait: 429, for");
}
