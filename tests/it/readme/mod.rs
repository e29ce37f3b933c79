//! README.md read as data: what it promises is compared with the program, or run against a real ledger. Tables are found
//! by their heading, blocks by the mark `test=NAME` behind their language.

mod backup;
mod benches;
mod commands;
mod ledger;
mod post;
mod reliability;
mod sandbox;
mod script;
mod settings;
mod status;

use std::fs;
use std::path::Path;

/// The whole text.
fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    fs::read_to_string(path).expect("README.md")
}

/// The text of the example marked `test=name`, for tests that run it elsewhere.
#[track_caller]
pub(crate) fn example(name: &str) -> String {
    block(&readme(), name)
}

/// The rows of the one table with this first heading, for tests that read it elsewhere.
#[track_caller]
pub(crate) fn rows(heading: &str) -> Vec<Vec<String>> {
    table(&readme(), heading)
}

/// The text of the one block marked `test=name`.
#[track_caller]
fn block(readme: &str, name: &str) -> String {
    let mark = format!(" test={name}");
    let mut blocks = readme.split("\n```").filter(|part| {
        part.lines()
            .next()
            .is_some_and(|line| line.ends_with(&mark))
    });
    let found = blocks.next().unwrap_or_else(|| panic!("no block{mark}"));
    assert!(blocks.next().is_none(), "two blocks{mark}");
    let (_, text) = found.split_once('\n').expect("a block has lines");
    format!("{text}\n")
}

/// The rows of the one table whose first heading is `heading`: its cells, without code marks around a whole cell.
#[track_caller]
fn table(readme: &str, heading: &str) -> Vec<Vec<String>> {
    let head = format!("| {heading} |");
    let mut lines = readme.lines().skip_while(|line| !line.starts_with(&head));
    assert!(lines.next().is_some(), "no table `{heading}`");
    let rows: Vec<Vec<String>> = lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect();
    assert!(!rows.is_empty(), "the table `{heading}` has rows");
    rows
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_start_matches('|').trim_end_matches('|');
    let bare = |cell: &str| {
        let cell = cell.trim();
        let code = cell
            .strip_prefix('`')
            .and_then(|rest| rest.strip_suffix('`'))
            .filter(|code| !code.contains('`'));
        code.unwrap_or(cell).to_owned()
    };
    inner.split('|').map(bare).collect()
}

/// The cells in one column.
fn column(rows: &[Vec<String>], at: usize) -> Vec<String> {
    let cells = rows.iter().map(|row| row.get(at).cloned());
    cells.map(Option::unwrap_or_default).collect()
}

/// The anchors of a page's headings, as a forge makes them: small letters, and hyphens for spaces.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let words = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    words.map(|words| words.replace(' ', "-")).collect()
}

#[test]
fn the_files_it_links_to_are_there() {
    let readme = readme();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let targets = readme.split("](").skip(1);
    let mut seen = 0;
    for target in targets.filter_map(|rest| rest.split(')').next()) {
        seen += 1;
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let page = match file {
            "" => readme.clone(),
            file => {
                assert!(root.join(file).exists(), "{target}: no such file");
                fs::read_to_string(root.join(file)).unwrap_or_default()
            }
        };
        let known = heading.is_empty() || anchors(&page).iter().any(|known| known == heading);
        assert!(known, "{target}: no such heading");
    }
    assert!(seen > 3, "links were found");
}
