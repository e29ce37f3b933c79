//! The words of reasons stand in their two tables and nowhere else: one that is a string elsewhere would be missed by a change of
//! the table. Relies on the tables writing one `("word", …)` a row.

use super::Source;

/// The tables, with the paths they are read from.
const TABLES: [(&str, &str); 2] = [
    (
        "src/status/reason/mod.rs",
        include_str!("../../../src/status/reason/mod.rs"),
    ),
    (
        "src/invoice/attention.rs",
        include_str!("../../../src/invoice/attention.rs"),
    ),
];

/// Words that are another thing where they stand: a state, a kind of event, a command, a check, a field.
const OTHER_THINGS: &[(&str, &[&str])] = &[
    ("src/admin/health.rs", &["login"]),
    ("src/admin/metrics.rs", &["other"]),
    ("src/answer/argv.rs", &["login"]),
    ("src/answer/failure.rs", &["not_found"]),
    ("src/cli/delivery/change.rs", &["abandoned"]),
    ("src/cli/demo/acts.rs", &["login"]),
    ("src/cli/demo/step.rs", &["daemon", "login"]),
    ("src/cli/demo/timeline.rs", &["held"]),
    ("src/cli/demo/tour.rs", &["login"]),
    ("src/cli/explain/people.rs", &["clock"]),
    ("src/cli/mod.rs", &["login"]),
    ("src/cli/scenario/report.rs", &["held"]),
    ("src/cli/status/people/mod.rs", &["daemon", "login"]),
    ("src/cli/status/people/polling.rs", &["outage"]),
    ("src/client/address.rs", &["login"]),
    ("src/client/fetches.rs", &["other"]),
    ("src/doctor/mod.rs", &["daemon"]),
    ("src/doctor/service.rs", &["clock", "login"]),
    ("src/hook/abandonment.rs", &["abandoned"]),
    ("src/http/tls/files.rs", &["certificate"]),
    (
        "src/invoice/event.rs",
        &["mismatch", "reversed", "second_payment", "unresolved"],
    ),
    (
        "src/invoice/status.rs",
        &["mismatch", "reversed", "second_payment"],
    ),
    ("src/invoice/transition/why.rs", &["other_id"]),
    ("src/ledger/row.rs", &["abandoned", "held"]),
    ("src/ledger/sqlite/chosen.rs", &["abandoned"]),
    ("src/ledger/sqlite/held.rs", &["abandoned", "held"]),
    ("src/ledger/sqlite/overview/mod.rs", &["abandoned", "held"]),
    ("src/ledger/sqlite/rows.rs", &["reversed"]),
    ("src/sandbox/routes.rs", &["not_found"]),
    ("src/sandbox/state/faults/endpoint.rs", &["login"]),
];

/// What is program, and not the tests at its end.
fn program(text: &str) -> &str {
    let tests = [
        "#[cfg(test)]\nmod tests {",
        "#[cfg(test)]\npub(crate) mod tests {",
    ];
    let ends = tests.iter().filter_map(|begin| text.find(begin));
    text.get(..ends.min().unwrap_or(text.len())).unwrap_or(text)
}

/// The words of both tables: what stands first in a row.
pub(super) fn words() -> Vec<&'static str> {
    let rows = TABLES.iter().flat_map(|(_, text)| program(text).lines());
    let words = rows.filter_map(|row| row.split_once("=> (\"")?.1.split('"').next());
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
    let is_other = |word: &str| {
        let mut files = OTHER_THINGS.iter();
        files.any(|(path, words)| *path == source.path && words.contains(&word))
    };
    words()
        .into_iter()
        .filter(|word| !is_other(word))
        .filter(|word| text.contains(&format!("\"{word}\"")))
        .map(|word| format!("{}: the reason `{word}` is a string", source.path))
        .collect()
}
