//! The loop in virtual time, over a till of invoices that are due again and again.

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use tokio::time::{Interval, interval_at, sleep};

use super::*;
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Caller, Limits};
use crate::invoice::silence::Class;
use crate::poller::budget::Turn;

const SECOND: Duration = Duration::from_secs(1);

/// What a stub answers, and after how long.
type Answers = fn(Class) -> (Duration, Verdict);

/// Invoices by number. Each is due again so long after it was asked, or never.
struct Till {
    invoices: HashMap<u32, (Class, Option<Duration>)>,
    /// When they are due, those of a class together.
    due: BTreeSet<(Class, Instant, u32)>,
    turn: Turn,
    may_ask: bool,
    answers: Answers,
    start: Instant,
    seen: Book,
}

/// What the stub saw: looks, turns that were of no use, and who was asked when.
#[derive(Clone, Default)]
struct Book(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    looks: u32,
    useless: u32,
    asked: Vec<(u32, Duration)>,
    start: Option<Instant>,
}

impl Book {
    fn with<T>(&self, act: impl FnOnce(&mut Entries) -> T) -> T {
        act(&mut self.0.lock().expect("not poisoned"))
    }

    /// When this one was asked, since the start.
    fn asked(&self, invoice: u32) -> Vec<Duration> {
        let of = |entries: &mut Entries| {
            let asked = entries
                .asked
                .iter()
                .filter(|(number, _)| *number == invoice);
            asked.map(|(_, at)| *at).collect()
        };
        self.with(of)
    }
}

impl Till {
    fn new(answers: Answers) -> Self {
        let seen = Book::default();
        seen.with(|entries| entries.start = Some(Instant::now()));
        Self {
            invoices: HashMap::new(),
            due: BTreeSet::new(),
            turn: Turn::default(),
            may_ask: true,
            answers,
            start: Instant::now(),
            seen,
        }
    }

    fn with(
        mut self,
        numbers: std::ops::Range<u32>,
        class: Class,
        due_in: Duration,
        again: Option<Duration>,
    ) -> Self {
        let due = Instant::now() + due_in;
        for number in numbers {
            self.invoices.insert(number, (class, again));
            self.due.insert((class, due, number));
        }
        self
    }

    /// The first due one of each class.
    fn due(&self) -> Vec<(Class, Instant, u32)> {
        let now = Instant::now();
        let first = |class: Class| {
            let from = (class, self.start, 0);
            let mut of = self.due.range(from..);
            of.next()
                .filter(|(other, at, _)| *other == class && *at <= now)
        };
        Class::ALL.into_iter().filter_map(first).copied().collect()
    }
}

impl Work for Till {
    type Question = u32;
    type Ended = u32;

    async fn look(&mut self) -> Seen {
        self.seen.with(|entries| entries.looks += 1);
        let is_due = !self.due().is_empty();
        Seen {
            wants: is_due && self.may_ask,
            next_in: if is_due { None } else { self.next_in().await },
        }
    }

    async fn choose(&mut self, old_too: bool) -> Option<Chosen<u32>> {
        let mut due = self.due();
        due.retain(|(class, ..)| old_too || !class.is_patient());
        let waits = |class| due.iter().any(|(of, ..)| *of == class);
        let Some(class) = self.turn.next(waits) else {
            self.seen.with(|entries| entries.useless += 1);
            return None;
        };
        let chosen = due.iter().find(|(of, ..)| *of == class)?;
        self.due.remove(chosen);
        let (class, question) = (chosen.0, chosen.2);
        let may = |(class, ..): &(Class, _, _)| old_too || !class.is_patient();
        let more = self.due().iter().any(may);
        Some(Chosen {
            question,
            class,
            more,
        })
    }

    async fn next_in(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let due = self.due.iter().map(|(_, due, _)| *due);
        let next = due.filter(|due| *due > now).min()?;
        Some(next - now)
    }

    fn ask(&mut self, number: u32, permit: Permit) -> impl Future<Output = u32> + Send + 'static {
        self.seen.with(|entries| {
            let since = entries.start.expect("begun").elapsed();
            entries.asked.push((number, since));
        });
        permit.leaves();
        let class = self.invoices.get(&number).expect("it is there").0;
        let (wait, verdict) = (self.answers)(class);
        async move {
            sleep(wait).await;
            permit.ended(verdict);
            number
        }
    }

    async fn ended(&mut self, number: u32) {
        let (class, again) = *self.invoices.get(&number).expect("it is there");
        if let Some(again) = again {
            self.due.insert((class, Instant::now() + again, number));
        }
    }
}

