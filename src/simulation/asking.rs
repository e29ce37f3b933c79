//! The poller: looks as the real one looks (`poller::pass`), waits at the real gate (`client::gate`), chooses when its turn
//! has come (`poller::budget`), and hears what the network leaves of the answers.

use std::time::Duration;

use super::daemon::Who;
use super::scenario::SECOND;
use super::world::{Answer, EPOCH_MS, Happens, Question, Sabotage, World, Written, say};
use crate::client::gate::outage::{Change, Verdict};
use crate::client::gate::{Caller, Hold};
use crate::invoice::observation::{Asked, Observation, Reported, Source};
use crate::invoice::silence::Class;
use crate::ledger::{
    CLOCK_MARK, DueRow, InvoiceKey, LedgerCommand, NoAnswer, PollFailed, REDATE_AT_ONCE,
};
use crate::poller::pass::{self, LOOKED_AT, PER_CLASS};
use crate::poller::recheck::{Clock, Recheck, Stage};

/// How long the client waits for an answer.
const PATIENCE: i64 = 30 * SECOND;
/// A replica is behind by less than this: polls that disagree are 30 s apart for that reason.
const REPLICA_BEHIND: i64 = 20 * SECOND;

/// The longest wait of an outage, with its jitter, and of one that only begins with what is still under way.
const OUTAGE_NOTICED_OVER: i64 = 75 * SECOND;
const OUTAGE_FIRST: i64 = 7 * SECOND;

/// A look was cut short.
pub(super) struct Cut;

impl World {
    /// One look at what is due.
    pub(super) fn pass(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        // Of two that were planned, only the earlier one is made.
        if daemon.pass_at != Some(self.now) {
            return;
        }
        daemon.pass_at = None;
        // A look that was cut short is made anew by the next one.
        if self.look().is_ok() {
            say!(self, "poller", "looked");
        }
        self.plan_looks();
    }

