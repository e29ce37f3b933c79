//! The secret file: what is wrong with it is found before the first payment, it may be changed while the daemon runs, and
//! nothing of it ever shows.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::endpoint::{Endpoint, says};
use super::results;
use crate::harness::{PATIENCE, SECRET, Setup, wait_until, write_secret};

/// Another secret.
const OTHER: &str = "whsec_YW5vdGhlci1zZWNyZXQtb2YtdGlsbGQtdGVzdHM=";

/// Runs the first line that a hint gives.
fn run(hint: &str) {
    let line = hint.split('`').nth(1).expect("a line to run");
    let ran = Command::new("/bin/sh").args(["-c", line]).output();
    assert!(
        ran.as_ref().is_ok_and(|ran| ran.status.success()),
        "{ran:?}"
    );
}

#[test]
fn a_secret_that_cannot_sign_is_found_at_the_start_with_the_way_out() {
    let world = Setup::new()
        .not_served()
        .post_hook("shop", &["paid"], "http://127.0.0.1:1/")
        .start();
    let file = world.secret_file("shop");
    let refused = |why: &str| {
        let ran = world.tilld(&["serve", "--check"]).ends_with(10);
        let told = format!(
            "error: hook `shop` cannot sign with `{}`: {why}",
            file.display()
        );
        assert!(ran.stderr.contains(&told), "{ran:?}");
        let (_, hint) = ran.stderr.split_once("hint: ").expect("a hint");
        assert!(!ran.stderr.contains("whsec_dG"), "{ran:?}");
        hint.to_owned()
    };
    write_secret(&file, SECRET.trim_start_matches("whsec_"));
    let hint = refused("secret 1 in it does not begin with `whsec_`");
    assert!(hint.contains("the shop must be given too"), "{hint}");
    write_secret(&file, &SECRET.replace("dGls", "dGl"));
    refused("secret 1 in it is no base64");
    write_secret(&file, "whsec_c2hvcnQ=");
    refused("secret 1 in it has 5 bytes, wanted are 24 to 64");
    write_secret(&file, SECRET);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("own file");
    // A good secret, which the shop knows: the line leaves it as it is.
    let hint = refused("it has mode 0644: everybody may read or change it");
    run(&hint);
    world.tilld(&["serve", "--check"]).ends_with(0);
    let kept = fs::read_to_string(&file).expect("readable");
    assert_eq!(kept.trim_end(), SECRET);
    fs::remove_file(&file).expect("removed");
    let hint = refused("No such file or directory");

    // The line it gives makes one.
    run(&hint);
    let mode = fs::metadata(&file).expect("made").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    world.tilld(&["serve", "--check"]).ends_with(0);
}

#[test]
fn a_secret_may_change_while_it_runs_and_shows_nowhere() {
    let endpoint = Endpoint::start(&[says(200)]);
    let mut world = Setup::new()
        .quiet()
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    let file = world.secret_file("shop");
    world.pay("A-1");
    world.settle();
    // A rotation: both sign until the shop knows the new one.
    write_secret(&file, &format!("{OTHER}\n{SECRET}"));
    world.pay("A-2");
    world.settle();
    // Damaged, it costs an attempt and no more.
    write_secret(&file, "whsec_hunter2-hunter2");
    world.pay("A-3");
    let damaged = format!(
        "not started: no secret in `{}`: secret 1 in it is no base64 with padding behind `whsec_`",
        file.display()
    );
    wait_until(PATIENCE, "a failed attempt", || {
        results(&world, "shop").contains(&damaged)
    });
    write_secret(&file, OTHER);
    world.settle();
    let count = |asked: &str| {
        asked
            .split(' ')
            .filter(|one| one.starts_with("v1,"))
            .count()
    };
    let signatures: Vec<usize> = endpoint
        .asked()
        .iter()
        .map(|asked| count(asked.header("webhook-signature")))
        .collect();
    assert_eq!(signatures, [1, 2, 1]);
    assert_eq!(world.stop_serve(PATIENCE), 0);

    let mut looked = 0;
    for dir in [world.log_dir(), world.state_dir()] {
        for entry in fs::read_dir(dir).expect("a directory").flatten() {
            let Ok(bytes) = fs::read(entry.path()) else {
                continue;
            };
            looked += 1;
            for secret in [SECRET, OTHER, "hunter2"] {
                let secret = secret.trim_start_matches("whsec_").as_bytes();
                let shows = bytes.windows(secret.len()).any(|part| part == secret);
                assert!(!shows, "a secret stands in {}", entry.path().display());
            }
        }
    }
    assert!(looked > 2, "files were looked at");
}
