//! R13, kills while scripts run: the run of `tests/it/kills`, whose scripts note what they do and whose judge compares that
//! with the service and the ledger.
//!
//! The control is a daemon that knows nothing of what an earlier one left running.

use crate::kills::{Course, found_out, killed_under_load};
use crate::options::Options;
use crate::verdict::{Found, Verdict};

/// Kills, short and long.
const KILLS: (usize, usize) = (20, 500);

pub(crate) fn killed(options: &Options) -> Verdict {
    let kills = options.effort.of(KILLS.0, KILLS.1);
    let Course {
        hits,
        owed,
        verdict,
        ..
    } = killed_under_load(kills, options.seed);
    let [missed, out_of_order, overlapping] = verdict.counts();
    let [runs, doubled] = verdict.runs_and_doubled();
    let figure = format!(
        "missed {missed}, out of order {out_of_order}, overlapping {overlapping}; doubled runs {doubled}"
    );
    let n = format!("{} kills, {owed} deliveries, {runs} runs", hits.kills());
    let wrong = verdict.wrong();
    let found = Found::new(n, figure)
        .bar(wrong.is_empty(), format!("{wrong:?}"))
        .needs(
            hits.are_enough(),
            format!("the kills met nothing: {hits:?}"),
        );
    let overlapping = found_out();
    let control = Found::new("", format!("overlapping {overlapping}"))
        .bar(overlapping == 0, "two runs of one order at once");
    Verdict::new(found).control("waits for no old script", control)
}
