//! The rules of the layout as data and one function each: a file goes in, what is wrong with it comes out.

use super::Source;
use super::code::{paths_above, paths_from, tokens};

/// Longest file in lines, tests included: what one sitting can hold.
const LONGEST_FILE: usize = 500;

/// Names that say nothing about what is inside.
const FORBIDDEN_NAMES: [&str; 7] = [
    "util", "utils", "common", "helper", "helpers", "manager", "managers",
];

/// Modules that import nothing of ours and that everybody may import.
const LEAVES: [&str; 16] = [
    "clock",
    "entropy",
    "fault",
    "file_lock",
    "hardened",
    "news",
    "panics",
    "percent",
    "process_mark",
    "pulse",
    "regular_file",
    "retry_after",
    "secret",
    "shutdown",
    "telemetry",
    "wake",
];

/// Who may import whom beside the leaves.
const IMPORTS: [(&str, &[&str]); 17] = [
    ("invoice", &[]),
    ("http", &[]),
    ("wire", &["invoice"]),
    // What the service said goes out in a document as `wire` spells it.
    ("hook", &["invoice", "wire"]),
    // The settings name status lists and selectors, both pure; programs and secret files are looked at before the
    // first payment.
    ("config", &[HOOK_PURE, "invoice"]),
    ("client", &["wire", "invoice"]),
    ("ledger", &["invoice", HOOK_PURE]),
    ("listener", &["http", "wire", "invoice", "ledger"]),
    // The request it sends is `wire`'s own type.
    // It polls an earlier invoice on the poller's road.
    (
        "opening",
        &["client", "ledger", "invoice", "poller", "wire"],
    ),
    ("poller", &["client", "ledger", "invoice"]),
    // What whoever asks is told: ends of what was asked of service and ledger, in words.
    (
        "answer",
        &["client", "ledger", "invoice", "opening", "poller", "wire"],
    ),
    // What it opens and asks goes through `opening` and `poller`, whose arguments are `client`'s and `wire`'s own types.
    (
        "control",
        &[
            "answer", "http", "opening", "poller", "client", "ledger", "invoice", "wire",
        ],
    ),
    ("outbox", &["ledger", "hook", "invoice"]),
    ("sandbox", &["http", "wire", "invoice"]),
    // From the settings to what each part takes.
    (
        "parts",
        &[
            "config", "client", "hook", "http", "invoice", "ledger", "listener", "opening",
            "outbox", "poller",
        ],
    ),
    // Built from the ledger and the settings, for all that say how tilld is.
    (
        "status",
        &[
            "answer", "config", HOOK_PURE, "http", "invoice", "ledger", "parts", "poller",
        ],
    ),
    (
        "admin",
        &[
            "http", "invoice", "client", "ledger", "listener", "outbox", "status",
        ],
    ),
];

/// Modules that may import all but these.
const IMPORTS_BUT: [(&str, &[&str]); 5] = [
    // Wires for `benches/` what the daemon wires, without a service.
    ("bench", &["cli", "sandbox", "simulation"]),
    ("daemon", &["cli", "sandbox", "simulation"]),
    ("doctor", &["cli", "daemon", "sandbox", "simulation"]),
    ("cli", &["simulation"]),
    // Drives everything in virtual time; compiled for tests only.
    ("simulation", &["cli"]),
];

/// `hook` without its parts that run something.
const HOOK_PURE: &str = "hook (pure)";

/// The parts of `hook` that run something, or end or remove what ran.
const HOOK_RUNS: [&str; 5] = ["leftovers", "post", "process", "remove", "settle_old_child"];

/// Outside crates that stand behind one module each, with the paths that may name them.
const HOMES: [(&str, &[&str]); 11] = [
    ("rusqlite", &["src/ledger/sqlite/"]),
    ("self_cell", &["src/ledger/sqlite/often.rs"]),
    (
        "reqwest",
        &[
            "src/client/",
            "src/doctor/request",
            "src/hook/post",
            "src/sandbox/notifier",
            "src/sandbox/visitor",
        ],
    ),
    ("figment", &["src/config/"]),
    (
        "nix",
        &[
            "src/daemon/control.rs",
            "src/doctor/user.rs",
            "src/hook/inherited.rs",
            "src/hook/members.rs",
        ],
    ),
    ("fork", &["src/hook/launcher/serve.rs"]),
    ("tokio_cron_scheduler", &["src/daemon/schedule"]),
    ("subtle", &["src/invoice/notify_token.rs"]),
    ("tokio_rustls", &["src/http/tls/"]),
    ("memchr", &["src/http/head.rs", "src/secret/anchors.rs"]),
    ("memmap2", &["src/http/bodies.rs"]),
];