    /// A look out of turn, for what the looks that are left out would have seen.
    pub(super) fn pass_if_alive(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            daemon.pass_at = Some(self.now);
            self.pass();
        }
    }

    fn look(&mut self) -> Result<(), Cut> {
        let now_ms = self.wall_ms();
        for row in self.store.creating() {
            if row.is_given_up(now_ms) {
                self.write_now(&LedgerCommand::GiveUpOpening(row.key))?;
            }
        }
        self.recheck(now_ms)?;
        let rows = self.store.due(now_ms, PER_CLASS);
        let daemon = self.daemon.as_ref().ok_or(Cut)?;
        let sorted = pass::sort(&self.polling.schedule, rows, &daemon.asked, now_ms);
        for key in sorted.unresolved {
            say!(self, "poller", "invoice {} is unresolved", key.0);
            self.write_now(&LedgerCommand::Unresolve(key, now_ms))?;
        }
        self.redate(&sorted.redate, now_ms)?;
        let waits = sorted.ask.iter().any(|row| row.class == Class::Restored);
        let filed = self.poll_again(waits, now_ms)?;
        self.daemon.as_mut().ok_or(Cut)?.wants = filed || !sorted.ask.is_empty();
        self.want_turn(self.now);
        Ok(())
    }

    /// What may be asked about now.
    fn due(&self) -> Vec<DueRow> {
        let now_ms = self.wall_ms();
        let Some(daemon) = &self.daemon else {
            return Vec::new();
        };
        let rows = self.store.due(now_ms, PER_CLASS);
        pass::sort(&self.polling.schedule, rows, &daemon.asked, now_ms).ask
    }

    /// Comes to the gate at a time, if anything is to be asked and there is room.
    fn want_turn(&mut self, at: i64) {
        let (at, life, most) = (at.max(self.now), self.life, self.polling.at_once);
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let has_room = daemon.asked.len() < most;
        if daemon.wants && has_room && daemon.turn_at.is_none_or(|planned| at < planned) {
            daemon.turn_at = Some(at);
            self.at(at, Happens::Turn(life));
        }
    }

    fn recheck(&mut self, now_ms: i64) -> Result<(), Cut> {
        let mark_ms = self.store.fact_of(&CLOCK_MARK);
        let recheck = &mut self.daemon.as_mut().ok_or(Cut)?.recheck;
        if recheck.look(now_ms, mark_ms) == Clock::NotSet {
            return Ok(());
        }
        match recheck.stage() {
            None => {}
            Some(Stage::Due(place)) => {
                let rows = self.store.due_after(place, LOOKED_AT);
                let wrong = Recheck::wrong(&self.polling.schedule, &rows, now_ms);
                self.redate(&wrong, now_ms)?;
                self.daemon.as_mut().ok_or(Cut)?.recheck.done(&rows);
            }
            Some(Stage::Retired(since_ms, key)) => {
                let found = self.store.retired_after((since_ms, key), LOOKED_AT);
                let keys: Vec<InvoiceKey> = found.iter().map(|(_, key)| *key).collect();
                self.redate(&keys, now_ms)?;
                let recheck = &mut self.daemon.as_mut().ok_or(Cut)?.recheck;
                if recheck.done_retired(&found, now_ms) {
                    self.write_now(&LedgerCommand::Note(CLOCK_MARK.note(&now_ms)))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn redate(&mut self, keys: &[InvoiceKey], now_ms: i64) -> Result<(), Cut> {
        for some in keys.chunks(REDATE_AT_ONCE) {
            say!(self, "poller", "dates anew: {some:?}");
            self.write_now(&LedgerCommand::Redate(some.to_vec(), now_ms))?;
        }
        Ok(())
    }

    /// One change of the poller's own, in a transaction of its own.
    pub(super) fn write_now(&mut self, command: &LedgerCommand) -> Result<(), Cut> {
        match self.write(&[command]) {
            Written::Done(_) => Ok(()),
            Written::Failed => Err(Cut),
            Written::Died => {
                self.crash();
                Err(Cut)
            }
        }
    }

    /// The poller is at the gate. When it is let in, it chooses whom to ask, and asks.
    pub(super) fn turn(&mut self) {
        let moment = self.instant();
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        // Of two that were planned, only the earlier one is taken.
        if daemon.turn_at != Some(self.now) {
            return;
        }
        daemon.turn_at = None;
        let pass = if self.sabotage == Sabotage::NoPace {
            None
        } else {
            match daemon.door.enter(Caller::Background, moment) {
                Ok(pass) => Some(pass),
                Err(Hold::Until(next)) => {
                    let at = self.virtual_of(next);
                    return self.want_turn(at);
                }
                // It comes again when a question has ended.
                Err(Hold::Change) => return,
            }
        };
        let (mut due, now_ms) = (self.due(), self.wall_ms());
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        daemon.wants = due.len() > 1;
        if daemon.door.outage().since().is_some() {
            due = pass::to_try_with(due);
        }
        let chosen = pass::choose(&due, 1, now_ms, &mut daemon.turn);
        let Some(row) = chosen.into_iter().next() else {
            if let Some(pass) = &pass {
                daemon.door.unused(pass);
            }
            return self.plan_looks();
        };
        daemon.asked.insert(row.key);
        daemon.door.leaves(Caller::Background, moment);
        daemon.passes.extend(pass.map(|pass| (row.key, pass)));
        let question = Question {
            key: row.key,
            id: row.invoice_id.clone(),
            revision: row.revision,
            asked_ms: now_ms,
        };
        self.book.requests.push((self.life, self.now));
        self.book.counts.polls += 1;
        let (wait, answer) = self.ask(&question);
        self.after(wait, Happens::Answered(self.life, question, answer));
        self.want_turn(self.now);
        self.plan_looks();
    }

    /// The gate hears how a question ended.
    fn leave(&mut self, key: InvoiceKey, verdict: Verdict) {
        let (moment, dice) = (self.instant(), self.dice.short());
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let pass = daemon.passes.remove(&key);
        let change = pass.map(|pass| daemon.door.ended(&pass, verdict, moment, dice));
        match change {
            Some(Change::Began(_)) => {
                self.book.counts.outages += 1;
                say!(self, "gate", "nobody is there");
            }
            Some(Change::Ended(lasted)) => {
                say!(self, "gate", "back after {} s", lasted.as_secs());
            }
            Some(Change::None | Change::GoesOn(_)) | None => {}
        }
        self.want_turn(self.now);
    }

    /// How long the gate may still be held by what was before, at most.
    pub(super) fn gate_held(&self) -> i64 {
        let Some(daemon) = &self.daemon else {
            return 0;
        };
        let wish = daemon
            .door
            .is_shut_until(Caller::Background, self.instant());
        let wish = wish.map_or(0, |until| self.virtual_of(until) - self.now);
        let under_way = if daemon.asked.is_empty() { 0 } else { PATIENCE };
        let outage = match daemon.door.outage().since() {
            Some(_) => OUTAGE_NOTICED_OVER,
            None => OUTAGE_FIRST,
        };
        wish + under_way + outage
    }

    /// What comes back, and after how long.
    fn ask(&mut self, question: &Question) -> (i64, Answer) {
        let key = question.key.0;
        if self.is_out() || self.dice.chance(self.faults.poll_lost) {
            say!(self, "network", "a question about {key} brings nothing");
            let wait = self.dice.pick(&[100, PATIENCE]);
            return (wait, nobody());
        }
        if self.dice.chance(self.faults.poll_throttled) {
            let wish = u64::try_from(self.dice.between(1, 120)).expect("positive");
            let (moment, dice) = (self.instant(), self.dice.short());
            if let Some(daemon) = &mut self.daemon {
                let wish = Duration::from_secs(wish);
                daemon.door.heed(Caller::Background, wish, moment, dice);
            }
            say!(self, "service", "wants to be left alone for {wish} s");
            return (200, Answer::None(Verdict::Busy));
        }
        let stale = self.scenario.may_lag() && self.dice.chance(self.faults.poll_stale);
        let behind = if stale {
            self.dice.between(SECOND, REPLICA_BEHIND)
        } else {
            0
        };
        let torn = self.dice.chance(self.faults.poll_torn);
        let slow = self.dice.chance(self.faults.poll_slow);
        let wait = self.dice.between(30, if slow { PATIENCE - 1 } else { 400 });
        let at = self.now - behind;
        let body = self.book.body_at(&question.id, at);
        let Some(body) = body.or_else(|| self.book.last(&question.id)) else {
            return (wait, Answer::None(Verdict::Alive));
        };
        if torn {
            let half: String = body.text.chars().take(body.text.len() / 2).collect();
            let read = crate::wire::json::object(half.as_bytes());
            assert!(read.is_err(), "half an object is no object");
            say!(self, "network", "an answer about {key} is torn");
            return (wait, nobody());
        }
        let mut report = body.report.clone();
        report.service_ms = Some(EPOCH_MS + self.now + wait);
        if self.dice.chance(self.faults.amount_unnamed) {
            report.amount = self.dice.pick(&[Reported::Missing, Reported::Unreadable]);
            say!(self, "service", "names no amount of {key}");
        }
        say!(
            self,
            "service",
            "about {key}: {} as of {behind} ms ago, under way for {wait} ms",
            report.status
        );
        (wait, Answer::State(Box::new(report)))
    }

    /// An answer, or the end of the patience for one.
    pub(super) fn answered(&mut self, question: Question, answer: Answer) {
        let (key, asked_ms) = (question.key, question.asked_ms);
        match answer {
            Answer::State(report) => {
                self.leave(key, Verdict::Alive);
                let observation = Observation {
                    source: Source::Poll,
                    report: *report,
                    asked: Some(Asked {
                        revision: question.revision,
                        at_ms: asked_ms,
                    }),
                    received_ms: self.wall_ms(),
                };
                let record = LedgerCommand::Record(key, Box::new(observation));
                self.hand_over(record, Who::Answer(question));
            }
            Answer::None(verdict) => {
                let met_nobody = matches!(verdict, Verdict::Outage(_));
                self.leave(key, verdict);
                let is_out = self
                    .daemon
                    .as_ref()
                    .is_some_and(|daemon| met_nobody && daemon.door.outage().since().is_some());
                let why = if is_out {
                    NoAnswer::Outage
                } else {
                    NoAnswer::Other
                };
                self.poll_failed(key, asked_ms, why);
            }
        }
    }

    /// A question brought nothing: the invoice moves back.
    pub(super) fn poll_failed(&mut self, key: InvoiceKey, asked_ms: i64, why: NoAnswer) {
        let failed = PollFailed {
            key,
            asked_ms,
            now_ms: self.wall_ms(),
            why,
        };
        self.hand_over(LedgerCommand::PollFailed(failed), Who::NoAnswer(key));
    }

    /// A question is done with: there is room for another.
    pub(super) fn question_ended(&mut self, key: InvoiceKey) {
        if let Some(daemon) = &mut self.daemon {
            daemon.asked.remove(&key);
        }
        self.want_turn(self.now);
    }

    /// Wakes the poller, if the bell is heard.
    pub(super) fn ring_poller(&mut self) {
        if self.hears() {
            self.pass_at(self.now);
        }
    }

    /// Plans a look, unless an earlier one is planned.
    pub(super) fn pass_at(&mut self, at: i64) {
        let life = self.life;
        if let Some(daemon) = &mut self.daemon
            && daemon.pass_at.is_none_or(|planned| at < planned)
        {
            daemon.pass_at = Some(at);
            self.at(at, Happens::Pass(life));
        }
    }

    /// Plans the next looks: at the poller's cadence and the outbox's scan, leaving out those that would find nothing.
    pub(super) fn plan_looks(&mut self) {
        if let Some(at) = self.next_pass() {
            self.pass_on_cadence(at);
        }
        self.plan_scan();
    }

    /// Plans the poller's first look at or after a time.
    pub(super) fn pass_on_cadence(&mut self, at: i64) {
        let cadence = i64::try_from(self.polling.cadence.as_millis()).expect("seconds");
        let earliest = at.max(self.now + 1);
        self.pass_at(earliest + (cadence - earliest % cadence) % cadence);
    }

    fn next_pass(&self) -> Option<i64> {
        let daemon = self.daemon.as_ref()?;
        if daemon.recheck.stage().is_some() {
            return Some(self.now);
        }
        let places = self.store.places();
        let mut due = places.iter().filter(|(_, key)| !daemon.asked.contains(key));
        let due = due.next().map(|(due_ms, _)| self.when_ms(*due_ms));
        let creating = self.store.creating();
        let given_up = creating.iter().map(|row| row.creator_deadline_ms).min();
        let given_up = given_up.map(|at_ms| self.when_ms(at_ms));
        // While something waits at the gate, whom to ask is chosen there, whatever becomes due meanwhile.
        let again = Some(&daemon.again).filter(|_| self.sabotage != Sabotage::NothingAgain);
        let more = again.and_then(|again| again.wait(self.instant()));
        let more = more.map(|wait| self.virtual_of(self.instant() + wait));
        [due.filter(|_| !daemon.wants), given_up, more]
            .into_iter()
            .flatten()
            .min()
    }
}

/// No answer, or none of the service's.
fn nobody() -> Answer {
    Answer::None(Verdict::Outage("nobody is there".to_owned()))
}