/// A bell that rings every five seconds, or never until it is built anew.
struct Rings(Option<Interval>);

impl Rings {
    fn well() -> Self {
        Self(Some(interval_at(Instant::now() + SECOND * 5, SECOND * 5)))
    }
}

impl Bell for Rings {
    async fn rung(&mut self) {
        match &mut self.0 {
            Some(interval) => drop(interval.tick().await),
            None => pending().await,
        }
    }

    async fn renew(&mut self) {
        *self = Self::well();
    }
}

fn gate(per_second: u32, at_once: u32) -> Gate {
    let number = |n| NonZeroU32::new(n).expect("above zero");
    Gate::new(Limits {
        per_second: None,
        polls_per_second: number(per_second),
        polls_at_once: number(at_once),
    })
}

/// Plays for so long.
async fn play(till: Till, gate: &Gate, bell: Rings, lasts: Duration) -> Book {
    let (shutdown, seen) = (Shutdown::new(), till.seen.clone());
    let beat = Beat {
        cadence: SECOND * 5,
        at_once: 4,
    };
    let stop = shutdown.clone();
    let gate = gate.clone();
    let running = tokio::spawn(run(
        till,
        gate,
        beat,
        bell,
        (Wake::default(), Pulse::default()),
        stop,
    ));
    sleep(lasts).await;
    shutdown.request();
    running.await.expect("it ends in order");
    seen
}

fn at_once(_class: Class) -> (Duration, Verdict) {
    (Duration::from_millis(50), Verdict::Alive)
}

/// The old ones are answered slowly, so that the gate's places are taken; at one request a second.
#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_hopeless_invoices_do_not_delay_a_young_one() {
    let slowly: Answers = |class| match class {
        Class::Old | Class::Restored => (SECOND * 2, Verdict::Alive),
        Class::Urgent | Class::Young => at_once(class),
    };
    for young_due in [Duration::ZERO, SECOND * 30, Duration::from_millis(30_999)] {
        let till = Till::new(slowly)
            .with(1..100_001, Class::Old, Duration::ZERO, None)
            .with(0..1, Class::Young, young_due, None);
        let seen = play(till, &gate(1, 4), Rings::well(), SECOND * 60).await;
        let asked = seen.asked(0);
        let late = asked.first().map(|at| at.saturating_sub(young_due));
        assert!(
            late.is_some_and(|late| late <= SECOND + Duration::from_millis(20)),
            "due at {young_due:?}, asked at {asked:?}"
        );
        let old = seen.with(|entries| entries.asked.len()) - asked.len();
        assert!((55..=61).contains(&old), "the others go on: {old}");
    }
}

/// Each answer about an old one takes half a minute; one place of four is left for whoever is more pressing.
#[tokio::test(start_paused = true)]
async fn old_ones_that_hang_do_not_take_the_last_place() {
    let hang: Answers = |class| match class {
        Class::Old | Class::Restored => (SECOND * 30, Verdict::Alive),
        Class::Urgent | Class::Young => at_once(class),
    };
    let young_due = SECOND * 10;
    let till = Till::new(hang)
        .with(1..1_000, Class::Old, Duration::ZERO, None)
        .with(0..1, Class::Young, young_due, None);
    let seen = play(till, &gate(5, 4), Rings::well(), SECOND * 95).await;
    let asked = seen.asked(0);
    let late = asked.first().map(|at| at.saturating_sub(young_due));
    assert!(late.is_some_and(|late| late < SECOND), "{asked:?}");
    // Three at a time, and the next as soon as one has ended.
    let old = seen.with(|entries| entries.asked.len()) - asked.len();
    assert_eq!(old, 12);
}

/// The last turn before the places of the old ones were all taken went to a young one, behind which none but old ones wait.
#[tokio::test(start_paused = true)]
async fn an_old_one_takes_the_place_that_came_free_and_waits_for_no_ring() {
    let slowly: Answers = |class| match class {
        Class::Old | Class::Restored => (SECOND * 2, Verdict::Alive),
        Class::Urgent | Class::Young => at_once(class),
    };
    let till = Till::new(slowly)
        .with(1..1_000, Class::Old, Duration::ZERO, None)
        .with(0..1, Class::Young, SECOND / 2, None);
    let seen = play(till, &gate(5, 4), Rings::well(), SECOND * 9 / 2).await;
    assert_eq!(seen.asked(0).len(), 1);
    // Three at a time, each for two seconds.
    assert_eq!(seen.with(|entries| entries.asked.len()), 9 + 1);
}

