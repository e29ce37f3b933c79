//! What the sandbox is told to do wrong. Each fault stays until it is changed or its count is used up. They are set for all
//! invoices or for one; a fault that was set for one shows before those of all, and those before what chance brings.

mod endpoint;
mod presentation;
mod rates;
#[cfg(test)]
mod tests;
mod times;
mod treatment;
mod waits;
mod wrongs;

use std::collections::BTreeMap;

pub(crate) use endpoint::{ApiFault, ELSEWHERE, Endpoint, StandIn};
pub(crate) use presentation::Presentation;
pub(crate) use rates::{Chance, RateOf, Rates};
pub(crate) use times::Times;
pub(crate) use treatment::{Flow, Token, Treatment};
#[cfg(test)]
pub(crate) use waits::MOST_WAITING;
pub(crate) use waits::Ticket;
pub(crate) use wrongs::Wrongs;

use self::waits::Waits;
use super::notice::Notice;

/// Invoices with faults of their own.
const MOST_OWN: usize = 1_000;
/// Notifications that chance makes late come so late at most, ms.
const LATEST_MS: u64 = 5_000;
/// A sender that chance makes give up does so after this, ms.
const GIVES_UP_MS: u64 = 3_000;
/// A clock that chance puts off is off by so much at most, either way, ms.
const MOST_SKEW_MS: u64 = 3_600_000;

/// Whose something is that may go wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whose {
    /// The invoice's id and its order's, as far as they are known; empty otherwise.
    pub(crate) names: [String; 2],
    /// What chance goes by: who, and the how-manieth of theirs.
    pub(crate) draw: [u64; 2],
}

