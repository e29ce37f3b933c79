//! Invoices: made, moved, expired, told about. `updatedAt` of one invoice strictly increases, to the millisecond, unless
//! a test dictates it or the clock is told to be off.

use std::collections::VecDeque;

use serde_json::Value;

use super::State;
use super::asked::{check, less, more};
use super::dice::Dice;
use super::dictate::Dictated;
use super::faults::Whose;
use super::login::shop_name;
use super::notice::Attempt;
use super::pool::{Method, Requisite};
use super::spelling::{self, Exact};
use crate::invoice::amount::Amount;
use crate::invoice::moment::Moment;
use crate::sandbox::statuses::{Happening, NEW};
use crate::secret::Secret;
use crate::wire::create::{CreateRequest, ReturnUrls};
use crate::wire::invoice::InvoiceBody;

/// Invoices kept. Final ones make room, oldest first; with nothing but open ones the service says it is full.
const MOST_INVOICES: usize = 50_000;
/// `dealRate` of every deal: the sandbox exchanges nothing.
const RATE: &str = "1";

/// How the customer gets the requisites (contract 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// From the shop, which got them in the create answer.
    H2h,
    /// From the payment page, which leads back to these addresses.
    Redirect(ReturnUrls),
}

/// An invoice. `Debug` shows no token.
#[derive(Clone, Debug)]
pub(crate) struct Invoice {
    pub(super) seq: u64,
    /// What chance goes by: its order, and the how-manieth invoice of that.
    pub(super) key: u64,
    /// How often it changed.
    changes: u64,
    /// `id`
    pub(crate) id: String,
    /// The segment of its payment page.
    pub(crate) opaque: String,
    /// Index of its shop.
    pub(crate) shop: usize,
    /// `internalId`
    pub(crate) internal_id: String,
    /// The amount that was asked.
    pub(crate) asked: String,
    /// `amount`: what is reported.
    pub(crate) amount: String,
    /// `currency`
    pub(crate) currency: String,
    /// `paymentMethod`. `None` in Redirect mode until the customer has chosen.
    pub(crate) method: Option<Method>,
    /// The method that was asked for.
    pub(crate) asked_method: Method,
    /// H2H or Redirect.
    pub(crate) mode: Mode,
    /// `status`
    pub(crate) status: String,
    /// What happened to it last. One name may stand for several things, and one thing for none.
    pub(crate) happened: Option<Happening>,
    /// `createdAt`, ms.
    pub(crate) created_ms: i64,
    updated_ms: i64,
    /// Its times are whole seconds.
    in_seconds: bool,
    /// What of it is told to the letter.
    pub(super) exact: Exact,
    /// `updatedAt`
    pub(crate) updated_at: String,
    /// What was wrong with that on purpose, in a word of `POST /faults`.
    pub(super) dated: Option<String>,
    /// End of the payment window, ms. Told in H2H mode only.
    pub(crate) expires_ms: i64,
    /// The requisite it was given, occupied while `is_open`. `None` in Redirect mode until the customer has chosen a method:
    /// such an invoice is opened while none is free.
    pub(crate) requisite: Option<Requisite>,
    /// The amount for which it occupies one.
    pub(super) sum: String,
    pub(super) is_open: bool,
    /// `notificationUrl`
    pub(crate) notification_url: String,
    /// Its notify token.
    pub(crate) token: Secret,
    pub(crate) notices: u64,
    /// What came of its notifications, oldest first.
    pub(crate) attempts: VecDeque<Attempt>,
}

/// Why no invoice was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateRefusal {
    /// This field is missing or has the wrong form.
    Field(&'static str),
    /// All requisites are occupied.
    NoRequisites,
    /// Too many open invoices for the sandbox's memory.
    Full,
}

/// Why the customer could not choose a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceError {
    /// There is nothing to choose any more.
    Over,
    /// All requisites are occupied.
    NoRequisites,
}

