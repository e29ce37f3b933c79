//! The poller's looks at a ledger of a million open invoices, beside the same looks at one of a thousand: `cargo bench`.
//!
//! A main of its own, since what matters is not a mean: a look with nothing to do is repeated and told by its median and
//! its worst, a start happens once, and memory is read from the kernel. Fails when a start takes a second or more, when a
//! look at the large ledger costs more than [`WORSE_AT_MOST`] times one at the small, or when memory grows with the looks.
//! `TILLD_BENCH_INVOICES` sets another size, for a try; `TILLD_BENCH_KEEP` names a new directory in which the large ledger
//! is left as a state directory `state`, for whoever wants to see the daemon on it.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tilld::bench::{Looked, Shop};

/// Open invoices in the large ledger.
const LARGE: u32 = 1_000_000;
/// Open invoices in the small one.
const SMALL: u32 = 1_000;
/// Looks whose memory is compared.
const LOOKS: u32 = 1_000;
/// Due invoices of one round.
const DUE: u32 = 500;
/// Rounds with due invoices.
const ROUNDS: u32 = 5;
/// How much more a look at the large ledger may cost.
const WORSE_AT_MOST: f64 = 5.0;
/// How much memory may grow over the looks, KiB: what the allocator keeps.
const GROWTH_KIB: i64 = 8 * 1024;

/// What was measured on one ledger.
struct Figures {
    start: Duration,
    idle: Vec<Duration>,
    busy: Vec<Duration>,
    resident: (i64, i64),
}

fn main() {
    let large = std::env::var("TILLD_BENCH_INVOICES").map_or(LARGE, |text| {
        text.parse().expect("`TILLD_BENCH_INVOICES` is a number")
    });
    let keep = std::env::var_os("TILLD_BENCH_KEEP").map(PathBuf::from);
    let figures = [(SMALL, None), (large, keep.as_deref())]
        .map(|(count, keep)| (count, measure(count, keep)));
    println!("\n{:<34}{:>16}{:>16}{:>8}", "", SMALL, large, "ratio");
    let [(_, small), (_, large)] = &figures;
    let line = |what: &str, of: &dyn Fn(&Figures) -> Duration| {
        let (one, other) = (of(small), of(large));
        let ratio = other.as_secs_f64() / one.as_secs_f64();
        println!("{what:<34}{one:>16.1?}{other:>16.1?}{ratio:>8.2}");
        ratio
    };
    line("start: open, and the first looks", &|f| f.start);
    let idle = line("look, nothing due: median", &|f| at(&f.idle, 50));
    line("look, nothing due: 99th of 100", &|f| at(&f.idle, 99));
    let busy = line("500 due, all dated: median", &|f| at(&f.busy, 50));
    for (count, figures) in &figures {
        let (before, after) = figures.resident;
        println!("resident with {count}: {before} KiB before {LOOKS} looks, {after} KiB after");
        assert!(after - before < GROWTH_KIB, "memory grows with the looks");
    }
    assert!(large.start < Duration::from_secs(1), "a slow start");
    assert!(idle < WORSE_AT_MOST, "a look costs more with more invoices");
    assert!(busy < WORSE_AT_MOST, "dating costs more with more invoices");
}

fn measure(count: u32, keep: Option<&Path>) -> Figures {
    let directory = tempfile::tempdir().expect("a directory");
    let state = keep.unwrap_or(directory.path()).join("state");
    assert!(!state.exists(), "{} is there already", state.display());
    let began = Instant::now();
    Shop::make(&state, count);
    println!("{count} open invoices made in {:.1?}", began.elapsed());

    let began = Instant::now();
    let mut shop = Shop::open(&state);
    // Every class and what is retired is looked at once, a stage in each look.
    for _ in 0..5 {
        assert_eq!(shop.look(), Looked::default());
    }
    let start = began.elapsed();

    let before = resident_kib();
    let idle = (0..LOOKS)
        .map(|_| timed(|| assert_eq!(shop.look(), Looked::default())))
        .collect();
    let after = resident_kib();
    let busy = (0..ROUNDS).map(|_| round(&mut shop, count)).collect();
    shop.close();
    Figures {
        start,
        idle,
        busy,
        resident: (before, after),
    }
}

/// Makes [`DUE`] invoices due, and looks until all are asked about and dated.
fn round(shop: &mut Shop, count: u32) -> Duration {
    let due = shop.make_due((count / DUE).max(1));
    let mut asked = 0;
    let took = timed(|| {
        loop {
            let looked = shop.look();
            asked += looked.asked;
            assert_eq!(looked.redated, 0, "all are filed as what they are");
            if looked == Looked::default() {
                break;
            }
        }
    });
    assert!(asked >= due, "{asked} of {due}");
    took
}

fn timed(what: impl FnOnce()) -> Duration {
    let began = Instant::now();
    what();
    began.elapsed()
}

/// The duration below which so many of a hundred lie.
fn at(durations: &[Duration], percent: usize) -> Duration {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    let place = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(place).copied().unwrap_or_default()
}

/// Memory of this process that lies in RAM, KiB; 0 where the kernel does not tell.
fn resident_kib() -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}
