//! The request that tells whether a proxy leads here.

use std::process::Command;

use super::docs;
use crate::harness::{PATIENCE, Setup, skip, wait_until};

/// The line that asks whether the proxy leads here.
#[test]
fn an_address_that_nobody_has_is_answered_as_it_says() {
    let docs = docs();
    let line = "curl -i -H 'Content-Type: application/json' -d '{}' ";
    let (_, rest) = docs.split_once(line).expect("the line");
    let (address, _) = rest.split_once('`').expect("its end");
    let path = address
        .strip_prefix("https://shop.example")
        .expect("an address");
    assert!(rest.contains("answered 400 with `not an invoice`"));
    let world = Setup::new().quiet().start();
    let line = format!("{line}http://{}{path}", world.listen());
    let ran = Command::new("/bin/sh").args(["-c", &line]).output();
    let Ok(ran) = ran.map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned()) else {
        skip!("there is no curl");
    };
    if ran.is_empty() {
        skip!("there is no curl");
    }
    assert!(
        ran.starts_with("HTTP/1.1 400") && ran.ends_with("not an invoice\n"),
        "{ran}"
    );
    wait_until(PATIENCE, "the refusal to be listed", || {
        let listed = world.tilld(&["refusal", "list"]).ends_with(0).stdout;
        listed.contains("not_an_invoice") || listed.contains("invoice_id")
    });
}
