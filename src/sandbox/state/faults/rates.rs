//! Faults by chance: so many of a hundred. Which ones they are depends on the seed, whose it is and the how-manieth of
//! theirs alone, never on what happened at the same time elsewhere: one seed replays one run, in whatever order the
//! requests of different orders come.

use std::collections::BTreeMap;

use super::endpoint::{Endpoint, PASSING, StandIn};
use crate::sandbox::state::dice::Dice;

/// What may go wrong by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chance {
    /// A notification is never sent.
    Lose,
    /// It is sent twice.
    Repeat,
    /// It comes late.
    Late,
    /// It goes after the next one of its invoice.
    Reorder,
    /// It carries a wrong token.
    WrongToken,
    /// It carries none.
    MissingToken,
    /// Its body is cut off.
    Torn,
    /// Its body comes slowly.
    Slow,
    /// An endpoint answers with a fault that passes by itself.
    Api,
    /// A notification's token stands elsewhere.
    Presentation,
    /// Its sender gives up soon.
    GiveUp,
    /// No requisite is free for an invoice.
    NoRequisites,
    /// `updatedAt` is off at a change.
    ClockSkew,
    /// `updatedAt` stays at a change.
    SameInstant,
}

impl Chance {
    /// All of them, in the order in which they are shown. Whichever shows at a seed depends on its place: new ones at the end.
    pub(crate) const ALL: [Self; 14] = [
        Self::Lose,
        Self::Repeat,
        Self::Late,
        Self::Reorder,
        Self::WrongToken,
        Self::MissingToken,
        Self::Torn,
        Self::Slow,
        Self::Api,
        Self::Presentation,
        Self::GiveUp,
        Self::NoRequisites,
        Self::ClockSkew,
        Self::SameInstant,
    ];

    /// The word of the control listener and the pages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Lose => "lose",
            Self::Repeat => "repeat",
            Self::Late => "late",
            Self::Reorder => "reorder",
            Self::WrongToken => "wrong_token",
            Self::MissingToken => "missing_token",
            Self::Torn => "torn",
            Self::Slow => "slow",
            Self::Api => "api",
            Self::Presentation => "presentation",
            Self::GiveUp => "give_up",
            Self::NoRequisites => "no_requisites",
            Self::ClockSkew => "clock_skew",
            Self::SameInstant => "same_instant",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// What a rate is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RateOf {
    /// One of those that are set alone.
    One(Chance),
    /// What these endpoints answer instead of their own: a word of [`StandIn::by_word`], or that of any that passes.
    Answers(Vec<Endpoint>, &'static str),
}

impl RateOf {
    /// Reads the word of a [`Chance`], of an endpoint (`fetch`: it fails in a way that passes), or of an endpoint and an
    /// answer (`fetch.404`, `api.hang`; `api` is all four).
    pub(crate) fn parse(word: &str) -> Option<Self> {
        if let Some(chance) = Chance::parse(word) {
            return Some(Self::One(chance));
        }
        let (endpoint, answer) = match word.split_once('.') {
            None => (word, PASSING),
            Some((endpoint, answer)) => (endpoint, StandIn::known_word(answer)?),
        };
        let endpoints = match (endpoint, Endpoint::parse(endpoint)) {
            ("api", _) => Endpoint::ALL.to_vec(),
            (_, found) => vec![found?],
        };
        Some(Self::Answers(endpoints, answer))
    }
}

/// Of a hundred, for each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    ones: [u8; Chance::ALL.len()],
    /// By endpoint and the word of the answer.
    answers: BTreeMap<(Endpoint, &'static str), u8>,
}

impl Rates {
    /// So many of a hundred; more than a hundred is all.
    pub(crate) fn set(&mut self, what: Chance, percent: u8) {
        if let Some(place) = self.ones.get_mut(what as usize) {
            *place = percent.min(100);
        }
    }

    /// As [`Rates::set`], of whatever there is a rate of.
    pub(crate) fn set_of(&mut self, what: &RateOf, percent: u8) {
        match what {
            RateOf::One(chance) => self.set(*chance, percent),
            RateOf::Answers(endpoints, answer) => {
                for endpoint in endpoints {
                    if percent == 0 {
                        self.answers.remove(&(*endpoint, *answer));
                    } else {
                        self.answers.insert((*endpoint, *answer), percent.min(100));
                    }
                }
            }
        }
    }

    /// So many of a hundred.
    pub(crate) fn get(&self, what: Chance) -> u8 {
        self.ones.get(what as usize).copied().unwrap_or(0)
    }

