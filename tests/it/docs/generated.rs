//! The parts of the reference pages that are made from the program: each stands between two marks, and differs from what the
//! program says in no line. `TILLD_UPDATE=1 cargo test --test it docs::generated` writes them again.

use std::fs;
use std::process::Command;

use tilld::config::{keys, variable_of};

use super::{page, root};

/// What `tilld ARGS --help` prints.
pub(super) fn help(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilld"));
    let output = command.args(args).arg("--help").output();
    let output = output.expect("tilld runs");
    assert!(output.status.success(), "{args:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Compares what stands between the marks of a page with `wanted`, or puts it there.
#[track_caller]
fn assert_generated(path: &str, wanted: &str) {
    let (begin, end) = ("<!-- generated -->\n", "<!-- end of generated -->\n");
    let now = page(path);
    let (head, rest) = now.split_once(begin).expect("the first mark");
    let (_, tail) = rest.split_once(end).expect("the last mark");
    let wanted = format!("{head}{begin}\n{}\n\n{end}{tail}", wanted.trim());
    if now == wanted {
        return;
    }
    if std::env::var_os("TILLD_UPDATE").is_some() {
        fs::write(root().join(path), wanted).expect("written");
        return;
    }
    let differs = now
        .lines()
        .zip(wanted.lines())
        .find(|(now, then)| now != then);
    panic!(
        "{path} is stale: {differs:?}\n`TILLD_UPDATE=1 cargo test --test it docs::generated` writes it"
    );
}

/// A table of two columns or more.
fn table_of<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![
        format!("| {} |", heads.join(" | ")),
        format!("|{}", "---|".repeat(N)),
    ];
    lines.extend(rows.map(|row| format!("| {} |", row.join(" | "))));
    lines.join("\n")
}

/// Where `--help` shows the flags that are the same everywhere.
const GLOBAL: &str = "\nOptions of every command:\n";

/// The commands as the page groups them. One that stands in no group fails the test.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Set up and check",
        &["serve", "login", "logout", "whoami", "doctor", "status"],
    ),
    (
        "Invoices and events",
        &["invoice", "event", "explain", "ack"],
    ),
    (
        "Hooks and webhooks",
        &["hook", "delivery", "refusal", "control"],
    ),
    ("The ledger", &["db"]),
    ("Try, and shell", &["demo", "sandbox", "completions", "man"]),
];

/// A command, by its words, with what its parent's help says of it in a line.
struct Listed {
    name: String,
    about: String,
}

/// The commands a help text lists, without `help` itself.
fn listed(help: &str) -> Vec<Listed> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .filter(|(name, _)| !name.is_empty() && *name != "help")
        .map(|(name, about)| Listed {
            name: name.to_owned(),
            about: about.trim().to_owned(),
        })
        .collect()
}

/// Every command that does something, those below another behind it.
fn commands() -> Vec<Listed> {
    let mut known = Vec::new();
    for top in listed(&help(&[])) {
        let text = help(&[&top.name]);
        let name = top.name.clone();
        let below = listed(&text);
        // One with others below it may do something by itself, too.
        if below.is_empty() || text.contains(&format!("Usage: tilld {name} [OPTIONS]\n")) {
            known.push(top);
        }
        known.extend(below.into_iter().map(|one| Listed {
            name: format!("{name} {}", one.name),
            about: one.about,
        }));
    }
    known
}

/// The flags that every command takes, but for the few that read no settings.
const EVERYWHERE: [&str; 4] = ["--config", "--state-dir", "--socket", "--json"];

