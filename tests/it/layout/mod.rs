//! The source tree read as data: where things may stand, who may import whom, and what may occur nowhere. The tables of the
//! design are `rules`; a violation names the file and the rule. Each rule is also tried on a planted violation, since a
//! check that never fails is none.

mod code;
mod crates;
mod reasons;
mod rules;

use std::fs;
use std::path::{Path, PathBuf};

/// One source file.
struct Source {
    /// Relative to the package, with `/`: `src/ledger/mod.rs`.
    path: String,
    text: String,
}

/// What is wrong with a file, a line each.
type Rule = fn(&Source) -> Vec<String>;

/// Every Rust file of the package's own trees.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for tree in ["src", "tests", "benches", "fuzz"] {
        collect(&root.join(tree), &mut found);
    }
    found.sort();
    found
        .into_iter()
        .map(|path| Source {
            text: fs::read_to_string(&path).expect("a readable source file"),
            path: path
                .strip_prefix(root)
                .expect("below the package")
                .to_string_lossy()
                .into_owned(),
        })
        .collect()
}

fn collect(dir: &Path, found: &mut Vec<PathBuf>) {
    // A tree that is not there has no files: `benches` and `fuzz` come with their own work.
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// True when there is a function of this name somewhere.
pub(crate) fn has_function(name: &str) -> bool {
    let head = format!("fn {name}(");
    sources().iter().any(|source| source.text.contains(&head))
}

/// Runs one rule over the whole tree.
fn holds(rule: Rule) {
    let sources = sources();
    assert!(sources.len() > 20, "the sources were found");
    let broken: Vec<String> = sources.iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    holds(rules::opening);
}

#[test]
fn files_are_short() {
    holds(rules::length);
}

#[test]
fn no_module_is_named_after_nothing() {
    holds(rules::names);
}

#[test]
fn modules_import_only_whom_they_may() {
    holds(rules::imports);
}

#[test]
fn each_outside_crate_stays_in_its_home() {
    holds(rules::homes);
}

#[test]
fn pure_modules_touch_nothing_outside() {
    holds(rules::purity);
}

#[test]
fn the_wall_clock_is_read_in_one_place() {
    holds(rules::wall_clock);
}

#[test]
fn no_amount_comes_near_a_float() {
    holds(rules::floats);
}

#[test]
fn no_statement_is_prepared_whose_plan_is_not_judged() {
    holds(rules::planned);
    let text = "let found = connection.prepare_cached(SQL)?;";
    planted(rules::planned, "src/ledger/sqlite/x.rs", text, true);
    planted(rules::planned, "src/ledger/sqlite/planned.rs", text, false);
    let text = "let found = connection.planned(SQL)?;";
    planted(rules::planned, "src/ledger/sqlite/x.rs", text, false);
}

#[test]
fn reasons_are_types() {
    assert!(reasons::words().len() > 20, "{:?}", reasons::words());
    holds(reasons::typed);
}

/// Looks that a rule finds something wrong with a file of this text, or nothing.
fn planted(rule: Rule, path: &str, text: &str, is_broken: bool) {
    let source = Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let found = rule(&source);
    assert_eq!(!found.is_empty(), is_broken, "{path}: {text}: {found:?}");
}

#[test]
fn planted_shapes_are_found() {
    planted(rules::opening, "src/x.rs", "// no\n", true);
    planted(rules::opening, "src/x.rs", "//! Yes.\n", false);
    planted(rules::length, "src/x.rs", &"\n".repeat(501), true);
    planted(rules::length, "src/x.rs", &"\n".repeat(500), false);
    for path in [
        "src/util.rs",
        "src/http/common/mod.rs",
        "tests/it/helpers.rs",
    ] {
        planted(rules::names, path, "", true);
    }
    planted(reasons::typed, "src/x.rs", "f(\"wal_held\")", true);
    planted(reasons::typed, "src/x.rs", "f(\"wal_held it\")", false);
    planted(rules::names, "src/commonly.rs", "", false);
    planted(rules::names, "src/http.rs", "", false);
}

#[test]
fn planted_imports_are_found() {
    let cases = [
        ("src/wire/login.rs", "use crate::client::Client;", true),
        ("src/wire/login.rs", "use crate::invoice::ids;", false),
        ("src/wire/login.rs", "// use crate::client::Client;", false),
        (
            "src/wire/login.rs",
            "/* crate::client::x */ /// [`crate::client`]",
            false,
        ),
        (
            "src/wire/login.rs",
            "fn f() { g(\"//\", crate::client::x()) }",
            true,
        ),
        ("src/wire/mod.rs", "use super::client::x;", true),
        (
            "src/wire/a/b.rs",
            "use super::super::super::client::x;",
            true,
        ),
        ("src/wire/a/b.rs", "use super::super::client::x;", false),
        (
            "src/wire/x.rs",
            "use crate::{clock, invoice::ids, client};",
            true,
        ),
        (
            "src/wire/x.rs",
            "use crate::{clock, invoice::{ids, client}};",
            false,
        ),
        ("src/sandbox/state.rs", "use crate::ledger::x;", true),
        ("src/invoice/ids.rs", "use crate::secret::Secret;", false),
        ("src/invoice/ids.rs", "use crate::clock::wall_ms;", true),
        ("src/clock.rs", "use crate::secret::Secret;", true),
        ("src/ledger/mod.rs", "use crate::hook::Selector;", false),
        (
            "src/ledger/mod.rs",
            "use crate::hook::{Selector, process::run};",
            true,
        ),
        (
            "src/ledger/mod.rs",
            "use crate::hook::settle_old_child;",
            true,
        ),
        ("src/outbox/mod.rs", "use crate::hook::process::run;", false),
        ("src/poller/mod.rs", "use crate::config::Settings;", true),
        ("src/daemon/mod.rs", "use crate::config::Settings;", false),
        ("src/daemon/mod.rs", "use crate::cli::run;", true),
        ("src/cli/serve.rs", "use crate::daemon::run;", false),
        ("src/lib.rs", "crate::cli::run()", false),
        ("src/novelty/mod.rs", "", true),
    ];
    for (path, text, is_broken) in cases {
        planted(rules::imports, path, text, is_broken);
    }
}

#[test]
fn planted_strays_are_found() {
    let cases: [(Rule, &str, &str, bool); 20] = [
        (
            rules::homes,
            "src/ledger/apply.rs",
            "use rusqlite::Connection;",
            true,
        ),
        (
            rules::homes,
            "src/ledger/sqlite/mod.rs",
            "use rusqlite::Connection;",
            false,
        ),
        (
            rules::homes,
            "src/hook/post.rs",
            "use reqwest::Client;",
            false,
        ),
        (
            rules::homes,
            "src/hook/process.rs",
            "use reqwest::Client;",
            true,
        ),
        (
            rules::homes,
            "src/telemetry/mod.rs",
            "f(\"tokio_cron_scheduler\")",
            false,
        ),
        (
            rules::homes,
            "src/poller/mod.rs",
            "tokio_cron_scheduler::Job::new()",
            true,
        ),
        (
            rules::homes,
            "tests/it/x.rs",
            "use rusqlite::Connection;",
            true,
        ),
        (
            rules::homes,
            "tests/it/harness/ledger.rs",
            "use rusqlite::Connection;",
            false,
        ),
        (rules::purity, "src/invoice/x.rs", "use std::fs;", true),
        (
            rules::purity,
            "src/hook/payload/mod.rs",
            "use std::{fmt, fs::File};",
            true,
        ),
        (rules::purity, "src/hook/process.rs", "use std::fs;", false),
        (rules::purity, "src/wire/x.rs", "tokio::spawn(f)", true),
        (
            rules::purity,
            "src/poller/budget.rs",
            "Instant::now()",
            true,
        ),
        (
            rules::purity,
            "src/poller/budget.rs",
            "fn f(now: Instant) {}",
            false,
        ),
        (
            rules::wall_clock,
            "src/x.rs",
            "let t = std::time::SystemTime::now();",
            true,
        ),
        (
            rules::wall_clock,
            "src/clock.rs",
            "SystemTime::now()",
            false,
        ),
        (
            rules::wall_clock,
            "src/x.rs",
            "jiff::Timestamp::now()",
            true,
        ),
        (rules::floats, "src/invoice/x.rs", "fn f(a: f64) {}", true),
        (
            rules::floats,
            "src/invoice/x.rs",
            "/// not an f64\nfn f() {}",
            false,
        ),
        (rules::floats, "src/http/x.rs", "fn f(a: f32) {}", false),
    ];
    for (rule, path, text, is_broken) in cases {
        planted(rule, path, text, is_broken);
    }
}
