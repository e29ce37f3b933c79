//! The table of what tilld survives: its rows are those the command knows, each with its figure and its control, and the
//! options beside it are the command's own.

use std::fs;
use std::path::Path;

use super::{docs, page, table};

#[path = "../../reliability/list.rs"]
mod list;

use self::list::{ROWS, Row};

#[test]
fn the_rows_are_those_the_command_knows() {
    let shown = table(&docs(), "id");
    let told: Vec<[&str; 3]> = shown
        .iter()
        .map(|row| [0, 1, 6].map(|at| row.get(at).map_or("", String::as_str)))
        .collect();
    let known: Vec<[&str; 3]> = ROWS
        .iter()
        .map(|Row { id, what, bar }| [*id, *what, *bar])
        .collect();
    assert_eq!(told, known);
    for row in &shown {
        assert_eq!(row.len(), 9, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
        assert_eq!(row.get(7).map(String::as_str), Some("ok"), "{row:?}");
        // A control that passes would have failed the row.
        let control = row.last().map_or("", String::as_str);
        assert!(control.contains(": fails ("), "{row:?}");
    }
}

#[test]
fn the_reliability_commands_are_ones_that_are_taken() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reliability/options.rs");
    let options = fs::read_to_string(path).expect("the options");
    let section = page("docs/reliability.md");
    assert!(section.contains("cargo test --release --test reliability\n"));
    let mut named = 0;
    for words in section
        .split("`-- ")
        .skip(1)
        .filter_map(|rest| rest.split('`').next())
    {
        for word in words.split(' ') {
            let is_row = ROWS.iter().any(|row| row.id == word);
            let is_option = options.contains(&format!("\"{word}\" =>"));
            let is_number = word.parse::<u64>().is_ok();
            assert!(is_row || is_option || is_number, "`{word}`");
            named += 1;
        }
    }
    assert!(named > 4, "the options are named");
}
