//! The poller: looks as the real one looks (`poller::pass`), asks at the real pace (`client::gate`), and hears what the
//! network leaves of the answers.

use std::time::Duration;

use super::daemon::Who;
use super::scenario::SECOND;
use super::world::{Answer, EPOCH_MS, Happens, Question, Sabotage, World, Written, say};
use crate::invoice::observation::{Asked, Observation, Source};
use crate::ledger::{CLOCK_MARK, InvoiceKey, LedgerCommand, PollFailed, REDATE_AT_ONCE};
use crate::poller::pass::{self, LOOKED_AT, PER_CLASS};
use crate::poller::recheck::{Clock, Recheck, Stage};

/// How long the client waits for an answer.
const PATIENCE: i64 = 30 * SECOND;
/// A replica is behind by less than this: polls that disagree are 30 s apart for that reason.
const REPLICA_BEHIND: i64 = 20 * SECOND;

/// A look was cut short.
struct Cut;

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
        let room = self.polling.at_once.saturating_sub(daemon.asked.len());
        for key in sorted.unresolved {
            say!(self, "poller", "invoice {} is unresolved", key.0);
            self.write_now(&LedgerCommand::Unresolve(key, now_ms))?;
        }
        self.redate(&sorted.redate, now_ms)?;
        let daemon = self.daemon.as_mut().ok_or(Cut)?;
        for row in pass::choose(&sorted.ask, room, now_ms, &mut daemon.turn) {
            let question = Question {
                key: row.key,
                id: row.invoice_id.clone(),
                revision: row.revision,
                asked_ms: now_ms,
            };
            let daemon = self.daemon.as_mut().ok_or(Cut)?;
            daemon.asked.insert(row.key);
            self.turn(question);
        }
        Ok(())
    }

    fn recheck(&mut self, now_ms: i64) -> Result<(), Cut> {
        let mark_ms = self.store.clock_mark_ms();
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
                    self.write_now(&LedgerCommand::Note(CLOCK_MARK, now_ms.to_string()))?;
                }
            }
        }
        Ok(())
    }

    fn redate(&mut self, keys: &[InvoiceKey], now_ms: i64) -> Result<(), Cut> {
        for some in keys.chunks(REDATE_AT_ONCE) {
            say!(self, "poller", "dates anew: {some:?}");
            self.write_now(&LedgerCommand::Redate(some.to_vec(), now_ms))?;
        }
        Ok(())
    }

    /// One change of the poller's own, in a transaction of its own.
    fn write_now(&mut self, command: &LedgerCommand) -> Result<(), Cut> {
        match self.write(&[command]) {
            Written::Done(_) => Ok(()),
            Written::Failed => Err(Cut),
            Written::Died => {
                self.crash();
                Err(Cut)
            }
        }
    }

    /// A question waits for its turn and leaves.
    pub(super) fn turn(&mut self, mut question: Question) {
        let moment = self.instant();
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        if self.sabotage != Sabotage::NoPace
            && let Err(next) = daemon.pace.take(moment.into_std())
        {
            let at = self.virtual_of(tokio::time::Instant::from_std(next));
            return self.at(at, Happens::Turn(self.life, question));
        }
        question.asked_ms = self.wall_ms();
        self.book.requests.push((self.life, self.now));
        self.book.counts.polls += 1;
        let (wait, answer) = self.ask(&question);
        self.after(wait, Happens::Answered(self.life, question, answer));
    }

    /// What comes back, and after how long.
    fn ask(&mut self, question: &Question) -> (i64, Answer) {
        let key = question.key.0;
        if self.is_out() || self.dice.chance(self.faults.poll_lost) {
            say!(self, "network", "a question about {key} brings nothing");
            let wait = self.dice.pick(&[100, PATIENCE]);
            return (wait, Answer::None);
        }
        if self.dice.chance(self.faults.poll_throttled) {
            let wish = u64::try_from(self.dice.between(1, 120)).expect("positive");
            let until = self.instant() + Duration::from_secs(wish);
            if let Some(daemon) = &mut self.daemon {
                daemon.pace.shut_until(until.into_std());
            }
            say!(self, "service", "wants to be left alone for {wish} s");
            return (200, Answer::None);
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
            return (wait, Answer::None);
        };
        if torn {
            let half: String = body.text.chars().take(body.text.len() / 2).collect();
            let read = crate::wire::json::object(half.as_bytes());
            assert!(read.is_err(), "half an object is no object");
            say!(self, "network", "an answer about {key} is torn");
            return (wait, Answer::None);
        }
        let mut report = body.report.clone();
        report.service_ms = Some(EPOCH_MS + self.now + wait);
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
            Answer::None => {
                self.poll_failed(key, asked_ms);
            }
        }
    }

    /// A question brought nothing: the invoice moves back.
    pub(super) fn poll_failed(&mut self, key: InvoiceKey, asked_ms: i64) {
        let failed = PollFailed {
            key,
            asked_ms,
            now_ms: self.wall_ms(),
            not_found: false,
        };
        self.hand_over(LedgerCommand::PollFailed(failed), Who::NoAnswer(key));
    }

    /// A question is done with; the poller looks again, as it does whenever one ends.
    pub(super) fn question_ended(&mut self, key: InvoiceKey) {
        if let Some(daemon) = &mut self.daemon {
            daemon.asked.remove(&key);
        }
        self.pass_at(self.now);
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
        let is_full = daemon.asked.len() >= self.polling.at_once;
        let places = self.store.places();
        let mut due = places.iter().filter(|(_, key)| !daemon.asked.contains(key));
        let due = due.next().map(|(due_ms, _)| self.when_ms(*due_ms));
        let creating = self.store.creating();
        let given_up = creating.iter().map(|row| row.creator_deadline_ms).min();
        let given_up = given_up.map(|at_ms| self.when_ms(at_ms));
        [due.filter(|_| !is_full), given_up]
            .into_iter()
            .flatten()
            .min()
    }
}
