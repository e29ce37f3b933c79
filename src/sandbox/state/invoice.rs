//! Invoices: made, moved, expired, told about. `updatedAt` of one invoice strictly increases, to the millisecond, unless
//! a test dictates it or the clock is told to be off.

use std::collections::VecDeque;

use rust_decimal::Decimal;
use serde_json::Value;

use super::State;
use super::login::shop_name;
use super::notice::{Answer, Attempt, MOST_ATTEMPTS, Notice};
use super::pool::{Method, Requisite};
use crate::invoice::moment::Moment;
use crate::invoice::notify_token::SHORTEST_TOKEN;
use crate::sandbox::statuses::{Happening, NEW};
use crate::secret::Secret;
use crate::wire::create::{CreateRequest, ReturnUrls};
use crate::wire::invoice::InvoiceBody;

/// Invoices kept. Final ones make room, oldest first; with nothing but open ones the service says it is full.
const MOST_INVOICES: usize = 50_000;
/// Longest text of a request's field, in bytes. The contract shows no bound; memory has one.
const LONGEST_FIELD: usize = 2_048;
/// `dealRate` of every deal: the sandbox exchanges nothing.
const RATE: &str = "1";

/// How the customer gets the requisites (contract section 1).
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
    seq: u64,
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
    /// `createdAt`, ms.
    pub(crate) created_ms: i64,
    updated_ms: i64,
    /// `updatedAt`
    pub(crate) updated_at: String,
    /// End of the payment window, ms. Told in H2H mode only.
    pub(crate) expires_ms: i64,
    /// The requisite it was given, occupied while `is_open`. `None` in Redirect mode until the customer has chosen a method:
    /// such an invoice is opened while none is free.
    pub(crate) requisite: Option<Requisite>,
    is_open: bool,
    /// `notificationUrl`
    pub(crate) notification_url: String,
    /// Its notify token.
    pub(crate) token: Secret,
    notices: u64,
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

