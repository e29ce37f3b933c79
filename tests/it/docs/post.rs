//! Posting to the shop: the headers it names, and the line that makes a secret. The examples that check signatures run in
//! `posts/verify`.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use super::{block, column, docs, table};
use crate::harness::Setup;
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
