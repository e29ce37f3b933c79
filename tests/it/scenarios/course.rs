//! What a run makes of its course: who pays late was told where, a number that is right too early is found out, and whatever
//! fails fails again in the same words.

use std::fs;
use std::path::Path;
use std::process::Output;

use super::{broken, json, out, run, talk};

fn play(dir: &Path, text: &str, args: &[&str]) -> Output {
    fs::write(dir.join("mine.toml"), text).expect("written");
    run(dir, &[&["mine.toml"][..], args].concat())
}

#[track_caller]
fn holds(text: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let output = play(dir.path(), text, &["--seed", "3"]);
    let said = out(&output);
    assert_eq!(output.status.code(), Some(0), "{said}{}", talk(&output));
}

#[track_caller]
fn is_broken(text: &str, wanted: &[&str]) {
    let dir = tempfile::tempdir().expect("a directory");
    let output = play(dir.path(), text, &["--seed", "3", "--json"]);
    let told = json(&output);
    let what: Vec<String> = broken(&told).into_iter().map(|[what, ..]| what).collect();
    assert_eq!(what, wanted, "{told}");
    assert_eq!(output.status.code(), Some(1), "{told}");
}

#[test]
fn who_cancels_on_the_payment_page_may_pay_late() {
    holds(
        r#"
summary = "cancelled, and paid late"
step = [
  { open = { order = "A", mode = "redirect" } },
  { cancel = "A" },
  { wait = { order = "A", outcome = "failed" } },
  { pay = "A" },
  { expect = { order = "A", outcome = "paid", handed_over = 1 } },
]
"#,
    );
}

#[test]
fn whose_window_ends_by_itself_may_pay_late() {
    holds(
        r#"
summary = "over by itself, and paid late"
settings = { window_s = 1 }
step = [
  { open = { order = "A", mode = "redirect" } },
  { wait = { order = "A", outcome = "failed" } },
  { pay = "A" },
  { expect = { order = "A", outcome = "paid", handed_over = 1 } },
]
"#,
    );
}

#[test]
fn who_never_pays_needs_no_requisite() {
    holds(
        r#"
summary = "cancelled while all requisites are occupied"
step = [
  { pool = 0 },
  { open = { order = "A", mode = "redirect" } },
  { cancel = "A" },
  { expect = { order = "A", outcome = "failed", handed_over = 0 } },
]
"#,
    );
}

#[test]
fn a_number_that_was_right_too_early_is_found_out() {
    is_broken(
        r#"
summary = "the payment is still on its way"
step = [
  { open = { order = "A", mode = "h2h" } },
  { faults = { invoice = "A", delay_ms = 3000 } },
  { pay = "A" },
  { expect = { order = "A", outcome = "open", events = 1, runs = 0, refusals = 0 } },
]
"#,
        &["A events to the end", "A runs to the end"],
    );
}

/// Refused in the end, though all was paid and run long before.
#[test]
fn a_late_refusal_is_found_out() {
    is_broken(
        r#"
summary = "a second word comes late, with a wrong token"
settings = { poll_s = 1 }
step = [
  { open = { order = "A", mode = "h2h" } },
  { faults = { invoice = "A", delay_ms = 8000, wrong_token = true } },
  { pay = "A" },
  { expect = { order = "A", outcome = "paid", handed_over = 1, refusals = 0 } },
]
"#,
        &["A refusals to the end"],
    );
}

#[test]
fn money_that_was_too_little_and_goes_back_was_no_payment() {
    holds(
        r#"
summary = "paid too little, and the money goes back"
settings = { within_s = 60 }
step = [
  { open = { order = "A", mode = "h2h" } },
  { pay_less = "A" },
  { wait = { order = "A", outcome = "mismatch" } },
  { refund = "A" },
  { expect = { order = "A", outcome = "reversed", handed_over = 0 } },
]
"#,
    );
}

#[test]
fn money_that_went_back_unheard_is_owed_nothing() {
    holds(
        r#"
summary = "paid and refunded before tilld hears of either"
settings = { poll_s = 1 }
step = [
  { open = { order = "A", mode = "h2h" } },
  { lose = 2 },
  { pay = "A" },
  { refund = "A" },
  { expect = { order = "A", outcome = "failed", handed_over = 0 } },
]
"#,
    );
}

#[test]
fn an_order_may_have_any_name_but_those_of_the_scenarios_own() {
    holds(
        r#"
summary = "orders of any text"
step = [
  { open = { order = "2024/17", mode = "h2h" } },
  { pay = "2024/17" },
  { wait = { order = "2024/17", outcome = "paid" } },
  { repeat = { order = "2024/17" } },
  { expect = { order = "2024/17", events = 2, handed_over = 1 } },
]
"#,
    );
}

#[test]
fn what_fails_fails_again_in_the_same_words() {
    let text = r#"
summary = "cancelled after the payment, which nobody can"
step = [
  { open = { order = "A", mode = "h2h" } },
  { pay = "A" },
  { wait = { order = "A", outcome = "paid" } },
  { cancel = "A" },
]
"#;
    let dir = tempfile::tempdir().expect("a directory");
    let trace = || {
        let output = play(dir.path(), text, &["--seed", "5", "--trace"]);
        let said = out(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("http://127.0.0.1:"), "told in full: {said}");
        said.split_once("\n\n").expect("a trace").0.to_owned()
    };
    let first = trace();
    assert!(
        first.contains("does not offer happening `cancel`"),
        "{first}"
    );
    assert_eq!(first, trace());
}

#[test]
fn the_largest_seed_is_the_last_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let range = format!("{0}..{0}", u64::MAX);
    let output = run(dir.path(), &["happy", "--seeds", &range, "--json"]);
    let told = json(&output);
    assert_eq!(told.get("held"), Some(&1.into()), "{told}");
    assert_eq!(output.status.code(), Some(0), "{told}");
}

#[test]
fn a_directory_for_temporary_files_may_be_relative_and_not_too_long() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("tmp")).expect("made");
    let mut command = super::tilld(dir.path(), &["happy", "--seed", "1"]);
    let output = command.env("TMPDIR", "tmp").output().expect("tilld runs");
    assert_eq!(output.status.code(), Some(0), "{}", talk(&output));
    let long = dir.path().join("long".repeat(25));
    fs::create_dir(&long).expect("made");
    let mut command = super::tilld(dir.path(), &["happy", "--seed", "1"]);
    let output = command.env("TMPDIR", &long).output().expect("tilld runs");
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["too long for the socket", "TMPDIR"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_storm_says_what_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let output = run(dir.path(), &["everything-at-once", "--seed", "1"]);
    let said = out(&output);
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| line.ends_with(" 3 kills"))
        .collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(lines.concat().contains("16 orders opened, "), "{said}");
}
