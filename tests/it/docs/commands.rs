//! The list of commands and the tables of exit codes.

use std::process::Command;

use super::{column, docs, table};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

/// What `tilld ARGS --help` prints.
fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    let output = command.args(args).arg("--help").output();
    let output = output.expect("tilld runs");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The commands a help text lists, without `help` itself.
fn listed(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_list_of_commands_is_the_programs_own() {
    let mut known = Vec::new();
    for name in listed(&help(&[])) {
        let text = help(&[&name]);
        let below = listed(&text);
        known.extend(below.iter().map(|action| format!("{name} {action}")));
        // One with others below it may do something by itself, too.
        if below.is_empty() || text.contains(&format!("Usage: tilld {name} [OPTIONS]\n")) {
            known.push(name);
        }
    }
    let mut shown = column(&table(&docs(), "command"), 0);
    known.sort();
    shown.sort();
    assert_eq!(shown, known);
}

#[test]
fn the_flags_it_names_are_there() {
    let docs = docs();
    for row in table(&docs, "command") {
        let (command, meaning) = (row.first().cloned(), row.get(1).cloned());
        let (command, meaning) = (command.unwrap_or_default(), meaning.unwrap_or_default());
        let words: Vec<&str> = command.split(' ').collect();
        let help = help(&words);
        let named = meaning.split('`').filter(|code| code.starts_with("--"));
        for flag in named.filter_map(|code| code.split(' ').next()) {
            assert!(help.contains(flag), "{command} {flag}");
        }
    }
}

#[test]
fn the_reasons_of_refusals_are_the_programs_own() {
    let shown: Vec<String> = table(&docs(), "reason | answer and meaning")
        .iter()
        .map(|row| row.join(" "))
        .collect();
    let help = help(&["refusal", "list"]);
    let (_, known) = help.split_once("Reasons:\n").expect("a table of reasons");
    let known: Vec<&str> = known.split_whitespace().collect();
    assert_eq!(shown.join(" "), known.join(" "));
}

#[test]
fn the_exit_codes_are_the_programs_own() {
    let shown: Vec<String> = table(&docs(), "code | meaning")
        .iter()
        .map(|row| row.join(" "))
        .collect();
    let help = help(&[]);
    let known: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Exit codes:")
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(shown, known);
}

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
