//! R09, a script of the shop that holds the ledger's write lock: shorter than the daemon waits for it, then longer.
//!
//! The control is a daemon whose budget is longer than the lock is held: it waits as long as it takes.

use std::thread;
use std::time::Duration;

use crate::figures::seconds;
use crate::load::{Heard, Load};
use crate::options::Options;
use crate::rows::quiet;
use crate::stored;
use crate::verdict::{Found, Verdict};

/// Connections.
const SENDERS: usize = 4;
/// The daemon waits so long for the lock, milliseconds.
const BUDGET_MS: u64 = 2_000;
/// A lock that is held shorter than that, and one that is held longer; short and long form, milliseconds.
const WITHIN_MS: u64 = 1_000;
const BEYOND_MS: (usize, usize) = (6_000, 60_000);
/// From the budget to the answer.
const MORE: Duration = Duration::from_secs(1);

pub(crate) fn held(options: &Options) -> Verdict {
    let beyond = options.effort.of(BEYOND_MS.0, BEYOND_MS.1);
    let beyond = beyond.try_into().expect("small");
    Verdict::new(locked(BUDGET_MS, beyond))
        .control("waits as long as it takes", locked(60_000, 6_000))
}

fn locked(budget_ms: u64, beyond_ms: u64) -> Found {
    let world = quiet().set("ledger.busy_budget_ms", budget_ms).start();
    let mut load = Load::open(&world, SENDERS);
    let neighbour = world.neighbour();
    let mut hold = |ms: u64| -> Heard {
        let (heard, ()) = load.during(|live| {
            live.one_more();
            neighbour.hold();
            thread::sleep(Duration::from_millis(ms));
            neighbour.let_go();
            live.one_more();
        });
        heard
    };
    let (within, beyond) = (hold(WITHIN_MS), hold(beyond_ms));
    let waited = within.longest();
    let mut all = within;
    let refused_within = all.unavailable();
    all.add(beyond);
    let (longest, refused) = (all.longest(), all.unavailable());
    let lost = stored::lost(&world.ledger(), &all.acks);
    // The bar is that of the daemon that keeps its budget, whatever budget it was given.
    let bar = Duration::from_millis(BUDGET_MS) + MORE;
    let n = format!(
        "held {WITHIN_MS} ms and {beyond_ms} ms, {} acks, {refused} × 503",
        all.acks.len()
    );
    let figure = format!("longest answer {}; lost {lost}", seconds(longest));
    Found::new(n, figure)
        .bar(
            longest <= bar,
            format!("an answer took {}", seconds(longest)),
        )
        .bar(
            refused_within == 0,
            "503 although the lock came back in time",
        )
        .bar(refused > 0, "no 503 although the lock did not come back")
        .bar(all.without_retry_after == 0, "503 without Retry-After")
        .bar(all.timed_out == 0, "senders gave up")
        .bar(lost == 0, format!("{lost} acknowledged and gone"))
        .needs(
            waited >= Duration::from_millis(WITHIN_MS / 2),
            "nobody waited for the lock",
        )
}
