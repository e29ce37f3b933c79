//! Rounds: in each, all subjects are started on new ledgers, and each load is put on one after the other before the next
//! load is, in another order each time. What is compared is so measured within moments of each other, and whoever goes
//! first is not always the same.

use std::time::Duration;

use crate::load::{Pace, Plan};
use crate::machine::gate::Gate;
use crate::options::Options;
use crate::report::{Report, Spread};
use crate::subjects::running::{Driven, Running};
use crate::subjects::{Subject, TILLD};

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

/// A load that is put on subjects.
pub(super) struct Load {
    /// Its name in the keys of figures: `64`.
    pub(super) name: String,
    /// It in words.
    pub(super) what: String,
    pub(super) plan: Plan,
    /// Those that carry it, by name.
    pub(super) on: Vec<&'static str>,
}

/// One subject under one load, once.
pub(super) struct Slice<'a> {
    subject: &'static str,
    load: &'a Load,
    pub(super) driven: Driven,
    disturbed: bool,
}

/// A share of answers: its name in the keys of figures, in words, and itself.
pub(super) type Share = (&'static str, &'static str, f64);
/// Half of them.
pub(super) const P50: Share = ("p50", "median latency", 0.5);
/// All but one in a hundred.
pub(super) const P99: Share = ("p99", "p99", 0.99);
/// All but one in a thousand.
pub(super) const P999: Share = ("p999", "p99.9", 0.999);

impl Slice<'_> {
    /// Adds a value of it.
    pub(super) fn add(
        &self,
        report: &mut Report,
        key: &str,
        what: &str,
        unit: &'static str,
        value: f64,
    ) {
        let Load { name, what: at, .. } = self.load;
        let key = format!("{}.{name}.{key}", self.subject);
        let what = format!("{}: {what}, {at}", self.subject);
        report.add(&key, &what, unit, value);
        if self.disturbed {
            report.disturbed(&key);
        }
    }

    /// Adds the latency of some shares of its answers.
    pub(super) fn add_latency(&self, report: &mut Report, shares: &[Share]) {
        for (key, what, share) in shares {
            let value = micros(self.driven.heard.latency.at(*share));
            self.add(report, key, what, "us", value);
        }
    }

    /// Keeps the latency of some shares out of the table.
    pub(super) fn hide_latency(&self, report: &mut Report, shares: &[Share]) {
        for (key, _, _) in shares {
            report.detail(&format!("{}.{}.{key}", self.subject, self.load.name));
        }
    }
}

/// Takes all rounds and shows each slice to `add`.
pub(super) fn take(
    part: &str,
    options: &Options,
    rounds: &Rounds,
    subjects: &[Subject],
    loads: &[Load],
    mut add: impl FnMut(&Slice<'_>),
) {
    for round in 0..rounds.count {
        let start = |subject| Running::start(subject, options, part);
        let mut running: Vec<Running> = subjects.iter().map(start).collect();
        running.rotate_left(round % subjects.len());
        for load in loads {
            for one in &mut running {
                if load.on.contains(&one.name) {
                    let taken = rounds.gate.slice(|| one.drive(&load.plan));
                    add(&Slice {
                        subject: one.name,
                        load,
                        driven: taken.value,
                        disturbed: taken.disturbed,
                    });
                }
            }
            running.rotate_left(1);
        }
        running.into_iter().for_each(Running::stop);
    }
}

/// Microseconds.
pub(super) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// What tilld acknowledges per second at 64 connections: the median of what was measured, or a short look where nothing was.
pub(super) fn capacity(options: &Options, report: &Report) -> f64 {
    let measured = report.figures.get("tilld.64.rate");
    if let Some(spread) = measured.and_then(|figure| Spread::of(&figure.values)) {
        return spread.median;
    }
    let mut running = Running::start(&TILLD, options, "capacity");
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
