//! One seed, one trace, to the byte: otherwise a seed that breaks something would not break it again.

use std::path::Path;

use super::{out, run};

/// The trace of a run, with the table beneath it.
#[track_caller]
fn trace(dir: &Path, name: &str, seed: &str) -> String {
    let output = run(dir, &[name, "--seed", seed, "--trace"]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let (trace, table) = text.split_once("\n\n").expect("a trace and a table");
    assert!(table.starts_with("LINE"), "{text}");
    assert!(trace.lines().count() > 5, "{text}");
    text
}

#[track_caller]
fn same_for_the_same_seed(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let first = trace(dir.path(), name, "7");
    assert_eq!(first, trace(dir.path(), name, "7"));
    assert_ne!(first, trace(dir.path(), name, "8"));
}

#[test]
fn the_same_seed_gives_the_same_trace_of_a_simple_course() {
    same_for_the_same_seed("happy");
}

#[test]
fn the_same_seed_gives_the_same_trace_of_a_crash() {
    same_for_the_same_seed("crash");
}

#[test]
fn the_same_seed_gives_the_same_trace_of_a_storm() {
    same_for_the_same_seed("everything-at-once");
}
