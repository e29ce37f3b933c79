//! What is underneath: the same rows written by bare SQLite in batches, and one sync of the disk.

use std::time::Duration;

use super::Part;
use crate::load::INVOICES;
use crate::options::{Effort, Options};
use crate::report::Report;
use crate::subjects::probe;
use crate::subjects::raw::Raw;

/// The part.
pub(crate) const PART: Part = Part {
    name: "raw",
    what: "bare SQLite in batches of 1, 64 and 512 on the same schema and rows; one fdatasync",
    run,
};

const BATCHES: [u32; 3] = [1, 64, 512];

fn run(options: &Options, report: &mut Report) {
    let (rounds, slice, probes) = match options.effort {
        Effort::Smoke => (1, Duration::from_millis(50), 20),
        Effort::Quick => (3, Duration::from_millis(300), 200),
        Effort::Full => (7, Duration::from_secs(1), 1_000),
    };
    let directory = options.directory.join("raw");
    drop(std::fs::remove_dir_all(&directory));
    let mut raw = Raw::make(&directory, INVOICES);
    for round in 0..rounds {
        for place in 0..BATCHES.len() {
            let batch = BATCHES[(round + place) % BATCHES.len()];
            add(report, batch, raw.slice(batch, slice));
        }
        add_probe(report, &directory, probes);
    }
    drop(raw);
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
        report.add(key, what, "µs", took.as_secs_f64() * 1e6);
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
