//! What a seed stands for: which orders there are, what the customers and the service do, and what goes wrong how often.
//! Drawn once, before anything happens. All times are milliseconds since the scenario's start.

use super::dice::Dice;
use crate::config;
use crate::ledger::Rules;
use crate::parts;
use crate::sandbox::statuses::{Happening, Statuses};

/// A second, a minute, an hour and a day.
pub(super) const SECOND: i64 = 1_000;
pub(super) const MINUTE: i64 = 60 * SECOND;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Status names that stand on no list of the merchant's.
const UNSORTED: [&str; 2] = ["partially_reversed", "on_hold"];

/// How often things go wrong, in a thousand. All zero once the network has healed.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    /// A notification does not arrive.
    pub notice_lost: u32,
    /// It arrives minutes or hours later.
    pub notice_late: u32,
    /// It arrives up to three times.
    pub notice_repeated: u32,
    /// It carries another token.
    pub notice_forged: u32,
    /// Our answer to it does not arrive.
    pub answer_lost: u32,
    /// A poll or its answer does not arrive.
    pub poll_lost: u32,
    /// Its answer takes up to the client's whole patience.
    pub poll_slow: u32,
    /// Its answer is a replica's, some seconds behind.
    pub poll_stale: u32,
    /// Its answer is cut short.
    pub poll_torn: u32,
    /// The service wants to be left alone.
    pub poll_throttled: u32,
    /// What a notification or an answer says names no amount, or none that can be read.
    pub amount_unnamed: u32,
    /// The answer to a create does not arrive.
    pub create_lost: u32,
    /// The daemon dies at a commit, before or after it.
    pub crash: u32,
    /// A commit fails.
    pub disk: u32,
    /// A bell is not heard.
    pub ring_lost: u32,
}

/// Something the customer or the service does to an invoice.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// What the payment page allows.
    Happens(Happening),
    /// The service shows a status of its own.
    Shows(&'static str, Dated),
}

/// How the service dates a change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Dated {
    /// Later than all before.
    Rightly,
    /// As the change before.
    Again,
    /// In a way nobody can read.
    Unreadably,
    /// By so much ahead of its own clock, milliseconds; 0 is right, whatever was shown before.
    Ahead(i64),
}

/// How a hook behaves towards one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// Exit 0.
    Good,
    /// So many failures of all kinds first.
    Fails(u32),
    /// So many exits with 75 first.
    Asks(u32),
    /// Exit 65.
    Hopeless,
    /// Never anything but failures.
    Dead,
}

/// One order.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// When the shop opens it.
    pub at: i64,
    /// The amount.
    pub amount: &'static str,
    /// A second command for the same order, so much later.
    pub again: Option<i64>,
    /// What is done to the invoice, so much after the order.
    pub acts: Vec<(i64, Act)>,
    /// How the hooks behave, in their order.
    pub tempers: Vec<Temper>,
}

/// A whole scenario.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    /// Its seed.
    pub seed: u64,
    /// The settings of the merchant.
    pub settings: config::Settings,
    /// The orders.
    pub orders: Vec<Order>,
    /// How often things go wrong.
    pub faults: Faults,
    /// The service does not answer from, until.
    pub outages: Vec<(i64, i64)>,
    /// Our clock jumps at, by.
    pub jumps: Vec<(i64, i64)>,
    /// The daemon dies at.
    pub crashes: Vec<i64>,
    /// The operator does something with deliveries at.
    pub operator: Vec<i64>,
    /// Payment window of an invoice, seconds.
    pub window_s: u64,
    /// When all faults end.
    pub heals_at: i64,
    /// When a copy of the ledger is made, which is put back when all faults end.
    pub copied_at: Option<i64>,
}

