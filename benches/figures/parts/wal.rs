//! How long the log becomes, at full load and with a program that reads without an end, and what that costs.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::Part;
use crate::load::{Heard, INVOICES, Pace, Plan, Sender, check};
use crate::machine::process::ran;
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::daemon::{Daemon, Home};
use crate::subjects::held;

/// The part.
pub(crate) const PART: Part = Part {
    name: "wal",
    what: "the log's length at full load, and with a reader stuck in a transaction",
    run,
};

const CONNECTIONS: usize = 64;
/// Notifications per second at which the processor time of each is compared.
const PER_SECOND: f64 = 1_000.0;
/// Between two looks at the log's length.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What the log may take, MB.
const MOST_MB: f64 = 16.0;
/// For a log to become short again, which is a thread's work of some seconds.
const PATIENCE: u32 = 15_000;
const WARNS: &str = "the ledger's log has grown to";
const OVER: &str = "the ledger's log is moved into the ledger's file again";

fn run(options: &Options, report: &mut Report) {
    check();
    let (rounds, slice) = match options.effort {
        Effort::Smoke => (1, Duration::from_millis(300)),
        Effort::Quick => (1, Duration::from_secs(1)),
        Effort::Full => (5, Duration::from_secs(3)),
    };
    let directory = options.directory.join("wal");
    drop(fs::remove_dir_all(&directory));
    let home = Home::make(&directory, "");
    let mut sender = Sender::new(home.stock(INVOICES), Home::path());
    let daemon = home.start(&options.daemon);
    let log = directory.join("state/ledger.db-wal");
    let told = |what: &str| {
        let log = fs::read_to_string(directory.join("log"));
        log.unwrap_or_default().matches(what).count()
    };
    let mut warned = 0;
    for _ in 0..rounds {
        let mut taken = |name: &str, pace: Pace| {
            let plan = Plan {
                connections: CONNECTIONS,
                pace,
                warm: Duration::from_millis(200),
                run: slice,
            };
            measure(report, &mut sender, &daemon, (name, &log), &plan)
        };
        let open = Pace::Open {
            per_second: PER_SECOND,
        };
        taken("wal.free", Pace::Closed);
        taken("wal.free.open", open);
        let reader = stuck(&home.ledger());
        taken("wal.stuck", Pace::Closed);
        taken("wal.stuck.open", open);
        // A short run may not fill the log to where a person is told (`ledger.log_attention_bytes`, 64 MiB unless set).
        warned += u32::from(fs::metadata(&log).is_ok_and(|log| log.len() > 70_000_000));
        drop(reader);
        for look in 0.. {
            let short = fs::metadata(&log).is_ok_and(|log| log.len() <= 16_777_216);
            if short && told(OVER) == told(WARNS) {
                break;
            }
            assert!(look < PATIENCE, "the log stays long");
            thread::sleep(LOOK_EVERY);
        }
    }
    assert!(
        told(WARNS) >= usize::try_from(warned).expect("few"),
        "it warns"
    );
    daemon.stop();
    fs::remove_dir_all(&directory).expect("removed");
    report.bar("wal.free.most", Bar::AtMost(MOST_MB));
    for (of, what) in [
        ("rate", "acknowledgements/s with a stuck reader ÷ without"),
        (
            "longest",
            "longest acknowledgement with a stuck reader ÷ without",
        ),
    ] {
        report.ratio(
            what,
            &format!("wal.stuck.{of}"),
            &format!("wal.free.{of}"),
            None,
        );
    }
    let what = "CPU per acknowledgement at 1,000/s with a stuck reader ÷ without";
    report.ratio(what, "wal.stuck.open.cpu", "wal.free.open.cpu", None);
}

/// A program that reads and does not end.
fn stuck(ledger: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let reader = Connection::open_with_flags(ledger, flags).expect("a ledger");
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM meta")
        .expect("a moment of the ledger");
    reader
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn measure(
    report: &mut Report,
    sender: &mut Sender,
    daemon: &Daemon,
    (name, log): (&str, &Path),
    plan: &Plan,
) -> Heard {
    let (ends, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut took = Duration::ZERO;
    let heard = held(name, daemon, || {
        let before = ran(daemon.pid()).expect("it runs");
        let heard = thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let takes = fs::metadata(log).map_or(0, |log| log.len());
                    most.fetch_max(takes, Ordering::Relaxed);
                    thread::sleep(LOOK_EVERY);
                }
            });
            let heard = sender.run(daemon.address, plan);
            ends.store(true, Ordering::Relaxed);
            heard
        });
        // Threads that ended take theirs along.
        took = ran(daemon.pid()).expect("it runs").saturating_sub(before);
        heard
    });
    assert_eq!((heard.whole.refused, heard.whole.failed), (0, 0), "{name}");
    let each = took.as_secs_f64() * 1e6 / heard.whole.acknowledged.max(1) as f64;
    let most = most.load(Ordering::Relaxed) as f64 / 1e6;
    let reads = if name.contains("stuck") {
        "a stuck reader"
    } else {
        "no stuck reader"
    };
    let pace = match plan.pace {
        Pace::Closed => "full load",
        _ => "1,000/s",
    };
    let mut add = |of: &str, what: &str, unit: &'static str, value: f64| {
        report.add(
            &format!("{name}.{of}"),
            &format!("{what}, {pace}, {reads}"),
            unit,
            value,
        );
    };
    add("most", "the log's length at most", "MB", most);
    add("cpu", "processor time per acknowledgement", "us", each);
    add(
        "longest",
        "longest acknowledgement",
        "ms",
        heard.latency.longest().as_secs_f64() * 1e3,
    );
    if plan.pace == Pace::Closed {
        add(
            "rate",
            "acknowledgements at 64 connections",
            "1/s",
            heard.rate(),
        );
    }
    heard
}
