//! What is underneath: the same rows written by bare SQLite in batches, and one sync of the disk.

use std::time::Duration;

use super::Part;
use crate::load::{INVOICES, Pace, Plan, Sender};
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::daemon::Home;
use crate::subjects::raw::Raw;
use crate::subjects::{held, probe};

/// The part.
pub(crate) const PART: Part = Part {
    name: "raw",
    what: "bare SQLite in batches of 1, 64 and 512 on the same schema and rows, beside the daemon; one fdatasync",
    run,
};

/// Connections of the daemon that is measured beside it.
const CONNECTIONS: usize = 256;
const BATCHES: [u32; 3] = [1, 64, 512];

fn run(options: &Options, report: &mut Report) {
    let (rounds, slice, probes) = match options.effort {
        Effort::Smoke => (1, Duration::from_millis(50), 20),
        Effort::Quick => (3, Duration::from_millis(300), 200),
        Effort::Full => (7, Duration::from_secs(1), 1_000),
    };
    let directory = options.directory.join("raw");
    drop(std::fs::remove_dir_all(&directory));
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut raw = Raw::make(&directory.join("bare"), INVOICES);
    let home = Home::make(&directory.join("daemon"), "");
    let mut sender = Sender::new(home.stock(INVOICES), Home::path());
    let daemon = home.start(&options.daemon);
    let plan = Plan {
        connections: CONNECTIONS,
        pace: Pace::Closed,
        warm: slice / 5,
        run: slice,
    };
    for round in 0..rounds {
        let heard = held(PART.name, &daemon, || sender.run(daemon.address, &plan));
        let rate = heard.rate();
        let what = "the daemon at 256 connections, in the same rounds";
        report.add("raw.tilld.256.rate", what, "1/s", rate);
        for &batch in BATCHES.iter().cycle().skip(round).take(BATCHES.len()) {
            add(report, batch, raw.slice(batch, slice));
        }
        add_probe(report, &directory, probes);
    }
    daemon.stop();
    drop(raw);
    let what = "at 256 to bare SQLite in batches of 64";
    let (over, under) = ("raw.tilld.256.rate", "raw.64.rate");
    report.ratio(what, over, under, Some(Bar::AtLeast(0.50)));
    std::fs::remove_dir_all(&directory).expect("removed");
}

/// Adds the value of a round.
pub(crate) fn add(report: &mut Report, batch: u32, rate: f64) {
    let what = format!("bare SQLite, batches of {batch}");
    report.add(&format!("raw.{batch}.rate"), &what, "1/s", rate);
}

/// Adds a round of syncs.
pub(crate) fn add_probe(report: &mut Report, directory: &std::path::Path, count: usize) {
    let took = probe::run(directory, count);
    let mut at = |key: &str, what: &str, place: usize| {
        let took = took.get(place.min(count - 1)).expect("some were made");
        report.add(key, what, "us", took.as_secs_f64() * 1e6);
    };
    at(
        "fdatasync.p50",
        "one 4 KiB block overwritten and synced",
        count / 2,
    );
    at(
        "fdatasync.p99",
        "the same, one of a hundred",
        count * 99 / 100,
    );
}
