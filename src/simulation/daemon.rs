//! The daemon: what it holds in memory and loses when it dies, and its writer, which commits what waits and answers only
//! then.

use std::collections::{HashMap, HashSet};

use super::book::Acknowledged;
use super::running::Run;
use super::scenario::{HOUR, MINUTE, SECOND};
use super::world::{Happens, Question, Sabotage, World, Written, say};
use crate::client::gate::door::{Door, Pass};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Observation;
use crate::invoice::transition::Decision;
use crate::ledger::{
    DeliveryKey, InvoiceKey, LedgerCommand, LedgerReply, NoAnswer, Recorded, Refusal,
};
use crate::parts;
use crate::poller::again::Again;
use crate::poller::budget::Turn;
use crate::poller::recheck::Recheck;
use crate::process_mark::ProcessMark;

/// Refusals are gathered so long before they are written.
const GATHER_FOR: i64 = SECOND;

/// Who waits for a commit.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// The sender of a notification.
    Notice(usize, Box<Acknowledged>),
    /// A question whose answer is recorded.
    Answer(Question),
    /// A question that brought nothing.
    NoAnswer(InvoiceKey),
    /// The outbox, for deliveries to run.
    Claim,
    /// A run, for its program to be named.
    Name(DeliveryKey),
    /// A run, for its end.
    End(DeliveryKey),
    /// An old run, for its end.
    OldEnd(DeliveryKey),
}

/// What a daemon holds in memory.
#[derive(Debug)]
pub(super) struct Daemon {
    inbox: Vec<(LedgerCommand, Who)>,
    gathered: Vec<Refusal>,
    /// Its process.
    pub(super) mark: ProcessMark,
    /// Invoices that are being asked about.
    pub(super) asked: HashSet<InvoiceKey>,
    pub(super) recheck: Recheck,
    /// What a restore wants polled once.
    pub(super) again: Again,
    /// Which class the poller asks about first.
    pub(super) turn: Turn,
    /// The gate.
    pub(super) door: Door,
    /// Questions that passed it and have not ended.
    pub(super) passes: HashMap<InvoiceKey, Pass>,
    /// Something is due that may be asked about.
    pub(super) wants: bool,
    /// When the poller comes to the gate again.
    pub(super) turn_at: Option<i64>,
    /// The next look at what is due.
    pub(super) pass_at: Option<i64>,
    /// The next look at what is owed.
    pub(super) scan_at: Option<i64>,
    /// How far our clock was ahead when waits were last corrected.
    pub(super) looked_skew: i64,
    /// A claim is under way.
    pub(super) claiming: bool,
    /// Runs of its own.
    pub(super) runs: HashMap<DeliveryKey, Run>,
    /// Runs of earlier daemons it waits for.
    pub(super) settling: HashSet<DeliveryKey>,
}

impl World {
    /// The daemon starts, unless it runs.
    pub(super) fn start(&mut self) {
        if self.daemon.is_some() {
            return;
        }
        self.life += 1;
        let limits = parts::gate_limits(&self.scenario.settings);
        let life = i32::try_from(self.life).expect("a handful of lives");
        self.daemon = Some(Daemon {
            inbox: Vec::new(),
            gathered: Vec::new(),
            mark: ProcessMark {
                boot_id: "simulation".to_owned(),
                pid: life,
                start_ticks: self.now,
            },
            asked: HashSet::new(),
            recheck: Recheck::at_start(&self.polling.schedule),
            again: Again::at_start(self.polling.per_second),
            turn: Turn::default(),
            door: Door::new(limits),
            passes: HashMap::new(),
            wants: false,
            turn_at: None,
            pass_at: None,
            scan_at: None,
            looked_skew: self.skew,
            claiming: false,
            runs: HashMap::new(),
            settling: HashSet::new(),
        });
        say!(self, "daemon", "starts for the {}. time", self.life);
        self.pass_at(self.now);
        self.scan_at(self.now);
    }

    /// The daemon dies: what it held in memory is gone. Its hooks' programs go on.
    pub(super) fn crash(&mut self) {
        if self.healed || self.daemon.take().is_none() {
            return;
        }
        self.book.counts.crashes += 1;
        let far = self.dice.pick(&[10 * SECOND, 5 * MINUTE, HOUR]);
        let wait = self.dice.between(SECOND, far);
        say!(self, "daemon", "dies");
        self.after(wait, Happens::Start);
    }

    /// Hands a command to the writer.
    pub(super) fn hand_over(&mut self, command: LedgerCommand, who: Who) {
        let wait = self.dice.between(0, 20);
        let life = self.life;
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        daemon.inbox.push((command, who));
        if daemon.inbox.len() == 1 {
            self.after(wait, Happens::Commit(life));
        }
    }

    /// A notification that is authentic.
    pub(super) fn hear(&mut self, key: InvoiceKey, mut observation: Observation, number: usize) {
        say!(
            self,
            "listener",
            "notification {number} for invoice {} says {}",
            key.0,
            observation.report.status
        );
        let acknowledged = Acknowledged {
            invoice: key,
            report: observation.report.clone(),
        };
        if self.sabotage == Sabotage::AcknowledgeFirst {
            self.book.acknowledged.push(acknowledged.clone());
            self.answer(number);
        }
        if self.sabotage == Sabotage::TrustInstants {
            // As if it were said at its instant.
            observation.report.service_ms = observation.report.updated_at.map(Moment::as_ms);
        }
        let who = Who::Notice(number, Box::new(acknowledged));
        self.hand_over(LedgerCommand::Record(key, Box::new(observation)), who);
    }

