//! The finite pool of requisites: each open invoice occupies one, and when none is free the service answers 503
//! (contract section 7). In Redirect mode, where the customer gets them on the payment page, it does so from the choice
//! of a method on. The people, phones and cards in it are plainly fake.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// How a payment is made (contract 2.3). The sandbox knows the two methods the contract names and refuses others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `SBP`: to a phone number.
    Sbp,
    /// `TO_CARD`: to a card number.
    ToCard,
}

impl Method {
    /// Both, in the order the payment page offers them.
    pub(crate) const ALL: [Self; 2] = [Self::Sbp, Self::ToCard];

    /// Reads the contract's word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.word() == word)
    }

    /// The contract's word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Sbp => "SBP",
            Self::ToCard => "TO_CARD",
        }
    }
}

/// Banks that do not exist: option id and name.
const BANKS: [(&str, &str); 3] = [
    ("sandbox-bank", "Sandbox Bank"),
    ("pesok-bank", "Банк «Песок»"),
    ("toy-bank", "Toy Bank"),
];
/// People who do not exist.
const PEOPLE: [&str; 3] = ["Тест Т.", "Пример П.", "Образец О."];

/// One requisite, by its number in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requisite(usize);

impl Requisite {
    /// `requisiteId`
    pub(crate) fn id(self) -> String {
        format!("req-{:04}", self.0 + 1)
    }

    /// `paymentOption`: the id of the bank.
    pub(crate) fn option(self) -> &'static str {
        BANKS.get(self.0 % BANKS.len()).map_or("", |bank| bank.0)
    }

    /// The object that goes into `dealRequisites`. For `SBP` its fields are the contract's (2.4); for `TO_CARD`, which
    /// the contract does not show, they are the sandbox's own invention.
    pub(crate) fn details(self, method: Method) -> Value {
        let bank = BANKS.get(self.0 % BANKS.len()).map_or("", |bank| bank.1);
        let person = PEOPLE.get(self.0 % PEOPLE.len()).copied().unwrap_or("");
        let number = self.0 + 1;
        match method {
            Method::Sbp => json!({
                "bankName": bank,
                "phoneNumber": format!("+7 000 {:03}-{:02}-{:02}", number / 10_000 % 1_000, number / 100 % 100, number % 100),
                "fullName": person,
            }),
            Method::ToCard => json!({
                "cardNumber": format!("0000 0000 {:04} {:04}", number / 10_000 % 10_000, number % 10_000),
                "bankName": bank,
                "fullName": person,
            }),
        }
    }
}

/// The pool: so many requisites, some of them occupied.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    size: usize,
    busy: usize,
    /// Numbers that were given back; the lowest goes out first.
    idle: BTreeSet<usize>,
    /// How many numbers were ever given out.
    made: usize,
}

impl Pool {
    /// A pool of `size` free requisites.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            busy: 0,
            idle: BTreeSet::new(),
            made: 0,
        }
    }

    /// Occupies a free one. `None`: all are occupied.
    pub(crate) fn take(&mut self) -> Option<Requisite> {
        if self.free() == 0 {
            return None;
        }
        self.busy += 1;
        let number = self.idle.pop_first().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        });
        Some(Requisite(number))
    }

    /// Occupies one that was given back, if it is idle still.
    pub(crate) fn take_again(&mut self, requisite: Requisite) -> Option<Requisite> {
        let is_free = self.free() > 0 && self.idle.remove(&requisite.0);
        is_free.then(|| {
            self.busy += 1;
            requisite
        })
    }

    /// Gives one back.
    pub(crate) fn give_back(&mut self, requisite: Requisite) {
        self.busy = self.busy.saturating_sub(1);
        self.idle.insert(requisite.0);
    }

    /// How many can be taken now.
    pub(crate) fn free(&self) -> usize {
        self.size.saturating_sub(self.busy)
    }

    /// How many are occupied.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Makes exactly `free` of them free now, whatever is occupied. 0 fills the pool.
    pub(crate) fn set_free(&mut self, free: usize) {
        self.size = self.busy.saturating_add(free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_gives_nothing_until_one_comes_back() {
        let mut pool = Pool::new(2);
        let (first, second) = (pool.take().expect("free"), pool.take().expect("free"));
        assert_ne!(first, second);
        assert_eq!(pool.take(), None);
        pool.give_back(first);
        assert_eq!(pool.take(), Some(first));
        pool.set_free(1);
        assert!(pool.take().is_some() && pool.take().is_none());
        pool.set_free(0);
        pool.give_back(second);
        assert_eq!((pool.free(), pool.busy()), (1, 2));
    }

    #[test]
    fn the_details_are_plainly_fake() {
        let details = Requisite(6).details(Method::Sbp);
        assert_eq!(details.get("phoneNumber"), Some(&json!("+7 000 000-00-07")));
        let card = Requisite(6).details(Method::ToCard);
        assert_eq!(card.get("cardNumber"), Some(&json!("0000 0000 0000 0007")));
    }
}
