//! Instructions per notification: `cargo bench --bench instructions`. Counted, not timed, so the figure is the same on a busy
//! machine and can be held against an earlier one.
//!
//! 20,000 notifications for 2,000 invoices go the whole road from head and body to the durable commit, in batches of 64, in
//! one thread under `valgrind --tool=callgrind`; what opening the ledger and warming up takes is counted by itself and taken
//! off. `--check` fails when the figure differs by more than 5 % from the one in `benches/instructions.txt`, `--record`
//! writes it there, `--keep DIRECTORY` leaves the profile for `callgrind_annotate`. Without valgrind it says so and ends
//! well, or, with `TILLD_NO_SKIP=1`, fails.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "figures/notice.rs"]
mod notice;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use tilld::bench::{Arrived, Road, Stocked, settings, stock};

/// Invoices that are notified of.
const INVOICES: u32 = 2_000;
/// Notifications that are counted.
const COUNTED: u64 = 20_000;
/// Notifications before them, which prepare statements and fill caches.
const WARM: u64 = 2_048;
/// Notifications in one commit.
const BATCH: usize = 64;
/// How far the figure may lie from the recorded one, per cent.
const MAY_DIFFER: u64 = 5;
/// The recorded figure.
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.txt");
/// What is counted, whatever calls it.
const ROAD: &str = "--toggle-collect=*Road*take*";
/// The word that makes this program the one that is counted.
const INNER: &str = "--inner";

/// What the ledger is configured with: a hook that wants every change, so that each notification owes a delivery.
const CONFIG: &str = r#"
[statuses]
open = ["new", "wip"]
[[hook]]
name = "shop"
on = ["status:new", "status:wip"]
run = ["/bin/true"]
"#;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [word, directory, count] = args.as_slice()
        && word == INNER
    {
        walk(Path::new(directory), count.parse().expect("a number"));
        return ExitCode::SUCCESS;
    }
    let has = |name: &str| args.iter().any(|arg| arg == name);
    let keep = args.iter().skip_while(|arg| *arg != "--keep").nth(1);
    let found = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !found.is_ok_and(|status| status.success()) {
        println!("skipped: instructions are counted by valgrind, which is not installed");
        let must = std::env::var_os("TILLD_NO_SKIP").is_some_and(|value| value == "1");
        return ExitCode::from(u8::from(must));
    }
    let figure = measure(keep.map(PathBuf::from).as_deref());
    println!("{figure} user instructions per notification");
    if has("--record") {
        fs::write(RECORDED, format!("{figure}\n")).expect("it is written");
    }
    if has("--check") {
        return check(figure);
    }
    ExitCode::SUCCESS
}

fn check(figure: u64) -> ExitCode {
    let recorded = fs::read_to_string(RECORDED).expect("a recorded figure");
    let recorded: u64 = recorded.trim().parse().expect("a number");
    if figure.abs_diff(recorded) * 100 > recorded * MAY_DIFFER {
        println!("recorded are {recorded}: it differs by more than {MAY_DIFFER} %");
        println!(
            "hint: look what changed; if it is meant, `cargo bench --bench instructions -- --record`"
        );
        return ExitCode::FAILURE;
    }
    println!("recorded are {recorded}: within {MAY_DIFFER} %");
    ExitCode::SUCCESS
}

/// The figure: what the counted ones take beyond the warm ones alone.
fn measure(keep: Option<&Path>) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let made = directory.path().join("made");
    fs::create_dir(&made).expect("it is made");
    let state = made.join("state");
    fs::write(made.join("config.toml"), config(&state)).expect("it is written");
    let stocked = stock(&settings(&made.join("config.toml")), INVOICES);
    fs::write(made.join("stocked"), lines(&stocked)).expect("it is written");
    let [warm, whole] = [WARM, WARM + COUNTED].map(|count| {
        let copy = directory.path().join(count.to_string());
        let copied = Command::new("cp").arg("-a").args([&made, &copy]).status();
        assert!(copied.expect("cp").success(), "copied");
        fs::write(copy.join("config.toml"), config(&copy.join("state"))).expect("it is written");
        let out = keep.unwrap_or(&copy).join(format!("callgrind.{count}"));
        counted(&copy, count, &out)
    });
    assert!(warm > 0, "{ROAD} names a call");
    (whole - warm) / COUNTED
}

fn counted(directory: &Path, count: u64, out: &Path) -> u64 {
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        // Making the notifications is not part of their road.
        .args(["--collect-atstart=no", ROAD])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this program"))
        .arg(INNER)
        .arg(directory)
        .arg(count.to_string())
        .output()
        .expect("valgrind");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "under valgrind: {told}");
    let profile = fs::read_to_string(out).expect("a profile");
    assert_eq!(
        on_the_road(&profile).len(),
        1,
        "{ROAD} names one call: {:?}",
        on_the_road(&profile)
    );
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("summary:"));
    let total = total.expect("a total").trim();
    total.parse().expect("a number")
}

/// The functions of a profile that [`ROAD`] names: with a second one, what is counted would begin or end elsewhere.
fn on_the_road(profile: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for line in profile.lines() {
        let numbered = line
            .split_once("fn=(")
            .and_then(|(_, rest)| rest.split_once(") "));
        let of_road = |name: &str| {
            name.split_once("Road")
                .is_some_and(|(_, rest)| rest.contains("take"))
        };
        found.extend(
            numbered
                .map(|(_number, name)| name)
                .filter(|name| of_road(name)),
        );
    }
    found
}

fn config(state: &Path) -> String {
    let state = state.to_str().expect("a name in UTF-8");
    format!("state_dir = {state:?}\n{CONFIG}")
}

fn lines(stocked: &[Stocked]) -> String {
    let line = |one: &Stocked| {
        format!(
            "{} {} {} {} {}\n",
            one.number, one.reference, one.token, one.invoice_id, one.order_id
        )
    };
    stocked.iter().map(line).collect()
}

fn stocked(text: &str) -> Vec<Stocked> {
    let read = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let mut word = || words.next().expect("five words");
        Stocked {
            number: word().parse().expect("a number"),
            reference: word(),
            token: word(),
            invoice_id: word(),
            order_id: word(),
        }
    };
    text.lines().map(read).collect()
}

/// Takes `count` notifications along the road: the invoices in turn, from one end to the other.
fn walk(directory: &Path, count: u64) {
    let text = fs::read_to_string(directory.join("stocked")).expect("it was made");
    let stocked = stocked(&text);
    let mut road = Road::open(&settings(&directory.join("config.toml")));
    let mut batch = Vec::with_capacity(BATCH);
    let mut number = 0;
    'all: loop {
        for one in &stocked {
            batch.push(arrived(one, number / u64::from(INVOICES)));
            number += 1;
            if batch.len() == BATCH || number == count {
                road.take(&batch);
                batch.clear();
            }
            if number == count {
                break 'all;
            }
        }
    }
}

fn arrived(of: &Stocked, number: u64) -> Arrived {
    let mut headers = HeaderMap::new();
    let mut put = |name, text: &str| {
        headers.insert(name, HeaderValue::from_str(text).expect("a header"));
    };
    put(HOST, "pay.example");
    put(USER_AGENT, "service/1.0");
    put(CONTENT_TYPE, "application/json");
    put(AUTHORIZATION, &format!("Bearer {}", of.token));
    Arrived {
        reference: of.reference.clone(),
        headers,
        body: Bytes::from(notice::body(of, number)),
    }
}
