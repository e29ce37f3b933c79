//! A clock that jumps as it likes, in front of the real ledger in memory, the real look at what is due and the real check of
//! the clock. The service's clock goes on undisturbed, and alone says when an invoice's time is over.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::config::Settings;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::observation::{Asked, Observation, Report, Reported, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::status::Status;
use crate::invoice::sum::Sum;
use crate::ledger::memory::{Fate, MemoryStore};
use crate::ledger::{
    Bounds, CLOCK_MARK, Intent, InvoiceKey, LedgerCommand, Rules, Sealed, Settled,
};
use crate::parts;
use crate::poller::pass::{self, LOOKED_AT, PER_CLASS};
use crate::poller::recheck::{Clock, Recheck, Stage};
use crate::process_mark::ProcessMark;

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The service's clock at the beginning.
const START: i64 = 1_795_860_000_000;
/// How far the service's clock may be behind an invoice's end for its answer to count, as `silence` has it.
const AGREE: i64 = MINUTE;

/// What happens to the clocks.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time goes on.
    Wait(i64),
    /// Ours is so far ahead of the service's from now on.
    Set(i64),
    /// So it is after it was set while no daemon ran.
    SetWhileDown(i64),
    /// Ours shows 1970.
    Forget,
    /// The daemon starts anew.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..26 * HOUR).prop_map(Step::Wait),
        2 => (1..20 * MINUTE).prop_map(Step::Wait),
        2 => (-9 * DAY..9 * DAY).prop_map(Step::Set),
        2 => Just(Step::Set(0)),
        1 => (-9 * DAY..9 * DAY).prop_map(Step::SetWhileDown),
        1 => Just(Step::Forget),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..24)
}

struct World {
    store: MemoryStore,
    rules: Rules,
    recheck: Recheck,
    /// The service's clock.
    now: i64,
    /// How far ours is ahead.
    skew: i64,
    /// The service's answers bear its date.
    dated: bool,
    /// When the window of the invoice closes, if it says so.
    expire: Option<i64>,
}

/// The one invoice.
const KEY: InvoiceKey = InvoiceKey(1);

impl World {
    fn new(expires: bool, dated: bool, skew: i64) -> Self {
        let mut rules = parts::rules(&Settings::default()).expect("the defaults");
        let mut store = MemoryStore::new(Bounds {
            history_per_invoice: 1_000,
            history_rows: 10_000,
            refusal_rows: 10,
        });
        store.adopt(&mut rules).expect("an empty store");
        let recheck = Recheck::at_start(&rules.schedule);
        let mut world = Self {
            store,
            rules,
            recheck,
            now: START,
            skew,
            dated,
            expire: expires.then_some(START + HOUR),
        };
        world.open();
        world
    }

    fn wall(&self) -> i64 {
        (self.now + self.skew).max(0)
    }

    fn write(&mut self, command: &LedgerCommand) {
        let written = self.store.run(&self.rules, &[command], Fate::Done);
        for reply in written.expect("it commits") {
            reply.expect("it is done");
        }
    }

    fn open(&mut self) {
        let amount = crate::invoice::amount::Amount::parse("1").expect("plain");
        let intent = Intent {
            order_id: OrderId::new("a").expect("an order id"),
            wanted: Wanted {
                sum: Sum::new(amount, "RUB").expect("a sum"),
                method: "SBP".to_owned(),
                mode: Mode::H2h,
                anew: false,
            },
            reference: InvoiceRef::from_entropy([7; 16]),
            instead_of: None,
            sealed: Sealed(Vec::new()),
            creator: ProcessMark::own(),
            now_ms: self.wall(),
            deadline_ms: self.wall() + MINUTE,
            window_ms: HOUR,
            polled: Vec::new(),
        };
        self.write(&LedgerCommand::Begin(Box::new(intent)));
        let answer = Observation {
            source: Source::Create,
            report: self.report(),
            asked: None,
            received_ms: self.wall(),
        };
        let settled = Settled::Answered(Box::new(answer));
        self.write(&LedgerCommand::Settle(KEY, settled));
    }

    fn report(&self) -> Report {
        Report {
            id: InvoiceId::new("id-a").expect("an id"),
            status: Status::new("new").expect("a status"),
            order_id: Reported::Missing,
            amount: Reported::Missing,
            currency: None,
            updated_at: Some(Moment::from_ms(START)),
            service_ms: self.dated.then_some(self.now / 1_000 * 1_000),
            expire_at: self.expire.map(Moment::from_ms),
            method: None,
            payment_url: None,
            requisites: None,
            updated_at_text: None,
            odd: Vec::new(),
            raw: String::new(),
        }
    }

    /// Looks as the poller looks, again and again until there is nothing to do; every question is answered at once.
    fn look(&mut self) {
        for _ in 0..40 {
            self.recheck();
            let now_ms = self.wall();
            let rows = self.store.due(now_ms, PER_CLASS);
            let sorted = pass::sort(&self.rules.schedule, rows, &HashSet::new(), now_ms);
            for key in &sorted.unresolved {
                self.write(&LedgerCommand::Unresolve(*key, now_ms));
            }
            self.write(&LedgerCommand::Redate(sorted.redate.clone(), now_ms));
            for row in &sorted.ask {
                let answer = Observation {
                    source: Source::Poll,
                    report: self.report(),
                    asked: Some(Asked {
                        revision: row.revision,
                        at_ms: now_ms,
                    }),
                    received_ms: now_ms,
                };
                self.write(&LedgerCommand::Record(row.key, Box::new(answer)));
            }
            let rests = sorted.ask.is_empty() && sorted.unresolved.is_empty();
            if rests && sorted.redate.is_empty() && self.recheck.stage().is_none() {
                return;
            }
        }
        panic!("it goes round in circles at {}", self.wall());
    }

