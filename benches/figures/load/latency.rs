//! How long answers took: counts in buckets whose width grows with the duration, so that any share of them can be named
//! with an error below one per cent and in a fixed, small space. The longest is kept exactly.

use std::time::Duration;

/// Buckets in which a doubling is divided: each is at most 1/128 as wide as the durations in it.
const STEPS: u64 = 128;
/// Bits of [`STEPS`].
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// The longest duration that is told from longer ones, as a power of two of nanoseconds: 18 minutes, longer than any run.
const LONGEST_BITS: u32 = 40;
/// All buckets.
const BUCKETS: usize = ((LONGEST_BITS - STEP_BITS + 1) as usize) << STEP_BITS;

/// Many durations.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    counts: Vec<u64>,
    count: u64,
    longest: u64,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS],
            count: 0,
            longest: 0,
        }
    }
}

impl Latency {
    /// Adds one.
    pub(crate) fn add(&mut self, duration: Duration) {
        let most = (1 << LONGEST_BITS) - 1;
        let nanos = u64::try_from(duration.as_nanos()).map_or(most, |nanos| nanos.min(most));
        *self.counts.get_mut(bucket(nanos)).expect("below the most") += 1;
        self.count += 1;
        self.longest = self.longest.max(nanos);
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// The duration that this share of them did not exceed: `0.99` for the 99th of 100. Zero when there are none.
    pub(crate) fn at(&self, share: f64) -> Duration {
        let rank = rank(self.count, share);
        let mut passed = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= rank && *count > 0 {
                return Duration::from_nanos(middle(bucket).min(self.longest));
            }
        }
        self.longest()
    }

    /// The longest.
    pub(crate) const fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count; off by one changes nothing that can be seen"
)]
fn rank(count: u64, share: f64) -> u64 {
    ((count as f64 * share).ceil() as u64).clamp(1, count.max(1))
}

/// The bucket of a duration: below [`STEPS`] each nanosecond has its own, from there each doubling has [`STEPS`].
fn bucket(nanos: u64) -> usize {
    let shift = (u64::BITS - nanos.leading_zeros()).saturating_sub(STEP_BITS + 1);
    let bucket = u64::from(shift) * STEPS + (nanos >> shift);
    usize::try_from(bucket).expect("few buckets")
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / STEPS).saturating_sub(1);
    ((bucket - shift * STEPS) << shift) + ((1 << shift) >> 1)
}

/// Fails when a share is named with an error of more than one per cent. Benches have no tests, so this runs with the load's
/// own check.
pub(super) fn check() {
    for step in 1..60_u32 {
        let nanos = 1.5_f64.powi(i32::try_from(step).expect("small"));
        let wanted = Duration::from_secs_f64(nanos / 1e9);
        let mut latency = Latency::default();
        latency.add(wanted);
        latency.add(Duration::from_secs(100_000));
        let found = latency.at(0.5).as_secs_f64();
        let off = (found - wanted.as_secs_f64()).abs();
        assert!(
            off <= wanted.as_secs_f64() * 0.01,
            "{wanted:?} was named {found}"
        );
    }
}
