//! What the sandbox is told to do wrong. Each fault stays until it is changed or its count is used up. Those of
//! notifications are set for all invoices or for one; a fault that was set for one shows before those of all, and those
//! before what chance brings.

mod endpoint;
mod presentation;
mod rates;
mod telling;
mod times;

use std::collections::BTreeMap;

pub(crate) use endpoint::{ApiFault, Endpoint, StandIn};
pub(crate) use presentation::Presentation;
pub(crate) use rates::{Chance, Rates};
pub(crate) use telling::{Flow, Telling, Token, Treatment};
pub(crate) use times::Times;

use super::notice::Notice;

/// API faults kept at once. Tests set one or two.
const MOST_API_FAULTS: usize = 16;
/// Invoices with faults of their own.
const MOST_OWN: usize = 1_000;
/// Notifications that chance makes late come so late at most, ms.
const LATEST_MS: u64 = 5_000;

/// Everything that can be told to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// What goes wrong with all notifications.
    pub(crate) all: Telling,
    /// What goes wrong with those of one invoice, by its id or its order's.
    own: BTreeMap<String, Telling>,
    /// What chance brings.
    pub(crate) rates: Rates,
    /// What chance depends on.
    seed: u64,
    /// A create answer is held so long while a notification of the new invoice goes first, ms.
    pub(crate) hold_create_ms: u64,
    /// Creates whose invoice is made and whose answer never comes.
    pub(crate) drop_create_answer: Times,
    /// How far the service's clock is off in `updatedAt`, ms.
    pub(crate) clock_skew_ms: i64,
    /// `updatedAt` stays as it is when the status changes.
    pub(crate) same_instant: bool,
    /// Answers that stand in for an endpoint's own, the first that fits wins.
    api: Vec<ApiFault>,
}