/// A help text as the page has it. The flags of every command stand in the first one, and where they are other ones.
fn help_block(name: &str) -> String {
    let words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    let mut text = help(&words);
    if let Some((head, rest)) = text.split_once(GLOBAL)
        && !name.is_empty()
        && EVERYWHERE.iter().all(|flag| rest.contains(flag))
    {
        // What the command adds stands behind the last of these flags.
        let (_, notes) = rest.split_once("Answer in JSON").expect("the last flag");
        text = format!("{head}\n{}", notes.trim_start());
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("```text\n{}\n```", lines.join("\n").trim_end())
}

#[test]
fn the_commands_are_the_programs_own() {
    let known = commands();
    let mut parts = Vec::new();
    let mut shown = 0;
    for (group, names) in GROUPS {
        let of_group = |one: &&Listed| names.contains(&one.name.split(' ').next().unwrap_or(""));
        let rows: Vec<&Listed> = known.iter().filter(of_group).collect();
        shown += rows.len();
        let rows = rows.iter().map(|one| {
            let link = format!("[`{0}`](#{1})", one.name, one.name.replace(' ', "-"));
            [link, one.about.clone()]
        });
        parts.push(format!(
            "**{group}**\n\n{}",
            table_of(["command", "what it does"], rows)
        ));
    }
    assert_eq!(shown, known.len(), "every command is in one group");
    parts.push(format!("## tilld\n\n{}", help_block("")));
    for Listed { name, .. } in &known {
        parts.push(format!("## {name}\n\n{}", help_block(name)));
    }
    assert_generated("docs/reference/commands.md", &parts.join("\n\n"));
}

/// What a help text says of exit codes, in one line.
fn ends(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split(' ').collect();
    let text = help(&words);
    let (_, ends) = text.split_once("Exit codes")?;
    let ends = ends.split("\n\n").next().unwrap_or_default();
    let mut ends = ends.split_whitespace().collect::<Vec<_>>().join(" ");
    for code in 0..=17 {
        ends = ends.replace(&format!(", {code} "), &format!("; {code} "));
    }
    let ends = ends.trim_start_matches(':').trim_end_matches('.');
    Some(ends.trim().replacen("of --check: ", "with `--check`: ", 1))
}

#[test]
fn the_exit_codes_are_the_programs_own() {
    let help = help(&[]);
    let (_, all) = help.split_once("Exit codes:\n").expect("a table of codes");
    let rows = all.lines().filter_map(|line| {
        let (code, meaning) = line.trim().split_once(' ')?;
        Some([code.to_owned(), meaning.trim().to_owned()])
    });
    let mut text = table_of(["code", "meaning"], rows);
    text += "\n\n## What they mean for one command\n";
    for Listed { name, .. } in commands() {
        if let Some(ends) = ends(&name) {
            let anchor = name.replace(' ', "-");
            text.extend([
                "\n- [`",
                &name,
                "`](commands.md#",
                &anchor,
                "): ",
                &ends,
                ".",
            ]);
        }
    }
    assert_generated("docs/reference/exit-codes.md", &text);
}

#[test]
fn the_reasons_of_refusals_are_the_programs_own() {
    let help = help(&["refusal", "list"]);
    let (_, known) = help.split_once("Reasons:\n").expect("a table of reasons");
    let rows = known.lines().filter_map(|line| {
        let (reason, meaning) = line.trim().split_once(' ')?;
        Some([format!("`{reason}`"), meaning.trim().to_owned()])
    });
    let text = table_of(["reason", "answer and meaning"], rows);
    assert_generated("docs/reference/refusals.md", &text);
}

/// A part of `config.example.toml`: a table with its comment and its settings.
#[derive(Default)]
struct Section {
    /// Empty for what stands in no table.
    name: String,
    about: String,
    settings: Vec<Setting>,
}

/// A setting with the comment above it.
struct Setting {
    key: String,
    about: String,
}

/// Comment lines as paragraphs: what is indented stays a line of its own, in a list.
fn prose(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        match line.strip_prefix("  ") {
            Some(item) => {
                let (form, about) = item.split_once("  ").unwrap_or((item, ""));
                let gap = if text.contains("\n- ") { "\n" } else { "\n\n" };
                text.extend([gap, "- `", form.trim(), "`: ", about.trim()]);
            }
            None if text.is_empty() => text += line,
            None => text.extend([" ", line]),
        }
    }
    linked(&text)
}

/// Pages that the file names as `docs/PAGE.md` become links.
fn linked(text: &str) -> String {
    let mut parts = text.split("docs/");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (page, rest) = part.split_once(".md").expect("the name of a page");
        linked.extend(["[docs/", page, ".md](../", page, ".md)", rest]);
    }
    linked
}

/// The line of a setting, commented out or not: its name.
fn name_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix('#').unwrap_or(line);
    let (name, _) = line.split_once(" = ")?;
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    name.chars().all(is_name).then_some(name)
}

