//! The finite pool of requisites. Contract 7: 503 when all of them "for the amount and method are occupied", and
//! then another amount may find one. So each method has so many, and each takes one open invoice of an amount at a time;
//! how the service counts beyond that is not shown. In Redirect mode, where the customer gets them on the payment page, one
//! is taken with the choice of a method. The people, phones and cards in it are plainly fake.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// How a payment is made (contract 2.3). The sandbox knows the two methods the contract names and refuses others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

/// One requisite, by its method and its number among those of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requisite(Method, usize);

impl Requisite {
    /// `requisiteId`
    pub(crate) fn id(self) -> String {
        let Self(method, number) = self;
        let kind = match method {
            Method::Sbp => "phone",
            Method::ToCard => "card",
        };
        format!("req-{kind}-{:04}", number + 1)
    }

    /// `paymentOption`: the id of the bank.
    pub(crate) fn option(self) -> &'static str {
        BANKS.get(self.1 % BANKS.len()).map_or("", |bank| bank.0)
    }

    /// The object that goes into `dealRequisites`. For `SBP` its fields are those of contract 2.4; for `TO_CARD`, which
    /// the contract does not show, they are the sandbox's own invention.
    pub(crate) fn details(self, method: Method) -> Value {
        let bank = BANKS.get(self.1 % BANKS.len()).map_or("", |bank| bank.1);
        let person = PEOPLE.get(self.1 % PEOPLE.len()).copied().unwrap_or("");
        let number = self.1 + 1;
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

/// What is asked for: a method, and an amount with its currency. Equal amounts have one spelling here.
type Sum = (Method, String);

/// The pool: so many requisites of each method, some of them occupied for some amounts.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// So many of each method.
    size: usize,
    taken: BTreeMap<Sum, Taken>,
    busy: usize,
    /// So many are occupied at most, whatever their amounts are, where that was dictated.
    most: Option<usize>,
}

/// Numbers that are occupied for one method and amount.
#[derive(Clone, Debug, Default)]
struct Taken {
    /// Numbers below `made` that were given back; the lowest goes out first.
    idle: BTreeSet<usize>,
    /// How many numbers were given out.
    made: usize,
}

impl Taken {
    fn busy(&self) -> usize {
        self.made - self.idle.len()
    }
}

impl Pool {
    /// A pool with `size` free requisites of each method.
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            taken: BTreeMap::new(),
            busy: 0,
            most: None,
        }
    }

    /// Occupies a requisite of this method for this amount. `None`: all are occupied.
    pub(crate) fn take(&mut self, method: Method, sum: &str) -> Option<Requisite> {
        let key = (method, sum.to_owned());
        let busy = self.taken.get(&key).map_or(0, Taken::busy);
        let is_free = match self.most {
            Some(most) => self.busy < most,
            None => busy < self.size,
        };
        if !is_free {
            return None;
        }
        self.busy += 1;
        let taken = self.taken.entry(key).or_default();
        let number = taken.idle.pop_first().unwrap_or_else(|| {
            taken.made += 1;
            taken.made - 1
        });
        Some(Requisite(method, number))
    }

    /// Occupies one that was given back, or another when it is occupied anew.
    pub(crate) fn take_again(&mut self, had: Requisite, sum: &str) -> Option<Requisite> {
        let Requisite(method, number) = had;
        let key = (method, sum.to_owned());
        let other = self.take(method, sum)?;
        let taken = self.taken.get_mut(&key)?;
        // Numbers of an amount that nobody occupies are forgotten: those below stand idle then.
        while taken.made <= number {
            taken.idle.insert(taken.made);
            taken.made += 1;
        }
        if taken.idle.remove(&number) {
            let Requisite(_, instead) = other;
            taken.idle.insert(instead);
            return Some(had);
        }
        Some(other)
    }

    /// Gives one back that was occupied for this amount.
    pub(crate) fn give_back(&mut self, requisite: Requisite, sum: &str) {
        let Requisite(method, number) = requisite;
        let key = (method, sum.to_owned());
        let Some(taken) = self.taken.get_mut(&key) else {
            return;
        };
        taken.idle.insert(number);
        self.busy = self.busy.saturating_sub(1);
        if taken.busy() == 0 {
            self.taken.remove(&key);
        }
    }

    /// How many can be taken now: of the method and amount of which the fewest can, unless that was dictated.
    pub(crate) fn free(&self) -> usize {
        if let Some(most) = self.most {
            return most.saturating_sub(self.busy);
        }
        let most = self.taken.values().map(Taken::busy).max();
        self.size.saturating_sub(most.unwrap_or(0))
    }

    /// How many are occupied.
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Dictates that exactly `free` of them are free now, of any method and amount. 0 fills the pool.
    pub(crate) fn set_free(&mut self, free: usize) {
        self.most = Some(self.busy.saturating_add(free));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SBP: Method = Method::Sbp;

    #[test]
    fn a_full_pool_gives_nothing_until_one_comes_back() {
        let mut pool = Pool::new(2);
        let mut take = || pool.take(SBP, "1 RUB");
        let (first, second) = (take().expect("free"), take().expect("free"));
        assert_ne!(first, second);
        assert_eq!(take(), None);
        pool.give_back(first, "1 RUB");
        assert_eq!(pool.take(SBP, "1 RUB"), Some(first));
        pool.set_free(1);
        assert!(pool.take(SBP, "1 RUB").is_some() && pool.take(SBP, "2 RUB").is_none());
        pool.set_free(0);
        pool.give_back(second, "1 RUB");
        assert_eq!((pool.free(), pool.busy()), (1, 2));
    }

    #[test]
    fn the_same_one_is_taken_again_while_it_is_idle() {
        let mut pool = Pool::new(3);
        let mut take = || pool.take(SBP, "1 RUB").expect("free");
        let (first, second) = (take(), take());
        pool.give_back(first, "1 RUB");
        pool.give_back(second, "1 RUB");
        assert_eq!(pool.take_again(second, "1 RUB"), Some(second));
        assert_eq!(pool.take_again(second, "1 RUB"), Some(first));
        assert_eq!((pool.busy(), pool.free()), (2, 1));
        assert!(pool.take(SBP, "1 RUB").is_some());
        assert_eq!(pool.take_again(second, "1 RUB"), None);
    }

    /// Contract 7: the client retries later or with another amount.
    #[test]
    fn another_amount_or_method_finds_one() {
        let mut pool = Pool::new(1);
        let first = pool.take(SBP, "1 RUB").expect("free");
        assert_eq!((pool.take(SBP, "1 RUB"), pool.free()), (None, 0));
        let other = pool.take(SBP, "1.01 RUB").expect("another amount");
        assert_eq!(other.id(), first.id());
        let card = pool.take(Method::ToCard, "1 RUB").expect("another method");
        assert_ne!(card.id(), first.id());
        pool.give_back(first, "1 RUB");
        assert_eq!(pool.take(SBP, "1.01 RUB"), None);
        assert_eq!(pool.take(SBP, "1 RUB"), Some(first));
        assert_eq!(pool.busy(), 3);
    }

    #[test]
    fn the_details_are_plainly_fake() {
        let details = Requisite(SBP, 6).details(SBP);
        assert_eq!(details.get("phoneNumber"), Some(&json!("+7 000 000-00-07")));
        let card = Requisite(Method::ToCard, 6).details(Method::ToCard);
        assert_eq!(card.get("cardNumber"), Some(&json!("0000 0000 0000 0007")));
    }
}
