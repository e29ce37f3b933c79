//! What is to happen, and when: which invoices there are, what the service does to them, what a request meets. Drawn once
//! from a seed, before anything happens. All times are milliseconds since the start, those before it negative.

use super::super::dice::Dice;
use super::super::scenario::{HOUR, MINUTE, SECOND};
use crate::invoice::silence::YOUNG_MS;
use crate::sandbox::statuses::Happening;

/// The outage begins after ten minutes of ordinary time.
pub(super) const BEGINS: i64 = 10 * MINUTE;
/// It lasts an hour.
pub(super) const ENDS: i64 = BEGINS + HOUR;
/// Invoices that stand at the start, by the bounds of their ages and how many. A little more than 5 questions a
/// second in ordinary time, which is the cap: nearly all of it for the young ones. None passes the age of a day meanwhile: the default schedule
/// asks about it every 4 h from then on, and what changes may be known so late whatever the service does.
const STANDING: [(i64, i64, usize); 4] = [
    (0, YOUNG_MS, 250),
    (YOUNG_MS, 2 * HOUR, 60),
    (2 * HOUR, 21 * HOUR, 500),
    (24 * HOUR, 70 * HOUR, 3_940),
];
/// Old ones are asked every 4 h by the default schedule. The worst case for what comes after an outage is that all of
/// them fall due in it, as they do when they were taken over from elsewhere on one afternoon.
const ASKED_AGO: (i64, i64) = (3 * HOUR, 3 * HOUR + 45 * MINUTE);
/// Opened past this program by the shop's own code while the service gives us no answers, and tracked at once: the young
/// ones when the outage ends.
const TRACKED: usize = 250;
/// From when on.
const TRACKED_FROM: i64 = ENDS - 25 * MINUTE;
/// Invoices that change at the service during the outage: one in ten.
const CHANGES: usize = 500;
/// An old invoice is paid, and the one notification that comes says so to a shop that believes polls alone. Nothing is
/// more pressing from then on, and the outage is tried with it again and again.
const HEARD: i64 = BEGINS + MINUTE;
/// Orders of the shop's customers after the outage, one a minute from the third minute on.
const ORDERS: i64 = 15;
/// How soon after its create such an order is paid.
pub(super) const PAID_AFTER: i64 = 40 * SECOND;
/// The service wants to be left alone, once, some minutes after the outage.
pub(super) const THROTTLES: i64 = ENDS + 6 * MINUTE;
/// For so long.
pub(super) const RETRY_AFTER: i64 = 30 * SECOND;
/// The daemon is stopped while most is still to be asked.
pub(super) const RESTARTS: i64 = ENDS + 10 * MINUTE;
/// And started again so much later, as the unit does (`RestartSec`).
pub(super) const RESTART_TAKES: i64 = SECOND;
/// How long the client waits for an answer.
pub(super) const PATIENCE: i64 = 30 * SECOND;

/// How long the service takes over an answer at most; one in a hundred takes so long.
pub(super) const SLOWEST: i64 = 5 * SECOND;

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meets {
    /// The service.
    Service,
    /// Nobody: the connection is refused.
    Refusal,
    /// Somebody who never answers.
    Silence,
    /// A proxy's page: 502 and HTML.
    Page,
}

/// An invoice of the course.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opened {
    /// When the shop opened it.
    pub at: i64,
    /// When it was asked about last, of one that stands at the start.
    pub asked: Option<i64>,
}

/// A request a person makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Open an invoice for this order.
    Create(usize),
    /// Ask about this invoice.
    Poll(usize),
}

/// The whole course.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// Its seed.
    pub seed: u64,
    /// What is met in each third of the outage.
    thirds: [Meets; 3],
    /// The invoices, by their number.
    pub invoices: Vec<Opened>,
    /// What happens to which at the service, while nobody can ask.
    pub changes: Vec<(i64, usize, Happening)>,
    /// The one notification that comes: when, and about which invoice.
    pub heard: (i64, usize),
    /// What people do.
    pub wishes: Vec<(i64, Wish)>,
}