impl Invoice {
    /// The invoice object (contract 2.3), or its Redirect subset.
    pub(crate) fn body(&self, payment_url: &str) -> Value {
        let h2h = self.mode == Mode::H2h;
        let shown = self.requisite.filter(|_| h2h);
        let body = InvoiceBody {
            id: self.id.clone(),
            status: self.status.clone(),
            method: h2h.then(|| self.asked_method.word().to_owned()),
            option: shown.map(|requisite| requisite.option().to_owned()),
            amount: self.amount.clone(),
            currency: self.currency.clone(),
            expire_at: h2h.then(|| Moment::from_ms(self.expires_ms).to_string()),
            requisite_id: shown.map(Requisite::id),
            requisites: shown.map(|requisite| requisite.details(self.asked_method)),
            rate: RATE.to_owned(),
            created_at: Moment::from_ms(self.created_ms).to_string(),
            updated_at: self.updated_at.clone(),
            internal_id: self.internal_id.clone(),
            merchant: shop_name(self.shop).to_owned(),
            payment_url: (!h2h).then(|| format!("{payment_url}/{}", self.opaque)),
        };
        body.to_json()
    }

    /// Whose its changes are, and which one is the next.
    fn whose(&self) -> Whose {
        Whose {
            names: [self.id.clone(), self.internal_id.clone()],
            draw: [self.key, self.changes],
        }
    }

    /// It changes now, by a clock that is so far off. One that is off may go back; two changes are told apart even so.
    fn touch(&mut self, now: i64, skew_ms: i64) {
        let step_ms = step_ms(self.in_seconds);
        let told = whole(now.saturating_add(skew_ms), step_ms);
        let next = whole(self.updated_ms.saturating_add(step_ms), step_ms);
        self.updated_ms = if skew_ms == 0 {
            told.max(next)
        } else if told == self.updated_ms {
            next
        } else {
            told
        };
        self.updated_at = Moment::from_ms(self.updated_ms).to_string();
    }
}

impl State {
    /// Makes an invoice for a shop. Sends nothing by itself: the maker learns it from the answer.
    pub(crate) fn create_invoice(
        &mut self,
        shop: usize,
        request: CreateRequest,
        now: i64,
    ) -> Result<&Invoice, CreateRefusal> {
        let asked_method = check(&request).map_err(CreateRefusal::Field)?;
        self.make_room()?;
        let sum = sum(&request.amount, &request.currency);
        let mode = request.return_urls.map_or(Mode::H2h, Mode::Redirect);
        let order = request.internal_id;
        let requisite = match mode {
            Mode::H2h => {
                let taken = self.take_requisite(asked_method, &sum, ["", &order]);
                Some(taken.ok_or(CreateRefusal::NoRequisites)?)
            }
            Mode::Redirect(_) => None,
        };
        let seq = self.next_seq;
        self.next_seq += 1;
        let [order_key, which] = self.next_of("invoice", &order);
        let key = Dice::of(order_key, [which, 0, 0]).roll();
        let is_plain = self.rules.is_plain;
        let id = if is_plain {
            self.dice.uuid()
        } else {
            spelling::id(&mut self.dice)
        };
        // As what goes wrong by chance: whatever came before it.
        let mut chance = Dice::of(self.faults.seed(), [key, 0, 0]);
        let in_seconds = !is_plain && spelling::in_seconds(&mut chance);
        let step_ms = step_ms(in_seconds);
        let mut invoice = Invoice {
            seq,
            key,
            changes: 0,
            id,
            opaque: self.dice.token(24),
            shop,
            internal_id: order,
            asked: request.amount.as_str().to_owned(),
            amount: request.amount.as_str().to_owned(),
            currency: request.currency,
            method: (mode == Mode::H2h).then_some(asked_method),
            asked_method,
            mode,
            status: NEW.to_owned(),
            happened: None,
            created_ms: whole(now, step_ms),
            updated_ms: now,
            in_seconds,
            exact: Exact::default(),
            updated_at: String::new(),
            dated: None,
            expires_ms: self.window_end(now),
            requisite,
            sum,
            is_open: true,
            notification_url: request.notification_url,
            token: request.notification_token,
            notices: 0,
            attempts: VecDeque::new(),
        };
        let skew_ms = self.faults.clock_skew_ms(&invoice.whose());
        invoice.updated_ms = whole(now.saturating_add(skew_ms), step_ms);
        invoice.updated_at = Moment::from_ms(invoice.updated_ms).to_string();
        invoice.dated = skewed(skew_ms);
        self.by_id.insert(invoice.id.clone(), seq);
        self.by_opaque.insert(invoice.opaque.clone(), seq);
        self.windows.insert((invoice.expires_ms, seq));
        Ok(self.invoices.entry(seq).or_insert(invoice))
    }

