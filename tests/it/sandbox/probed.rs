//! The sandbox's description beside what it really answers.

use std::fs;
use std::process::Command;

use crate::harness::access_token;
use crate::harness::{Probe, Setup, cannot_probe, dice, skip, under_test};

/// What the description cannot say of a right request: that a number is one that money can be, that a length is counted in
/// bytes, that a name is more than blanks of any alphabet. Such a request is described as right and refused all the same,
/// with an answer that is described.
const NOT_SAID: &str = "positive_data_acceptance";

/// No 5xx, no status, type or field that is not described, and nothing wrong is taken. With all the
/// freedom of its spelling: any order of fields, more of them, and fewer. `TILLD_SEED` makes other requests up.
#[test]
fn schemathesis_finds_nothing_in_the_sandbox_that_is_not_described() {
    if let Some(why) = cannot_probe() {
        skip!("{why}");
    }
    let setup = Setup::new().not_served().sandbox(&["--pool=100000"]);
    let world = setup.start();
    let credentials = fs::read_to_string(world.state_dir().join("secret/credentials"));
    let token = access_token(&credentials.expect("a login"));
    let printed = Command::new(under_test())
        .args(["sandbox", "openapi"])
        .output();
    let text = String::from_utf8(printed.expect("tilld runs").stdout).expect("UTF-8");
    let probe = Probe {
        dir: world.dir(),
        description: &text,
        url: &format!("http://{}", world.address("service")),
        headers: &[&format!("Authorization: Bearer {token}")],
        parameters: "",
        without: NOT_SAID,
        phases: "examples,coverage,fuzzing",
        examples: 60,
        seed: dice::number("TILLD_SEED").unwrap_or(1),
    };
    probe.finds_nothing().tried(4, 60);
    let created = world.requests("create");
    assert!(created > 10, "{created} creates");
}