/// Outside crates that stand behind one place of the tests.
const TEST_HOMES: [(&str, &[&str]); 1] = [(
    "rusqlite",
    &["tests/it/harness/ledger.rs", "tests/reliability/stored.rs"],
)];

/// Paths of pure code: everything comes in as an argument.
const PURE: [&str; 32] = [
    "src/admin/census",
    "src/admin/chart",
    "src/daemon/alarm/episodes",
    "src/status/measures",
    "src/status/needs",
    "src/status/reason",
    "src/cli/scenario/draw",
    "src/cli/scenario/format",
    "src/cli/scenario/step",
    "src/client/gate/door",
    "src/http/head",
    "src/http/tls/dates",
    "src/client/gate/outage",
    "src/client/gate/pace",
    "src/client/gate/rate",
    "src/invoice/",
    "src/wire/",
    "src/hook/abandonment",
    "src/hook/mod.rs",
    "src/hook/payload",
    "src/hook/signature",
    "src/client/login/plan",
    "src/poller/budget",
    "src/poller/pass",
    "src/poller/recheck",
    "src/simulation/outage/course",
    "src/simulation/outage/plot",
    "src/simulation/scenario",
    "src/outbox/places",
    "src/outbox/retry",
    "src/retry_after",
    "src/sandbox/state",
];

/// Modules of `std` that reach outside.
const IMPURE_STD: [&str; 6] = ["fs", "net", "process", "env", "thread", "io"];

/// Words that reach outside. `Instant` is none of them: as an argument it is data, and `now` is judged with the clocks.
const IMPURE_WORDS: [&str; 5] = ["tokio", "hyper", "clock", "entropy", "getrandom"];

/// Types whose `now` reads the wall clock.
const WALL_CLOCKS: [&str; 4] = ["SystemTime", "Timestamp", "Zoned", "Utc"];

/// Paths of code that stands near money.
const NEAR_MONEY: [&str; 3] = ["src/invoice/", "src/wire/", "src/ledger/"];

/// Every file opens with what it is for.
pub(super) fn opening(source: &Source) -> Vec<String> {
    if source.text.starts_with("//! ") {
        return Vec::new();
    }
    vec![format!("{}: does not open with `//!`", source.path)]
}

/// No file is longer than a sitting.
pub(super) fn length(source: &Source) -> Vec<String> {
    let lines = source.text.lines().count();
    if lines <= LONGEST_FILE {
        return Vec::new();
    }
    vec![format!(
        "{}: {lines} lines, {LONGEST_FILE} at most",
        source.path
    )]
}

/// No module bears a name that says nothing.
pub(super) fn names(source: &Source) -> Vec<String> {
    source
        .path
        .split('/')
        .map(|part| part.strip_suffix(".rs").unwrap_or(part))
        .filter(|part| FORBIDDEN_NAMES.contains(part))
        .map(|part| format!("{}: `{part}` says nothing", source.path))
        .collect()
}

/// The module path of a file of `src`: `["ledger", "sqlite"]`; empty for the roots.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let mut parts: Vec<&str> = path.split('/').collect();
    if matches!(parts.last(), Some(&"mod" | &"lib" | &"main")) {
        parts.pop();
    }
    Some(parts)
}

/// The table of imports holds.
pub(super) fn imports(source: &Source) -> Vec<String> {
    let Some(module) = module_of(&source.path) else {
        return Vec::new();
    };
    // The roots declare the modules and hand over to the command line.
    let Some(top) = module.first() else {
        return Vec::new();
    };
    let is_listed = LEAVES.contains(top)
        || IMPORTS.iter().any(|(name, _)| name == top)
        || IMPORTS_BUT.iter().any(|(name, _)| name == top);
    if !is_listed {
        return vec![format!(
            "{}: `{top}` is not in the table of imports",
            source.path
        )];
    }
    let tokens = tokens(&source.text);
    let mut paths = paths_from(&tokens, "crate");
    paths.extend(paths_above(&tokens, module.len()));
    paths
        .into_iter()
        .filter(|path| !may_import(top, path))
        .map(|path| {
            format!(
                "{}: `{top}` may not import `{}`",
                source.path,
                path.join("::")
            )
        })
        .collect()
}

