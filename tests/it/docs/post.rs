//! Posting to the shop: the headers it names, and the lines that make a secret and say who reads it. The pages that check
//! signatures run in `posts/pages`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::{block, column, docs, table};
use crate::harness::{Setup, skip};
use crate::shop::Shop;

#[test]
fn the_headers_it_names_are_sent() {
    let world = Setup::new()
        .not_served()
        .post_hook("shop", &["paid"], "http://127.0.0.1:1/")
        .start();
    let tried = world
        .tilld(&["hook", "test", "shop", "--json"])
        .ends_with(1);
    let report = tried.json();
    let sent = report
        .get("headers")
        .and_then(|headers| headers.as_object());
    let mut sent: Vec<&String> = sent.expect("headers").keys().collect();
    sent.sort();
    let mut named = column(&table(&docs(), "header"), 0);
    named.sort();
    assert_eq!(named.iter().collect::<Vec<_>>(), sent);
}

/// Where the examples have their secret.
const THERE: &str = "/etc/tilld/shop.secret";

#[test]
fn the_hook_it_shows_with_the_secret_it_makes_can_post() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("shop.secret");
    let here = |name: &str| {
        let text = block(&docs(), name);
        assert!(text.contains(THERE), "{text}");
        text.replace(THERE, &file.to_string_lossy())
    };
    let there = here("secret");
    let made = Command::new("/bin/sh").args(["-c", &there]).status();
    assert!(made.expect("sh runs").success());
    let mode = file.metadata().expect("made").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let shop = Shop::new(&here("post"));
    let listed = shop.tilld(&["hook", "list", "--json"], 0).lines();
    let usable: Vec<Option<&Value>> = listed.iter().map(|hook| hook.get("usable")).collect();
    assert_eq!(usable, [Some(&json!(true))], "{listed:?}");
}

/// Whoever is in the group of the shop's user reads the secret and cannot change it; others do neither.
#[test]
fn the_shops_user_may_read_the_secret_and_no_other_may() {
    const SHOP: &str = "65534";
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give a file to another user");
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        skip!("setpriv is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("own directory");
    let file = dir.path().join("shop.secret");
    for name in ["secret", "readers"] {
        let there = block(&docs(), name).replace(THERE, &file.to_string_lossy());
        // Neither user need be there: the daemon's is this one, the shop's has this number.
        let there = there.replace("tilld:www-data", &format!("0:{SHOP}"));
        let ran = Command::new("/bin/sh").args(["-ec", &there]).status();
        assert!(ran.expect("sh runs").success(), "{name}");
    }
    let kept = fs::read_to_string(&file).expect("readable");
    let may = |group: &str, does: &str| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65533", "--clear-groups"]);
        command.arg(format!("--regid={group}"));
        command.args(["sh", "-c", does, "sh"]).arg(&file);
        let ran = command.output().expect("setpriv runs");
        (
            ran.status.success(),
            String::from_utf8_lossy(&ran.stdout).into_owned(),
        )
    };
    assert_eq!(may(SHOP, "cat \"$1\""), (true, kept));
    assert!(!may(SHOP, "echo > \"$1\"").0, "the shop cannot change it");
    assert_eq!(may("65533", "cat \"$1\""), (false, String::new()));
    // tilld takes a file that it shares so.
    let hook = block(&docs(), "post").replace(THERE, &file.to_string_lossy());
    let listed = Shop::new(&hook)
        .tilld(&["hook", "list", "--json"], 0)
        .lines();
    let usable: Vec<Option<&Value>> = listed.iter().map(|hook| hook.get("usable")).collect();
    assert_eq!(usable, [Some(&json!(true))], "{listed:?}");
}