/// A change dictated by a test. What is `None` stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dictated {
    /// `status`
    pub(crate) status: Option<String>,
    /// `amount`, any text.
    pub(crate) amount: Option<String>,
    /// `currency`, any text.
    pub(crate) currency: Option<String>,
    /// `updatedAt`, any text.
    pub(crate) updated_at: Option<String>,
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

    /// It changes now, by a clock that is so far off.
    fn touch(&mut self, now: i64, skew_ms: i64) {
        let now = now.saturating_add(skew_ms);
        self.updated_ms = now.max(self.updated_ms.saturating_add(1));
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
        let mode = request.return_urls.map_or(Mode::H2h, Mode::Redirect);
        let requisite = match mode {
            Mode::H2h => Some(self.pool.take().ok_or(CreateRefusal::NoRequisites)?),
            Mode::Redirect(_) => None,
        };
        let seq = self.next_seq;
        self.next_seq += 1;
        let lifetime_ms =
            i64::try_from(self.rules.invoice_lifetime_s.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let invoice = Invoice {
            seq,
            id: self.dice.uuid(),
            opaque: self.dice.token(24),
            shop,
            internal_id: request.internal_id,
            asked: request.amount.as_str().to_owned(),
            amount: request.amount.as_str().to_owned(),
            currency: request.currency,
            method: (mode == Mode::H2h).then_some(asked_method),
            asked_method,
            mode,
            status: NEW.to_owned(),
            created_ms: now,
            updated_ms: now.saturating_add(self.faults.clock_skew_ms),
            updated_at: Moment::from_ms(now.saturating_add(self.faults.clock_skew_ms)).to_string(),
            expires_ms: now.saturating_add(lifetime_ms),
            requisite,
            is_open: true,
            notification_url: request.notification_url,
            token: request.notification_token,
            notices: 0,
            attempts: VecDeque::new(),
        };
        self.by_id.insert(invoice.id.clone(), seq);
        self.by_opaque.insert(invoice.opaque.clone(), seq);
        self.windows.insert((invoice.expires_ms, seq));
        Ok(self.invoices.entry(seq).or_insert(invoice))
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
            Happening::Paid | Happening::PaidLess | Happening::PaidMore => {
                !is_final || self.rules.statuses.is_failed(&invoice.status)
            }
            Happening::Canceled | Happening::Expired => !is_final,
            Happening::Refunded => paid,
        };
        if !possible {
            return false;
        }
        let seq = invoice.seq;
        let amount = match happening {
            Happening::PaidLess => Some(less(&invoice.asked)),
            Happening::PaidMore => Some(more(&invoice.asked)),
            Happening::Paid => Some(invoice.asked.clone()),
            Happening::Waiting | Happening::Canceled | Happening::Expired | Happening::Refunded => {
                None
            }
        };
        let dictated = Dictated {
            status: Some(status),
            amount,
            ..Dictated::default()
        };
        self.change(seq, dictated, now);
        self.notify(seq);
        true
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
        let invoice = self.invoices.get_mut(&seq).ok_or(ChoiceError::Over)?;
        if invoice.method.is_some() || self.rules.statuses.is_final(&invoice.status) {
            return Err(ChoiceError::Over);
        }
        let requisite = self.pool.take().ok_or(ChoiceError::NoRequisites)?;
        (invoice.method, invoice.requisite) = (Some(method), Some(requisite));
        if waiting.is_some() && invoice.status == NEW {
            let dictated = Dictated {
                status: waiting,
                ..Dictated::default()
            };
            self.change(seq, dictated, now);
            self.notify(seq);
        }
        Ok(())
    }

    /// Applies a change dictated by a test. False when there is no such invoice.
    pub(crate) fn dictate(
        &mut self,
        id_or_order: &str,
        dictated: Dictated,
        notify: bool,
        now: i64,
    ) -> bool {
        let Some(seq) = self.find_invoice(id_or_order).map(|invoice| invoice.seq) else {
            return false;
        };
        self.change(seq, dictated, now);
        if notify {
            self.notify(seq);
        }
        true
    }

    fn change(&mut self, seq: u64, dictated: Dictated, now: i64) {
        let Some(invoice) = self.invoices.get_mut(&seq) else {
            return;
        };
        if !self.faults.same_instant {
            invoice.touch(now, self.faults.clock_skew_ms);
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
        }
        if let Some(status) = dictated.status {
            invoice.status = status;
        }
        if self.rules.statuses.is_final(&invoice.status) && invoice.is_open {
            invoice.is_open = false;
            if let Some(requisite) = invoice.requisite {
                self.pool.give_back(requisite);
            }
            self.windows.remove(&(invoice.expires_ms, seq));
            self.finished.push_back(seq);
        }
    }

    /// Puts a notification of the invoice as it stands now into the queue.
    fn notify(&mut self, seq: u64) {
        let notice = self.make_notice(seq);
        self.notices.extend(notice);
    }

    /// As [`State::notify`], for the invoice with this id.
    pub(crate) fn notify_of(&mut self, id: &str) {
        if let Some(seq) = self.by_id.get(id).copied() {
            self.notify(seq);
        }
    }

    /// A notification of the invoice as it stands now, given to the caller instead of the queue.
    pub(crate) fn notice_of(&mut self, id_or_order: &str) -> Option<Notice> {
        let seq = self.find_invoice(id_or_order)?.seq;
        self.make_notice(seq)
    }

    fn make_notice(&mut self, seq: u64) -> Option<Notice> {
        let body = self.invoices.get(&seq)?.body(&self.rules.payment_url);
        let body = self.spell(&body);
        let invoice = self.invoices.get_mut(&seq)?;
        invoice.notices += 1;
        Some(Notice {
            invoice: seq,
            id: invoice.id.clone(),
            order: invoice.internal_id.clone(),
            number: invoice.notices,
            url: invoice.notification_url.clone(),
            token: invoice.token.clone(),
            status: invoice.status.clone(),
            body,
        })
    }

    /// Writes down what came of an attempt.
    pub(crate) fn record_attempt(
        &mut self,
        notice: &Notice,
        attempt: u32,
        answer: Answer,
        now: i64,
    ) {
        let Some(invoice) = self.invoices.get_mut(&notice.invoice) else {
            return;
        };
        while invoice.attempts.len() >= MOST_ATTEMPTS {
            invoice.attempts.pop_front();
        }
        invoice.attempts.push_back(Attempt {
            notice: notice.number,
            number: attempt,
            at_ms: now,
            status: notice.status.clone(),
            answer,
        });
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
            self.notify(seq);
        }
    }
}

/// The sandbox's own checks on a request, where the contract shows none. `Err` names the field.
fn check(request: &CreateRequest) -> Result<Method, &'static str> {
    let web = |url: &str| {
        let rest = url
            .strip_prefix("https://")
            .or_else(|| url.strip_prefix("http://"));
        url.len() <= LONGEST_FIELD && rest.is_some_and(|rest| !rest.is_empty())
    };
    if request.internal_id.len() > LONGEST_FIELD {
        return Err("internalId");
    }
    if request.currency.len() > 16 {
        return Err("currency");
    }
    if !web(&request.notification_url) {
        return Err("notificationUrl");
    }
    let token = request.notification_token.expose();
    if token.chars().count() < SHORTEST_TOKEN || token.len() > LONGEST_FIELD {
        return Err("notificationToken");
    }
    if let Some(urls) = &request.return_urls {
        for (name, url) in [
            ("successUrl", &urls.success),
            ("cancelUrl", &urls.cancel),
            ("errorUrl", &urls.error),
        ] {
            if !web(url) {
                return Err(name);
            }
        }
    }
    Method::parse(&request.method).ok_or("paymentMethod")
}

/// Less than was asked: one unit of money less, or half where that would leave nothing.
fn less(asked: &str) -> String {
    let Ok(amount) = Decimal::from_str_exact(asked) else {
        return asked.to_owned();
    };
    if amount > Decimal::ONE {
        (amount - Decimal::ONE).to_string()
    } else {
        (amount / Decimal::TWO).normalize().to_string()
    }
}

/// More than was asked: one unit of money more.
fn more(asked: &str) -> String {
    let amount = Decimal::from_str_exact(asked).ok();
    let amount = amount.and_then(|amount| amount.checked_add(Decimal::ONE));
    amount.map_or_else(|| asked.to_owned(), |amount| amount.to_string())
}