    /// When a payment window that begins now closes.
    pub(super) fn window_end(&self, now: i64) -> i64 {
        let lifetime_ms = self.rules.invoice_lifetime_s.saturating_mul(1_000);
        now.saturating_add(i64::try_from(lifetime_ms).unwrap_or(i64::MAX))
    }

    /// A free requisite for an amount of an invoice, by its id, if it has one yet, and its order.
    fn take_requisite(&mut self, method: Method, sum: &str, names: [&str; 2]) -> Option<Requisite> {
        let [_, order] = names;
        let whose = Whose {
            names: names.map(str::to_owned),
            draw: self.next_of("requisite", order),
        };
        if self.faults.no_requisites(&whose) {
            return None;
        }
        self.pool.take(method, sum)
    }

    fn make_room(&mut self) -> Result<(), CreateRefusal> {
        while self.invoices.len() >= MOST_INVOICES {
            let oldest = self.finished.pop_front().ok_or(CreateRefusal::Full)?;
            // An invoice can be queued twice or have left the final statuses since: only a final one goes.
            if self.invoices.get(&oldest).is_some_and(|old| !old.is_open)
                && let Some(old) = self.invoices.remove(&oldest)
            {
                self.by_id.remove(&old.id);
                self.by_opaque.remove(&old.opaque);
                self.windows.remove(&(old.expires_ms, oldest));
            }
        }
        Ok(())
    }

    /// The invoice with this id, or else the newest one with this `internalId`.
    pub(crate) fn find_invoice(&self, id_or_order: &str) -> Option<&Invoice> {
        match self.by_id.get(id_or_order) {
            Some(seq) => self.invoices.get(seq),
            None => self
                .invoices
                .values()
                .rev()
                .find(|invoice| invoice.internal_id == id_or_order),
        }
    }

    /// The invoice with this id, if it is of this shop.
    pub(crate) fn fetch_invoice(&self, shop: usize, id: &str) -> Option<&Invoice> {
        let invoice = self.invoices.get(self.by_id.get(id)?)?;
        (invoice.shop == shop).then_some(invoice)
    }

    /// The invoice whose payment page has this segment.
    pub(crate) fn invoice_of_page(&self, opaque: &str) -> Option<&Invoice> {
        self.invoices.get(self.by_opaque.get(opaque)?)
    }

    /// Lets something happen to the invoice of a payment page, and notifies. False when it cannot happen to it now.
    pub(crate) fn happen(&mut self, opaque: &str, happening: Happening, now: i64) -> bool {
        let Some(invoice) = self.invoice_of_page(opaque) else {
            return false;
        };
        let Some(status) = self.rules.statuses.name(happening).map(str::to_owned) else {
            return false;
        };
        let paid = self.rules.statuses.is_paid(&invoice.status);
        let is_final = self.rules.statuses.is_final(&invoice.status);
        let possible = match happening {
            Happening::Waiting => invoice.status == NEW,
            // A late payment: after the end, but not after a payment.
            // Nobody can pay who was never told where to.
            Happening::Paid | Happening::PaidLess | Happening::PaidMore => {
                let is_late = self.rules.statuses.is_failed(&invoice.status);
                (!is_final || is_late) && invoice.requisite.is_some()
            }
            Happening::Canceled | Happening::Expired => !is_final,
            Happening::Refunded => paid,
        };
        if !possible {
            return false;
        }
        let (seq, asked) = (invoice.seq, invoice.asked.as_str());
        let paid = match happening {
            // There may be no amount that could be told apart from the one that was asked for.
            Happening::PaidLess => less(asked).map(Some),
            Happening::PaidMore => more(asked).map(Some),
            Happening::Paid => Some(Some(asked.to_owned())),
            Happening::Waiting | Happening::Canceled | Happening::Expired | Happening::Refunded => {
                Some(None)
            }
        };
        let Some(amount) = paid else { return false };
        let dictated = Dictated {
            status: Some(status),
            amount,
            ..Dictated::default()
        };
        self.change(seq, dictated, now);
        self.remember(seq, happening);
        self.notify(seq);
        true
    }

