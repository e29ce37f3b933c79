//! The views and the lines that read them, run against a ledger of a real scenario while its daemon serves.

use std::process::{Command, Stdio};

use super::{block, docs, table};
use crate::harness::{Setup, World, skip};

/// Where the docs' lines look for the ledger.
const SHOWN: &str = "/var/lib/tilld/ledger.db";

/// One order paid, one open, and one whose script was given up.
fn world() -> World {
    let give_up = "test \"$TILLD_ORDER_ID\" != bad || exit 65; echo done";
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], give_up)
        .start();
    for order in ["1042", "bad"] {
        let issued = world.create(order);
        let paid = world.dictate(&issued, "paid");
        let answer = world.tell(&issued, &paid.object.to_string());
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    world.create("1043");
    world.settle();
    world
}

/// What `program` prints when it is given `text` to run as a file.
#[track_caller]
fn run(world: &World, program: &str, text: &str) -> String {
    assert!(text.contains(SHOWN), "the lines name the ledger");
    let text = text.replace(SHOWN, &world.ledger().to_string_lossy());
    let file = world.dir().join("lines");
    std::fs::write(&file, text).expect("written");
    let mut command = Command::new(program);
    let output = command.arg(&file).stdin(Stdio::null()).output();
    let output = output.expect("it was there a moment ago");
    assert!(output.status.success(), "{program}: {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{program}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// True when the program is there and says yes to `args`.
fn works(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    let output = command.args(args).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success())
}

#[test]
fn the_tables_of_columns_are_the_views() {
    let world = world();
    let mut shown: Vec<(String, String)> = Vec::new();
    for row in table(&docs(), "view") {
        let name = row.first().cloned().filter(|name| !name.is_empty());
        let before = shown.last().map(|(view, _)| view.clone());
        let view = name.or(before).expect("the first row names a view");
        shown.push((view, row.get(1).cloned().unwrap_or_default()));
    }
    let known = world.sql(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c \
         WHERE m.type = 'view' ORDER BY m.rowid, c.cid",
    );
    let mut known: Vec<(String, String)> = known
        .into_iter()
        .filter_map(|row| Some((row.first()?.clone(), row.get(1)?.clone())))
        .collect();
    // In which order the views stand is not promised, in which order their columns do is.
    shown.sort_by(|(one, _), (other, _)| one.cmp(other));
    known.sort_by(|(one, _), (other, _)| one.cmp(other));
    assert_eq!(shown, known);
}

#[test]
fn the_sqlite3_lines_answer() {
    if !works("sqlite3", &["--version"]) {
        skip!("sqlite3 is not installed");
    }
    let world = world();
    let said = run(&world, "sh", &block(&docs(), "sqlite3"));
    for line in ["1042|paid|paid", "1043|new|open", "bad|paid|paid"] {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    let open: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("1043|"))
        .collect();
    assert!(open.iter().any(|line| line.ends_with('Z')), "{said}");
    for part in ["|fulfil|1\n", "fulfil|1|exit 65|", "1043|{\"bankName\""] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn the_php_lines_answer() {
    if !works(
        "php",
        &["-r", "exit(extension_loaded('pdo_sqlite') ? 0 : 1);"],
    ) {
        skip!("PHP with PDO for SQLite is not installed");
    }
    assert_eq!(run(&world(), "php", &block(&docs(), "php")), "paid\n");
}

#[test]
fn the_python_lines_answer() {
    if !works("python3", &["-c", "import sqlite3"]) {
        skip!("Python with sqlite3 is not installed");
    }
    let said = run(&world(), "python3", &block(&docs(), "python"));
    let first: Vec<&str> = said.lines().take(2).collect();
    assert_eq!(first, ["1 opened 1042", "2 paid 1042"], "{said}");
}

/// A program that cannot read the ledger must not look like one that found nothing to say.
#[test]
fn the_lines_fail_without_a_ledger() {
    for (program, name, args) in [
        ("sh", "sqlite3", ["-e", "-c"].as_slice()),
        ("php", "php", &["-r"]),
        ("python3", "python", &["-c"]),
    ] {
        if !works(
            program,
            if program == "sh" {
                &["-c", ":"]
            } else {
                &["--version"]
            },
        ) {
            skip!("{program} is not installed");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let text = block(&docs(), name).replace("/var/lib/tilld", &dir.path().to_string_lossy());
        let mut command = Command::new(program);
        command.args(args).arg(text.trim_start_matches("<?php"));
        let ran = command.stdin(Stdio::null()).output().expect("it runs");
        assert!(!ran.status.success(), "{name}: {ran:?}");
        let file = dir.path().join("ledger.db");
        assert!(!file.exists(), "{name} makes no empty ledger");
    }
}