impl Faults {
    /// No faults; what chance brings depends on the seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// What chance depends on.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// All faults off.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.seed);
    }

    /// The faults of one invoice's notifications, by its id or its order's. `None` when too many have their own.
    pub(crate) fn own(&mut self, id_or_order: &str) -> Option<&mut Telling> {
        if self.own.len() >= MOST_OWN && !self.own.contains_key(id_or_order) {
            return None;
        }
        Some(self.own.entry(id_or_order.to_owned()).or_default())
    }

    /// Those that have faults of their own.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&str, &Telling)> {
        self.own
            .iter()
            .map(|(name, telling)| (name.as_str(), telling))
    }

    /// Whether a notification waits for the next one of its invoice.
    pub(crate) fn reorders(&self, notice: &Notice) -> bool {
        let own = [&notice.id, &notice.order].map(|name| self.own.get(name));
        self.all.reorder
            || own.into_iter().flatten().any(|own| own.reorder)
            || self.draw(Chance::Reorder, notice).is_some()
    }

    /// Decides what happens to the next notification, and counts it.
    pub(crate) fn treat(&mut self, notice: &Notice) -> Treatment {
        // A lost notification uses up no other fault: nobody would see it.
        let lost = self.shows(notice, Chance::Lose, |telling| &mut telling.lose);
        let mut shows = |chance, place: fn(&mut Telling) -> &mut Times| {
            !lost && self.shows(notice, chance, place)
        };
        let repeated = shows(Chance::Repeat, |telling| &mut telling.repeat);
        let token = if shows(Chance::WrongToken, |telling| &mut telling.wrong_token) {
            Token::Wrong
        } else if shows(Chance::MissingToken, |telling| &mut telling.missing_token) {
            Token::Missing
        } else {
            Token::Right
        };
        let flow = if shows(Chance::Torn, |telling| &mut telling.torn) {
            Flow::Torn
        } else if shows(Chance::Slow, |telling| &mut telling.slow) {
            Flow::Slow
        } else {
            Flow::Whole
        };
        let by_chance = self.draw(Chance::Late, notice);
        let by_chance = by_chance.map_or(0, |number| 1 + number % LATEST_MS);
        let tellings = || self.tellings(notice);
        let copies = tellings().map(|telling| telling.copies).max();
        let delay_ms = tellings().map(|telling| telling.delay_ms).max();
        Treatment {
            lost,
            copies: if repeated {
                1 + copies.unwrap_or(0).max(1)
            } else {
                1
            },
            token,
            flow,
            delay_ms: delay_ms.unwrap_or(0).max(by_chance),
            give_up_ms: tellings().find_map(|telling| telling.give_up_ms),
            presentation: tellings()
                .find_map(|telling| telling.presentation.clone())
                .unwrap_or_default(),
        }
    }

    /// What is set for this notification, the nearest first.
    fn tellings(&self, notice: &Notice) -> impl Iterator<Item = &Telling> {
        let own = [&notice.id, &notice.order].map(|name| self.own.get(name));
        own.into_iter().flatten().chain([&self.all])
    }

    fn shows(
        &mut self,
        notice: &Notice,
        chance: Chance,
        place: fn(&mut Telling) -> &mut Times,
    ) -> bool {
        let own = [&notice.id, &notice.order].into_iter().any(|name| {
            let own = self.own.get_mut(name);
            own.is_some_and(|telling| place(telling).take())
        });
        own || place(&mut self.all).take() || self.draw(chance, notice).is_some()
    }

    fn draw(&self, chance: Chance, notice: &Notice) -> Option<u64> {
        self.rates
            .draw(chance, self.seed, [notice.invoice, notice.number])
    }

    /// Sets what an endpoint answers instead of its own, replacing what was set for it; never: takes it off.
    pub(crate) fn set_api(&mut self, fault: ApiFault) {
        self.api.retain(|old| old.endpoint != fault.endpoint);
        if fault.times != Times::Never && self.api.len() < MOST_API_FAULTS {
            self.api.push(fault);
        }
    }

    /// The stand-in for an endpoint's next answer, if one is set or drawn; counts it. `number` is the request's among
    /// those to this endpoint.
    pub(crate) fn api_answer(&mut self, endpoint: Endpoint, number: u64) -> Option<StandIn> {
        let set = self.api.iter_mut().find(|f| f.endpoint == endpoint);
        if let Some(fault) = set
            && fault.times.take()
        {
            return Some(fault.answer.clone());
        }
        let drawn = self
            .rates
            .draw(Chance::Api, self.seed, [endpoint as u64, number]);
        drawn.map(StandIn::passing)
    }

    /// The stand-ins that are set.
    pub(crate) fn api(&self) -> &[ApiFault] {
        &self.api
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    fn notice(order: &str, number: u64) -> Notice {
        Notice {
            invoice: 1,
            id: format!("id-{order}"),
            order: order.to_owned(),
            number,
            url: "http://127.0.0.1:9/".into(),
            token: Secret::new("t".repeat(40)),
            status: "paid".into(),
            body: "{}".into(),
        }
    }

    #[test]
    fn a_lost_notification_uses_up_no_other_fault() {
        let mut faults = Faults {
            all: Telling {
                lose: Times::next(1),
                repeat: Times::next(1),
                wrong_token: Times::next(1),
                ..Telling::default()
            },
            ..Faults::default()
        };
        let mut next = || faults.treat(&notice("A-1", 1));
        let (first, second, third) = (next(), next(), next());
        assert!(first.lost && first.copies == 1 && first.token == Token::Right);
        assert!(!second.lost && second.copies == 2 && second.token == Token::Wrong);
        assert!(!third.lost && third.copies == 1 && third.token == Token::Right);
    }

    #[test]
    fn a_fault_of_one_invoice_shows_with_that_one_alone() {
        let mut faults = Faults::default();
        let own = faults.own("A-1").expect("room");
        own.torn = Times::next(1);
        own.presentation = Some(Presentation::Bearer);
        faults.own("id-A-2").expect("room").lose = Times::Always;
        let other = faults.treat(&notice("A-3", 1));
        assert!(other.flow == Flow::Whole && other.presentation == Presentation::default());
        assert!(faults.treat(&notice("A-2", 1)).lost);
        let one = faults.treat(&notice("A-1", 1));
        assert!(one.flow == Flow::Torn && one.presentation == Presentation::Bearer);
        assert_eq!(faults.treat(&notice("A-1", 2)).flow, Flow::Whole);
        faults.reset();
        assert!(!faults.treat(&notice("A-2", 2)).lost);
    }

    #[test]
    fn what_chance_brings_is_the_same_for_the_same_seed_whatever_came_between() {
        let course = |between: bool| -> Vec<Treatment> {
            let mut faults = Faults::new(11);
            for chance in Chance::ALL {
                faults.rates.set(chance, 30);
            }
            let mut all = Vec::new();
            for number in 1..=50 {
                if between {
                    drop(faults.treat(&notice("B", number + 100)));
                    drop(faults.api_answer(Endpoint::Fetch, number));
                }
                all.push(faults.treat(&notice("A", number)));
            }
            all
        };
        assert_eq!(course(false), course(true));
        assert!(course(false).iter().any(|one| one.lost));
        assert!(course(false).iter().any(|one| one.delay_ms > 0));
    }

    #[test]
    fn what_is_set_for_an_endpoint_comes_before_chance() {
        let mut faults = Faults::new(3);
        faults.rates.set(Chance::Api, 100);
        faults.set_api(ApiFault {
            endpoint: Endpoint::Fetch,
            answer: StandIn::Hang,
            times: Times::next(1),
        });
        assert_eq!(faults.api_answer(Endpoint::Fetch, 1), Some(StandIn::Hang));
        let drawn = faults.api_answer(Endpoint::Fetch, 2);
        assert!(drawn.is_some_and(|drawn| drawn != StandIn::Hang));
    }
}