/// Everything that can be told to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// What goes wrong with everything.
    pub(crate) all: Wrongs,
    /// What goes wrong with one invoice, by its id or its order's. None of them is without a fault.
    own: BTreeMap<String, Wrongs>,
    /// What chance brings.
    pub(crate) rates: Rates,
    /// What chance depends on.
    seed: u64,
    waits: Waits,
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

    /// All faults off, or those of one invoice; whoever waits for their sake waits no more.
    pub(crate) fn reset(&mut self, id_or_order: Option<&str>) {
        self.waits.release(id_or_order);
        if let Some(name) = id_or_order {
            self.own.remove(name);
            return;
        }
        self.all = Wrongs::default();
        self.own.clear();
        self.rates = Rates::default();
    }

    /// Whether this invoice may have faults of its own: it has some, or there is room.
    pub(crate) fn has_room(&self, id_or_order: &str) -> bool {
        self.own.len() < MOST_OWN || self.own.contains_key(id_or_order)
    }

    /// Changes the faults of one invoice, by its id or its order's, or those of everything.
    pub(crate) fn change<T>(
        &mut self,
        id_or_order: Option<&str>,
        change: impl FnOnce(&mut Wrongs) -> T,
    ) -> T {
        let Some(name) = id_or_order else {
            return change(&mut self.all);
        };
        let own = self.own.entry(name.to_owned()).or_default();
        let changed = change(own);
        if *own == Wrongs::default() {
            self.own.remove(name);
        }
        changed
    }

    /// Those that have faults of their own.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (&str, &Wrongs)> {
        self.own.iter().map(|(name, own)| (name.as_str(), own))
    }

    /// Whether a notification waits for the next one of its invoice.
    pub(crate) fn reorders(&self, notice: &Notice) -> bool {
        let whose = notice.whose();
        let is_set = self.wrongs(&whose).any(|wrongs| wrongs.reorder);
        is_set || self.draw(Chance::Reorder, &whose).is_some()
    }

    /// Decides what happens to the next notification, and counts it.
    pub(crate) fn treat(&mut self, notice: &Notice) -> Treatment {
        let whose = notice.whose();
        // A lost notification uses up no other fault: nobody would see it.
        let lost = self.shows(&whose, Chance::Lose, |wrongs| &mut wrongs.lose);
        let mut shows = |chance, place: fn(&mut Wrongs) -> &mut Times| {
            !lost && self.shows(&whose, chance, place)
        };
        let repeated = shows(Chance::Repeat, |wrongs| &mut wrongs.repeat);
        let token = if shows(Chance::WrongToken, |wrongs| &mut wrongs.wrong_token) {
            Token::Wrong
        } else if shows(Chance::MissingToken, |wrongs| &mut wrongs.missing_token) {
            Token::Missing
        } else {
            Token::Right
        };
        let flow = if shows(Chance::Torn, |wrongs| &mut wrongs.torn) {
            Flow::Torn
        } else if shows(Chance::Slow, |wrongs| &mut wrongs.slow) {
            Flow::Slow
        } else {
            Flow::Whole
        };
        let drawn = |chance| self.draw(chance, &whose);
        let by_chance = drawn(Chance::Late).map_or(0, |number| 1 + number % LATEST_MS);
        let wrongs = || self.wrongs(&whose);
        let copies = wrongs().map(|wrongs| wrongs.copies).max();
        let delay_ms = wrongs().map(|wrongs| wrongs.delay_ms).max();
        let gives_up = || drawn(Chance::GiveUp).map(|_| GIVES_UP_MS);
        let elsewhere = || drawn(Chance::Presentation).map(Presentation::elsewhere);
        Treatment {
            lost,
            copies: if repeated { 1 + copies.unwrap_or(1) } else { 1 },
            token,
            flow,
            delay_ms: delay_ms.unwrap_or(0).max(by_chance),
            give_up_ms: wrongs()
                .find_map(|wrongs| wrongs.give_up_ms)
                .or_else(gives_up),
            presentation: wrongs()
                .find_map(|wrongs| wrongs.presentation.clone())
                .or_else(elsewhere)
                .unwrap_or_default(),
            reordered: notice.reordered,
        }
    }

    /// The stand-in for an endpoint's next answer, if one is set or drawn; counts it.
    pub(crate) fn api_answer(&mut self, endpoint: Endpoint, whose: &Whose) -> Option<StandIn> {
        let own = self.take_own(whose, |wrongs| wrongs.take_api(endpoint));
        own.or_else(|| self.all.take_api(endpoint))
            .or_else(|| self.rates.draw_answer(endpoint, self.seed, whose.draw))
    }

    /// How long the answer to a create is held, ms.
    pub(crate) fn hold_create_ms(&self, whose: &Whose) -> u64 {
        let set = self.wrongs(whose).map(|wrongs| wrongs.hold_create_ms);
        set.max().unwrap_or(0)
    }

    /// Whether the answer to a create is lost; counts it.
    pub(crate) fn drops_create_answer(&mut self, whose: &Whose) -> bool {
        self.is_set(whose, |wrongs| &mut wrongs.drop_create_answer)
    }

    /// Whether no requisite is free for an invoice, whatever the pool holds; counts it.
    pub(crate) fn no_requisites(&mut self, whose: &Whose) -> bool {
        self.shows(whose, Chance::NoRequisites, |wrongs| {
            &mut wrongs.no_requisites
        })
    }

    /// How far the clock is off at a change of an invoice, ms.
    pub(crate) fn clock_skew_ms(&self, whose: &Whose) -> i64 {
        let mut set = self.wrongs(whose).map(|wrongs| wrongs.clock_skew_ms);
        let drawn = || {
            let number = self.draw(Chance::ClockSkew, whose)? % (2 * MOST_SKEW_MS + 1);
            let (number, most) = (
                i64::try_from(number).ok()?,
                i64::try_from(MOST_SKEW_MS).ok()?,
            );
            Some(number - most)
        };
        set.find(|ms| *ms != 0).or_else(drawn).unwrap_or(0)
    }

    /// Whether `updatedAt` stays at a change of an invoice.
    pub(crate) fn same_instant(&self, whose: &Whose) -> bool {
        self.wrongs(whose).any(|wrongs| wrongs.same_instant)
            || self.draw(Chance::SameInstant, whose).is_some()
    }

    /// A request of theirs is to be kept waiting. `None`: too many are, it must not.
    pub(crate) fn begin_waiting(&mut self, whose: &Whose) -> Option<Ticket> {
        self.waits.begin(&whose.names)
    }

    /// Whether it is still to wait.
    pub(crate) fn waits(&self, ticket: Ticket) -> bool {
        self.waits.goes_on(ticket)
    }

    /// It waits no more.
    pub(crate) fn end_waiting(&mut self, ticket: Ticket) {
        self.waits.end(ticket);
    }

    /// How often some of those that wait were let go.
    pub(crate) fn releases(&self) -> u64 {
        self.waits.releases()
    }

    /// What is set for them, the nearest first.
    fn wrongs(&self, whose: &Whose) -> impl Iterator<Item = &Wrongs> {
        let own = whose.names.each_ref().map(|name| self.own.get(name));
        own.into_iter().flatten().chain([&self.all])
    }

    /// The first of their own faults that shows.
    fn take_own<T>(&mut self, whose: &Whose, take: impl Fn(&mut Wrongs) -> Option<T>) -> Option<T> {
        whose.names.iter().find_map(|name| {
            let taken = take(self.own.get_mut(name)?)?;
            if self.own.get(name) == Some(&Wrongs::default()) {
                self.own.remove(name);
            }
            Some(taken)
        })
    }

    fn is_set(&mut self, whose: &Whose, place: fn(&mut Wrongs) -> &mut Times) -> bool {
        let own = self.take_own(whose, |wrongs| place(wrongs).take().then_some(()));
        own.is_some() || place(&mut self.all).take()
    }

    fn shows(
        &mut self,
        whose: &Whose,
        chance: Chance,
        place: fn(&mut Wrongs) -> &mut Times,
    ) -> bool {
        self.is_set(whose, place) || self.draw(chance, whose).is_some()
    }

    fn draw(&self, chance: Chance, whose: &Whose) -> Option<u64> {
        self.rates.draw(chance, self.seed, whose.draw)
    }
}
