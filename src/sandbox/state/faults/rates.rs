//! Faults by chance: so many of a hundred. Which ones they are depends on the seed, the invoice and the number of its
//! notification alone, never on what happened at the same time elsewhere: one seed replays one run.

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
}

impl Chance {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 9] = [
        Self::Lose,
        Self::Repeat,
        Self::Late,
        Self::Reorder,
        Self::WrongToken,
        Self::MissingToken,
        Self::Torn,
        Self::Slow,
        Self::Api,
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
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.word() == word)
    }
}

/// Of a hundred, for each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates([u8; Chance::ALL.len()]);

impl Rates {
    /// So many of a hundred; more than a hundred is all.
    pub(crate) fn set(&mut self, what: Chance, percent: u8) {
        if let Some(place) = self.0.get_mut(what as usize) {
            *place = percent.min(100);
        }
    }

    /// So many of a hundred.
    pub(crate) fn get(&self, what: Chance) -> u8 {
        self.0.get(what as usize).copied().unwrap_or(0)
    }

    /// The number drawn for this kind when it shows. `what_of` names the thing it happens to.
    pub(crate) fn draw(&self, what: Chance, seed: u64, what_of: [u64; 2]) -> Option<u64> {
        let percent = self.get(what);
        if percent == 0 {
            return None;
        }
        let [first, second] = what_of;
        let mut dice = Dice::of(seed, [what as u64, first, second]);
        (dice.roll() % 100 < u64::from(percent)).then(|| dice.roll())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_read_back() {
        for chance in Chance::ALL {
            assert_eq!(Chance::parse(chance.word()), Some(chance));
        }
        assert_eq!(Chance::parse("loose"), None);
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
}