#[tokio::test(start_paused = true)]
async fn three_hundred_young_ones_are_each_asked_within_about_a_minute() {
    for (old, most) in [(0, 61), (1_000, 65)] {
        let minute = Some(SECOND * 60);
        let till = Till::new(at_once)
            .with(0..300, Class::Young, Duration::ZERO, None)
            .with(300..300 + old, Class::Old, Duration::ZERO, minute);
        let seen = play(till, &gate(5, 4), Rings::well(), SECOND * 70).await;
        for number in 0..300 {
            let asked = seen.asked(number);
            let first = asked.first().expect("asked");
            assert!(*first < SECOND * most, "{number} at {first:?}");
        }
        assert_eq!(seen.asked(300).is_empty(), old == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn it_sleeps_until_the_next_due_time_and_not_only_until_the_bell() {
    let due = Duration::from_millis(1_300);
    let till = Till::new(at_once).with(0..1, Class::Young, due, Some(SECOND * 2));
    let seen = play(till, &gate(100, 4), Rings::well(), SECOND * 60).await;
    let asked = seen.asked(0);
    assert_eq!(asked.len(), 29, "{asked:?}");
    let first = asked.first().expect("asked");
    assert!(*first >= due && *first < due + SECOND / 10, "{first:?}");
    // One look for each due time and each ring; none because a question ended.
    let looks = seen.with(|entries| entries.looks);
    assert!(looks <= 29 + 12 + 1, "{looks}");
    assert_eq!(seen.with(|entries| entries.useless), 0);
}

/// Due and not to be asked about: no login, an outage, or a question that is under way for long.
#[tokio::test(start_paused = true)]
async fn it_never_spins_when_what_is_due_cannot_be_asked() {
    let idle = |till: Till, gate: Gate| async move {
        let seen = play(till, &gate, Rings::well(), SECOND * 58).await;
        seen.with(|entries| (entries.looks, entries.asked.len()))
    };
    let due = |answers| Till::new(answers).with(0..3, Class::Urgent, Duration::ZERO, None);
    let mut without_login = due(at_once);
    without_login.may_ask = false;
    assert_eq!(idle(without_login, gate(5, 4)).await, (12, 0));

    let hanging: Answers = |_| (SECOND * 600, Verdict::Nothing);
    assert_eq!(idle(due(hanging), gate(5, 4)).await, (12, 3));

    let wished = gate(5, 4);
    wished.heed_still(Caller::Background, SECOND * 3_000);
    assert_eq!(idle(due(at_once), wished).await, (12, 0));
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_tried_one_by_one_and_work_goes_on_by_itself() {
    let dead: Answers = |_| (SECOND / 10, Verdict::Outage("could not connect".to_owned()));
    let hour = SECOND * 3_600;
    let till = Till::new(dead).with(0..500, Class::Young, Duration::ZERO, Some(SECOND));
    let seen = play(till, &gate(5, 4), Rings::well(), hour).await;
    // Three to notice and up to three beside them; then 5, 10, 20, 40 s and one a minute.
    let asked = seen.with(|entries| entries.asked.len());
    assert!((50..=70).contains(&asked), "{asked}");

    let heals: Answers = |class| {
        thread_local!(static ASKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
        let asked = ASKED.get() + 1;
        ASKED.set(asked);
        if asked <= 10 {
            (SECOND / 10, Verdict::Outage("no route".to_owned()))
        } else {
            at_once(class)
        }
    };
    let till = Till::new(heals).with(0..500, Class::Young, Duration::ZERO, None);
    let gate = gate(5, 4);
    let seen = play(till, &gate, Rings::well(), SECOND * 600).await;
    assert_eq!(gate.view().outage, None);
    assert_eq!(seen.with(|entries| entries.asked.len()), 500);
    // And no burst when it was over.
    let asked = seen.with(|entries| entries.asked.clone());
    for (one, next) in asked.iter().zip(asked.iter().skip(1)) {
        assert!(next.1 >= one.1 + SECOND / 5, "{one:?} {next:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_bell_that_fails_is_built_anew() {
    let mut till = Till::new(at_once);
    till.may_ask = false;
    let seen = play(till, &gate(5, 4), Rings(None), SECOND * 58).await;
    // At the start, after three cadences without a ring, and then at each ring.
    assert_eq!(seen.with(|entries| entries.looks), 1 + 1 + 8);
}
