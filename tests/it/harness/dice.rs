//! Chance that can be repeated, and the numbers a person may give a scenario by variables.

use std::env;
use std::hash::{BuildHasher as _, RandomState};

/// `SplitMix64`: enough to shuffle with, and the same everywhere.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Throws the same numbers for the same seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `end - 1`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let end = u64::try_from(end).expect("64 bits");
        usize::try_from(mixed % end).expect("below a usize")
    }
}

/// The number in a variable of this test process.
#[track_caller]
pub(crate) fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is no number")),
    )
}

/// How often something is to be done, if this variable says so.
#[track_caller]
pub(crate) fn wanted(variable: &str) -> Option<usize> {
    number(variable).map(|number| usize::try_from(number).expect("a count"))
}

/// How often something is done: the number in this variable, or `usually`.
#[track_caller]
pub(crate) fn count(variable: &str, usually: usize) -> usize {
    wanted(variable).unwrap_or(usually)
}

/// The seed `TILLD_SEED` asks for, or one nobody has seen before.
#[track_caller]
pub(crate) fn seed() -> u64 {
    number("TILLD_SEED").unwrap_or_else(|| RandomState::new().hash_one(0))
}
