//! The pauses between the tries of a create that waits for requisites. Pure: the time left, the service's wish and the
//! entropy come in.

use std::time::Duration;

/// Pauses before the second try and the following ones, seconds; the last holds for all further ones. Requisites come
/// free when other customers pay or give up, which takes them a minute or more: asking oftener only spends the service's
/// patience, and a customer looks at a waiting page meanwhile.
const GROWING_S: [u64; 5] = [1, 2, 4, 8, 15];

/// What is left of the time must have room for this much distance to the try before.
const SHORTEST: Duration = Duration::from_millis(500);

/// How many tries there were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses(usize);

impl Pauses {
    /// The pause before the next try; `None` when there is to be none. The last try comes when the time is over, so that
    /// none of it is given away. The service's wish is kept in full, and up to a quarter is put on top of either, so that
    /// many creates that were refused at once do not come back at once.
    pub(super) fn next(
        &mut self,
        wish: Duration,
        left: Duration,
        entropy: u16,
    ) -> Option<Duration> {
        if left < SHORTEST || left < wish {
            return None;
        }
        let at = self.0.min(GROWING_S.len() - 1);
        self.0 += 1;
        let growing = Duration::from_secs(GROWING_S.get(at).copied().unwrap_or_default());
        let pause = growing.max(wish);
        let more = pause / 4 * u32::from(entropy) / u32::from(u16::MAX);
        Some((pause + more).min(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses of a create that is refused at once each time, in milliseconds.
    fn pauses(wait_s: u64, wish_s: u64, entropy: u16) -> Vec<u128> {
        let (mut pauses, mut left) = (Pauses::default(), Duration::from_secs(wait_s));
        let mut all = Vec::new();
        while let Some(pause) = pauses.next(Duration::from_secs(wish_s), left, entropy) {
            left -= pause;
            all.push(pause.as_millis());
        }
        all
    }

    #[test]
    fn they_grow_and_the_last_try_comes_when_the_time_is_over() {
        for (wait_s, wish_s, entropy, wanted) in [
            (0, 0, 0, vec![]),
            (1, 0, 0, vec![1_000]),
            (5, 0, 0, vec![1_000, 2_000, 2_000]),
            (
                47,
                0,
                0,
                vec![1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 2_000],
            ),
            (3, 0, u16::MAX, vec![1_250, 1_750]),
            // The service's wish is never cut short.
            (20, 7, 0, vec![7_000, 7_000]),
            (20, 21, 0, vec![]),
            (20, 8, u16::MAX, vec![10_000, 10_000]),
        ] {
            let all = pauses(wait_s, wish_s, entropy);
            assert_eq!(all, wanted, "{wait_s} s, {wish_s} s, {entropy}");
        }
    }
}
