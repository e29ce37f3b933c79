//! The world of the course: virtual time, the service's pure state, the ledger. The shop and its customers are in `till`,
//! the daemon in `daemon` and `request`. Nothing sleeps, no thread runs, no socket or file is opened.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::super::dice::Dice;
use super::super::scenario::{DAY, Scenario};
use super::super::world::EPOCH_MS;
use super::book::Book;
use super::course::{Course, ENDS, RESTART_TAKES, RESTARTS, Wish};
use super::daemon::{Answer, Daemon, Question};
use super::shelf::Shelf;
use crate::client::gate;
use crate::client::gate::door::Pass;
use crate::config;
use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::Report;
use crate::ledger::memory::{Fate, MemoryStore};
use crate::ledger::{Bounds, InvoiceKey, LedgerCommand, LedgerReply, Rules};
use crate::parts;
use crate::poller;
use crate::sandbox::state::{self, State};
use crate::sandbox::statuses::Happening;
use crate::wire;

/// Happenings at most: beyond it something goes round in circles.
const MOST_HAPPENINGS: u64 = 300_000;

/// Something that happens at its time. What concerns a daemon carries its life, and is nothing to a later one.
#[derive(Debug)]
pub(super) enum Happens {
    /// The shop opens an invoice past this program and tracks it.
    Track(usize),
    /// Something happens to an invoice at the service.
    Change(usize, Happening),
    /// A notification about an invoice comes.
    Hear(usize),
    /// A person wants a request made.
    Wish(Wish),
    /// The order of an invoice is paid.
    Pay(InvoiceKey),
    /// The poller looks.
    Look(u64),
    /// The gate may let somebody pass.
    Turn(u64),
    /// A request is over: its number in the book.
    Over(u64, usize, Box<(Pass, Question, Answer)>),
    /// The outage is over.
    Back,
    /// The daemon is stopped, started.
    Stop,
    Start,
}

/// The world.
#[derive(Debug)]
pub(super) struct World {
    pub(super) course: Course,
    /// Milliseconds since the start.
    pub(super) now: i64,
    queue: BTreeMap<(i64, u64), Happens>,
    serial: u64,
    pub(super) dice: Dice,
    /// What moments of the monotonic clock are counted from.
    base: Instant,
    rules: Rules,
    pub(super) polling: poller::Settings,
    pub(super) limits: gate::Limits,
    pub(super) service: State,
    pub(super) store: MemoryStore,
    pub(super) shelf: Shelf,
    pub(super) daemon: Option<Daemon>,
    pub(super) life: u64,
    /// The ledger's invoices and the service's ids, by the course's numbers.
    pub(super) keys: HashMap<usize, InvoiceKey>,
    pub(super) ids: HashMap<InvoiceKey, InvoiceId>,
    pub(super) book: Book,
    /// The one request the service wants no more of was met.
    pub(super) throttled: bool,
}

impl World {
    /// A world at its beginning: the invoices stand, and the plan has asked about each of them as it should.
    pub(super) fn new(course: Course) -> Self {
        let statuses = Scenario::statuses();
        let settings = config::Settings {
            statuses: config::Statuses {
                open: statuses.open.clone(),
                paid: statuses.paid.clone(),
                failed: statuses.failed.clone(),
                reversed: statuses.reversed.clone(),
            },
            // So that a notification alone is only a doubt.
            moves: config::Moves { confirm_paid: true },
            // What the bounds are counted with.
            poller: config::Poller {
                requests_per_second: 5,
                ..config::Poller::default()
            },
            ..config::Settings::default()
        };
        let week_s = u64::try_from(7 * DAY / 1_000).expect("positive");
        let service = State::new(
            state::Rules {
                statuses,
                // No window closes by itself: what changes, changes by the course.
                invoice_lifetime_s: week_s,
                pool: 10_000,
                is_plain: false,
                ..state::Rules::of_a_test()
            },
            course.seed,
        );
        let mut world = Self {
            now: 0,
            queue: BTreeMap::new(),
            serial: 0,
            dice: Dice::new(course.seed ^ 0x5EED),
            base: Instant::now(),
            rules: parts::rules(&settings).expect("the selectors are known"),
            polling: parts::poller_settings(&settings),
            limits: parts::gate_limits(&settings),
            service,
            store: MemoryStore::new(Bounds {
                history_per_invoice: 100_000,
                history_rows: 1_000_000,
                refusal_rows: 1_000,
            }),
            shelf: Shelf::default(),
            daemon: None,
            life: 0,
            keys: HashMap::new(),
            ids: HashMap::new(),
            book: Book::default(),
            throttled: false,
            course,
        };
        let adopted = world.store.adopt(&mut world.rules);
        adopted.expect("an empty store takes any lists");
        world.plan();
        world
    }