fn may_import(top: &str, path: &[String]) -> bool {
    let mut parts = path.iter().map(String::as_str);
    let target = parts.next().unwrap_or_default();
    let part = parts.next().unwrap_or_default();
    // Macros and items of the crate root are not modules; `self` is the root itself.
    let is_module = LEAVES.contains(&target)
        || IMPORTS.iter().any(|(name, _)| *name == target)
        || IMPORTS_BUT.iter().any(|(name, _)| *name == target);
    if target == top || !is_module {
        return true;
    }
    if LEAVES.contains(&top) {
        return false;
    }
    if LEAVES.contains(&target) {
        return top != "invoice" || target == "secret";
    }
    if let Some((_, but)) = IMPORTS_BUT.iter().find(|(name, _)| *name == top) {
        return !but.contains(&target);
    }
    let allowed = IMPORTS
        .iter()
        .find(|(name, _)| *name == top)
        .map_or(&[] as &[&str], |(_, allowed)| allowed);
    let pure = target == "hook" && allowed.contains(&HOOK_PURE) && !HOOK_RUNS.contains(&part);
    pure || allowed.contains(&target)
}

/// Outside crates stay in their homes.
pub(super) fn homes(source: &Source) -> Vec<String> {
    let table: &[(&str, &[&str])] = if source.path.starts_with("src/") {
        &HOMES
    } else if source.path.starts_with("tests/") {
        &TEST_HOMES
    } else {
        return Vec::new();
    };
    let tokens = tokens(&source.text);
    table
        .iter()
        .filter(|(name, homes)| {
            let at_home = homes.iter().any(|home| source.path.starts_with(home));
            !at_home && tokens.iter().any(|token| token == name)
        })
        .map(|(name, homes)| format!("{}: `{name}` belongs in {}", source.path, homes.join(", ")))
        .collect()
}

/// Pure code reaches nothing outside.
pub(super) fn purity(source: &Source) -> Vec<String> {
    if !PURE.iter().any(|pure| source.path.starts_with(pure)) {
        return Vec::new();
    }
    let tokens = tokens(&source.text);
    let modules = paths_from(&tokens, "std")
        .into_iter()
        .filter(|path| {
            path.first()
                .is_some_and(|name| IMPURE_STD.contains(&name.as_str()))
        })
        .map(|path| format!("std::{}", path.join("::")));
    let words = tokens
        .iter()
        .filter(|token| IMPURE_WORDS.contains(&token.as_str()))
        .cloned();
    let now = paths_from(&tokens, "Instant")
        .into_iter()
        .filter(|path| path.first().is_some_and(|name| name == "now"))
        .map(|_| "Instant::now".to_owned());
    modules
        .chain(words)
        .chain(now)
        .map(|name| format!("{}: `{name}` in pure code", source.path))
        .collect()
}

/// The wall clock is read in `clock.rs` and nowhere else.
pub(super) fn wall_clock(source: &Source) -> Vec<String> {
    if source.path == "src/clock.rs" || !source.path.starts_with("src/") {
        return Vec::new();
    }
    let tokens = tokens(&source.text);
    WALL_CLOCKS
        .iter()
        .filter(|clock| {
            paths_from(&tokens, clock)
                .iter()
                .any(|path| path.first().is_some_and(|name| name == "now"))
        })
        .map(|clock| format!("{}: `{clock}::now` belongs in src/clock.rs", source.path))
        .collect()
}

/// Statements of the ledger are prepared where their plans are judged.
pub(super) fn planned(source: &Source) -> Vec<String> {
    const HOMES: [&str; 2] = ["src/ledger/sqlite/planned.rs", "src/ledger/sqlite/often.rs"];
    let own = source.path.starts_with("src/") && !HOMES.contains(&source.path.as_str());
    let text = source.text.split("#[cfg(test)]\nmod tests {").next();
    let is_named = |token: &String| token == "prepare_cached";
    if own && tokens(text.unwrap_or_default()).iter().any(is_named) {
        return vec![format!(
            "{}: a statement is prepared past `src/ledger/sqlite/planned.rs`",
            source.path
        )];
    }
    Vec::new()
}

/// No float stands near money.
pub(super) fn floats(source: &Source) -> Vec<String> {
    if !NEAR_MONEY.iter().any(|near| source.path.starts_with(near)) {
        return Vec::new();
    }
    tokens(&source.text)
        .into_iter()
        .filter(|token| token == "f32" || token == "f64")
        .map(|token| format!("{}: `{token}` near money", source.path))
        .collect()
}
