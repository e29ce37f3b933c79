//! The bench commands that the READMEs name: the benches, their options and their parts are there.

use std::fs;
use std::path::Path;

use super::{docs, root};

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The words of every bench command in a text, whether it stands in a line of its own or between code marks.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for rest in text.split("cargo bench --bench ").skip(1) {
        let end = rest.find(['`', '\n', '#']).unwrap_or(rest.len());
        let (command, _) = rest.split_at(end);
        found.push(command.split_whitespace().map(str::to_owned).collect());
    }
    found
}

/// The options in the code of a bench.
fn options(bench: &str) -> String {
    let benches = root().join("benches");
    let code = match bench {
        "figures" => benches.join("figures/options.rs"),
        other => benches.join(format!("{other}.rs")),
    };
    read(&code)
}

#[test]
fn the_bench_commands_are_ones_that_the_benches_take() {
    let about = read(&root().join("benches/README.md"));
    let (own, further) = (commands(&docs()), commands(&about));
    assert!(!own.is_empty() && further.len() > 8, "{own:?} {further:?}");
    for command in own.iter().chain(&further) {
        let mut words = command.iter();
        let known = options(words.next().expect("a bench"));
        let mut before = "";
        for word in words.filter(|word| *word != "--") {
            if word.starts_with("--") {
                assert!(known.contains(&format!("\"{word}\"")), "{command:?}");
            }
            if before == "--only" {
                for part in word.split(',') {
                    let file = root().join(format!("benches/figures/parts/{part}.rs"));
                    assert!(file.exists(), "{command:?}");
                }
            }
            before = word;
        }
    }
}
