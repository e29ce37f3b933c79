//! The words of reasons stand in their two tables and nowhere else: a reason that is a string elsewhere is missed by whoever
//! changes the table. Relies on the tables writing one `"word"` a row.

use super::Source;

/// The tables, with the paths they are read from.
const TABLES: [(&str, &str); 2] = [
    (
        "src/status/reason.rs",
        include_str!("../../../src/status/reason.rs"),
    ),
    (
        "src/invoice/attention.rs",
        include_str!("../../../src/invoice/attention.rs"),
    ),
];

/// Words that are another thing elsewhere too: a state, a kind of event, a command, a check, a field.
const SHARED: [&str; 12] = [
    "abandoned",
    "certificate",
    "daemon",
    "held",
    "login",
    "mismatch",
    "not_found",
    "other_id",
    "polled",
    "reversed",
    "rewound",
    "unresolved",
];

/// What is program, and not its tests.
fn program(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or_default()
}

/// The words of both tables: what stands in quotes behind an arrow.
pub(super) fn words() -> Vec<&'static str> {
    let rows = TABLES.iter().flat_map(|(_, text)| program(text).lines());
    let words = rows.filter_map(|row| row.split_once("=> ")?.1.split('"').nth(1));
    let is_word = |word: &&str| {
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        !word.is_empty() && word.chars().all(plain)
    };
    words.filter(is_word).collect()
}

/// No reason is a string literal outside of its table.
pub(super) fn typed(source: &Source) -> Vec<String> {
    let is_table = TABLES.iter().any(|(path, _)| *path == source.path);
    let is_test = source.path.contains("/tests") || source.path.contains("/simulation/");
    if is_table || is_test || !source.path.starts_with("src/") {
        return Vec::new();
    }
    let text = program(&source.text);
    words()
        .into_iter()
        .filter(|word| !SHARED.contains(word))
        .filter(|word| text.contains(&format!("\"{word}\"")))
        .map(|word| format!("{}: the reason `{word}` is a string", source.path))
        .collect()
}