    /// Every rate that is not zero, by its word.
    pub(crate) fn shown(&self) -> BTreeMap<String, u8> {
        let ones = Chance::ALL.into_iter();
        let ones = ones.map(|one| (one.word().to_owned(), self.get(one)));
        let answers = self.answers.iter().map(|((endpoint, answer), percent)| {
            let word = match *answer {
                PASSING => endpoint.word().to_owned(),
                answer => format!("{}.{answer}", endpoint.word()),
            };
            (word, *percent)
        });
        let all = ones.chain(answers);
        all.filter(|(_, percent)| *percent > 0).collect()
    }

    /// The number drawn for this kind when it shows. `what_of` names the thing it happens to.
    pub(crate) fn draw(&self, what: Chance, seed: u64, what_of: [u64; 2]) -> Option<u64> {
        draw(self.get(what), what as u64, seed, what_of)
    }

    /// The answer drawn for an endpoint.
    pub(crate) fn draw_answer(
        &self,
        endpoint: Endpoint,
        seed: u64,
        what_of: [u64; 2],
    ) -> Option<StandIn> {
        let own = self.answers.iter().filter(|((of, _), _)| *of == endpoint);
        let drawn = own.filter_map(|((_, answer), percent)| {
            let which = Dice::name(answer) ^ endpoint as u64;
            let number = draw(*percent, which, seed, what_of)?;
            StandIn::by_word(answer, number)
        });
        let any = || {
            let number = self.draw(Chance::Api, seed ^ endpoint as u64, what_of)?;
            Some(StandIn::passing(number))
        };
        { drawn }.next().or_else(any)
    }
}

fn draw(percent: u8, which: u64, seed: u64, [first, second]: [u64; 2]) -> Option<u64> {
    if percent == 0 {
        return None;
    }
    let mut dice = Dice::of(seed, [which, first, second]);
    (dice.roll() % 100 < u64::from(percent)).then(|| dice.roll())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_read_back() {
        for chance in Chance::ALL {
            assert_eq!(RateOf::parse(chance.word()), Some(RateOf::One(chance)));
        }
        for word in [
            "loose",
            "",
            "fetch.",
            "fetch.200",
            "shop.404",
            "api.",
            ".hang",
        ] {
            assert_eq!(RateOf::parse(word), None, "`{word}`");
        }
        let mut rates = Rates::default();
        for word in ["torn", "fetch", "create.hang", "api.404"] {
            rates.set_of(&RateOf::parse(word).expect(word), 5);
        }
        let shown: Vec<String> = rates.shown().into_keys().collect();
        let wanted = "create.404 create.hang fetch fetch.404 login.404 token.404 torn";
        assert_eq!(shown.join(" "), wanted);
        for word in ["torn", "fetch", "create.hang", "api.404"] {
            rates.set_of(&RateOf::parse(word).expect(word), 0);
        }
        assert_eq!(rates, Rates::default());
    }

    #[test]
    fn so_many_of_a_hundred_and_the_same_ones_for_the_same_seed() {
        let mut rates = Rates::default();
        rates.set(Chance::Lose, 20);
        let drawn = |seed| -> Vec<u64> {
            let hit = |number: &u64| rates.draw(Chance::Lose, seed, [*number, 1]).is_some();
            (0..1_000).filter(hit).collect()
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert!((150..250).contains(&drawn(7).len()), "{}", drawn(7).len());
        assert_eq!(rates.draw(Chance::Torn, 7, [1, 1]), None);
        rates.set(Chance::Torn, 255);
        assert!((0..100).all(|n| rates.draw(Chance::Torn, 7, [n, 1]).is_some()));
    }

    #[test]
    fn each_endpoint_has_its_own_chance_of_each_answer() {
        let mut rates = Rates::default();
        let count = |rates: &Rates, endpoint| {
            let all = (0..400).filter_map(|n| rates.draw_answer(endpoint, 3, [n, 1]));
            all.fold(BTreeMap::<String, u32>::new(), |mut counts, one| {
                *counts.entry(one.word()).or_default() += 1;
                counts
            })
        };
        rates.set_of(&RateOf::parse("fetch.404").expect("a rate"), 30);
        rates.set_of(&RateOf::parse("fetch.hang").expect("a rate"), 30);
        assert_eq!(count(&rates, Endpoint::Create), BTreeMap::new());
        let fetch = count(&rates, Endpoint::Fetch);
        assert_eq!(fetch.keys().collect::<Vec<_>>(), ["404", "hang"]);
        assert!(fetch.values().all(|n| (50..180).contains(n)), "{fetch:?}");
        rates.set_of(&RateOf::parse("create").expect("a rate"), 100);
        let create = count(&rates, Endpoint::Create);
        assert!(
            create.len() >= 5 && create.values().sum::<u32>() == 400,
            "{create:?}"
        );
    }
}
