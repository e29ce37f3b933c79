//! What sources and pages cite: cases by their id, the contract and the design by the number of a section. Each must be
//! explained in `docs/cases.md`, `docs/contract.md` or `docs/design.md`, or a comment means nothing to its reader.
//!
//! A case is a capital letter with two digits that stands alone, in code, text or comment. No other word of that form is
//! let through but a time of day and those of [`NO_CASES`]. A section is cited as `contract` or `design` with a number; a
//! bare section number must say whose it is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{page, root};

/// Where citations are looked for, beside the files of the root.
const FOLDERS: [&str; 7] = [
    "src",
    "tests",
    "benches",
    "docs",
    "systemd",
    "packaging",
    ".ci",
];

/// Words of a case's form that are none: percentiles.
const NO_CASES: [&str; 2] = ["P50", "P99"];

/// Ends of names of pictures, whose coordinates look like anything, and of lists of sums.
const UNREAD: [&str; 3] = ["svg", "png", "lock"];

/// What stands before the number of a section of somebody else's document.
const OUTSIDE: [&str; 3] = ["rfc ", "file format, ", "`webdriver` standard "];

/// What the pages explain.
struct Known {
    cases: BTreeSet<String>,
    contract: BTreeSet<String>,
    design: BTreeSet<String>,
}

impl Known {
    fn load() -> Self {
        let cases = page("docs/cases.md");
        let numbers = |path: &str| numbers(&page(path));
        Self {
            cases: explained(&cases).map(|(id, _)| id.to_owned()).collect(),
            contract: numbers("docs/contract.md"),
            design: numbers("docs/design.md"),
        }
    }

    fn sections(&self, document: &str) -> &BTreeSet<String> {
        match document {
            "contract" => &self.contract,
            "design" => &self.design,
            other => unreachable!("`{other}` is no document"),
        }
    }
}

/// The cases of the page, each with its explanation.
fn explained(cases: &str) -> impl Iterator<Item = (&str, &str)> {
    let parts = cases.split("\n### ").skip(1);
    parts.map(|part| {
        let (id, text) = part.split_once('\n').unwrap_or((part, ""));
        (id.trim(), text.split("\n#").next().unwrap_or(""))
    })
}

/// The numbers of a page's headings.
fn numbers(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let words = headings.filter_map(|line| line.split_whitespace().nth(1));
    words
        .filter_map(|word| number(word).map(|(number, _)| number.to_owned()))
        .collect()
}

/// The number at the beginning of a text, such as `4` or `4.3`, and what is behind it.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    let number = text.get(..end)?.trim_end_matches('.');
    let behind = text.get(number.len()..)?;
    let stands = number.starts_with(|c: char| c.is_ascii_digit())
        && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    stands.then_some((number, behind))
}

/// The words of a text with what stands before and behind each.
fn words(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let begin = at + rest.find(is_word)?;
        let rest = text.get(begin..)?;
        let end = begin + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        at = end;
        Some((text.get(..begin)?, text.get(begin..end)?, text.get(end..)?))
    })
}

/// The letter and the digits of a word that has nothing else.
fn lettered(word: &str) -> Option<(char, &str)> {
    let letter = word.chars().next().filter(char::is_ascii_uppercase)?;
    let digits = word.get(1..)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    is_number.then_some((letter, digits))
}

/// The cases a text cites; of `A24 to A28` those between, too.
fn cases(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    // What stood behind the last one, and which it was.
    let mut last: Option<(&str, char, u32)> = None;
    for (_, word, behind) in words(text) {
        let Some((letter, digits)) = lettered(word).filter(|(_, digits)| digits.len() == 2) else {
            continue;
        };
        let mut next = behind.chars();
        let is_time = letter == 'T'
            && next.next() == Some(':')
            && next.next().is_some_and(|c| c.is_ascii_digit());
        if is_time || NO_CASES.contains(&word) {
            continue;
        }
        let at: u32 = digits.parse().expect("two digits");
        if let Some((after, first, from)) = last
            && first == letter
            && [" to ", "–", "-"].iter().any(|to| {
                let between = after.len() - behind.len() - word.len();
                after.get(..between) == Some(*to)
            })
        {
            found.extend((from + 1..at).map(|at| format!("{letter}{at:02}")));
        }
        last = Some((behind, letter, at));
        found.push(word.to_owned());
    }
    found
}

/// Words in comments and pages that begin like a case and have another number of digits.
fn misspelt<'t>(path: &Path, text: &'t str, letters: &BTreeSet<char>) -> Vec<&'t str> {
    let is_rust = path.extension().is_some_and(|end| end == "rs");
    let comment = |line: &'t str| {
        let mut marks = line.match_indices("//").map(|(at, _)| line.split_at(at));
        match marks.find(|(before, _)| !before.ends_with(':')) {
            _ if !is_rust => line,
            Some((_, comment)) => comment,
            None => "",
        }
    };
    let in_lines = text.lines().map(comment).flat_map(words);
    in_lines
        .filter(|(before, word, _)| {
            let other = lettered(word).filter(|(_, digits)| digits.len() != 2);
            !before.ends_with('%') && other.is_some_and(|(letter, _)| letters.contains(&letter))
        })
        .map(|(_, word, _)| word)
        .collect()
}

