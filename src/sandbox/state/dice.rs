//! Where the sandbox's ids, codes and tokens come from: a seeded splitmix64, so that one seed replays one run.
//! For the imitation service alone. Nothing that guards money may be made here; that is what `entropy` is for.

/// Consonants without vowels or look-alikes, the user-code alphabet of RFC 8628 section 6.1.
const CODE_ALPHABET: &str = "BCDFGHJKLMNPQRSTVWXZ";
/// Letters and digits, for tokens.
const TOKEN_ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A seeded generator. The same seed gives the same ids in the same order.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Starts from a seed. Any number is a good seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator of its own for one thing of many, named by numbers.
    pub(crate) fn of(seed: u64, names: [u64; 3]) -> Self {
        let mut dice = Self(seed);
        for name in names {
            dice.0 = dice.roll() ^ name;
        }
        dice
    }

    /// A number for a text, the same each time: FNV-1a, which is no secret and needs none.
    pub(crate) fn name(text: &str) -> u64 {
        text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
    }

    /// The next 64 bits (splitmix64, Steele, Lea and Flood 2014).
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn letters(&mut self, alphabet: &str, count: usize) -> String {
        let sides = u64::try_from(alphabet.len()).unwrap_or(1).max(1);
        (0..count)
            .filter_map(|_| {
                let side = usize::try_from(self.roll() % sides).ok()?;
                alphabet.as_bytes().get(side).copied().map(char::from)
            })
            .collect()
    }

    /// A user code of contract 2.1: two groups of four letters joined by a hyphen.
    pub(crate) fn user_code(&mut self) -> String {
        let (left, right) = (
            self.letters(CODE_ALPHABET, 4),
            self.letters(CODE_ALPHABET, 4),
        );
        format!("{left}-{right}")
    }

    /// `count` letters and digits.
    pub(crate) fn token(&mut self, count: usize) -> String {
        self.letters(TOKEN_ALPHABET, count)
    }

    /// 128 bits in the usual grouping of a UUID, version 4.
    pub(crate) fn uuid(&mut self) -> String {
        let bits = (u128::from(self.roll()) << 64) | u128::from(self.roll());
        uuid::Builder::from_random_bytes(bits.to_be_bytes())
            .into_uuid()
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_replays_one_run() {
        let run = |seed| {
            let mut dice = Dice::new(seed);
            [dice.user_code(), dice.token(24), dice.uuid()]
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn a_user_code_is_two_groups_of_four_unmistakable_letters() {
        let mut dice = Dice::new(1);
        for _ in 0..200 {
            let code = dice.user_code();
            let (left, right) = code.split_once('-').expect("a hyphen");
            assert!(
                left.len() == 4
                    && right.len() == 4
                    && code.chars().all(|c| c == '-' || CODE_ALPHABET.contains(c)),
                "{code}"
            );
        }
    }
}
