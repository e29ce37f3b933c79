//! The service's side: the sandbox's pure state, the story of each order, and the network between it and the listener.

use super::book::Body;
use super::scenario::{Act, Dated, HOUR, MINUTE, SECOND};
use super::world::{Happens, Sent, World, say};
use crate::invoice::ids::InvoiceId;
use crate::invoice::moment::Moment;
use crate::listener::notification::Notification;
use crate::sandbox::state::dictate::Dictated;

/// Tries of one notification: one and two more, a minute apart, as the sandbox's notifier makes them.
const TRIES: u32 = 3;
/// Between two tries.
const TRY_AGAIN: i64 = MINUTE;
/// What stands where an amount belongs, and is none.
const UNNAMED: [&str; 5] = ["null", "[1000]", "false", "\"NaN\"", "{}"];
/// How long the service waits for our answer.
const ANSWER_WITHIN: i64 = 10 * SECOND;

impl World {
    /// An act of an order's story: on its payment page, or in the service's own machinery.
    pub(super) fn act(&mut self, order: usize, act: usize) {
        let planned = self.scenario.orders.get(order);
        let Some((_, act)) = planned.and_then(|order| order.acts.get(act)).copied() else {
            return;
        };
        let opened = self.opened.get(&order).cloned().unwrap_or_default();
        let [.., newest] = opened.as_slice() else {
            return;
        };
        self.act_on(newest, act);
        // Customers have the links of older ones too, and may pay twice.
        for older in opened.iter().rev().skip(1) {
            if self.dice.chance(500) {
                self.act_on(older, act);
            }
        }
    }

    fn act_on(&mut self, id: &InvoiceId, act: Act) {
        let now = self.service_ms();
        self.service.tick(now);
        let Some(page) = self.service.find_invoice(id.as_str()) else {
            return;
        };
        let (page, last) = (page.opaque.clone(), page.updated_at.clone());
        let done = match act {
            Act::Happens(happening) => self.service.happen(&page, happening, now),
            Act::Shows(status, dated) => {
                let updated_at = match dated {
                    Dated::Rightly => None,
                    Dated::Again => Some(last),
                    Dated::Unreadably => Some("soon".to_owned()),
                    Dated::Ahead(by) => Some(Moment::from_ms(now + by).to_string()),
                };
                let dictated = Dictated {
                    status: Some(status.to_owned()),
                    updated_at,
                    ..Dictated::default()
                };
                let done = self.service.dictate(id.as_str(), dictated, true, now);
                done.is_ok()
            }
        };
        say!(self, "service", "{act:?} on {id:?}: {done}");
        self.see_bodies();
        self.send_notices();
    }

    /// The payment windows that have closed.
    pub(super) fn close_windows(&mut self) {
        self.service.tick(self.service_ms());
        self.see_bodies();
        self.send_notices();
    }

    /// Writes down what the service says about each invoice, where it says something new. The real decoder reads it.
    pub(super) fn see_bodies(&mut self) {
        let now = self.now;
        let payment_url = &self.service.rules.payment_url;
        for invoice in self.service.invoices() {
            let id = InvoiceId::new(invoice.id.as_str()).expect("the service's ids are ids");
            let bodies = self.book.bodies.entry(id).or_default();
            let text = invoice.body(payment_url).to_string();
            if bodies.last().is_some_and(|last| last.text == text) {
                continue;
            }
            let object = crate::wire::fields::Fields::read(text.as_bytes()).expect("an object");
            let report = crate::wire::invoice::decode(&object).expect("an invoice");
            bodies.push(Body {
                at: now,
                text,
                report,
            });
        }
    }

    fn send_notices(&mut self) {
        for notice in self.service.take_notices() {
            let number = self.notices.len();
            self.notices.push(Sent {
                notice,
                answered: false,
            });
            self.after(0, Happens::Send(number, 1));
        }
    }

    /// A notification leaves the service; the network does with it what it likes.
    pub(super) fn send(&mut self, number: usize, attempt: u32) {
        self.after(ANSWER_WITHIN, Happens::Look(number, attempt));
        if self.dice.chance(self.faults.notice_lost) {
            say!(
                self,
                "network",
                "notification {number} is lost, try {attempt}"
            );
            return;
        }
        let repeated = self.dice.chance(self.faults.notice_repeated);
        let copies = if repeated { self.dice.between(2, 3) } else { 1 };
        for _ in 0..copies {
            let late = self.dice.chance(self.faults.notice_late);
            let far = if late {
                self.dice.pick(&[20 * SECOND, 10 * MINUTE, 5 * HOUR])
            } else {
                2 * SECOND
            };
            let wait = self.dice.between(5, far);
            let forged = self.dice.chance(self.faults.notice_forged);
            self.after(wait, Happens::Arrive(number, forged));
        }
    }

    /// A copy reaches the listener: judged as the listener judges, and handed to the writer.
    pub(super) fn arrive(&mut self, number: usize, forged: bool) {
        let unnamed = self.dice.chance(self.faults.amount_unnamed);
        if unnamed {
            say!(self, "service", "names no amount in notification {number}");
        }
        let Some(sent) = self.notices.get(number) else {
            return;
        };
        self.book.counts.notifications += 1;
        let reference = sent.notice.url.rsplit('/').next().unwrap_or_default();
        let reference = crate::invoice::ids::InvoiceRef::parse(reference);
        let key = reference.and_then(|reference| self.store.key_of(&reference));
        let body = if unnamed {
            without_amount(&sent.notice.body, self.dice.pick(&UNNAMED))
        } else {
            sent.notice.body.to_string()
        };
        let read = Notification::read(body.as_bytes()).expect("it has the right shape");
        let (status, presented) = (sent.notice.status.clone(), sent.notice.token.clone());
        if self.daemon.is_none() {
            say!(
                self,
                "listener",
                "notification {number} ({status}) finds nobody"
            );
            return;
        }
        let Some((key, token)) = key.and_then(|key| Some((key, self.tokens.get(&key)?.clone())))
        else {
            return;
        };
        let presented = if forged { "forged" } else { presented.expose() };
        if !token.matches(presented.as_bytes()) {
            say!(
                self,
                "listener",
                "notification {number} ({status}) is refused"
            );
            self.refuse(key);
            return;
        }
        let observation = read.into_observation(&token, &[], self.wall_ms());
        self.hear(key, observation, number);
    }

    /// Our answer travels back; it may not arrive.
    pub(super) fn answer(&mut self, number: usize) {
        let arrives = !self.dice.chance(self.faults.answer_lost);
        if let Some(sent) = self.notices.get_mut(number) {
            sent.answered |= arrives;
        }
    }

    /// The service tries again when it was not answered.
    pub(super) fn look_for_answer(&mut self, number: usize, attempt: u32) {
        let answered = self.notices.get(number).is_none_or(|sent| sent.answered);
        if !answered && attempt < TRIES {
            let rest = TRY_AGAIN - ANSWER_WITHIN;
            self.after(rest, Happens::Send(number, attempt + 1));
        }
    }
}

/// The body with something else for its amount.
fn without_amount(body: &str, other: &str) -> String {
    let mut object = crate::wire::json::object(body.as_bytes()).expect("an object");
    let other = serde_json::from_str(other).expect("JSON");
    object.insert("amount".to_owned(), other);
    serde_json::Value::Object(object).to_string()
}