    fn remember(&mut self, seq: u64, happening: Happening) {
        if let Some(invoice) = self.invoices.get_mut(&seq) {
            invoice.happened = Some(happening);
            // What a person's act reports is an amount as any other.
            invoice.exact = Exact::default();
        }
    }

    /// The customer of a Redirect invoice chooses how to pay, and gets a requisite.
    pub(crate) fn choose_method(
        &mut self,
        opaque: &str,
        method: Method,
        now: i64,
    ) -> Result<(), ChoiceError> {
        let seq = self.by_opaque.get(opaque).copied();
        let seq = seq.ok_or(ChoiceError::Over)?;
        let waiting = self
            .rules
            .statuses
            .name(Happening::Waiting)
            .map(str::to_owned);
        let invoice = self.invoices.get(&seq).ok_or(ChoiceError::Over)?;
        if invoice.method.is_some() || self.rules.statuses.is_final(&invoice.status) {
            return Err(ChoiceError::Over);
        }
        let (id, order) = (invoice.id.clone(), invoice.internal_id.clone());
        let sum = invoice.sum.clone();
        let taken = self.take_requisite(method, &sum, [&id, &order]);
        let requisite = taken.ok_or(ChoiceError::NoRequisites)?;
        let invoice = self.invoices.get_mut(&seq).ok_or(ChoiceError::Over)?;
        (invoice.method, invoice.requisite) = (Some(method), Some(requisite));
        if waiting.is_some() && invoice.status == NEW {
            let dictated = Dictated {
                status: waiting,
                ..Dictated::default()
            };
            self.change(seq, dictated, now);
            self.remember(seq, Happening::Waiting);
            self.notify(seq);
        }
        Ok(())
    }

    pub(super) fn change(&mut self, seq: u64, dictated: Dictated, now: i64) {
        let Some(invoice) = self.invoices.get_mut(&seq) else {
            return;
        };
        invoice.changes += 1;
        let whose = invoice.whose();
        if self.faults.same_instant(&whose) {
            invoice.dated = Some("same_instant".to_owned());
        } else {
            let skew_ms = self.faults.clock_skew_ms(&whose);
            invoice.touch(now, skew_ms);
            invoice.dated = skewed(skew_ms);
        }
        if let Some(amount) = dictated.amount {
            invoice.amount = amount;
        }
        if let Some(currency) = dictated.currency {
            invoice.currency = currency;
        }
        if let Some(updated_at) = dictated.updated_at {
            // The next change of our own must still be newer than anything that was ever told.
            if let Some(told) = Moment::parse(&updated_at) {
                invoice.updated_ms = invoice.updated_ms.max(told.as_ms());
            }
            invoice.updated_at = updated_at;
            invoice.dated = None;
        }
        if let Some(status) = dictated.status {
            invoice.status = status;
        }
        if self.rules.statuses.is_final(&invoice.status) && invoice.is_open {
            invoice.is_open = false;
            if let Some(requisite) = invoice.requisite {
                self.pool.give_back(requisite, &invoice.sum);
            }
            self.windows.remove(&(invoice.expires_ms, seq));
            self.finished.push_back(seq);
        }
    }

    /// Ends the invoices whose payment window has closed, and notifies of them.
    pub(crate) fn tick(&mut self, now: i64) {
        while let Some(&(ends_ms, seq)) = self.windows.first()
            && ends_ms <= now
        {
            self.windows.pop_first();
            let dictated = Dictated {
                status: self
                    .rules
                    .statuses
                    .name(Happening::Expired)
                    .map(str::to_owned),
                ..Dictated::default()
            };
            self.change(seq, dictated, now);
            self.remember(seq, Happening::Expired);
            self.notify(seq);
        }
    }
}

/// How the book tells of a clock that was so far off.
fn skewed(ms: i64) -> Option<String> {
    (ms != 0).then(|| format!("clock_skew_ms {ms}"))
}

/// An amount with its currency, in one spelling for equal ones.
fn sum(amount: &Amount, currency: &str) -> String {
    format!("{} {currency}", amount.canonical())
}

/// The smallest difference between two of an invoice's times, ms.
fn step_ms(in_seconds: bool) -> i64 {
    if in_seconds { 1_000 } else { 1 }
}

/// A time without what is smaller than a step.
fn whole(ms: i64, step_ms: i64) -> i64 {
    ms - ms.rem_euclid(step_ms)
}
