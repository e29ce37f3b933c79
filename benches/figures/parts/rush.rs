//! A sale's rush: latency against rate up to more than can be taken, then twice as much as can be taken for some seconds:
//! who is turned away and when, and how soon after it all is as before. Whatever is answered 200 is stored all the same.

use std::time::Duration;

use super::Part;
use super::rounds::{capacity, micros};
use super::slices::gate;
use crate::load::{Answer, Heard, Latency, Pace, Plan};
use crate::options::{Effort, Options};
use crate::report::{Curve, Point, Report};
use crate::subjects::running::Running;
use crate::subjects::{IN_COMMIT, NAIVE, SHORT_QUEUE, Subject, TILLD};

/// The part.
pub(crate) const PART: Part = Part {
    name: "rush",
    what: "latency against rate, and 200 % of capacity for some seconds",
    run,
};

/// Connections while latency is measured against rate.
const CONNECTIONS: usize = 64;
/// Connections in the rush: half of those the listener takes.
const RUSH_CONNECTIONS: usize = 256;
/// The rate before and after the rush, as a share of capacity.
const CALM: f64 = 0.3;
/// After the rush latency is looked at in steps of this.
const STEP: Duration = Duration::from_millis(50);
/// How much slower than before the rush still counts as back.
const BACK: u32 = 2;
/// Part of what was offered below which a rate was not kept up with.
const KEPT_UP: f64 = 0.9;

fn run(options: &Options, report: &mut Report) {
    let capacity = capacity(options, report);
    for subject in [TILLD, IN_COMMIT, NAIVE] {
        report.curves.push(curve(&subject, options, capacity));
    }
    for subject in [TILLD, SHORT_QUEUE] {
        rush(&subject, options, report, capacity);
    }
}

/// Latency at rising shares of tilld's capacity, until one is not kept up with.
fn curve(subject: &Subject, options: &Options, capacity: f64) -> Curve {
    let (shares, run): (&[u32], _) = match options.effort {
        Effort::Smoke => (&[10, 120], 150),
        Effort::Quick => (&[10, 40, 70, 90, 110], 300),
        Effort::Full => (
            &[2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120],
            1_500,
        ),
    };
    let mut running = Running::start(subject, options, "rush-curve");
    let mut points: Vec<Point> = Vec::new();
    for share in shares {
        let offered = capacity * f64::from(*share) / 100.0;
        let plan = Plan {
            connections: CONNECTIONS,
            pace: Pace::Open {
                per_second: offered,
            },
            warm: Duration::from_millis(100),
            run: Duration::from_millis(run),
        };
        let slice = gate(options).slice(|| running.drive(&plan).heard);
        let point = point(offered, &slice.value);
        points.push(point);
        if point.acknowledged < offered * KEPT_UP {
            break;
        }
    }
    running.stop();
    Curve {
        name: subject.name.to_owned(),
        points,
    }
}

fn point(offered: f64, heard: &Heard) -> Point {
    let at = |share| micros(heard.latency.at(share));
    Point {
        offered,
        acknowledged: heard.rate(),
        p50_us: at(0.5),
        p99_us: at(0.99),
        p999_us: at(0.999),
    }
}

/// Twice the capacity, then a calm rate again.
fn rush(subject: &Subject, options: &Options, report: &mut Report, capacity: f64) {
    let seconds = match options.effort {
        Effort::Smoke | Effort::Quick => 1,
        Effort::Full => 5,
    };
    let until = Duration::from_secs(seconds);
    let mut running = Running::start(subject, options, "rush");
    let calm = Plan {
        connections: RUSH_CONNECTIONS,
        pace: Pace::Open {
            per_second: capacity * CALM,
        },
        warm: Duration::from_millis(100),
        run: until / 2,
    };
    let before = running.overload(&calm, |_answer| {}).heard;
    let plan = Plan {
        pace: Pace::Falling {
            per_second: capacity * 2.0,
            until,
            then: capacity * CALM,
        },
        warm: Duration::ZERO,
        run: until * 2,
        ..calm
    };
    let mut seen = Seen::new(until, plan.run);
    let heard = running.overload(&plan, |answer| seen.take(answer)).heard;
    running.stop();
    let key = |what: &str| format!("{}.200%.{what}", subject.name);
    let named = |what: &str| format!("{}: {what}", subject.name);
    report.add(
        &key("refused"),
        &named("refused at 200 % of capacity"),
        "%",
        percent(heard.refused, heard.sent),
    );
    if let Some(first) = seen.first_refused {
        let what = &named("from the rush's beginning to the first refusal");
        report.add(&key("first-refused"), what, "ms", first.as_secs_f64() * 1e3);
    }
    let limit = before.latency.at(0.99) * BACK;
    match seen.back_within(limit) {
        Some(after) => report.add(
            &key("back"),
            &named("from the rush's end until p99 is at most twice what it was"),
            "ms",
            after.as_secs_f64() * 1e3,
        ),
        None => report.notes.push(format!(
            "{}: p99 did not come back to {limit:?} within {until:?} of the rush",
            subject.name
        )),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn percent(of: u64, all: u64) -> f64 {
    of as f64 * 100.0 / all.max(1) as f64
}

/// What was seen of a rush.
struct Seen {
    until: Duration,
    first_refused: Option<Duration>,
    /// Latency of what was meant to be sent after the rush, by steps.
    after: Vec<Latency>,
}

impl Seen {
    fn new(until: Duration, end: Duration) -> Self {
        let calm = end.saturating_sub(until);
        let steps = calm.as_millis().div_ceil(STEP.as_millis());
        Self {
            until,
            first_refused: None,
            after: (0..steps).map(|_step| Latency::default()).collect(),
        }
    }

    fn take(&mut self, answer: &Answer) {
        if answer.status != 200 {
            self.first_refused = self.first_refused.or(Some(answer.came));
        }
        let Some(since) = answer.intended.checked_sub(self.until) else {
            return;
        };
        let step = usize::try_from(since.as_millis() / STEP.as_millis()).unwrap_or(usize::MAX);
        if let Some(latency) = self.after.get_mut(step) {
            latency.add(answer.came.saturating_sub(answer.intended));
        }
    }

    /// The end of the first step whose p99 is within this limit.
    fn back_within(&self, limit: Duration) -> Option<Duration> {
        let back = |latency: &Latency| latency.count() > 0 && latency.at(0.99) <= limit;
        let step = self.after.iter().position(back)?;
        Some(STEP * u32::try_from(step + 1).ok()?)
    }
}