    fn recheck(&mut self) {
        let now_ms = self.wall();
        if self.recheck.look(now_ms, self.store.fact_of(&CLOCK_MARK)) == Clock::NotSet {
            return;
        }
        match self.recheck.stage() {
            None => {}
            Some(Stage::Due(place)) => {
                let rows = self.store.due_after(place, LOOKED_AT);
                let wrong = Recheck::wrong(&self.rules.schedule, &rows, now_ms);
                self.write(&LedgerCommand::Redate(wrong, now_ms));
                self.recheck.done(&rows);
            }
            Some(Stage::Retired(since_ms, key)) => {
                let found = self.store.retired_after((since_ms, key), LOOKED_AT);
                let keys = found.iter().map(|(_, key)| *key).collect();
                self.write(&LedgerCommand::Redate(keys, now_ms));
                if self.recheck.done_retired(&found, now_ms) {
                    self.write(&LedgerCommand::Note(CLOCK_MARK.note(&now_ms)));
                }
            }
        }
    }

    fn happen(&mut self, step: Step) {
        match step {
            Step::Wait(by) => self.now += by,
            Step::Set(skew) => self.skew = skew,
            Step::SetWhileDown(skew) => {
                self.skew = skew;
                self.recheck = Recheck::at_start(&self.rules.schedule);
            }
            Step::Forget => self.skew = -self.now,
            Step::Restart => self.recheck = Recheck::at_start(&self.rules.schedule),
        }
        self.look();
    }

    fn due_ms(&self) -> Option<i64> {
        self.store.places().first().map(|(due_ms, _)| *due_ms)
    }

    /// The service's clock has passed the end.
    fn is_over(&self) -> bool {
        let opened = self.expire.unwrap_or(START);
        self.now + AGREE + 1_000 >= opened + self.rules.schedule.horizon_ms
    }

    fn unresolved_events(&self) -> usize {
        let events = self.store.events();
        events
            .filter(|(event, _)| event.kind == EventKind::Unresolved)
            .count()
    }

    fn is_under_attention(&self) -> bool {
        self.store.invoices().any(|row| !row.attention.is_empty())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// An open invoice is never left without a due time unless the service's clock has passed its end. Once the clock is
    /// right again, it is due as if it always had been, even where answers bear no date and a clock that was ahead for long
    /// gave it up.
    #[test]
    fn no_jump_of_our_clock_silences_an_open_invoice(
        expires in any::<bool>(),
        dated in any::<bool>(),
        skew in prop_oneof![Just(0), -9 * DAY..9 * DAY, Just(-START)],
        steps in steps(),
        down in any::<bool>(),
    ) {
        // Without a payment window the end is counted from the opening, and ours may have been days off when it was written:
        // the service's clock is taken then only where the two differ by more than a day.
        let expires = expires || skew != 0;
        let mut world = World::new(expires, dated, skew);
        world.look();
        for step in steps {
            world.happen(step);
            if dated && world.due_ms().is_none() {
                prop_assert!(world.is_over(), "silenced at {} by {step:?}", world.now - START);
            }
            prop_assert!(world.unresolved_events() <= 1);
        }
        world.happen(if down { Step::SetWhileDown(0) } else { Step::Set(0) });
        // A step back within the clock's ordinary correction is not noticed, and need not be.
        let due = world.due_ms();
        if world.is_over() {
            return Ok(());
        }
        let longest = world.rules.schedule.steps.iter().map(|step| step.every_ms).max();
        let latest = world.now + longest.unwrap_or_default() + 1_000;
        prop_assert!(due.is_some_and(|due| due <= latest), "{due:?}");
        prop_assert!(!world.is_under_attention(), "it is not given up");
    }
}

/// The machine starts in 1970, in front of a ledger that was written by a right clock: what was dated by it is due, and is
/// asked about at the gaps of the plan. Set right, nobody is given up and everything is dated as before.
#[test]
fn a_clock_that_starts_in_1970_asks_and_concludes_nothing() {
    let mut world = World::new(true, true, 0);
    world.look();
    world.happen(Step::Forget);
    world.happen(Step::Restart);
    let first = world.due_ms();
    assert!(
        first.is_some_and(|due| (1..MINUTE).contains(&due)),
        "{first:?}"
    );
    world.happen(Step::Wait(10_000));
    assert_eq!(world.due_ms(), first, "it was asked about, and waits again");
    world.happen(Step::Set(0));
    let due = world.due_ms();
    assert!(
        due.is_some_and(|due| (1..MINUTE).contains(&(due - world.now))),
        "{due:?}"
    );
    assert_eq!(
        (world.unresolved_events(), world.is_under_attention()),
        (0, false)
    );
}

/// A jump forward lets everything be asked about once, and gives nobody up; back again, the plan goes on.
#[test]
fn a_clock_that_is_days_ahead_for_a_moment_gives_nobody_up() {
    let mut world = World::new(true, true, 0);
    world.happen(Step::Wait(MINUTE));
    world.happen(Step::Set(8 * DAY));
    assert_eq!(
        (world.unresolved_events(), world.is_under_attention()),
        (0, false)
    );
    assert!(world.due_ms().is_some_and(|due| due > world.wall()));
    world.happen(Step::Set(0));
    assert!(world.due_ms().is_some_and(|due| due <= world.now + MINUTE));
    // Its time comes all the same.
    for _ in 0..40 {
        world.happen(Step::Wait(4 * HOUR));
    }
    assert_eq!((world.unresolved_events(), world.due_ms()), (1, None));
    assert!(world.is_under_attention());
}
