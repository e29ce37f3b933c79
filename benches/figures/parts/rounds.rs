//! Rounds: in each, all subjects are started on new ledgers, and each load is put on one after the other before the next
//! load is, in another order each time. What is compared is so measured within moments of each other, and whoever goes
//! first is not always the same.

use std::time::Duration;

use crate::load::{Pace, Plan};
use crate::machine::gate::Gate;
use crate::options::{Effort, Options};
use crate::report::Report;
use crate::subjects::Subject;
use crate::subjects::running::{Driven, Running};

/// How often, how long and how patiently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    pub(super) count: usize,
    pub(super) warm: Duration,
    pub(super) run: Duration,
    pub(super) gate: Gate,
}

impl Rounds {
    /// The plan of a slice.
    pub(super) const fn plan(&self, connections: usize, pace: Pace) -> Plan {
        Plan {
            connections,
            pace,
            warm: self.warm,
            run: self.run,
        }
    }
}

/// How patient a part may be.
pub(super) const fn gate(options: &Options) -> Gate {
    match options.effort {
        Effort::Smoke => Gate::OPEN,
        Effort::Quick => Gate {
            wait: Duration::from_millis(500),
            tries: 1,
        },
        Effort::Full => Gate {
            wait: Duration::from_secs(10),
            tries: 4,
        },
    }
}

/// A load that is put on subjects.
pub(super) struct Load {
    /// Its name in the keys of figures: `64`.
    pub(super) name: String,
    pub(super) plan: Plan,
    /// Those that carry it, by name.
    pub(super) on: Vec<&'static str>,
}

/// Takes all rounds and shows each slice to `add`, with the beginning of its keys (`tilld.64`).
pub(super) fn take(
    part: &str,
    options: &Options,
    rounds: &Rounds,
    subjects: &[Subject],
    loads: &[Load],
    mut add: impl FnMut(&Load, &str, &Driven, bool),
) {
    for round in 0..rounds.count {
        let start = |subject| Running::start(subject, options, part);
        let mut running: Vec<Running> = subjects.iter().map(start).collect();
        running.rotate_left(round % subjects.len());
        for load in loads {
            for one in &mut running {
                if load.on.contains(&one.name) {
                    let slice = rounds.gate.slice(|| one.drive(&load.plan));
                    let key = format!("{}.{}", one.name, load.name);
                    add(load, &key, &slice.value, slice.disturbed);
                }
            }
            running.rotate_left(1);
        }
        running.into_iter().for_each(Running::stop);
    }
}

/// Adds a value of a slice.
pub(super) fn add(
    report: &mut Report,
    key: &str,
    what: &str,
    unit: &'static str,
    value: f64,
    disturbed: bool,
) {
    report.add(key, what, unit, value);
    if let Some(figure) = report.figures.get_mut(key) {
        figure.disturbed += usize::from(disturbed);
    }
}

/// Kinds of figures about a slice's latency.
const LATENCIES: [&str; 4] = ["p50", "p99", "p999", "longest"];

/// Adds the shares of a slice's latency that are named.
pub(super) fn add_latency(report: &mut Report, key: &str, driven: &Driven, disturbed: bool) {
    let latency = &driven.heard.latency;
    let load = key.rsplit('.').next().unwrap_or_default();
    for (name, what, share) in [
        ("p50", "median latency", 0.5),
        ("p99", "latency of the 99th of 100", 0.99),
        ("p999", "latency of the 999th of 1000", 0.999),
    ] {
        let key = format!("{key}.{name}");
        let what = format!("{what} at {load}");
        add(
            report,
            &key,
            &what,
            "us",
            micros(latency.at(share)),
            disturbed,
        );
    }
    let longest = micros(latency.longest());
    let key = format!("{key}.longest");
    add(report, &key, "longest latency", "us", longest, disturbed);
    report.detail(&key);
}

/// Keeps a slice's latency out of the table: as fast as answers come, it is only what the connections wait for each other.
pub(super) fn hide_latency(report: &mut Report, key: &str) {
    for name in LATENCIES {
        report.detail(&format!("{key}.{name}"));
    }
}

/// Microseconds.
pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// What tilld acknowledges per second at 64 connections: the median of what was measured, or a short look where nothing was.
pub(super) fn capacity(options: &Options, report: &Report) -> f64 {
    if let Some(figure) = report.figures.get("tilld.64.rate") {
        let mut values = figure.values.clone();
        values.sort_by(f64::total_cmp);
        if let Some(middle) = values.get(values.len() / 2) {
            return *middle;
        }
    }
    let mut running = Running::start(&crate::subjects::TILLD, options, "capacity");
    let plan = Plan {
        connections: 64,
        pace: Pace::Closed,
        warm: Duration::from_millis(200),
        run: Duration::from_millis(800),
    };
    let rate = running.drive(&plan).heard.rate();
    running.stop();
    rate
}
