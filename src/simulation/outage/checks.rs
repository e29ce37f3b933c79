//! What is looked over when the course is over. Each bound is counted from the course and the caps, not from what was seen.

use std::collections::HashMap;

use super::super::scenario::{MINUTE, SECOND};
use super::book::{Book, Request};
use super::course::{
    BEGINS, Course, ENDS, PAID_AFTER, PATIENCE, RESTART_TAKES, RESTARTS, RETRY_AFTER, SLOWEST,
};
use super::world::World;
use crate::client::gate::{Caller, Limits, rate};
use crate::invoice::silence::YOUNG_MS;
use crate::ledger::InvoiceKey;

/// Requests in a row that met no service before the gate believes it.
const EVIDENCES: usize = 3;
/// The first wait of an outage, and the longest. Jitter makes each up to a quarter longer.
const FIRST: i64 = 5 * SECOND;
const MOST: i64 = MINUTE;
/// How long an invoice that an outage was tried with may be put back for it: 5 s, doubled for each further time.
const PUT_BACK: i64 = 40 * SECOND;
/// Questions that brought nothing after which it is put back for so long.
const PUT_BACK_AFTER: u32 = 4;

/// The pace is at its slowest when the outage ends, and climbs by one a second: how much later all is for that.
const CLIMBS: i64 = 10 * SECOND;

/// How soon after the end of the outage, milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// The gate notices that the service is back.
    pub noticed: i64,
    /// All that is urgent or young is right.
    pub pressing: i64,
    /// All is right.
    pub all: i64,
    /// After its payment, an order of that time is known to be paid.
    pub order: i64,
}

impl Bounds {
    /// By the course, the caps, and how often a young invoice is asked about.
    pub(super) fn of(course: &Course, limits: Limits, young_every: i64) -> Self {
        let gap = SECOND / i64::from(limits.polls_per_second.get());
        let count = |many: usize| i64::try_from(many).expect("some thousands");
        let hangs = if course.ends_in_silence() {
            PATIENCE
        } else {
            0
        };
        let noticed = MOST + MOST / 4 + hangs;
        let young = count(course.young().count());
        let orders = count(course.orders());
        // Urgent ones have three turns of four, and what persons want goes between.
        let pressing = noticed + CLIMBS + PUT_BACK + (young * 4 / 3 + orders) * gap + SLOWEST;
        // Each young one is asked about again and again until it is none.
        let again: i64 = course
            .young()
            .map(|(_, age)| (YOUNG_MS - age) / young_every + 1)
            .sum();
        let held = RETRY_AFTER + RETRY_AFTER / 4 + RESTART_TAKES;
        let requests = count(course.invoices.len()) + again + orders * (YOUNG_MS / young_every);
        let all = noticed + CLIMBS + held + PUT_BACK + requests * gap + SLOWEST;
        // Young ones have fifteen turns of sixteen.
        let queue = (young + orders) * 16 / 15 * gap;
        let order = young_every - PAID_AFTER + CLIMBS + queue + held + 2 * SLOWEST;
        Self {
            noticed,
            pressing,
            all,
            order,
        }
    }
}

/// Requests of a time.
fn between(book: &Book, from: i64, until: i64) -> impl Iterator<Item = &Request> {
    let requests = book.requests.iter();
    requests.filter(move |request| (from..until).contains(&request.at))
}

/// Never more polls in any second than the cap, never more at once.
pub(super) fn caps(world: &World) {
    let per_second = usize::try_from(world.limits.polls_per_second.get()).expect("small");
    let requests = world.book.requests.iter();
    let requests: Vec<&Request> = requests
        .filter(|request| request.caller != Caller::Create)
        .collect();
    for (one, later) in requests.iter().zip(requests.iter().skip(per_second)) {
        let within = later.at - one.at;
        assert!(
            within >= SECOND,
            "{} within {within} ms at {}",
            per_second + 1,
            one.at
        );
    }
    let most = usize::try_from(world.limits.polls_at_once.get()).expect("small");
    let mut under_way: Vec<i64> = Vec::new();
    for one in requests {
        under_way.retain(|until| *until > one.at);
        under_way.push(one.until);
        let at_once = under_way.len();
        assert!(at_once <= most, "{at_once} at once at {}", one.at);
    }
}

/// How often an outage of an hour is tried, at least and at most.
pub(super) fn tries(world: &World) -> (usize, usize) {
    let count = |longest: fn(i64) -> i64| {
        let (mut at, mut wait, mut tries) = (0, FIRST, 0);
        while at + longest(wait) < ENDS - BEGINS {
            at += longest(wait);
            wait = (wait * 2).min(MOST);
            tries += 1;
        }
        tries
    };
    let least = EVIDENCES + count(|wait| wait + wait / 4 + PATIENCE);
    let beside = usize::try_from(world.limits.polls_at_once.get()).expect("small") - 1;
    (least, EVIDENCES + beside + count(|wait| wait))
}

