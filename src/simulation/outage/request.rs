//! One request of the course: how it leaves, what it meets, and what becomes of its answer in the ledger, as `poller` and
//! `opening` do it.

use std::time::Duration;

use super::book::Request;
use super::course::{ENDS, Meets, PATIENCE, RETRY_AFTER, SLOWEST, THROTTLES};
use super::daemon::{Answer, Question};
use super::till::{order, sum};
use super::world::World;
use crate::client::error::Error;
use crate::client::gate::Caller;
use crate::client::gate::door::Pass;
use crate::client::gate::outage::{Change, Verdict};
use crate::invoice::ids::InvoiceId;
use crate::invoice::observation::{Asked, Observation, Report, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::silence;
use crate::ledger::{
    Begun, DueRow, Intent, InvoiceKey, LedgerCommand, LedgerReply, NoAnswer, PollFailed, Sealed,
    Settled,
};
use crate::process_mark::ProcessMark;

impl World {
    /// The row of an order stands before its request leaves.
    pub(super) fn begin(&mut self, number: usize) -> Question {
        let (request, reference) = self.request(number);
        let intent = Intent {
            order_id: order(number),
            wanted: Wanted {
                sum: sum(),
                method: request.method.clone(),
                mode: Mode::H2h,
                anew: false,
            },
            reference,
            instead_of: None,
            sealed: Sealed(Vec::new()),
            creator: ProcessMark::own(),
            now_ms: self.wall_ms(),
            deadline_ms: self.wall_ms() + PATIENCE,
            window_ms: 3_600_000,
            polled: Vec::new(),
        };
        let reply = self.write(&LedgerCommand::Begin(Box::new(intent)), &[]);
        let LedgerReply::Begun(Begun::Fresh(key)) = reply else {
            panic!("could not begin order {number}: {reply:?}");
        };
        Question::Create(number, key, Box::new(request))
    }

    /// A request leaves.
    pub(super) fn send(&mut self, caller: Caller, pass: Pass, question: Question) {
        let (moment, now_ms) = (self.instant(), self.wall_ms());
        self.daemon
            .as_mut()
            .expect("alive")
            .door
            .leaves(caller, moment);
        let (wait, answer) = self.meet(&question);
        let about = match &question {
            Question::Poll(row) => Some((row.key, silence::class(&row.heard, now_ms))),
            Question::Create(..) => None,
        };
        let number = self.book.requests.len();
        self.book.requests.push(Request {
            at: self.now,
            until: self.now + wait,
            caller,
            about,
            answered: matches!(answer, Answer::State(_)),
        });
        let daemon = self.daemon.as_mut().expect("alive");
        daemon.under_way.insert(number);
        self.over_after(wait, number, (pass, question, answer));
    }

    /// What a request meets, and after how long.
    fn meet(&mut self, question: &Question) -> (i64, Answer) {
        let nobody = |why: &str| Answer::None(Verdict::Outage(why.to_owned()), None);
        let busy = |status: u16, retry_after: Option<Duration>| {
            let error = Error::Busy {
                status,
                retry_after,
                text: None,
            };
            Answer::None(error.verdict(), error.retry_after())
        };
        match self.course.meets(self.now) {
            Meets::Refusal => (2, nobody("could not connect")),
            Meets::Silence => (PATIENCE, nobody("gave no complete answer")),
            Meets::Page => (self.dice.between(20, 200), busy(502, None)),
            Meets::Service
                if self.now >= THROTTLES
                    && !self.throttled
                    && matches!(question, Question::Poll(_)) =>
            {
                self.throttled = true;
                let wish = u64::try_from(RETRY_AFTER).expect("positive");
                (50, busy(429, Some(Duration::from_millis(wish))))
            }
            Meets::Service => {
                let slow = self.dice.chance(10);
                let wait = self.dice.between(40, if slow { SLOWEST } else { 600 });
                (wait, Answer::State(Box::new(self.answer(question))))
            }
        }
    }

    fn answer(&mut self, question: &Question) -> Report {
        match question {
            Question::Poll(row) => self.report(&row.invoice_id),
            Question::Create(_, _, request) => {
                let id = self.make((**request).clone(), self.now);
                self.report(&id)
            }
        }
    }

    /// A request is over.
    pub(super) fn over(&mut self, number: usize, pass: &Pass, question: Question, answer: Answer) {
        let (verdict, wish) = match &answer {
            Answer::State(_) => (Verdict::Alive, None),
            Answer::None(verdict, wish) => (verdict.clone(), *wish),
        };
        let (moment, dice) = (self.instant(), self.dice.short());
        let daemon = self.daemon.as_mut().expect("alive");
        daemon.under_way.remove(&number);
        if let Some(wish) = wish {
            daemon.door.heed(pass.caller(), wish, moment, dice);
            self.book.throttled = Some(self.now);
        }
        let daemon = self.daemon.as_mut().expect("alive");
        match daemon.door.ended(pass, verdict, moment, dice) {
            Change::Began(_) => self.book.turns.push((self.now, true)),
            Change::Ended(_) => self.book.turns.push((self.now, false)),
            Change::None | Change::GoesOn(_) => {}
        }
        let is_out = daemon.door.outage().since().is_some();
        match question {
            Question::Poll(row) => self.polled(number, &row, answer, is_out),
            Question::Create(order, key, _) => self.created(order, key, number, answer),
        }
        self.turn();
    }

    fn polled(&mut self, number: usize, row: &DueRow, answer: Answer, is_out: bool) {
        let key = row.key;
        let now_ms = self.wall_ms();
        let sent = self.book.requests.get(number).map_or(0, |sent| sent.at);
        let asked_ms = now_ms - (self.now - sent);
        let command = match answer {
            Answer::State(report) => LedgerCommand::Record(
                key,
                Box::new(Observation {
                    source: Source::Poll,
                    report: *report,
                    asked: Some(Asked {
                        revision: row.revision,
                        at_ms: asked_ms,
                    }),
                    received_ms: now_ms,
                }),
            ),
            Answer::None(verdict, _) => LedgerCommand::PollFailed(PollFailed {
                key,
                asked_ms,
                now_ms,
                why: match verdict {
                    Verdict::Outage(_) if is_out => NoAnswer::Outage,
                    Verdict::Outage(_) | Verdict::Alive | Verdict::Busy | Verdict::Nothing => {
                        NoAnswer::Other
                    }
                },
            }),
        };
        let answered = matches!(command, LedgerCommand::Record(..));
        self.write(&command, &[key]);
        if answered {
            self.heard(key, sent);
        }
        let daemon = self.daemon.as_mut().expect("alive");
        daemon.asked.remove(&key);
        if !daemon.wants {
            self.look_ahead();
        }
    }

    /// Writes down what the ledger knows by an answer.
    fn heard(&mut self, key: InvoiceKey, sent: i64) {
        if sent >= ENDS {
            self.book.answered_at.entry(key).or_insert(self.now);
        }
        if !self.is_right(key) {
            return;
        }
        if self.book.wrong.contains(&key) {
            self.book.right_at.entry(key).or_insert(self.now);
        }
        if let Some(order) = self.book.orders.get_mut(&key) {
            order.known.get_or_insert(self.now);
        }
    }

    /// A create is over.
    fn created(&mut self, order: usize, key: InvoiceKey, number: usize, answer: Answer) {
        let now_ms = self.wall_ms();
        let sent = self.book.requests.get(number).map_or(0, |sent| sent.at);
        let (id, settled) = match answer {
            Answer::State(report) => {
                let id: InvoiceId = report.id.clone();
                let observation = Observation {
                    source: Source::Create,
                    report: *report,
                    asked: Some(Asked {
                        revision: 0,
                        at_ms: now_ms - (self.now - sent),
                    }),
                    received_ms: now_ms,
                };
                (Some(id), Settled::Answered(Box::new(observation)))
            }
            Answer::None(..) => (None, Settled::Refused("no service was met".to_owned())),
        };
        self.write(&LedgerCommand::Settle(key, settled), &[key]);
        if let Some(id) = id {
            self.ordered(order, key, id);
        }
    }
}
