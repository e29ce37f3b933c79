//! The description is believed by nobody: schemathesis makes requests of it, right and wrong ones, and holds every answer of
//! a real daemon against it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::{Beside, relay};
use crate::harness::{Setup, skip};

/// Where `.ci/run` puts it.
fn library() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/schemathesis")
}

/// Times that are waited for are asked for in the right form and are none: what is looked at is the answers.
const NO_WAIT: &str = "[parameters]\n\"query.wait\" = 0\n\"query.timeout\" = 0\n";

/// Seconds it may take; those it needs not for the requests that it always makes are for made-up ones.
const MAX_TIME_S: &str = "40";

/// What the description cannot say of a right request: that an order id is 128 bytes and not letters at most, and that a number
/// is written without an exponent.
const NOT_SAID: &str = "positive_data_acceptance";

fn probe(shop: &Beside, seed: &str) -> Output {
    let dir = shop.dir.path();
    let text = shop.world.tilld(&["control", "openapi"]).ends_with(0);
    fs::write(dir.join("openapi.json"), text.stdout).expect("written");
    fs::write(dir.join("schemathesis.toml"), NO_WAIT).expect("written");
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
        .args(["--exclude-checks", NOT_SAID])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--max-examples",
            "20",
        ])
        .args(["--max-time", MAX_TIME_S, "--request-timeout", "30"])
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
    let probed = probe(&shop, &seed);
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
