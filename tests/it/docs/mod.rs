//! README.md, CONTRIBUTING.md and the pages of `docs` read as data: what they promise is compared with the program, or run
//! against a real ledger. Tables are found by their heading, blocks by the mark `test=NAME` behind their language.

mod alarms;
mod backup;
mod benches;
mod cited;
mod first_payment;
mod generated;
mod install;
mod ledger;
mod operating;
mod packed;
mod post;
mod proxy;
mod reliability;
mod sandbox;
mod script;
mod settings;
mod status;

use std::fs;
use std::path::{Path, PathBuf};

/// A page, by its path in the package.
struct Page {
    path: PathBuf,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages, README first.
fn pages() -> Vec<Page> {
    let mut paths = vec!["README.md".into(), "CONTRIBUTING.md".into()];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of pages") {
            let path = folder.join(entry.expect("an entry").file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                paths.push(path);
            }
        }
    }
    let page = |path: PathBuf| Page {
        text: fs::read_to_string(root().join(&path)).expect("a page"),
        path,
    };
    paths.into_iter().map(page).collect()
}

/// The text of all pages.
pub(crate) fn docs() -> String {
    let texts: Vec<String> = pages().into_iter().map(|page| page.text).collect();
    texts.join("\n")
}

/// The text of one page.
#[track_caller]
fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The text of the example marked `test=name`, for tests that run it elsewhere.
#[track_caller]
pub(crate) fn example(name: &str) -> String {
    block(&docs(), name)
}

/// The rows of the one table with this first heading, for tests that read it elsewhere.
#[track_caller]
pub(crate) fn rows(heading: &str) -> Vec<Vec<String>> {
    table(&docs(), heading)
}

/// The text of the one block marked `test=name`.
#[track_caller]
fn block(docs: &str, name: &str) -> String {
    let mark = format!(" test={name}");
    let mut blocks = docs.split("\n```").filter(|part| {
        part.lines()
            .next()
            .is_some_and(|line| line.ends_with(&mark))
    });
    let found = blocks.next().unwrap_or_else(|| panic!("no block{mark}"));
    assert!(blocks.next().is_none(), "two blocks{mark}");
    let (_, text) = found.split_once('\n').expect("a block has lines");
    format!("{text}\n")
}

/// What is printed, with `…` for each word that differs from run to run: those with a digit, but for the names of orders.
pub(crate) fn plain(text: &str) -> Vec<String> {
    let is_given = |word: &str| {
        let is_code = word.len() == 9 && word.chars().nth(4) == Some('-');
        is_code || word.chars().any(|c| c.is_ascii_digit())
    };
    let plain = |word: &str| {
        if is_given(word) && !word.starts_with("demo-") {
            "…".to_owned()
        } else {
            word.to_owned()
        }
    };
    let line = |line: &str| {
        line.split_whitespace()
            .map(plain)
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.lines().map(line).collect()
}

/// The rows of the one table whose first heading is `heading`: its cells, without code marks around a whole cell.
#[track_caller]
fn table(docs: &str, heading: &str) -> Vec<Vec<String>> {
    let head = format!("| {heading} |");
    let mut lines = docs.lines().skip_while(|line| !line.starts_with(&head));
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

/// The anchors of a page's headings, as a forge makes them: small letters, hyphens for spaces, no other punctuation.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let words = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let stays = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let plain = words.map(|words| words.chars().filter(stays).collect::<String>());
    plain.map(|words| words.replace(' ', "-")).collect()
}

#[test]
fn the_files_and_headings_they_link_to_are_there() {
    let mut seen = 0;
    for Page { path, text } in pages() {
        let here = root().join(&path);
        let folder = here.parent().unwrap_or_else(|| root());
        let targets = text.split("](").skip(1);
        for target in targets.filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("https://") {
                continue;
            }
            seen += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let linked = match file {
                "" => text.clone(),
                file => {
                    let there = folder.join(file).exists();
                    assert!(there, "{}: {target}: no such file", path.display());
                    fs::read_to_string(folder.join(file)).unwrap_or_default()
                }
            };
            let known = heading.is_empty() || anchors(&linked).iter().any(|known| known == heading);
            assert!(known, "{}: {target}: no such heading", path.display());
        }
    }
    assert!(seen > 30, "links were found");
}

/// A front page that nobody reads to its end is none.
#[test]
fn readme_fits_on_a_few_screens() {
    let lines = page("README.md").lines().count();
    assert!(lines <= 200, "README.md has {lines} lines");
}

/// What no page leads to is not found.
#[test]
fn every_page_is_linked_from_another() {
    let linked: Vec<PathBuf> = pages()
        .iter()
        .flat_map(|Page { path, text }| {
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            let targets = text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split([')', '#']).next());
            let there =
                targets.filter_map(|target| root().join(folder.join(target)).canonicalize().ok());
            there.collect::<Vec<_>>()
        })
        .collect();
    for Page { path, .. } in pages().iter().skip(1) {
        let there = root().join(path).canonicalize().expect("a page");
        assert!(
            linked.contains(&there),
            "{} is linked nowhere",
            path.display()
        );
    }
}
