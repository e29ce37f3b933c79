//! When a loop last turned. The loop says so at each turn, and whoever watches it asks how long ago that was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// The turns of one loop. Cloned freely; made, it counts as just turned.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Turned>);

#[derive(Debug)]
struct Turned {
    /// What the other is counted from.
    made: Instant,
    /// The last turn, milliseconds.
    at_ms: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self(Arc::new(Turned {
            made: Instant::now(),
            at_ms: AtomicU64::new(0),
        }))
    }
}

impl Pulse {
    /// The loop turns. Cheap enough for each turn of any.
    pub(crate) fn turn(&self) {
        // A loop that turned for more than 500 million years is due for a rest.
        let at_ms = u64::try_from(self.0.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.at_ms.store(at_ms, Ordering::Relaxed);
    }

    /// How long ago that was.
    pub(crate) fn still_for(&self) -> Duration {
        let at = Duration::from_millis(self.0.at_ms.load(Ordering::Relaxed));
        self.0.made.elapsed().saturating_sub(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_stands_still_from_the_last_turn_on() {
        let pulse = Pulse::default();
        let (seen, second) = (pulse.clone(), Duration::from_secs(1));
        tokio::time::sleep(second).await;
        assert_eq!(seen.still_for(), second);
        pulse.turn();
        assert_eq!(seen.still_for(), Duration::ZERO);
        tokio::time::sleep(second * 2).await;
        assert_eq!(seen.still_for(), second * 2);
    }
}
