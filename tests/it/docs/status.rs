//! The fields of `tilld status --json`: those of the table, and no others.

use serde_json::Value;

use super::{docs, table};
use crate::harness::{PATIENCE, Setup, wait_until};

/// The names inside a field: of an object, or of what a list holds. An object inside is named by its path.
fn inside(value: &Value, above: &str) -> Vec<String> {
    match value {
        Value::Array(items) => items.first().map(|item| inside(item, above)),
        Value::Object(fields) => Some(
            fields
                .iter()
                .flat_map(|(name, value)| {
                    let path = format!("{above}{name}");
                    match value {
                        Value::Object(_) => inside(value, &format!("{path}.")),
                        Value::Array(_)
                        | Value::Null
                        | Value::Bool(_)
                        | Value::Number(_)
                        | Value::String(_) => vec![path],
                    }
                })
                .collect(),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
    .unwrap_or_default()
}

#[test]
fn the_fields_of_status_are_the_programs_own() {
    // Something of everything: a list that is empty would not say what it holds.
    let mut world = Setup::new().quiet().start();
    let copy = world.dir().join("copy.db");
    let file = copy.to_string_lossy();
    world.tilld(&["db", "backup", &file]).ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);
    std::fs::remove_file(world.ledger().with_extension("db-wal")).expect("removed");
    std::fs::copy(&copy, world.ledger()).expect("restored");
    world.start_serve();
    let odd = world.create("A-1");
    let odd = world.dictate(&odd, "ODD");
    assert_eq!(world.tell_as_it_is(&odd).status, 200);
    wait_until(PATIENCE, "attention", || {
        !world.invoice("A-1", "attention").is_empty()
    });
    let told = world.tilld(&["status", "--json"]).json();
    let known: Vec<(String, Vec<String>)> = told
        .as_object()
        .expect("an object")
        .iter()
        .map(|(name, value)| (name.clone(), inside(value, "")))
        .collect();
    let shown: Vec<(String, Vec<String>)> = table(&docs(), "field of `status --json`")
        .iter()
        .map(|row| {
            let cell = |at: usize| row.get(at).cloned().unwrap_or_default();
            let names = cell(1);
            let names = names.split([',', ' ', '`']).filter(|name| !name.is_empty());
            (cell(0), names.map(str::to_owned).collect())
        })
        .collect();
    let sorted = |fields: Vec<(String, Vec<String>)>| {
        let mut fields: Vec<_> = fields
            .into_iter()
            .map(|(name, mut inside)| {
                inside.sort();
                (name, inside)
            })
            .collect();
        fields.sort();
        fields
    };
    assert_eq!(sorted(shown), sorted(known));
}

/// What a row of a table of reasons says: `=> ("word", Severity, End)`.
fn reason(row: &str) -> Option<[String; 3]> {
    let cells = row.split_once("=> (\"")?.1.split_once(')')?.0;
    let mut cells = cells.split(", ").map(|cell| cell.trim_matches('"'));
    let word = cells.next()?.to_owned();
    let severity = cells.next()?.to_lowercase();
    let end = match cells.next()? {
        "ByItself" => "by_itself",
        "Ack" => "ack",
        "Once" => "once",
        _ => return None,
    };
    Some([word, severity, end.to_owned()])
}

#[test]
fn the_alerts_are_the_programs_own_with_severity_and_end() {
    let tables = [
        include_str!("../../../src/status/reason/mod.rs"),
        include_str!("../../../src/invoice/attention.rs"),
    ];
    let mut known: Vec<[String; 3]> = tables
        .iter()
        .flat_map(|table| table.lines())
        .filter_map(reason)
        .collect();
    // What a daemon of another version says is no reason of this one.
    known.retain(|[word, ..]| word != "other");
    let mut shown = Vec::new();
    for row in table(&docs(), "alert") {
        let cell = |at: usize| row.get(at).cloned().unwrap_or_default();
        assert!(!cell(3).is_empty(), "{row:?}");
        shown.push([cell(0), cell(1), cell(2)]);
    }
    known.sort();
    shown.sort();
    assert_eq!(shown, known);
}
