//! How long a notification waits for its 200 when they come at a given rate, beside the checkpoint inside COMMIT and beside
//! those who commit each one.

use std::time::Duration;

use super::Part;
use super::rounds::{Load, Rounds, add_latency, capacity, gate, take};
use crate::load::Pace;
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::{AGAIN, IN_COMMIT, NAIVE, TILLD, peers};

/// The part.
pub(crate) const PART: Part = Part {
    name: "tails",
    what: "latency from the intended send time at 1,000/s and at 50 % and 90 % of capacity, 64 connections",
    run,
};

/// Connections.
const CONNECTIONS: usize = 64;

fn run(options: &Options, report: &mut Report) {
    let (count, warm, run) = match options.effort {
        Effort::Smoke => (1, 50, 250),
        Effort::Quick => (4, 100, 500),
        // The tail of one round is a matter of chance: eight, and longer ones.
        Effort::Full => (8, 200, 2_000),
    };
    let rounds = Rounds {
        count,
        warm: Duration::from_millis(warm),
        run: Duration::from_millis(run),
        gate: gate(options),
    };
    let capacity = capacity(options, report);
    let peers = peers(options);
    let mut subjects = vec![TILLD, AGAIN, IN_COMMIT, NAIVE];
    subjects.extend(&peers);
    let load = |name: &str, per_second, on: Vec<&'static str>| Load {
        name: name.to_owned(),
        plan: rounds.plan(CONNECTIONS, Pace::Open { per_second }),
        on,
    };
    let all = subjects.iter().map(|subject| subject.name).collect();
    let loads = [
        load("1000", 1_000.0, all),
        load("50%", capacity * 0.5, vec![TILLD.name, IN_COMMIT.name]),
        load("90%", capacity * 0.9, vec![TILLD.name, IN_COMMIT.name]),
    ];
    take(
        PART.name,
        options,
        &rounds,
        &subjects,
        &loads,
        |_load, key, driven, disturbed| {
            add_latency(report, key, driven, disturbed);
        },
    );
    let mut ratio = |what: &str, under: &str, bar| {
        report.ratio(what, "tilld.1000.p99", under, bar);
    };
    let bar = Some(Bar::AtMost(0.7));
    ratio(
        "p99 at 1,000/s to the checkpoint inside COMMIT",
        "tilld-in-commit.1000.p99",
        bar,
    );
    ratio(
        "p99 at 1,000/s to a commit per request on hyper",
        "naive.1000.p99",
        None,
    );
    ratio(
        "p99 at 1,000/s, the same twice: noise",
        "tilld-again.1000.p99",
        None,
    );
}