    fn plan(&mut self) {
        for (number, opened) in self.course.invoices.clone().into_iter().enumerate() {
            match opened.asked {
                Some(asked) => self.stands(number, opened.at, asked),
                None => self.at(opened.at, Happens::Track(number)),
            }
        }
        for (at, number, happening) in self.course.changes.clone() {
            self.at(at, Happens::Change(number, happening));
        }
        let (at, number) = self.course.heard;
        self.at(at, Happens::Hear(number));
        for (at, wish) in self.course.wishes.clone() {
            self.at(at, Happens::Wish(wish));
        }
        self.at(0, Happens::Start);
        self.at(ENDS, Happens::Back);
        self.at(RESTARTS, Happens::Stop);
        self.at(RESTARTS + RESTART_TAKES, Happens::Start);
    }

    /// Lets everything happen until a time.
    pub(super) fn run(&mut self, until: i64) {
        let mut happened = 0;
        while let Some(((at, _), what)) = self.queue.pop_first() {
            if at > until {
                return;
            }
            self.now = at;
            happened += 1;
            assert!(happened < MOST_HAPPENINGS, "goes in circles: {what:?}");
            self.happen(what);
        }
    }

    fn happen(&mut self, what: Happens) {
        match what {
            Happens::Track(number) => self.track(number, self.now),
            Happens::Change(number, happening) => self.change(number, happening),
            Happens::Hear(number) => self.hear(number),
            Happens::Wish(wish) => self.wish(wish),
            Happens::Pay(key) => self.pay(key),
            Happens::Back => self.back(),
            Happens::Stop => self.stop(),
            Happens::Start => self.start(),
            Happens::Look(life) if self.is_alive(life) => self.look_at_what_is_due(),
            Happens::Turn(life) if self.is_alive(life) => self.turn(),
            Happens::Over(life, number, over) if self.is_alive(life) => {
                let (pass, question, answer) = *over;
                self.over(number, &pass, question, answer);
            }
            // Of a daemon that was stopped.
            Happens::Look(_) | Happens::Turn(_) | Happens::Over(..) => {}
        }
    }

    fn is_alive(&self, life: u64) -> bool {
        self.daemon.is_some() && self.life == life
    }

    pub(super) fn at(&mut self, at: i64, what: Happens) {
        self.serial += 1;
        self.queue.insert((at.max(self.now), self.serial), what);
    }

    /// Lets the poller look at a time.
    pub(super) fn look_at(&mut self, at: i64) {
        self.at(at, Happens::Look(self.life));
    }

    /// Lets the gate be tried at a time.
    pub(super) fn turn_at(&mut self, at: i64) {
        self.at(at, Happens::Turn(self.life));
    }

    /// Lets a request be over after a time.
    pub(super) fn over_after(&mut self, wait: i64, number: usize, over: (Pass, Question, Answer)) {
        self.at(
            self.now + wait,
            Happens::Over(self.life, number, Box::new(over)),
        );
    }

    /// Both clocks are right all the time.
    pub(super) fn wall_ms(&self) -> i64 {
        EPOCH_MS + self.now
    }

    /// The monotonic clock.
    pub(super) fn instant(&self) -> Instant {
        let since = u64::try_from(self.now).expect("time starts at zero");
        self.base + Duration::from_millis(since)
    }

    /// The virtual time of a moment of the monotonic clock, rounded up.
    pub(super) fn virtual_of(&self, moment: Instant) -> i64 {
        let since = moment.saturating_duration_since(self.base);
        i64::try_from(since.as_nanos().div_ceil(1_000_000)).expect("within some hours")
    }

    /// One change of the ledger, in a transaction of its own.
    pub(super) fn write(&mut self, command: &LedgerCommand, keys: &[InvoiceKey]) -> LedgerReply {
        let replies = self.store.run(&self.rules, &[command], Fate::Done);
        for key in keys {
            self.shelf.refresh(&self.store, *key);
        }
        let reply = replies.expect("stored").pop().expect("one reply");
        reply.expect("it stands in the ledger")
    }

    /// What the service says about an invoice now, as the real decoder reads it.
    pub(super) fn report(&self, id: &InvoiceId) -> Report {
        let invoice = self.service.find_invoice(id.as_str()).expect("it is there");
        let text = invoice.body(&self.service.rules.payment_url).to_string();
        let object = wire::fields::Fields::read(text.as_bytes()).expect("an object");
        wire::invoice::decode(&object).expect("an invoice")
    }

    /// True when the ledger shows the service's word on an invoice.
    pub(super) fn is_right(&self, key: InvoiceKey) -> bool {
        let claim = self.store.judged(key).and_then(|row| row.claim.as_ref());
        let id = self.ids.get(&key).expect("known");
        let invoice = self.service.find_invoice(id.as_str()).expect("it is there");
        claim.is_some_and(|claim| claim.status.as_str() == invoice.status)
    }

    /// The outage is over: what the ledger does not know is written down, and so is what it did to the invoices.
    fn back(&mut self) {
        let wrong = self.ids.keys().filter(|key| !self.is_right(**key));
        let wrong = wrong.copied().collect();
        let failures = self.ids.keys().map(|key| (*key, self.store.failures(*key)));
        let failures = failures.filter(|(_, failures)| *failures > 0).collect();
        self.book.wrong = wrong;
        self.book.failures = failures;
    }
}