impl Scenario {
    /// What this seed stands for.
    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let heals_at = dice.pick(&[20 * MINUTE, HOUR, 3 * HOUR, 12 * HOUR, 30 * HOUR]);
        let settings = settings(&mut dice);
        let hooks = settings.hook.len();
        let crowd = dice.chance(30);
        let many = if crowd { (8, 12) } else { (1, 3) };
        let mut orders: Vec<Order> = (0..dice.between(many.0, many.1))
            .map(|_| order(&mut dice, heals_at, hooks))
            .collect();
        if crowd {
            // All at the till together.
            for order in &mut orders {
                order.at %= 2 * SECOND;
            }
        }
        let commands = orders
            .iter()
            .map(|order| order.at + order.again.unwrap_or(0));
        let opened_by = commands.max().unwrap_or(0).min(heals_at);
        let mut times = |most: i64| -> Vec<i64> {
            (0..dice.between(0, most))
                .map(|_| dice.between(0, heals_at))
                .collect()
        };
        let (outages, jumps, crashes) = (times(2), times(2), times(3));
        let outages = outages
            .into_iter()
            .map(|from| (from, from + dice.between(SECOND, 2 * HOUR)))
            .collect();
        let jumping = dice.chance(400);
        let jumps = jumps
            .into_iter()
            .filter(|_| jumping)
            .map(|at| {
                let far = dice.pick(&[10 * SECOND, 5 * MINUTE, 2 * HOUR, 5 * DAY]);
                let by = dice.between(SECOND, far);
                (at, if dice.chance(500) { by } else { -by })
            })
            .collect();
        Self {
            seed,
            settings,
            orders,
            faults: faults(&mut dice),
            outages,
            jumps,
            crashes,
            operator: operator(seed, heals_at),
            copied_at: copied_at(seed, opened_by, heals_at),
            window_s: dice.pick(&[300, 1_800, 1_800, 7_200, 86_400]),
            heals_at,
        }
    }

    /// The rules the ledger goes by.
    pub(super) fn rules(&self) -> Rules {
        parts::rules(&self.settings).expect("the selectors are known")
    }

    /// The service's status names.
    pub(super) fn statuses() -> Statuses {
        Statuses::default()
    }

    /// True when a replica's lag is tried. Two polls that agree are believed although they contradict, and how far apart
    /// they are is judged by our clock: not beside a clock that jumps.
    pub(super) fn may_lag(&self) -> bool {
        !self.jumps()
    }

    /// True when our clock is wrong for a while.
    pub(super) fn jumps(&self) -> bool {
        !self.jumps.is_empty()
    }
}

/// When the operator comes: never in half of the scenarios. Dice of its own leave all else as it is without one.
fn operator(seed: u64, heals_at: i64) -> Vec<i64> {
    let mut dice = Dice::new(seed ^ 0x0BE7);
    let most = dice.pick(&[0, 0, 2, 8]);
    (0..dice.between(0, most))
        .map(|_| dice.between(0, heals_at))
        .collect()
}

/// A copy is made in a quarter of the scenarios, once the shop has sent its commands: an invoice that is not in it is lost. Dice
/// of its own leave all else as it is without one.
fn copied_at(seed: u64, opened_by: i64, heals_at: i64) -> Option<i64> {
    let mut dice = Dice::new(seed ^ 0xC0B1);
    dice.chance(250).then(|| dice.between(opened_by, heals_at))
}

/// The defaults, with the sandbox's names sorted, three hooks, and somebody who is told of what was given up.
fn settings(dice: &mut Dice) -> config::Settings {
    let hook = |name: &str, on: &[&str]| config::Hook {
        name: name.to_owned(),
        on: on.iter().map(|&word| word.to_owned()).collect(),
        run: vec![format!("/bin/{name}")],
        timeout_s: 30,
        ..config::Hook::default()
    };
    let Statuses {
        open,
        paid,
        failed,
        reversed,
    } = Scenario::statuses();
    config::Settings {
        statuses: config::Statuses {
            open,
            paid,
            failed,
            reversed,
        },
        moves: config::Moves {
            confirm_paid: dice.chance(250),
        },
        // Low, so that it is met.
        poller: config::Poller {
            requests_per_second: 5,
            ..config::Poller::default()
        },
        hook: vec![
            hook("fulfil", &["paid"]),
            hook(
                "undo",
                &["failed", "reversed", "paid_again", "mismatch", "late"],
            ),
            hook("log", &["*"]),
        ],
        on_abandoned: Some(config::OnAbandoned {
            run: vec!["/bin/alert".to_owned()],
            ..config::OnAbandoned::default()
        }),
        ..config::Settings::default()
    }
}

