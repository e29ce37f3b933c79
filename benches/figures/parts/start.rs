//! How long the daemon takes from exec to listening, on a small ledger and on the largest, and to its first durable
//! acknowledgement after that. A start that looked at every row would be seen here.

use std::time::{Duration, Instant};

use super::{Part, slices};
use crate::load::{Pace, Plan, Sender};
use crate::options::{Effort, MANY, Options};
use crate::report::{Bar, Report};
use crate::subjects::crowd::{Crowd, told};
use crate::subjects::daemon::Home;
use crate::subjects::held;

/// The part.
pub(crate) const PART: Part = Part {
    name: "start",
    what: "exec to listening on 1 k rows and on the largest ledger, and the first notification after it",
    run,
};

/// Rows of the small ledger.
const SMALL: u32 = 1_000;
/// One connection, and long enough for one answer: what comes of it is the first latency.
const FIRST: Plan = Plan {
    connections: 1,
    pace: Pace::Open { per_second: 10.0 },
    warm: Duration::ZERO,
    run: Duration::from_millis(50),
};

fn run(options: &Options, report: &mut Report) {
    let starts = match options.effort {
        Effort::Smoke => 1,
        Effort::Quick => 3,
        Effort::Full => 5,
    };
    let gate = slices::gate(options);
    let sizes = [("small", SMALL), ("large", options.rows)];
    let mut senders: Vec<_> = sizes
        .iter()
        .map(|(name, rows)| {
            let crowd = Crowd::of(options, *rows);
            let sender = Sender::new(crowd.take(100), Home::path());
            (*name, *rows, crowd, sender)
        })
        .collect();
    for _ in 0..starts {
        for (name, rows, crowd, sender) in &mut senders {
            let slice = gate.slice(|| {
                let daemon = crowd.home.start(&options.daemon);
                let mut sent_for = Duration::ZERO;
                let heard = held(PART.name, &daemon, || {
                    let began = Instant::now();
                    let heard = sender.run(daemon.address, &FIRST);
                    sent_for = began.elapsed();
                    heard
                });
                assert!(heard.whole.acknowledged > 0, "{:?}", heard.whole);
                let first = heard.latency.longest().min(sent_for);
                let took = daemon.started_in;
                daemon.stop();
                (took, first)
            });
            let rows = told(*rows);
            let mut add = |kind: &str, what: &str, took: Duration| {
                let key = format!("start.{kind}.{name}");
                let what = format!("{what}, {rows} rows");
                report.add(&key, &what, "ms", took.as_secs_f64() * 1e3);
                if slice.disturbed {
                    report.disturbed(&key);
                }
            };
            let (listening, first) = slice.value;
            add("listening", "exec to listening", listening);
            add("first", "the first durable acknowledgement", first);
        }
        senders.rotate_left(1);
    }
    // They speak of a large ledger, and are not met by a small one.
    let is_large = options.rows >= MANY;
    if is_large {
        report.bar("start.listening.large", Bar::AtMost(50.0));
    }
    let what = format!("exec to listening, {} rows ÷ 1 k rows", told(options.rows));
    report.ratio(
        &what,
        "start.listening.large",
        "start.listening.small",
        is_large.then_some(Bar::AtMost(1.5)),
    );
}
