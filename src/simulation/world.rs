//! The world of one scenario: virtual time, what is to happen next, and everything that takes part. Nothing sleeps, no
//! thread runs, no socket is opened; time jumps from one happening to the next. One seed, one course of events.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::book::{Book, Unknown};
use super::daemon::Daemon;
use super::dice::Dice;
use super::running::SCAN_EVERY;
use super::scenario::{DAY, Faults, HOUR, MINUTE, SECOND, Scenario};
use crate::client::gate::outage::Verdict;
use crate::invoice::ids::InvoiceId;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::status::Outcome;
use crate::ledger::memory::{Fate, MemoryStore};
use crate::ledger::{
    Bounds, DeliveryKey, InvoiceKey, LedgerCommand, LedgerReply, Rules, Running, WriteError,
};
use crate::parts;
use crate::poller;
use crate::sandbox::state::notice::Notice;
use crate::sandbox::state::{self, State};
use crate::wire;

/// The service's clock at the start of a scenario: 2026-11-28T10:00:00Z.
pub(super) const EPOCH_MS: i64 = 1_795_860_000_000;
/// A scenario that is not at rest so long after the healing never will be. The longest plan is that of a hook that keeps
/// failing, three days, for half a dozen events one after the other, behind a clock that was days ahead.
const REST_WITHIN: i64 = 40 * DAY;
/// Happenings in one scenario at most: beyond it something goes round in circles.
const MOST_HAPPENINGS: u64 = 200_000;

/// A rule that is broken on purpose, to see that the checks notice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// None.
    #[default]
    Nothing,
    /// A notification is answered 200 before it is stored.
    AcknowledgeFirst,
    /// A doubt is dropped, and nobody asks.
    DropDoubt,
    /// Requests leave without their turn.
    NoPace,
    /// A hook an earlier daemon left running is run again at once.
    NoSettling,
    /// The shop opens another invoice although an earlier one is not settled.
    OpenUnsettled,
    /// An invoice stands for its order beside a newer one.
    NothingSuperseded,
    /// An instant ahead of the service's clock orders what is said.
    TrustInstants,
    /// What waits stays as planned when the clock is set.
    KeepWaits,
}

/// A question about an invoice that is under way.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub key: InvoiceKey,
    pub id: InvoiceId,
    pub revision: i64,
    pub asked_ms: i64,
}

/// What came back.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// The invoice's state.
    State(Box<crate::invoice::observation::Report>),
    /// Nothing that could be read, and what that says about the service.
    None(Verdict),
}

/// How a create ended for the command that sent it.
#[derive(Clone, Debug)]
pub(super) enum Created {
    /// With the invoice.
    Answered(Box<crate::invoice::observation::Report>),
    /// The service did not take it.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// Something that happens at its time. What concerns a daemon carries its life, and is nothing to a later one.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    /// The shop opens an order, or tries again.
    Open(usize, bool),
    /// The request reaches the service.
    CreateArrives(usize, InvoiceKey, Box<wire::create::CreateRequest>, i64),
    /// The command hears how its request ended.
    CreateEnds(InvoiceKey, Created, i64),
    /// An act of an order's story.
    Act(usize, usize),
    /// The service looks at its payment windows.
    Window,
    /// The service sends a notification, for the how-manieth time.
    Send(usize, u32),
    /// A copy arrives.
    Arrive(usize, bool),
    /// The service looks whether it was answered.
    Look(usize, u32),
    /// The writer commits what waits.
    Commit(u64),
    /// Gathered refusals are written.
    Flush(u64),
    /// The poller looks.
    Pass(u64),
    /// The poller is at the gate.
    Turn(u64),
    /// Its answer is here.
    Answered(u64, Question, Answer),
    /// The outbox looks.
    Scan(u64),
    /// A hook's program ends.
    ProgramEnds(u64, DeliveryKey, i64),
    /// The result is stored, or tried again to be.
    StoreEnd(u64, DeliveryKey),
    /// A program of an earlier daemon is gone.
    OldGone(u64, Running),
    /// The operator acts.
    Operator,
    /// The daemon dies.
    Crash,
    /// It is started.
    Start,
    /// Our clock is set forward or back.
    Jump(i64),
    /// All faults end.
    Heal,
}