fn order(dice: &mut Dice, heals_at: i64, hooks: usize) -> Order {
    use Happening::{Canceled, Paid, PaidLess, Refunded, Waiting};
    let at = dice.between(0, heals_at * 2 / 3);
    let rest = heals_at - at - MINUTE;
    let soon = rest.min(dice.pick(&[2 * MINUTE, 20 * MINUTE, 90 * MINUTE, 20 * HOUR]));
    let stories: [&[Happening]; 10] = [
        &[],
        &[Paid],
        &[Waiting, Paid],
        &[Waiting, Paid, Refunded],
        &[Canceled],
        &[Canceled, Paid],
        &[PaidLess],
        &[Waiting, Canceled, PaidLess, Refunded],
        &[Paid, Refunded],
        &[Waiting],
    ];
    let mut acts: Vec<(i64, Act)> = dice
        .pick(&stories)
        .iter()
        .map(|happening| (dice.between(SECOND, soon), Act::Happens(*happening)))
        .collect();
    if dice.chance(250) {
        let status = dice.pick(&UNSORTED);
        let dated = dice.pick(&[Dated::Rightly, Dated::Again, Dated::Unreadably]);
        acts.push((dice.between(SECOND, soon), Act::Shows(status, dated)));
    }
    let again = dice
        .chance(200)
        .then(|| dice.between(SECOND, rest.max(2 * SECOND)));
    if let Some(again) = again
        && dice.chance(500)
    {
        // The customer pays once more, or for the first time.
        let paid = again + dice.between(SECOND, 20 * MINUTE);
        acts.push((paid, Act::Happens(Paid)));
    }
    if dice.chance(60) {
        // Dated ahead, and what comes later is dated rightly.
        let far = dice.pick(&[10 * SECOND, 3 * HOUR, 365 * DAY]);
        let course: [(&str, i64); 2] = [
            ("paid", far),
            (dice.pick(&["refunded", "canceled", "waiting", "paid"]), 0),
        ];
        acts = course
            .map(|(status, by)| {
                (
                    dice.between(SECOND, soon),
                    Act::Shows(status, Dated::Ahead(by)),
                )
            })
            .to_vec();
    }
    // What happens keeps its order; when is drawn.
    let mut times: Vec<i64> = acts.iter().map(|(at, _)| *at).collect();
    times.sort_unstable();
    let acts = times
        .into_iter()
        .zip(acts)
        .map(|(at, (_, act))| (at, act))
        .collect();
    Order {
        at,
        amount: dice.pick(&["1500.00", "0.01", "599.80", "7"]),
        again,
        acts,
        tempers: (0..hooks).map(|_| temper(dice)).collect(),
    }
}

fn temper(dice: &mut Dice) -> Temper {
    match dice.between(0, 19) {
        0..=9 => Temper::Good,
        10..=14 => Temper::Fails(u32::try_from(dice.between(1, 5)).expect("small")),
        15..=17 => Temper::Asks(u32::try_from(dice.between(1, 4)).expect("small")),
        18 => Temper::Hopeless,
        _ => Temper::Dead,
    }
}

fn faults(dice: &mut Dice) -> Faults {
    let mut often = |most: u32| dice.pick(&[0, 0, most / 10, most / 3, most]);
    Faults {
        notice_lost: often(900),
        notice_late: often(600),
        notice_repeated: often(500),
        notice_forged: often(300),
        answer_lost: often(500),
        poll_lost: often(500),
        poll_slow: often(500),
        poll_stale: often(400),
        poll_torn: often(300),
        poll_throttled: often(100),
        create_lost: often(600),
        crash: often(120),
        disk: often(150),
        ring_lost: often(500),
        amount_unnamed: often(400),
    }
}
