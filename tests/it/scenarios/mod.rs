//! `tilld sandbox run` as a merchant and a merchant's CI run it: without a terminal, a home or a network. What is at stake: a
//! scenario that is said to hold when it does not is worse than none, and one that leaves something behind is not run twice.

mod course;
mod docs;
mod files;
mod interrupted;
mod named;
mod trace;
mod verify;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::under_test;

/// The names, in the order in which they are listed. A test for each is in `named`.
const NAMES: [&str; 13] = [
    "happy",
    "lost",
    "twice",
    "out-of-order",
    "late-payment",
    "underpaid",
    "overpaid",
    "forged",
    "cancelled",
    "no-requisites",
    "slow-or-torn",
    "crash",
    "everything-at-once",
];

/// `tilld sandbox run` in a directory, with nothing of whoever runs the tests.
fn tilld(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(under_test());
    command.args(["sandbox", "run"]).args(args);
    command
        .current_dir(dir)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("TMPDIR", dir)
        .stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    tilld(dir, args).output().expect("tilld runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    let text = out(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{}", talk(output)))
}

/// The rows that do not hold: what they are about, what was expected and what was seen.
fn broken(told: &Value) -> Vec<[String; 3]> {
    let rows = told.get("rows").and_then(Value::as_array);
    let text = |row: &Value, name: &str| {
        let text = row.get(name).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let is_broken = |row: &&Value| row.get("ok") == Some(&Value::Bool(false));
    let rows = rows.into_iter().flatten().filter(is_broken);
    rows.map(|row| ["what", "expected", "seen"].map(|name| text(row, name)))
        .collect()
}

/// What a run left in the directory it had for its temporary ones, apart from what was there.
fn left(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("there");
    let names = entries.map(|entry| entry.expect("read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("tilld-")).collect()
}