/// How a write ended.
pub(super) enum Written {
    /// Stored.
    Done(Vec<Result<LedgerReply, WriteError>>),
    /// Not stored, or stored and reported as failed: nobody can tell.
    Failed,
    /// Whoever wrote is dead.
    Died,
}

/// The world.
pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) rules: Rules,
    pub(super) polling: poller::Settings,
    pub(super) sabotage: Sabotage,
    /// Milliseconds since the start.
    pub(super) now: i64,
    queue: BTreeMap<(i64, u64), Happens>,
    serial: u64,
    pub(super) dice: Dice,
    pub(super) faults: Faults,
    /// How far our clock is ahead of the service's.
    pub(super) skew: i64,
    pub(super) healed: bool,
    pub(super) service: State,
    pub(super) notices: Vec<Sent>,
    /// Tokens by invoice; the sealed ones are never opened here.
    pub(super) tokens: HashMap<InvoiceKey, NotifyToken>,
    /// The service's invoice of an order, the newest.
    pub(super) opened: HashMap<usize, Vec<InvoiceId>>,
    pub(super) store: MemoryStore,
    pub(super) daemon: Option<Daemon>,
    pub(super) life: u64,
    /// What moments of the monotonic clock are counted from.
    base: Instant,
    pub(super) book: Book,
    /// Runs so far of an order's hook, by order id and hook.
    pub(super) runs: HashMap<(String, String), u32>,
    trace: Option<Vec<String>>,
}

/// A notification on its way.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub notice: Notice,
    /// The sender has seen a 200.
    pub answered: bool,
}

/// Adds a line to the trace, which costs nothing when there is none.
macro_rules! say {
    ($world:expr, $who:literal, $($what:tt)+) => {
        if $world.is_traced() {
            let line = format!($($what)+);
            $world.note($who, &line);
        }
    };
}
pub(super) use say;

impl World {
    /// A world at its beginning.
    pub(super) fn new(scenario: Scenario, sabotage: Sabotage, traced: bool) -> Self {
        let bounds = Bounds {
            history_per_invoice: 10_000,
            history_rows: 1_000_000,
            refusal_rows: 1_000,
        };
        let rules = state::Rules {
            statuses: Scenario::statuses(),
            invoice_lifetime_s: scenario.window_s,
            pool: 100,
            is_plain: false,
            ..state::Rules::of_a_test()
        };
        let mut world = Self {
            rules: scenario.rules(),
            polling: parts::poller_settings(&scenario.settings),
            sabotage,
            now: 0,
            queue: BTreeMap::new(),
            serial: 0,
            dice: Dice::new(scenario.seed ^ 0x5EED),
            faults: scenario.faults.clone(),
            skew: 0,
            healed: false,
            service: State::new(rules, scenario.seed),
            notices: Vec::new(),
            tokens: HashMap::new(),
            opened: HashMap::new(),
            store: MemoryStore::new(bounds),
            daemon: None,
            life: 0,
            base: Instant::now(),
            book: Book::default(),
            runs: HashMap::new(),
            trace: traced.then(Vec::new),
            scenario,
        };
        let adopted = world.store.adopt(&mut world.rules);
        adopted.expect("an empty store takes any lists");
        world.plan();
        world
    }

    fn plan(&mut self) {
        self.at(0, Happens::Start);
        for (number, order) in self.scenario.orders.clone().iter().enumerate() {
            self.at(order.at, Happens::Open(number, false));
            if let Some(later) = order.again {
                self.at(order.at + later, Happens::Open(number, true));
            }
            for (act, (after, _)) in order.acts.iter().enumerate() {
                self.at(order.at + after, Happens::Act(number, act));
            }
        }
        for (at, by) in self.scenario.jumps.clone() {
            self.at(at, Happens::Jump(by));
        }
        for at in self.scenario.crashes.clone() {
            self.at(at, Happens::Crash);
        }
        self.plan_operator();
        self.at(self.scenario.heals_at, Happens::Heal);
    }