impl Course {
    /// The course of a seed, with one in so many of the invoices.
    pub(super) fn of(seed: u64, thirds: [Meets; 3], one_in: usize) -> Self {
        let mut dice = Dice::new(seed);
        let mut invoices = Vec::new();
        for (from, until, many) in STANDING {
            for _ in 0..many / one_in {
                let age = dice.between(from, until - 1);
                let ago = match from {
                    0 => dice.between(0, MINUTE.min(age)),
                    YOUNG_MS => dice.between(0, 5 * MINUTE),
                    _ if until < 24 * HOUR => dice.between(0, HOUR / 2),
                    _ => dice.between(ASKED_AGO.0, ASKED_AGO.1),
                };
                invoices.push(Opened {
                    at: -age,
                    asked: Some(-ago),
                });
            }
        }
        let tracked = i64::try_from(TRACKED / one_in).expect("some hundreds");
        invoices.extend((0..tracked).map(|number| Opened {
            at: TRACKED_FROM + number * (ENDS - TRACKED_FROM) / tracked,
            asked: None,
        }));
        let mut changes = changes(&mut dice, &invoices, CHANGES / one_in);
        let standing = i64::try_from(invoices.len()).expect("some thousands") - tracked;
        // The oldest stand last, before those that are tracked later.
        let heard = usize::try_from(standing - 1).expect("not negative");
        changes.retain(|(_, number, _)| *number != heard);
        changes.push((HEARD, heard, Happening::Paid));
        // Of those that stand at the start and change nothing.
        let mut any = || loop {
            let number = usize::try_from(dice.between(0, standing - 1)).expect("not negative");
            if changes.iter().all(|(_, changes, _)| *changes != number) {
                return number;
            }
        };
        // Numbers above those of the invoices: orders that are not opened yet.
        let mut wishes = vec![
            (BEGINS + 15 * MINUTE, Wish::Create(invoices.len())),
            (BEGINS + 30 * MINUTE, Wish::Poll(any())),
            (ENDS + 8 * MINUTE, Wish::Poll(any())),
        ];
        wishes.extend((0..ORDERS).map(|number| {
            let order = invoices.len() + usize::try_from(number).expect("a few") + 1;
            (
                ENDS + (number + 3) * MINUTE - 10 * SECOND,
                Wish::Create(order),
            )
        }));
        Self {
            seed,
            thirds,
            invoices,
            changes,
            heard: (HEARD, heard),
            wishes,
        }
    }

    /// What a request that leaves at this time meets.
    pub(super) fn meets(&self, at: i64) -> Meets {
        if !(BEGINS..ENDS).contains(&at) {
            return Meets::Service;
        }
        let third = usize::try_from((at - BEGINS) * 3 / (ENDS - BEGINS)).expect("after it began");
        self.thirds.get(third).copied().unwrap_or(Meets::Service)
    }

    /// True when time-outs are the last that is met: the request that finds the service back may hang until then.
    pub(super) fn ends_in_silence(&self) -> bool {
        self.thirds.last() == Some(&Meets::Silence)
    }

    /// The numbers of the invoices that are young when the outage ends, with their ages then.
    pub(super) fn young(&self) -> impl Iterator<Item = (usize, i64)> {
        let ages = self.invoices.iter().map(|opened| ENDS - opened.at);
        ages.enumerate().filter(|(_, age)| *age < YOUNG_MS)
    }

    /// The numbers of the invoices that go first then: the young ones, and the one that is in doubt.
    pub(super) fn pressing(&self) -> impl Iterator<Item = usize> {
        let young = self.young().map(|(number, _)| number);
        young.chain([self.heard.1])
    }

    /// How many requests to open an invoice the service is there for.
    pub(super) fn orders(&self) -> usize {
        let creates = self.wishes.iter().filter(|(at, wish)| {
            matches!(wish, Wish::Create(_)) && self.meets(*at) == Meets::Service
        });
        creates.count()
    }
}

fn changes(dice: &mut Dice, invoices: &[Opened], most: usize) -> Vec<(i64, usize, Happening)> {
    let mut numbers: Vec<usize> = (0..invoices.len()).collect();
    let mut changes = Vec::with_capacity(most);
    while changes.len() < most {
        let last = i64::try_from(numbers.len() - 1).expect("some thousands");
        let at = usize::try_from(dice.between(0, last)).expect("not negative");
        let number = numbers.swap_remove(at);
        let opened = invoices.get(number).map_or(0, |opened| opened.at);
        let when = dice.between(opened.max(BEGINS) + 1, ENDS - 1);
        let what = dice.pick(&[Happening::Paid, Happening::Canceled, Happening::Expired]);
        changes.push((when, number, what));
    }
    changes
}