/// A text in one line, without the marks of comments and headings, in small letters.
fn prose(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim().trim_start_matches(['/', '!', '#']).trim());
    lines.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The sections a text cites: document and number. A number without a document has none.
fn sections(path: &Path, text: &str) -> Vec<(&'static str, String)> {
    let text = prose(text);
    let own = ["contract", "design"]
        .into_iter()
        .find(|name| path == Path::new(&format!("docs/{name}.md")));
    let mut found = Vec::new();
    for (before, word, behind) in words(&text) {
        let (document, behind) = match word {
            "contract" | "design" => {
                let document = if word == "design" {
                    "design"
                } else {
                    "contract"
                };
                let ahead = before.strip_suffix(" of the ").and_then(last_number);
                found.extend(ahead.map(|number| (document, number.to_owned())));
                (document, named(behind))
            }
            "section" | "sections" => match whose(before, behind) {
                Whose::Taken => continue,
                Whose::Of(document) => (document, behind),
                Whose::Unnamed => (own.unwrap_or(""), behind),
            },
            _ => continue,
        };
        // Behind a comma a whole number is likely something else.
        let joins = [
            (", ", false),
            (" and ", true),
            (" or ", true),
            (" to ", true),
        ];
        let mut whole = true;
        let mut rest = number(behind.trim_start());
        while let Some((cited, behind)) = rest {
            if whole || cited.contains('.') {
                found.push((document, cited.to_owned()));
            }
            rest = joins.iter().find_map(|(join, joins_whole)| {
                let next = number(behind.strip_prefix(join)?)?;
                whole = *joins_whole;
                Some(next)
            });
        }
    }
    found
}

/// The number of a section at the end of a text, unless it is said to be one, which is read as such.
fn last_number(text: &str) -> Option<&str> {
    let mut last = text.rsplit([' ', '(']);
    let (number, rest) = number(last.next()?)?;
    let is_one = rest.is_empty() && number.contains('.');
    let is_read = last.next().is_some_and(|word| word.starts_with("section"));
    (is_one && !is_read).then_some(number)
}

/// What is behind a document's name from the number of a section on, if one stands there. A whole number is one only where
/// nothing but a bracket or the word is between: a contract may name seconds.
fn named(behind: &str) -> &str {
    let spaced = behind.trim_start_matches([' ', '(']);
    let rest = spaced.strip_prefix("'s").unwrap_or(spaced);
    let rest = rest.trim_start_matches([',', ' ', '(']);
    let word = rest
        .strip_prefix("sections")
        .or(rest.strip_prefix("section"));
    let is_dotted = number(rest).is_some_and(|(number, _)| number.contains('.'));
    match word {
        Some(rest) => rest,
        None if is_dotted => rest,
        None => spaced,
    }
}

/// Whose section a bare number is.
enum Whose {
    /// The document before it was read already, or it is somebody else's.
    Taken,
    Of(&'static str),
    Unnamed,
}

fn whose(before: &str, behind: &str) -> Whose {
    let of = number(behind.trim_start()).map_or("", |(_, rest)| rest);
    let end = before.trim_end_matches([',', ' ', '(']);
    let end = end.strip_suffix("'s").unwrap_or(end);
    // Two words are enough: `RFC 9110`.
    let near: String = before.chars().rev().take(24).collect();
    let near: String = near.chars().rev().collect();
    let is_ours = end.ends_with("contract") || end.ends_with("design");
    if is_ours || OUTSIDE.iter().any(|name| near.contains(name)) {
        Whose::Taken
    } else if of.starts_with(" of the design") {
        Whose::Of("design")
    } else if of.starts_with(" of the contract") {
        Whose::Of("contract")
    } else {
        Whose::Unnamed
    }
}

/// What a text cites and no page explains.
fn unexplained(path: &Path, text: &str, known: &Known) -> Vec<String> {
    let at = path.display();
    let letters = known
        .cases
        .iter()
        .filter_map(|id| id.chars().next())
        .collect();
    let cases = cases(text)
        .into_iter()
        .filter(|id| !known.cases.contains(id));
    let cases = cases.map(|id| format!("{at}: `{id}`: docs/cases.md does not explain it"));
    let misspelt = misspelt(path, text, &letters).into_iter();
    let misspelt = misspelt.map(|word| format!("{at}: `{word}`: the id of a case has two digits"));
    let sections = sections(path, text).into_iter().filter_map(|(document, number)| {
        if document.is_empty() {
            Some(format!("{at}: section {number}: of which document? `contract {number}`, `design {number}`"))
        } else {
            let is_there = known.sections(document).contains(&number);
            (!is_there).then(|| format!("{at}: {document} {number}: docs/{document}.md has no such section"))
        }
    });
    cases.chain(misspelt).chain(sections).collect()
}

/// Every text in which something may be cited.
fn texts() -> Vec<(PathBuf, String)> {
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(root().join(folder)).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names.map(|name| folder.join(name)).collect()
    };
    let is_file = |path: &PathBuf| root().join(path).is_file();
    let mut found: Vec<PathBuf> = list(Path::new("")).into_iter().filter(is_file).collect();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        let (files, more): (Vec<_>, Vec<_>) = list(&folder).into_iter().partition(is_file);
        found.extend(files);
        folders.extend(more.into_iter().filter(|path| root().join(path).is_dir()));
    }
    found.retain(|path| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or("");
        !UNREAD.contains(&end) && !path.starts_with("LICENSE-APACHE")
    });
    found
        .into_iter()
        .filter_map(|path| {
            let text = fs::read_to_string(root().join(&path)).ok()?;
            Some((path, text))
        })
        .collect()
}