/// The example read as data. Settings that stand together without a line between share the comment above them.
fn example() -> Vec<Section> {
    let text = page("config.example.toml");
    let mut sections = vec![Section::default()];
    let (mut comment, mut shared): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines().skip_while(|line| !line.is_empty()) {
        let section = sections.last_mut().expect("the first");
        let table = line.trim_start_matches('#');
        if line.starts_with("# ---") || line.is_empty() {
            comment.clear();
            shared.clear();
        } else if table.starts_with('[') && !line.starts_with("# ") {
            let name = table.trim_matches(['[', ']']).to_owned();
            sections.push(Section {
                name,
                about: prose(&comment),
                settings: Vec::new(),
            });
            comment.clear();
        } else if let Some(name) = name_of(line) {
            if !comment.is_empty() {
                shared = std::mem::take(&mut comment);
            }
            let key = match section.name.as_str() {
                "" => name.to_owned(),
                table => format!("{table}.{name}"),
            };
            let about = prose(&shared);
            if !section.settings.iter().any(|one| one.key == key) {
                section.settings.push(Setting { key, about });
            }
        } else if let Some(text) = line.strip_prefix("# ") {
            comment.push(text);
        }
    }
    sections
}

/// True for a setting inside a list of tables: a variable sets the whole list.
fn is_in_a_row(key: &str) -> bool {
    key.starts_with("hook.") || key.starts_with("poller.schedule.")
}

/// The line about default, range and variable.
fn facts(key: &tilld::config::Key) -> String {
    let mut facts = Vec::new();
    if let Some(default) = &key.default {
        facts.push(format!("Default `{default}`."));
    }
    if let Some((least, most)) = key.range {
        facts.push(format!("Range {least} to {most}."));
    }
    if !is_in_a_row(&key.name) {
        facts.push(format!("Variable `{}`.", variable_of(&key.name)));
    }
    facts.join(" ")
}

#[test]
fn the_settings_are_the_programs_own_with_the_comments_of_the_example() {
    let known = keys();
    let sections = example();
    let mut names: Vec<&str> = Vec::new();
    for section in &sections {
        if !names.contains(&section.name.as_str()) {
            names.push(&section.name);
        }
    }
    let (mut parts, mut shown) = (Vec::new(), Vec::new());
    for name in names {
        let same = sections.iter().filter(|one| one.name == name);
        let abouts: Vec<&str> = same.clone().map(|one| one.about.as_str()).collect();
        let title = match name {
            "" => "At the top of the file".to_owned(),
            "hook" => "[[hook]]".to_owned(),
            name => format!("[{name}]"),
        };
        parts.push(format!("## {title}"));
        parts.push(abouts.join("\n\n"));
        if let Some(list) = known.iter().find(|key| key.name == name) {
            shown.push(list.name.clone());
            parts.push(facts(list));
        }
        let settings: Vec<&Setting> = same.flat_map(|one| &one.settings).collect();
        for (at, Setting { key, about }) in settings.iter().enumerate() {
            if settings.iter().take(at).any(|one| one.key == *key) {
                continue;
            }
            let found = known.iter().find(|one| one.name == *key);
            let found = found.unwrap_or_else(|| panic!("{key} is a setting"));
            assert!(!about.is_empty(), "{key} has a comment");
            shown.push(key.clone());
            parts.extend([format!("### {key}"), facts(found), about.clone()]);
            // The keys that the comment lists: inside the setting, or beside it where only one of two can stand.
            for item in about.lines().filter_map(|line| line.strip_prefix("- `")) {
                let (leaf, meaning) = item.split_once("`: ").unwrap_or_default();
                let listed = [format!("{key}.{leaf}"), format!("{name}.{leaf}")];
                if let Some(key) = known.iter().find(|one| listed.contains(&one.name)) {
                    shown.push(key.name.clone());
                    let meaning = format!("{meaning}.");
                    parts.extend([format!("### {}", key.name), facts(key), meaning]);
                }
            }
        }
    }
    shown.sort();
    shown.dedup();
    let mut all: Vec<String> = known.into_iter().map(|key| key.name).collect();
    all.sort();
    assert_eq!(shown, all, "config.example.toml describes each");
    parts.retain(|part| !part.is_empty());
    assert_generated("docs/reference/settings.md", &parts.join("\n\n"));
}