    /// A request on a known ref that was not accepted.
    pub(super) fn refuse(&mut self, key: InvoiceKey) {
        let refusal = Refusal {
            invoice: Some(key),
            reason: "token_wrong",
            at_ms: self.wall_ms(),
            peer: "127.0.0.1".to_owned(),
            body_bytes: 0,
            body_sha256: String::new(),
            ref_hash: String::new(),
            header_names: String::new(),
        };
        let life = self.life;
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        daemon.gathered.push(refusal);
        if daemon.gathered.len() == 1 {
            self.after(GATHER_FOR, Happens::Flush(life));
        }
    }

    /// Writes what was gathered; what could not be written waits for the next time.
    pub(super) fn flush(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let gathered = std::mem::take(&mut daemon.gathered);
        match self.write(&[&LedgerCommand::Refuse(gathered.clone())]) {
            Written::Died => return self.crash(),
            Written::Done(_) => {}
            Written::Failed => {
                if let Some(daemon) = &mut self.daemon {
                    daemon.gathered.extend(gathered);
                    self.after(GATHER_FOR, Happens::Flush(self.life));
                }
            }
        }
        self.ring_poller();
        self.plan_looks();
    }

    /// The writer takes what waits, commits it in one transaction, and answers.
    pub(super) fn commit(&mut self) {
        let Some(daemon) = &mut self.daemon else {
            return;
        };
        let (commands, waiting): (Vec<LedgerCommand>, Vec<Who>) =
            std::mem::take(&mut daemon.inbox).into_iter().unzip();
        let commands: Vec<&LedgerCommand> = commands.iter().collect();
        match self.write(&commands) {
            Written::Died => return self.crash(),
            Written::Failed => waiting.into_iter().for_each(|who| self.not_stored(who)),
            Written::Done(replies) => {
                for (who, reply) in waiting.into_iter().zip(replies) {
                    match reply {
                        Ok(reply) => self.stored(who, reply),
                        Err(_missing) => self.not_stored(who),
                    }
                }
            }
        }
        self.plan_looks();
    }

    fn stored(&mut self, who: Who, reply: LedgerReply) {
        match (who, reply) {
            (Who::Notice(number, acknowledged), LedgerReply::Recorded(recorded)) => {
                let key = acknowledged.invoice;
                say!(
                    self,
                    "ledger",
                    "notification {number}: {:?}",
                    recorded.decision
                );
                if recorded.decision == Decision::NotThisInvoice {
                    return self.refuse(key);
                }
                self.book.acknowledged.push(*acknowledged);
                self.answer(number);
                self.recorded(key, &recorded);
            }
            (Who::Answer(question), LedgerReply::Recorded(recorded)) => {
                let key = question.key;
                say!(
                    self,
                    "ledger",
                    "answer about {}: {:?}",
                    key.0,
                    recorded.decision
                );
                if recorded.decision == Decision::NotThisInvoice {
                    return self.poll_failed(key, question.asked_ms, NoAnswer::Other);
                }
                self.question_ended(key);
                self.recorded(key, &recorded);
            }
            (Who::NoAnswer(key), _) => self.question_ended(key),
            (Who::Claim, LedgerReply::Claimed(claimed)) => self.claimed(claimed),
            (Who::Name(key), _) => self.begin(key),
            (Who::End(key), _) => self.ended(key),
            (Who::OldEnd(key), _) => self.old_ended(key),
            (who, reply) => unreachable!("the writer answered {who:?} with {reply:?}"),
        }
    }

    fn not_stored(&mut self, who: Who) {
        match who {
            // 503, and nudged: the service tries again, and we ask.
            Who::Notice(_, acknowledged) => self.refuse(acknowledged.invoice),
            Who::Answer(question) => self.question_ended(question.key),
            Who::NoAnswer(key) => self.question_ended(key),
            Who::Claim => self.not_claimed(),
            Who::Name(key) => self.withdraw(key),
            Who::End(key) => self.end_again(key),
            Who::OldEnd(key) => self.old_ended(key),
        }
    }

    /// Rings for what a recorded observation left to do.
    fn recorded(&mut self, key: InvoiceKey, recorded: &Recorded) {
        if let Some(event) = &recorded.event {
            say!(
                self,
                "ledger",
                "event {}: {} of invoice {}, now {}",
                event.seq,
                event.kind,
                key.0,
                recorded.outcome
            );
            if event.deliveries > 0 && self.hears() {
                self.scan_at(self.now);
            }
        }
        if recorded.decision == Decision::Doubt && self.sabotage == Sabotage::DropDoubt {
            self.store.drop_doubt(key);
        }
        if recorded.ask_soon {
            self.ring_poller();
        }
    }

    /// True when a bell is heard. A lost one costs the time until the next look.
    pub(super) fn hears(&mut self) -> bool {
        !self.dice.chance(self.faults.ring_lost)
    }
}
