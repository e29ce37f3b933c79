//! Durable acknowledgements per second, closed loop, beside what limits them and beside those who commit each one; what
//! each costs; memory and write-ahead log at full load.

use std::time::Duration;

use super::Part;
use super::rounds::{Load, P50, P99, Rounds, micros, take};
use super::slices::gate;
use crate::load::{Pace, Plan, check};
use crate::options::{Effort, Options};
use crate::report::{Bar, Report};
use crate::subjects::running::Running;
use crate::subjects::{AGAIN, BATCH_OF_ONE, HELLO, IN_COMMIT, NAIVE, Subject, TILLD, peers, syncs};

/// The part.
pub(crate) const PART: Part = Part {
    name: "acks",
    what: "durable acknowledgements per second, closed loop, 2,000 invoices",
    run,
};

/// Connections of each load, and which subjects carry it. Peers carry those of the naive receiver.
const LOADS: [(usize, &[Subject]); 4] = [
    (1, &[TILLD, HELLO]),
    (16, &[TILLD, HELLO, NAIVE]),
    (64, &[TILLD, AGAIN, BATCH_OF_ONE, IN_COMMIT, HELLO, NAIVE]),
    (256, &[TILLD, HELLO]),
];
/// Connections at full load.
const FULL: usize = 256;
/// The longest time a connection under strace is sent on.
const TRACED: Duration = Duration::from_millis(300);

fn run(options: &Options, report: &mut Report) {
    check();
    let (count, warm, run) = match options.effort {
        Effort::Smoke => (1, 50, 150),
        // The first notification of an invoice costs more than those after it: all have had theirs before it is counted.
        Effort::Quick => (3, 200, 250),
        Effort::Full => (7, 200, 1_500),
    };
    let rounds = Rounds {
        count,
        warm: Duration::from_millis(warm),
        run: Duration::from_millis(run),
        gate: gate(options),
    };
    let peers = peers(options);
    let mut subjects = vec![TILLD, AGAIN, BATCH_OF_ONE, IN_COMMIT, HELLO, NAIVE];
    subjects.extend(&peers);
    let load = |(connections, on): (usize, &[Subject])| {
        let mut on: Vec<&'static str> = on.iter().map(|subject| subject.name).collect();
        if on.contains(&NAIVE.name) {
            on.extend(peers.iter().map(|peer| peer.name));
        }
        Load {
            name: connections.to_string(),
            what: format!("{connections} connections"),
            plan: rounds.plan(connections, Pace::Closed),
            on,
        }
    };
    let loads = LOADS.map(load);
    take(PART.name, options, &rounds, &subjects, &loads, |slice| {
        slice.add(
            report,
            "rate",
            "acknowledgements",
            "1/s",
            slice.driven.heard.rate(),
        );
        let each = micros(slice.driven.cpu_each);
        slice.add(report, "cpu", "processor time for each", "us", each);
        // In a closed loop it is only what the connections wait for each other.
        slice.add_latency(report, &[P50, P99]);
        slice.hide_latency(report, &[P50, P99]);
    });
    ratios(report);
    full_load(options, report);
    syncs_seen(options, report);
}

fn ratios(report: &mut Report) {
    let at_least = |least| Some(Bar::AtLeast(least));
    for (what, over, under, bar) in [
        ("to bare hyper", "tilld.64.rate", "hello.64.rate", 0.20),
        (
            "at 256, to bare hyper at 64",
            "tilld.256.rate",
            "hello.64.rate",
            0.30,
        ),
        ("to FastAPI", "tilld.64.rate", "fastapi.64.rate", 8.0),
        ("to Express", "tilld.64.rate", "express.64.rate", 8.0),
        (
            "to webhook and a script",
            "tilld.64.rate",
            "webhook.64.rate",
            100.0,
        ),
    ] {
        // Peers are not always measured.
        if report.figures.contains_key(under) {
            report.ratio(
                &format!("acknowledgements {what}"),
                over,
                under,
                at_least(bar),
            );
        }
    }
    let what = "acknowledgements to batches of one";
    let ratio = report.ratio(what, "tilld.64.rate", "tilld-batch1.64.rate", at_least(4.0));
    ratio.bar_disturbed = at_least(3.0);
    let what = "acknowledgements to the checkpoint inside COMMIT";
    report.ratio(what, "tilld.64.rate", "tilld-in-commit.64.rate", None);
    let what = "acknowledgements to a commit per request on hyper";
    report.ratio(what, "tilld.64.rate", "naive.64.rate", None);
    report.noise(
        "acknowledgements, the same twice",
        "tilld-again.64.rate",
        "tilld.64.rate",
    );
}

/// Memory and log while as much is sent as is taken.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn full_load(options: &Options, report: &mut Report) {
    let seconds = match options.effort {
        Effort::Smoke => 1,
        Effort::Quick => 2,
        Effort::Full => 15,
    };
    let plan = Plan {
        connections: FULL,
        pace: Pace::Closed,
        warm: Duration::ZERO,
        run: Duration::from_secs(seconds),
    };
    let mut running = Running::start(&TILLD, options, "acks-full");
    let (_driven, looks) = running.drive_watched(&plan);
    running.stop();
    let most = |of: &[u64]| of.iter().max().map_or(0.0, |kib| *kib as f64 / 1024.0);
    let half = looks.rss_kib.len() / 2;
    let (first, last) = looks.rss_kib.split_at(half);
    let (early, late) = last.split_at(last.len() / 2);
    report.add(
        "tilld.full.rss",
        "tilld: memory at full load, the most",
        "MiB",
        most(&looks.rss_kib),
    );
    report.bar("tilld.full.rss", Bar::AtMost(24.0));
    report.add(
        "tilld.full.rss-start",
        "tilld: the same, first half",
        "MiB",
        most(first),
    );
    report.add(
        "tilld.full.rss-middle",
        "tilld: the same, third quarter",
        "MiB",
        most(early),
    );
    report.add(
        "tilld.full.rss-end",
        "tilld: the same, last quarter",
        "MiB",
        most(late),
    );
    report.ratio(
        "memory at full load: last quarter to third",
        "tilld.full.rss-end",
        "tilld.full.rss-middle",
        Some(Bar::AtMost(1.05)),
    );
    let log_mb = looks.log_bytes as f64 / 1e6;
    report.add(
        "tilld.full.wal",
        "tilld: write-ahead log at full load, the longest",
        "MB",
        log_mb,
    );
    report.bar("tilld.full.wal", Bar::AtMost(16.0));
}

/// Over one connection each acknowledgement has a commit of its own, so each must have a sync.
fn syncs_seen(options: &Options, report: &mut Report) {
    let plan = Plan {
        connections: 1,
        pace: Pace::Closed,
        warm: Duration::ZERO,
        run: TRACED,
    };
    let mut running = Running::start(&TILLD, options, "acks-syncs");
    let pid = running.server.pid();
    match syncs::during(pid, &options.directory, || running.drive(&plan)) {
        Some((syncs, driven)) => {
            let acknowledged = driven.heard.whole.acknowledged;
            assert!(
                syncs >= acknowledged,
                "{syncs} syncs, {acknowledged} acknowledged"
            );
            report.notes.push(format!(
                "under strace, one connection: {acknowledged} acknowledged, {syncs} syncs"
            ));
        }
        None => report.notes.push(
            "skipped: syncs are counted by strace, which is not there or may not attach".to_owned(),
        ),
    }
    running.stop();
}