#[test]
fn what_is_cited_is_explained() {
    let known = Known::load();
    let texts = texts();
    let problems: Vec<String> = texts
        .iter()
        .flat_map(|(path, text)| unexplained(path, text, &known))
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let ids: usize = texts.iter().map(|(_, text)| cases(text).len()).sum();
    let numbers: usize = texts
        .iter()
        .map(|(path, text)| sections(path, text).len())
        .sum();
    assert!(ids > 300 && numbers > 60, "{ids} ids, {numbers} sections");
}

/// An id has one explanation, which says what is right.
#[test]
fn each_case_is_explained_once() {
    let page = page("docs/cases.md");
    let mut seen = BTreeSet::new();
    for (id, text) in explained(&page) {
        let is_id = lettered(id).is_some_and(|(_, digits)| digits.len() == 2);
        assert!(is_id, "`{id}` is no id");
        assert!(seen.insert(id), "{id} is explained twice");
        assert!(text.contains("Right: "), "{id}: what is right is missing");
    }
    assert!(seen.len() > 60, "cases were found");
}

/// Planted citations. `~` is a 9, so that this file cites none of them.
#[test]
fn a_planted_citation_is_found() {
    assert_eq!(cases("A24 to A26"), ["A24", "A25", "A26"]);
    let known = Known::load();
    let planted = |text: &str| text.replace('~', "9");
    let found = |path: &str, text: &str| unexplained(Path::new(path), &planted(text), &known);
    for (path, text, word) in [
        ("src/x.rs", "/// Nothing is lost (A01, A~~).", "`A~~`"),
        ("src/x.rs", "fn f() {} // case Z~~", "`Z~~`"),
        ("src/x.rs", "    \"R~~\" => f(),", "`R~~`"),
        ("src/x.rs", "//! T~~: it is no time.", "`T~~`"),
        ("src/x.rs", "/// One digit (A~).", "`A~`"),
        ("docs/x.md", "Three digits: R~~~.", "`R~~~`"),
        ("systemd/x.service", "# Q~~", "`Q~~`"),
        ("src/x.rs", "/// Strict (contract ~.~).", "contract ~.~"),
        (
            "src/x.rs",
            "/// Strict (contract 4.1, ~.~).",
            "contract ~.~",
        ),
        (
            "src/x.rs",
            "/// Strict (the contract's ~.~).",
            "contract ~.~",
        ),
        ("src/x.rs", "/// The contract (~~) shows it.", "contract ~~"),
        ("src/x.rs", "/// By ~.~ of the contract.", "contract ~.~"),
        (
            "src/x.rs",
            "/// The contract's\n/// section ~~ says so.",
            "contract ~~",
        ),
        ("src/x.rs", "/// The contract (section ~~).", "contract ~~"),
        (
            "src/x.rs",
            "/// As planned (design, section ~~).",
            "design ~~",
        ),
        (
            "src/x.rs",
            "/// As in section ~~ of the design.",
            "design ~~",
        ),
        ("src/x.rs", "/// See section ~.", "of which document?"),
        ("docs/design.md", "See section ~~.", "design ~~"),
        (".ci/run", "# design ~~", "design ~~"),
    ] {
        let (problems, word) = (found(path, text), planted(word));
        let names = |problem: &String| problem.contains(&word) && problem.starts_with(path);
        assert!(
            problems.len() == 1 && problems.iter().all(names),
            "{text}: {problems:?}"
        );
    }
    for fine in [
        "/// Nothing is lost (A01; R10, T22), A24 to A28.",
        "let at = \"1970-01-01T00:00:00Z\"; let p = P99; const T0: i64 = 1;",
        "let text = \"%A~%D0%9B\"; f(0xA1B2, a_A~~, B~~_x);",
        "/// Bodies (contract 4.3; contract 2.1, 2.2), and design 4. The contract's 600 s, 1 of them.",
        "/// A token (RFC 9110, section 9.1; SQLite's file format, section 4.1).",
        "let url = \"http://localhost/A~\";",
    ] {
        let problems = found("src/x.rs", fine);
        assert!(problems.is_empty(), "{fine}: {problems:?}");
    }
}
