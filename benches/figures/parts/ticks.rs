//! What the poller's look at the ledger costs beside few and beside very many open invoices: in this process, by the
//! daemon's own code and through its own threads, with a service that answers at once.

use std::time::{Duration, Instant};

use tilld::bench::{Looked, Shop};

use super::{Part, slices};
use crate::machine::gate::Gate;
use crate::options::{Effort, MANY, Options};
use crate::report::{Bar, Report};
use crate::subjects::crowd::{Crowd, told};

/// The part.
pub(crate) const PART: Part = Part {
    name: "ticks",
    what: "the poller's look with nothing due and with 500, beside 1 k to 10 M open invoices",
    run,
};

/// Due invoices of one round.
const DUE: u32 = 500;
/// The ledgers the bars speak of.
const SMALL: u32 = 1_000;
const LARGE: u32 = MANY;
/// Looks with nothing due in a round; their median counts.
const IDLE: usize = 200;
/// Looks after which every due time that a clock could have written wrongly was counted again: a stage in each.
const FIRST_LOOKS: usize = 5;

fn run(options: &Options, report: &mut Report) {
    let rounds = match options.effort {
        Effort::Smoke => 1,
        Effort::Quick => 3,
        Effort::Full => 9,
    };
    let mut counts = vec![SMALL, 100_000];
    if options.effort.many() == LARGE {
        counts.push(LARGE);
    }
    if !counts.contains(&options.rows) {
        counts.push(options.rows);
    }
    let mut shops: Vec<(u32, Shop)> = counts
        .iter()
        .map(|count| (*count, Crowd::of(options, *count).shop()))
        .collect();
    for (_, shop) in &mut shops {
        for _ in 0..FIRST_LOOKS {
            assert!(is_idle(shop.look()), "nothing is due yet");
        }
    }
    let gate = slices::gate(options);
    for _ in 0..rounds {
        for (count, shop) in &mut shops {
            round(report, gate, *count, shop);
        }
        shops.rotate_left(1);
    }
    for (_, shop) in shops {
        shop.close();
    }
    if counts.contains(&LARGE) {
        let idle = format!("ticks.idle.{}", told(LARGE));
        report.bar(&idle, Bar::AtMost(100.0));
        let ratio = |what: &str, report: &mut Report, name: &str, bar| {
            let key = |count| format!("ticks.{name}.{}", told(count));
            report.ratio(what, &key(LARGE), &key(SMALL), bar);
        };
        let bar = Some(Bar::AtMost(3.0));
        ratio("find and choose 500 due, 1 M ÷ 1 k", report, "pick", bar);
        ratio("the same with every answer recorded", report, "date", None);
    }
}

fn round(report: &mut Report, gate: Gate, count: u32, shop: &mut Shop) {
    let name = told(count);
    let mut add = |kind: &str, what: &str, unit, value: f64, disturbed: bool| {
        let key = format!("ticks.{kind}.{name}");
        report.add(&key, &format!("{what}, {name} open"), unit, value);
        if disturbed {
            report.disturbed(&key);
        }
    };
    // What the last round asked about is due again in a minute, the young ones at least.
    shop.rest();
    let idle = gate.slice(|| {
        let mut took: Vec<Duration> = (0..IDLE).map(|_| idle_look(shop)).collect();
        took.sort_unstable();
        took.get(IDLE / 2).copied().unwrap_or_default()
    });
    let micros = idle.value.as_secs_f64() * 1e6;
    add(
        "idle",
        "a look with nothing due",
        "us",
        micros,
        idle.disturbed,
    );

    let busy = gate.slice(|| busy_looks(shop, count));
    let (picked, all) = busy.value;
    let millis = |took: Duration| took.as_secs_f64() * 1e3;
    let what = "find and choose 500 due";
    add("pick", what, "ms", millis(picked), busy.disturbed);
    let what = "find 500 due, record and date all";
    add("date", what, "ms", millis(all), busy.disturbed);
}

fn is_idle(looked: Looked) -> bool {
    looked.asked == 0 && looked.redated == 0
}

fn idle_look(shop: &mut Shop) -> Duration {
    let began = Instant::now();
    let looked = shop.look();
    let took = began.elapsed();
    assert!(is_idle(looked), "{looked:?}");
    took
}

/// Makes [`DUE`] invoices due, and looks until all are asked about and dated: what finding them took, and all of it.
fn busy_looks(shop: &mut Shop, count: u32) -> (Duration, Duration) {
    let due = shop.make_due(DUE, count);
    let (mut asked, mut picked) = (0, Duration::ZERO);
    let began = Instant::now();
    loop {
        let looked = shop.look();
        assert_eq!(looked.redated, 0, "all are filed as what they are");
        if looked.asked == 0 {
            break;
        }
        asked += looked.asked;
        picked += looked.picked_in;
    }
    assert!(asked >= due, "{asked} of {due}");
    (picked, began.elapsed())
}
