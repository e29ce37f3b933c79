//! Seeded dice: one seed, one run.

/// A splitmix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Starts from a seed. Any number is a good seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The lowest bits of a number.
    pub(super) fn short(&mut self) -> u16 {
        let [low, high, ..] = self.roll().to_le_bytes();
        u16::from_le_bytes([low, high])
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = u64::try_from(high - low + 1).expect("low is not above high");
        low + i64::try_from(self.roll() % span).expect("below the span")
    }

    /// True so many times in a thousand.
    pub(super) fn chance(&mut self, permille: u32) -> bool {
        permille > 0 && self.roll() % 1_000 < u64::from(permille)
    }

    /// One of these.
    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let last = i64::try_from(from.len()).expect("a short list") - 1;
        let at = usize::try_from(self.between(0, last)).expect("not negative");
        from.get(at).expect("within the list").clone()
    }

    /// Sixteen bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.roll().to_le_bytes()[0])
    }
}
