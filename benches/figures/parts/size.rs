//! How much there is of it: the program, what the ledger grows by, and how long the program takes to show an invoice when
//! nothing of it is in memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use rusqlite::Connection;
use rustix::fs::{Advice, fadvise, sync};
use tilld::bench::{Arrived, Road, Stocked, settings, stock};

use super::Part;
use crate::notice;
use crate::options::{Effort, Options};
use crate::report::Report;

/// The part.
pub(crate) const PART: Part = Part {
    name: "size",
    what: "the program, the ledger's bytes per invoice, event and delivery, a cold `invoice show`",
    run,
};

/// Notifications in one commit.
const BATCH: usize = 64;
/// Where Linux is told to forget what it read; only root may.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
/// All: pages, and what it knows of directories and files.
const ALL_CACHES: &str = "3";

/// A ledger's config.
const CONFIG: &str = "[statuses]\nopen = [\"new\", \"wip\"]\n";
/// A hook that every change of a status is owed to.
const HOOK: &str =
    "[[hook]]\nname = \"shop\"\non = [\"status:new\", \"status:wip\"]\nrun = [\"/bin/true\"]\n";

fn run(options: &Options, report: &mut Report) {
    program(options, report);
    let (rows, rounds) = match options.effort {
        Effort::Smoke => (1_000, 1),
        Effort::Quick => (10_000, 5),
        Effort::Full => (10_000, 15),
    };
    let directory = options.directory.join("size");
    if directory.exists() {
        fs::remove_dir_all(&directory).expect("removed");
    }
    let grown = |name: &str, hook: &str| Grown::make(&directory.join(name), hook, rows);
    let empty = grown_empty(&directory.join("empty"));
    let (alone, owing) = (grown("alone", ""), grown("owing", HOOK));
    let mut add = |key: &str, what: &str, bytes: f64| report.add(key, what, "B", bytes);
    let each = |after: u64, before: u64| bytes(after.saturating_sub(before)) / f64::from(rows);
    let event = each(alone.told_twice, alone.told);
    add(
        "size.invoice",
        "ledger, an invoice, the event of its opening included",
        each(alone.told, empty) - event,
    );
    add(
        "size.event",
        "ledger, an event, its body of 858 B and its decision included",
        event,
    );
    add(
        "size.delivery",
        "ledger, a delivery that waits",
        each(owing.told_twice, owing.told) - event,
    );
    show(options, report, &owing, rounds);
    fs::remove_dir_all(&directory).expect("removed");
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn bytes(count: u64) -> f64 {
    count as f64
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).expect("it is there").len()
}

/// The program as it was built, and without what only a debugger reads.
fn program(options: &Options, report: &mut Report) {
    let mib = |count: u64| bytes(count) / 1_048_576.0;
    let what = "the program, as built";
    report.add("size.program", what, "MiB", mib(length(&options.daemon)));
    fs::create_dir_all(&options.directory).expect("a directory");
    let stripped = options.directory.join("stripped");
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&stripped).arg(&options.daemon);
    if strip.status().is_ok_and(|status| status.success()) {
        let what = "the program, stripped";
        report.add("size.stripped", what, "MiB", mib(length(&stripped)));
        fs::remove_file(&stripped).expect("removed");
    } else {
        let note = "skipped: `strip` is not there, so the program's size without debug information";
        report.notes.push(note.to_owned());
    }
}

/// A ledger, and how long its file was.
struct Grown {
    config: PathBuf,
    ledger: PathBuf,
    /// With the invoices and a notification for each, which makes their rows as long as they get.
    told: u64,
    /// With another one for each.
    told_twice: u64,
}

impl Grown {
    fn make(directory: &Path, hook: &str, rows: u32) -> Self {
        let (config, ledger) = configure(directory, hook);
        let invoices = stock(&settings(&config), rows);
        let tell = |number: u64| {
            let mut road = Road::open(&settings(&config));
            for some in invoices.chunks(BATCH) {
                let arrived = some.iter().map(|one| arrived(one, number));
                road.take(&arrived.collect::<Vec<Arrived>>());
            }
            drop(road);
            whole(&ledger)
        };
        let (told, told_twice) = (tell(0), tell(1));
        Self {
            config,
            ledger,
            told,
            told_twice,
        }
    }
}

/// How long the file of a ledger is that has no invoice.
fn grown_empty(directory: &Path) -> u64 {
    let (config, ledger) = configure(directory, "");
    assert!(stock(&settings(&config), 0).is_empty(), "none was wanted");
    whole(&ledger)
}

fn configure(directory: &Path, hook: &str) -> (PathBuf, PathBuf) {
    fs::create_dir_all(directory).expect("a directory");
    let (config, state) = (directory.join("config.toml"), directory.join("state"));
    let named = state.to_str().expect("a name in UTF-8");
    fs::write(&config, format!("state_dir = {named:?}\n{CONFIG}{hook}")).expect("written");
    (config, state.join("ledger.db"))
}

/// The length of a closed ledger's file with all of it in there: what closed it last may only have read.
fn whole(ledger: &Path) -> u64 {
    let connection = Connection::open(ledger).expect("a ledger");
    let left = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
        row.get::<_, i64>(0)
    });
    assert_eq!(left, Ok(0), "nobody else has it open");
    drop(connection);
    length(ledger)
}

/// The notification of an invoice with this number.
fn arrived(of: &Stocked, number: u64) -> Arrived {
    let mut headers = HeaderMap::new();
    let token = format!("Bearer {}", of.token);
    let token = HeaderValue::try_from(token).expect("a header");
    headers.insert(AUTHORIZATION, token);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Arrived {
        reference: of.reference.clone(),
        headers,
        body: Bytes::from(notice::body(of, number)),
    }
}

/// `invoice show`, with nothing in memory and with everything.
fn show(options: &Options, report: &mut Report, of: &Grown, rounds: u32) {
    let files = [options.daemon.as_path(), &of.ledger];
    let mut all_dropped = true;
    for round in 0..rounds {
        let order = format!("order-{:07}", 1 + round);
        all_dropped &= forget(&files);
        let cold = shown(options, of, &order);
        let warm = shown(options, of, &order);
        let millis = |took: Duration| took.as_secs_f64() * 1e3;
        let what = "`invoice show`, nothing in memory";
        report.add("size.show.cold", what, "ms", millis(cold));
        let what = "`invoice show`, at once after it";
        report.add("size.show.warm", what, "ms", millis(warm));
    }
    if !all_dropped {
        report.notes.push(
            "the cold `invoice show`: only the program and the ledger were dropped from memory; root may drop all"
                .to_owned(),
        );
    }
}

/// Has the kernel forget files; true when it forgot everything it had read.
fn forget(files: &[&Path]) -> bool {
    // What is not on the disk yet stays in memory.
    sync();
    if fs::write(DROP_CACHES, ALL_CACHES).is_ok() {
        return true;
    }
    for file in files {
        let file = File::open(file).expect("it is there");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advice is taken");
    }
    false
}

/// How long it took, from before it was started to its end.
fn shown(options: &Options, of: &Grown, order: &str) -> Duration {
    let mut command = Command::new(&options.daemon);
    command
        .args(["invoice", "show", order, "--json", "--config"])
        .arg(&of.config)
        .env_clear()
        .stdin(Stdio::null());
    let began = Instant::now();
    let output = command.output().expect("the program starts");
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains(order),
        "{output:?}"
    );
    took
}
