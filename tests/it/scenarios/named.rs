//! Each scenario that is brought along holds, whatever it draws.

use super::{NAMES, json, left, out, run};

/// What each is tried with.
const SEEDS: &str = "1..20";

#[track_caller]
fn holds(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let output = run(dir.path(), &[name, "--seeds", SEEDS, "--json"]);
    let told = json(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(told.get("seeds"), Some(&20.into()), "{told}");
    assert_eq!(told.get("held"), Some(&20.into()), "{told}");
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn happy() {
    holds("happy");
}

#[test]
fn lost() {
    holds("lost");
}

#[test]
fn twice() {
    holds("twice");
}

#[test]
fn out_of_order() {
    holds("out-of-order");
}

#[test]
fn late_payment() {
    holds("late-payment");
}

#[test]
fn underpaid() {
    holds("underpaid");
}

#[test]
fn overpaid() {
    holds("overpaid");
}

#[test]
fn forged() {
    holds("forged");
}

#[test]
fn cancelled() {
    holds("cancelled");
}

#[test]
fn no_requisites() {
    holds("no-requisites");
}

#[test]
fn slow_or_torn() {
    holds("slow-or-torn");
}

#[test]
fn crash() {
    holds("crash");
}

#[test]
fn everything_at_once() {
    holds("everything-at-once");
}

#[test]
fn those_that_are_listed_are_those_that_are_tried() {
    let dir = tempfile::tempdir().expect("a directory");
    let listed = out(&run(dir.path(), &["--list"]));
    let names = listed.lines().filter_map(|line| line.split(' ').next());
    assert!(names.eq(NAMES), "{listed}");
    // Each fits a terminal.
    for line in listed.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}
