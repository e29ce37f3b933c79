//! The daemon of the course: the real gate's door, and the poller's rounds around it as `poller` makes them. Who is asked
//! about is chosen when the gate's turn has come; whoever a person waits for goes before.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use super::book::Served;
use super::course::Wish;
use super::world::World;
use crate::client::gate::door::{Door, Pass};
use crate::client::gate::outage::Verdict;
use crate::client::gate::{Caller, Hold};
use crate::invoice::observation::Report;
use crate::ledger::{CLOCK_MARK, DueRow, InvoiceKey, LedgerCommand, REDATE_AT_ONCE};
use crate::poller::budget::Turn;
use crate::poller::pass::{self, LOOKED_AT, PER_CLASS, Sorted};
use crate::poller::recheck::{Clock, Recheck, Stage};
use crate::wire::create::CreateRequest;

/// Due invoices read to choose one, beside those that are being asked about.
const CHOSEN_FROM: usize = 16;
/// Between two looks while due times are counted again.
const RECHECK_EVERY: i64 = 100;

/// A request.
#[derive(Debug)]
pub(super) enum Question {
    /// The state of an invoice.
    Poll(Box<DueRow>),
    /// Open an invoice.
    Create(usize, InvoiceKey, Box<CreateRequest>),
}

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    /// The invoice.
    State(Box<Report>),
    /// No answer about it; the verdict on the service, and its wish to be left alone.
    None(Verdict, Option<Duration>),
}

/// What the daemon holds in memory.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) door: Door,
    /// What persons wait for, and since when.
    line: VecDeque<(i64, Wish)>,
    pub(super) asked: HashSet<InvoiceKey>,
    turn: Turn,
    recheck: Recheck,
    /// Something is due and may be asked about, as far as is known.
    pub(super) wants: bool,
    /// The look and the turn that are planned, if any.
    look: Option<i64>,
    door_at: Option<i64>,
    /// Requests that are under way, by their numbers in the book.
    pub(super) under_way: HashSet<usize>,
}

impl World {
    /// The daemon starts.
    pub(super) fn start(&mut self) {
        self.life += 1;
        self.daemon = Some(Daemon {
            door: Door::new(self.limits),
            line: VecDeque::new(),
            asked: HashSet::new(),
            turn: Turn::default(),
            recheck: Recheck::at_start(&self.polling.schedule),
            wants: false,
            look: None,
            door_at: None,
            under_way: HashSet::new(),
        });
        self.plan_look(self.now);
    }

    /// The daemon is stopped: what was under way is dropped, what it held in memory is gone.
    pub(super) fn stop(&mut self) {
        let under_way = self.daemon.take().map(|daemon| daemon.under_way);
        for number in under_way.into_iter().flatten() {
            if let Some(request) = self.book.requests.get_mut(number) {
                request.until = self.now;
            }
        }
    }

    /// A person wants a request made.
    pub(super) fn wish(&mut self, wish: Wish) {
        let now = self.now;
        let daemon = self
            .daemon
            .as_mut()
            .expect("nobody wishes while it is down");
        daemon.line.push_back((now, wish));
        self.turn();
    }

    fn plan_look(&mut self, at: i64) {
        if let Some(daemon) = &mut self.daemon
            && daemon.look.is_none_or(|planned| at < planned)
        {
            daemon.look = Some(at);
            self.look_at(at);
        }
    }

    /// A look, unless an earlier one was made in its place.
    pub(super) fn look_at_what_is_due(&mut self) {
        let daemon = self.daemon.as_mut().expect("alive");
        if daemon.look != Some(self.now) {
            return;
        }
        daemon.look = None;
        let wants = self.tidy();
        let cadence = i64::try_from(self.polling.cadence.as_millis()).expect("seconds");
        let daemon = self.daemon.as_mut().expect("alive");
        daemon.wants = wants;
        let rechecks = daemon.recheck.stage().is_some();
        self.plan_look(self.now + cadence - self.now % cadence);
        if rechecks {
            self.plan_look(self.now + RECHECK_EVERY);
        } else if !wants {
            self.look_ahead();
        }
        self.turn();
    }

    pub(super) fn look_ahead(&mut self) {
        let now_ms = self.wall_ms();
        if let Some(next) = self.shelf.next_ms(now_ms) {
            self.plan_look(self.now + (next - now_ms).max(10));
        }
    }

    /// Does what needs no question. True when something is due.
    fn tidy(&mut self) -> bool {
        let now_ms = self.wall_ms();
        self.recheck(now_ms);
        let rows = self.shelf.due(&self.store, now_ms, PER_CLASS);
        let daemon = self.daemon.as_ref().expect("alive");
        let sorted = pass::sort(&self.polling.schedule, rows, &daemon.asked, now_ms);
        assert!(sorted.unresolved.is_empty(), "all are within the horizon");
        self.redate(&sorted.redate, now_ms);
        !sorted.ask.is_empty()
    }