    /// Lets everything happen until nothing is left to do.
    pub(super) fn run(&mut self) {
        let mut happened = 0;
        while let Some(((at, _), what)) = self.queue.pop_first() {
            self.now = at;
            happened += 1;
            if at > self.scenario.heals_at + REST_WITHIN || happened > MOST_HAPPENINGS {
                let why = format!("comes to rest: still busy with {what:?}");
                self.book.broken.push(why);
                return;
            }
            self.happen(what);
        }
    }

    fn happen(&mut self, what: Happens) {
        match what {
            Happens::Open(order, again) => self.open(order, again),
            Happens::CreateArrives(order, key, request, asked_ms) => {
                self.create_arrives(order, key, *request, asked_ms);
            }
            Happens::CreateEnds(key, created, asked_ms) => self.create_ends(key, created, asked_ms),
            Happens::Act(order, act) => self.act(order, act),
            Happens::Window => self.close_windows(),
            Happens::Send(notice, attempt) => self.send(notice, attempt),
            Happens::Arrive(notice, forged) => self.arrive(notice, forged),
            Happens::Look(notice, attempt) => self.look_for_answer(notice, attempt),
            Happens::Operator => self.operate(),
            Happens::Crash => self.crash(),
            Happens::Start => self.start(),
            Happens::Jump(by) => self.jump(by),
            Happens::Heal => self.heal(),
            Happens::Commit(life) if self.is_alive(life) => self.commit(),
            Happens::Flush(life) if self.is_alive(life) => self.flush(),
            Happens::Pass(life) if self.is_alive(life) => self.pass(),
            Happens::Turn(life) if self.is_alive(life) => self.turn(),
            Happens::Answered(life, question, answer) if self.is_alive(life) => {
                self.answered(question, answer);
            }
            Happens::Scan(life) if self.is_alive(life) => self.scan(),
            Happens::ProgramEnds(life, key, started_ms) => self.program_ends(life, key, started_ms),
            Happens::StoreEnd(life, key) if self.is_alive(life) => self.store_end(key),
            Happens::OldGone(life, left) if self.is_alive(life) => self.old_gone(&left),
            // Of a daemon that is dead.
            Happens::Commit(_)
            | Happens::Flush(_)
            | Happens::Pass(_)
            | Happens::Turn(_)
            | Happens::Answered(..)
            | Happens::Scan(_)
            | Happens::StoreEnd(..)
            | Happens::OldGone(..) => {}
        }
    }

    fn is_alive(&self, life: u64) -> bool {
        self.daemon.is_some() && self.life == life
    }

    /// Lets something happen at a time, never in the past.
    pub(super) fn at(&mut self, at: i64, what: Happens) {
        self.serial += 1;
        self.queue.insert((at.max(self.now), self.serial), what);
    }

    /// Lets something happen so much later.
    pub(super) fn after(&mut self, wait: i64, what: Happens) {
        self.at(self.now + wait, what);
    }

    /// The service's clock.
    pub(super) fn service_ms(&self) -> i64 {
        EPOCH_MS + self.now
    }

    /// Our clock.
    pub(super) fn wall_ms(&self) -> i64 {
        EPOCH_MS + self.now + self.skew
    }

    /// When our clock will show a time, if nobody sets it.
    pub(super) fn when_ms(&self, wall_ms: i64) -> i64 {
        wall_ms.saturating_sub(EPOCH_MS + self.skew)
    }

    /// The monotonic clock.
    pub(super) fn instant(&self) -> Instant {
        let since = u64::try_from(self.now).expect("time starts at zero");
        self.base + Duration::from_millis(since)
    }

    /// The virtual time of a moment of the monotonic clock, rounded up.
    pub(super) fn virtual_of(&self, moment: Instant) -> i64 {
        let since = moment.saturating_duration_since(self.base);
        i64::try_from(since.as_nanos().div_ceil(1_000_000)).expect("within some weeks")
    }

    /// True while the service does not answer.
    pub(super) fn is_out(&self) -> bool {
        let now = self.now;
        let mut outages = self.scenario.outages.iter();
        !self.healed && outages.any(|(from, until)| (*from..*until).contains(&now))
    }