/// During the outage it is only tried, one request after the other; persons are not held.
pub(super) fn only_tries(world: &World) {
    let book = &world.book;
    let (least, most) = tries(world);
    let background = |request: &&Request| request.caller == Caller::Background;
    let tried = between(book, BEGINS, ENDS).filter(background).count();
    assert!(
        (least..=most).contains(&tried),
        "{tried} of {least} to {most}"
    );
    let (began, _) = *book.turns.first().expect("it is noticed");
    let after: Vec<&Request> = between(book, began + 1, ENDS).filter(background).collect();
    for (one, next) in after.iter().zip(after.iter().skip(1)) {
        assert!(next.at >= one.until + FIRST, "{one:?} {next:?}");
    }
    let persons = between(book, BEGINS, ENDS).filter(|request| !background(request));
    assert_eq!(persons.count(), 2, "a create, and a question by hand");
}

/// A create waits for nothing; a poll that a person waits for goes first, and waits for the pace and a place alone.
pub(super) fn persons_first(world: &World) {
    let book = &world.book;
    // The slowest pace: a person may come in the middle of the outage.
    let gap = SECOND / i64::from(rate::SLOWEST);
    assert_eq!(book.served.len(), world.course.wishes.len());
    let heard = book.throttled.expect("it was throttled");
    let opens = heard + RETRY_AFTER + RETRY_AFTER / 4;
    for served in &book.served {
        let mut before = between(book, served.wished + 1, served.left);
        let overtook = before.find(|request| request.caller == Caller::Background);
        let waited = served.left - served.wished;
        if served.caller == Caller::Create {
            assert_eq!(waited, 0, "{served:?}");
            continue;
        }
        assert!(overtook.is_none(), "{served:?} {overtook:?}");
        let is_out = (BEGINS..ENDS).contains(&served.wished);
        // The service's own wish holds persons as well.
        let shut = (heard..opens).contains(&served.wished);
        let most = match (is_out, shut) {
            (true, _) => gap,
            (false, false) => gap + SLOWEST,
            (false, true) => opens - served.wished + gap + SLOWEST,
        };
        assert!(waited <= most, "{served:?}");
    }
}

/// The outage put no invoice back further than the tries that were made with it, and those were many invoices' tries: one
/// that the service is silent about for a reason of its own would keep the outage from ending.
pub(super) fn no_failure_of_its_own(world: &World) {
    let mut failed: HashMap<InvoiceKey, u32> = HashMap::new();
    // What still hangs when the outage ends fails later.
    for request in between(&world.book, 0, ENDS).filter(|request| request.until <= ENDS) {
        match request.about {
            Some((key, _)) if request.answered => drop(failed.remove(&key)),
            Some((key, _)) => *failed.entry(key).or_default() += 1,
            None => {}
        }
    }
    let most = failed.values().max().copied().unwrap_or_default();
    assert!(most < PUT_BACK_AFTER, "tried with the same one: {most}");
    assert_eq!(world.book.failures, failed);
    let mut left = world.ids.keys().map(|key| world.store.failures(*key));
    assert!(
        left.all(|failures| failures == 0),
        "all were answered since"
    );
}

/// Everything is right and everyone was asked in time, the most pressing first.
pub(super) fn right_in_time(world: &World, bounds: Bounds) {
    let book = &world.book;
    let noticed = book.noticed(ENDS).expect("it is noticed") - ENDS;
    assert!(noticed <= bounds.noticed, "noticed after {noticed} ms");
    // What changed, and what was opened meanwhile and never asked about.
    assert!(book.wrong.len() >= world.course.changes.len());
    for number in 0..world.course.invoices.len() {
        let key = world.keys.get(&number).expect("opened");
        let answered = book.answered_at.get(key).map(|at| at - ENDS);
        assert!(
            answered.is_some_and(|after| after <= bounds.all),
            "{number}: {answered:?}"
        );
        assert!(world.is_right(*key), "invoice {number} is wrong");
    }
    for number in world.course.pressing() {
        let key = world.keys.get(&number).expect("opened");
        let answered = book.answered_at.get(key).map(|at| at - ENDS);
        let in_time = answered.is_some_and(|after| after <= bounds.pressing);
        assert!(in_time, "{number}: {answered:?}");
    }
    assert_eq!(book.orders.len(), world.course.orders());
    for order in book.orders.values() {
        let known = order.known.map(|known| known - order.paid);
        assert!(
            known.is_some_and(|after| after <= bounds.order),
            "{order:?}"
        );
    }
}

/// The wish to be left alone is heeded, and a daemon that starts anew makes no crowd.
pub(super) fn left_alone(world: &World) {
    let book = &world.book;
    let heard = book.throttled.expect("it was throttled");
    let is_poll = |request: &&Request| request.caller != Caller::Create;
    let during = between(book, heard, heard + RETRY_AFTER).filter(is_poll);
    assert_eq!(during.count(), 0, "polls while the service wants none");
    let started = RESTARTS + RESTART_TAKES;
    assert_eq!(between(book, RESTARTS, started).count(), 0);
}

/// It was restarted in the middle of the work, and takes it up again at the pace it had.
pub(super) fn goes_on_after_the_restart(world: &World) {
    let started = RESTARTS + RESTART_TAKES;
    let after = between(&world.book, started, started + 10 * SECOND).count();
    let most = usize::try_from(world.limits.polls_per_second.get() * 10).expect("small");
    assert!((most - 5..=most).contains(&after), "{after} in ten seconds");
}
