//! What the poller's work costs notifications that arrive meanwhile: a daemon with very many open invoices, 500 of them due
//! and asked about at a service that answers at once, beside 1,000 notifications a second; and the same without a login, so
//! that nothing is asked. Both in each round, one after the other, on one ledger.

use std::time::Duration;

use super::{Part, slices};
use crate::load::{Heard, Pace, Plan, Sender};
use crate::options::{Effort, MANY, Options};
use crate::report::{Bar, Report};
use crate::subjects::crowd::{Crowd, told};
use crate::subjects::daemon::Home;
use crate::subjects::held;
use crate::subjects::service::Service;

/// The part.
pub(crate) const PART: Part = Part {
    name: "poll-beside",
    what: "what 500 due invoices beside very many open ones add to notifications at 1,000/s",
    run,
};

/// Due invoices of one round.
const DUE: u32 = 500;
/// Invoices that are notified of.
const STOCKED: usize = 1_000;
/// As many as are due are asked about in it, at a hundred a second, and all looks are made. A quick run is a third as long,
/// and sees the first of the questions.
const RUN: Duration = Duration::from_secs(6);

fn run(options: &Options, report: &mut Report) {
    let count = options.effort.many();
    let rounds = match options.effort {
        Effort::Smoke | Effort::Quick => 1,
        Effort::Full => 8,
    };
    let crowd = Crowd::of(options, count);
    let mut sender = Sender::new(crowd.take(STOCKED), Home::path());
    let service = Service::start(Duration::ZERO);
    let gate = slices::gate(options);
    for round in 0..rounds {
        let mut arms = ["without", "beside"];
        arms.rotate_left(round % 2);
        let (mut without, mut beside) = (0.0, 0.0);
        for arm in arms {
            let is_asked = arm == "beside";
            let slice = gate.slice(|| {
                let before = service.answered();
                let logged_in = is_asked.then(|| service.log_in(&crowd.home));
                if is_asked {
                    let shop = crowd.shop();
                    shop.make_due(DUE, count);
                    shop.close();
                }
                let heard = one(options, crowd, &mut sender);
                drop(logged_in);
                let answered = service.answered() - before;
                assert_eq!(answered > 0, is_asked, "{answered} asked");
                (heard, answered)
            });
            let (heard, answered) = &slice.value;
            if is_asked {
                let what = "questions asked and answered meanwhile, of 500 due";
                report.add(
                    "poll.asked",
                    what,
                    "",
                    micros(Duration::from_micros(*answered)),
                );
            }
            let latency = &heard.latency;
            for (kind, what, took) in [
                ("p99", "latency of the 99th of 100", latency.at(0.99)),
                ("longest", "longest latency", latency.longest()),
            ] {
                let key = format!("poll.{arm}.{kind}");
                let what = format!("{what} at 1,000/s, {arm}: 500 due of {}", told(count));
                report.add(&key, &what, "us", micros(took));
                if slice.disturbed {
                    report.disturbed(&key);
                }
            }
            let longest = if is_asked { &mut beside } else { &mut without };
            *longest = micros(latency.longest());
        }
        let what = "what polling adds to the longest latency";
        // Less than nothing in a round in which chance was against the other: without those the median would be too high.
        report.add("poll.added", what, "us", beside - without);
    }
    report.ratio(
        "what polling adds to the longest ÷ p99 without it",
        "poll.added",
        "poll.without.p99",
        // It speaks of a shop with very many, and is not met by a smaller one.
        (count >= MANY).then_some(Bar::AtMost(2.0)),
    );
}

fn one(options: &Options, crowd: &Crowd, sender: &mut Sender) -> Heard {
    let daemon = crowd.home.start(&options.daemon);
    let plan = Plan {
        connections: 64,
        pace: Pace::Open {
            per_second: 1_000.0,
        },
        warm: Duration::from_millis(100),
        run: if options.effort == Effort::Full {
            RUN
        } else {
            RUN / 3
        },
    };
    let heard = held(PART.name, &daemon, || sender.run(daemon.address, &plan));
    assert_eq!(heard.whole.failed, 0, "{:?}", heard.whole);
    daemon.stop();
    heard
}

fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}
