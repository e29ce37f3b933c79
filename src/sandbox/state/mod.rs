//! The imitation service's whole state. Pure: time (ms) comes in as an argument, randomness from a seed; notifications
//! to be sent pile up in [`State::take_notices`] for whoever calls.

pub(crate) mod asked;
pub(crate) mod dice;
pub(crate) mod dictate;
pub(crate) mod faults;
mod freedom;
pub(crate) mod invoice;
pub(crate) mod login;
pub(crate) mod notice;
pub(crate) mod pool;
mod spelling;
mod telling;
#[cfg(test)]
mod tests;
mod whose;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;

use self::dice::Dice;
use self::faults::{Endpoint, Faults};
use self::invoice::Invoice;
use self::login::{Login, Token};
use self::notice::Notice;
use self::pool::Pool;
use super::speed::Speed;
use super::statuses::Statuses;

/// The shops of the one merchant of the sandbox. One name is Cyrillic on purpose: names travel as UTF-8.
pub(crate) const SHOPS: [&str; 3] = ["Tea on Rails", "Лавка у моста", "Night Bakery"];

/// What the service goes by. All of it is fixed at start.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The service's status names.
    pub(crate) statuses: Statuses,
    /// Life of a login request, s (contract 8: 600).
    pub(crate) login_lifetime_s: u64,
    /// Polling interval, s (contract 8: 5).
    pub(crate) interval_s: u64,
    /// Payment window of an invoice, s.
    pub(crate) invoice_lifetime_s: u64,
    /// Pause before a notification is tried again, ms.
    pub(crate) notify_retry_ms: u64,
    /// Requisites of each method.
    pub(crate) pool: usize,
    /// How many times faster than usual these times pass; they are as they are. See [`Rules::speed`].
    pub(crate) speed: u32,
    /// Answers are spelt plainly: all fields, always in one order, none beside them.
    pub(crate) is_plain: bool,
    /// Address of the cabinet, without a slash at its end.
    pub(crate) cabinet_url: String,
    /// Address of the control listener, without a slash at its end.
    pub(crate) control_url: String,
    /// Address of the payment pages, without a slash at its end.
    pub(crate) payment_url: String,
}

impl Rules {
    /// How much faster all other times pass.
    pub(crate) fn speed(&self) -> Speed {
        Speed::new(self.speed)
    }

    /// Those of a test that has no other wish: the contract's times where it names some, few requisites, plain spelling.
    #[cfg(test)]
    pub(crate) fn of_a_test() -> Self {
        Self {
            statuses: Statuses::default(),
            login_lifetime_s: 600,
            interval_s: 5,
            invoice_lifetime_s: 1_800,
            notify_retry_ms: 60_000,
            pool: 3,
            speed: 1,
            is_plain: true,
            cabinet_url: "http://127.0.0.1:1".to_owned(),
            control_url: String::new(),
            payment_url: "http://127.0.0.1:1/pay".to_owned(),
        }
    }
}

/// The service. Owned by one lock in `world`.
#[derive(Debug)]
pub(crate) struct State {
    /// What it goes by.
    pub(crate) rules: Rules,
    /// The tilld config that was written for it.
    pub(crate) config: Option<PathBuf>,
    /// What it is told to do wrong.
    pub(crate) faults: Faults,
    /// Its requisites.
    pub(crate) pool: Pool,
    dice: Dice,
    logins: VecDeque<Login>,
    tokens: VecDeque<Token>,
    invoices: BTreeMap<u64, Invoice>,
    by_id: HashMap<String, u64>,
    by_opaque: HashMap<String, u64>,
    /// Ends of payment windows of invoices that are not final: (ms, invoice).
    windows: BTreeSet<(i64, u64)>,
    /// Final invoices in the order they became so: the first ones make room.
    finished: VecDeque<u64>,
    next_seq: u64,
    notices: Vec<Notice>,
    counts: BTreeMap<Endpoint, u64>,
    /// How often each thing that chance goes by has come.
    times: HashMap<u64, u64>,
    /// Objects that were spelt.
    spelt: u64,
}

impl State {
    /// A service nobody has used yet.
    pub(crate) fn new(rules: Rules, seed: u64) -> Self {
        Self {
            faults: Faults::new(seed),
            pool: Pool::new(rules.pool),
            dice: Dice::new(seed),
            logins: VecDeque::new(),
            tokens: VecDeque::new(),
            invoices: BTreeMap::new(),
            by_id: HashMap::new(),
            by_opaque: HashMap::new(),
            windows: BTreeSet::new(),
            finished: VecDeque::new(),
            next_seq: 1,
            notices: Vec::new(),
            counts: BTreeMap::new(),
            times: HashMap::new(),
            spelt: 0,
            config: None,
            rules,
        }
    }

    /// The notifications that became due since the last call, in order.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Counts one request to an endpoint.
    pub(crate) fn count(&mut self, endpoint: Endpoint) {
        *self.counts.entry(endpoint).or_default() += 1;
    }

    /// Requests so far, per endpoint of the contract.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (Endpoint, u64)> {
        Endpoint::ALL
            .into_iter()
            .map(|endpoint| (endpoint, self.counts.get(&endpoint).copied().unwrap_or(0)))
    }

    /// Login requests, oldest first.
    pub(crate) fn logins(&self) -> impl DoubleEndedIterator<Item = &Login> {
        self.logins.iter()
    }

    /// Tokens, oldest first.
    pub(crate) fn tokens(&self) -> impl DoubleEndedIterator<Item = &Token> {
        self.tokens.iter()
    }

    /// Invoices, oldest first.
    pub(crate) fn invoices(&self) -> impl DoubleEndedIterator<Item = &Invoice> {
        self.invoices.values()
    }

    /// How many invoices there are.
    pub(crate) fn invoice_count(&self) -> usize {
        self.invoices.len()
    }
}