    fn recheck(&mut self, now_ms: i64) {
        let mark_ms = self.store.fact_of(&CLOCK_MARK);
        let recheck = &mut self.daemon.as_mut().expect("alive").recheck;
        let clock = recheck.look(now_ms, mark_ms);
        assert_eq!(clock, Clock::Steady, "nobody sets the clock");
        match recheck.stage() {
            None => {}
            Some(Stage::Due(place)) => {
                let rows = self.shelf.due_after(&self.store, place, LOOKED_AT);
                let wrong = Recheck::wrong(&self.polling.schedule, &rows, now_ms);
                self.redate(&wrong, now_ms);
                self.daemon.as_mut().expect("alive").recheck.done(&rows);
            }
            Some(Stage::Retired(since_ms, key)) => {
                let found = self.store.retired_after((since_ms, key), LOOKED_AT);
                let keys: Vec<InvoiceKey> = found.iter().map(|(_, key)| *key).collect();
                self.redate(&keys, now_ms);
                let recheck = &mut self.daemon.as_mut().expect("alive").recheck;
                if recheck.done_retired(&found, now_ms) {
                    let mark = LedgerCommand::Note(CLOCK_MARK.note(&now_ms));
                    self.write(&mark, &[]);
                }
            }
        }
    }

    fn redate(&mut self, keys: &[InvoiceKey], now_ms: i64) {
        for some in keys.chunks(REDATE_AT_ONCE) {
            self.write(&LedgerCommand::Redate(some.to_vec(), now_ms), some);
        }
    }

    /// Lets pass whoever may, persons first.
    pub(super) fn turn(&mut self) {
        while self.person_passes() || self.poller_passes() {}
    }

    fn person_passes(&mut self) -> bool {
        let of = |wish: &Wish| match wish {
            Wish::Create(_) => Caller::Create,
            Wish::Poll(_) => Caller::Operator,
        };
        let first = |world: &Self, caller| {
            let line = &world.daemon.as_ref().expect("alive").line;
            line.iter().position(|(_, wish)| of(wish) == caller)
        };
        let passes = |world: &mut Self, caller| {
            let at = first(world, caller)?;
            Some((at, caller, world.enter(caller)?))
        };
        let passed = passes(self, Caller::Create).or_else(|| passes(self, Caller::Operator));
        let Some((at, caller, pass)) = passed else {
            return false;
        };
        let line = &mut self.daemon.as_mut().expect("alive").line;
        let (wished, wish) = line.remove(at).expect("it stands there");
        self.book.served.push(Served {
            caller,
            wished,
            left: self.now,
        });
        let question = match wish {
            Wish::Create(number) => self.begin(number),
            Wish::Poll(number) => {
                let key = *self.keys.get(&number).expect("opened");
                let place = self.store.place_of(key).expect("it is open");
                let row = self.store.due_row(&place).expect("it has an id");
                Question::Poll(Box::new(row))
            }
        };
        self.send(caller, pass, question);
        true
    }

    fn poller_passes(&mut self) -> bool {
        let daemon = self.daemon.as_ref().expect("alive");
        let has_room = daemon.asked.len() < self.polling.at_once;
        let polls_wait = daemon
            .line
            .iter()
            .any(|(_, wish)| matches!(wish, Wish::Poll(_)));
        if !daemon.wants || !has_room || polls_wait {
            return false;
        }
        let Some(pass) = self.enter(Caller::Background) else {
            return false;
        };
        let chosen = self.choose();
        let daemon = self.daemon.as_mut().expect("alive");
        daemon.wants = chosen.as_ref().is_some_and(|(_, more)| *more);
        match chosen {
            Some((row, _)) => {
                daemon.asked.insert(row.key);
                self.send(Caller::Background, pass, Question::Poll(Box::new(row)));
            }
            None => daemon.door.unused(&pass),
        }
        if !self.daemon.as_ref().expect("alive").wants {
            self.look_ahead();
        }
        true
    }

    /// Through the door, or when to come back.
    fn enter(&mut self, caller: Caller) -> Option<Pass> {
        let moment = self.instant();
        let door = &mut self.daemon.as_mut().expect("alive").door;
        match door.enter(caller, moment) {
            Ok(pass) => Some(pass),
            // The end of a request is a turn of its own.
            Err(Hold::Change) => None,
            Err(Hold::Until(until)) => {
                let at = self.virtual_of(until);
                let daemon = self.daemon.as_mut().expect("alive");
                let planned = daemon.door_at.filter(|planned| *planned > self.now);
                if planned.is_none_or(|planned| at < planned) {
                    daemon.door_at = Some(at);
                    self.turn_at(at);
                }
                None
            }
        }
    }

    /// The most pressing one at this moment, and whether more is due behind it.
    fn choose(&mut self) -> Option<(DueRow, bool)> {
        let mut due = self.due();
        let (more, now_ms) = (due.len() > 1, self.wall_ms());
        let daemon = self.daemon.as_mut().expect("alive");
        if daemon.door.outage().since().is_some() {
            due = pass::to_try_with(due);
        }
        let row = pass::choose(&due, 1, now_ms, &mut daemon.turn)
            .first()
            .copied()?;
        Some((row.clone(), more))
    }

    fn due(&mut self) -> Vec<DueRow> {
        let sorted = self.first();
        if sorted.redate.is_empty() && sorted.unresolved.is_empty() {
            return sorted.ask;
        }
        // They stand before others that are to be asked about.
        self.tidy();
        self.first().ask
    }

    fn first(&self) -> Sorted {
        let asked = &self.daemon.as_ref().expect("alive").asked;
        let limit = u32::try_from(asked.len() + CHOSEN_FROM).expect("a few");
        let now_ms = self.wall_ms();
        let rows = self.shelf.due(&self.store, now_ms, limit);
        pass::sort(&self.polling.schedule, rows, asked, now_ms)
    }
}
