//! How long a notification waits for its 200 when they come at a given rate, beside the checkpoint inside COMMIT and beside
//! those who commit each one.

use std::time::Duration;

use super::Part;
use super::rounds::{Load, P50, P99, P999, Rounds, capacity, micros, take};
use super::slices::gate;
use crate::load::Pace;
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::peers::WEBHOOK;
use crate::subjects::{AGAIN, IN_COMMIT, NAIVE, TILLD, peers};

/// The part.
pub(crate) const PART: Part = Part {
    name: "tails",
    what: "latency from the intended send time at 1,000/s and at 50 % and 90 % of capacity, 64 connections",
    run,
};

/// Connections.
const CONNECTIONS: usize = 64;
/// So often in each round the two places for the checkpoint are set beside each other: a p99 hangs on a few answers, and one
/// hiccup of the disk makes it twice as long.
const TURNS: usize = 3;

fn run(options: &Options, report: &mut Report) {
    let (count, warm, run) = match options.effort {
        Effort::Smoke => (1, 50, 250),
        Effort::Quick => (2, 60, 400),
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
    // What webhook takes in a second is far below the rate: it would only show for how long it was asked.
    let mut peers = peers(options);
    peers.retain(|peer| peer.name != WEBHOOK);
    let mut subjects = vec![TILLD, AGAIN, IN_COMMIT, NAIVE];
    subjects.extend(&peers);
    let load = |name: &str, per_second, on: Vec<&'static str>| Load {
        name: name.to_owned(),
        what: match name.strip_suffix('%') {
            Some(_share) => format!("{name} of capacity"),
            None => format!("{name}/s"),
        },
        plan: rounds.plan(CONNECTIONS, Pace::Open { per_second }),
        on,
    };
    let own = [TILLD.name, AGAIN.name, IN_COMMIT.name];
    let with_peers = subjects.iter().map(|subject| subject.name);
    let with_peers = with_peers.filter(|name| *name == TILLD.name || !own.contains(name));
    let mut loads = vec![load("1000", 1_000.0, with_peers.collect())];
    loads.extend((0..TURNS).map(|_turn| Load {
        what: "1,000/s in turns".to_owned(),
        ..load("turns", 1_000.0, own.to_vec())
    }));
    loads.push(load(
        "50%",
        capacity * 0.5,
        vec![TILLD.name, IN_COMMIT.name],
    ));
    loads.push(load(
        "90%",
        capacity * 0.9,
        vec![TILLD.name, IN_COMMIT.name],
    ));
    take(PART.name, options, &rounds, &subjects, &loads, |slice| {
        slice.add_latency(report, &[P50, P99, P999]);
        let longest = micros(slice.driven.heard.latency.longest());
        slice.add(report, "longest", "longest latency", "us", longest);
    });
    let what = "p99 at 1,000/s to the checkpoint inside COMMIT";
    let (turns, bar) = ("tilld.turns.p99", Some(Bar::AtMost(0.7)));
    report.ratio(what, turns, "tilld-in-commit.turns.p99", bar);
    let own = "tilld.1000.p99";
    if report.figures.contains_key("fastapi.1000.p99") {
        let bar = Some(Bar::AtMost(0.8));
        report.ratio("p99 at 1,000/s to FastAPI", own, "fastapi.1000.p99", bar);
    }
    let what = "p99 at 1,000/s to a commit per request on hyper";
    report.ratio(what, own, "naive.1000.p99", None);
    report.noise(
        "p99 at 1,000/s, the same twice",
        "tilld-again.turns.p99",
        turns,
    );
}