    /// One transaction. Dice decide whether it commits and whether the writer lives to hear of it.
    pub(super) fn write(&mut self, commands: &[&LedgerCommand]) -> Written {
        let dies = self.dice.chance(self.faults.crash);
        let first = self.dice.chance(500);
        let fails = self.dice.chance(self.faults.disk);
        let fate = match (dies, fails) {
            (true, _) | (false, true) if first => Fate::NotDone,
            (false, true) => Fate::DoneUnheard,
            (true | false, _) => Fate::Done,
        };
        self.book.counts.commits += 1;
        let begun = self.before_begun(commands);
        let replies = self.store.run(&self.rules, commands, fate);
        self.see_begun(begun);
        if fate != Fate::NotDone {
            self.see_known();
        }
        match replies {
            _ if dies => {
                say!(self, "ledger", "the writer dies, {fate:?}");
                Written::Died
            }
            Ok(replies) => Written::Done(replies),
            Err(_not_stored) => {
                say!(self, "ledger", "a commit failed: {fate:?}");
                Written::Failed
            }
        }
    }

    /// Looks which invoices the ledger knows the service's word about, after the healing.
    fn see_known(&mut self) {
        if !self.healed || self.book.unknown.len() == self.book.known_at.len() {
            return;
        }
        for key in self.book.unknown.keys() {
            if !self.book.known_at.contains_key(key) && self.is_known(*key) {
                self.book.known_at.insert(*key, self.now);
            }
        }
    }

    /// True when the ledger shows the service's last word on an invoice.
    pub(super) fn is_known(&self, key: InvoiceKey) -> bool {
        let Some(invoice) = self.store.judged(key) else {
            return true;
        };
        let last = invoice.id.as_ref().and_then(|id| self.book.last(id));
        last.is_none_or(|last| {
            let claim = invoice.claim.as_ref();
            claim.is_some_and(|claim| claim.status == last.report.status)
        })
    }

    fn jump(&mut self, by: i64) {
        if self.healed {
            return;
        }
        self.set_clock(self.skew + by);
        say!(
            self,
            "clock",
            "ours is set by {by} ms, now {} ms ahead",
            self.skew
        );
    }

    /// A look is made every few seconds, and those that find nothing to do are left out here; but the last one before a
    /// jump and the first one after it are where a poller notices it.
    fn set_clock(&mut self, skew: i64) {
        self.pass_if_alive();
        self.skew = skew;
        self.pass_on_cadence(self.now);
        self.scan_at(self.now + SCAN_EVERY);
        self.plan_looks();
    }

    fn heal(&mut self) {
        self.set_clock(0);
        self.faults = Faults::default();
        self.healed = true;
        say!(self, "world", "everything heals");
        if self.daemon.is_none() {
            self.start();
        }
        let now_ms = self.wall_ms();
        let asked = self.daemon.as_ref().map(|daemon| &daemon.asked);
        let held = self.gate_held();
        let unknown: Vec<(InvoiceKey, Unknown)> = self
            .store
            .invoices()
            .filter(|row| !self.is_known(row.key))
            .map(|row| {
                let is_asked = asked.is_some_and(|asked| asked.contains(&row.key));
                let unknown = Unknown {
                    age: now_ms - row.created_ms,
                    has_failed: is_asked || self.store.failures(row.key) > 0,
                    is_open: row.outcome == Outcome::Open,
                    held,
                };
                (row.key, unknown)
            })
            .collect();
        self.book.unknown.extend(unknown);
        self.plan_looks();
    }

    /// True when somebody wants to read what happens.
    pub(super) fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// A line of the trace.
    pub(super) fn note(&mut self, who: &str, what: &str) {
        let (hours, minutes) = (self.now / HOUR, self.now % HOUR / MINUTE);
        let (seconds, ms) = (self.now % MINUTE / SECOND, self.now % SECOND);
        if let Some(trace) = &mut self.trace {
            let mut line = format!("{hours:3}:{minutes:02}:{seconds:02}.{ms:03} {who:8} ");
            // Writing to a `String` cannot fail.
            line.write_str(what).unwrap_or_default();
            trace.push(line);
        }
    }

    /// What happened, a line each.
    pub(super) fn take_trace(&mut self) -> Vec<String> {
        self.trace.take().unwrap_or_default()
    }
}
