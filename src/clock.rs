//! The only place that reads the wall clock. Everything pure takes the time as an argument; nothing orders the
//! service's claims by this clock, it only dates rows and due times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds since 1970-01-01 UTC by the machine's clock. A clock set before 1970 reads as 0.
pub(crate) fn wall_ms() -> i64 {
    i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX)
}

/// The same in microseconds, for log lines.
pub(crate) fn wall_us() -> u64 {
    u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX)
}

/// A step of the wall clock smaller than this is its ordinary correction, milliseconds.
pub(crate) const STEP_MS: i64 = 1_000;

/// Both clocks at one moment: the one that people set, and the one that only goes on, while the machine sleeps too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// As [`wall_ms`].
    pub wall_ms: i64,
    /// Since the machine was started, milliseconds.
    pub boot_ms: i64,
}

impl Reading {
    /// Now.
    pub(crate) fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        Self {
            wall_ms: wall_ms(),
            boot_ms: boot.tv_sec.saturating_mul(1_000) + boot.tv_nsec / 1_000_000,
        }
    }

    /// By how much the wall clock was set since an earlier reading, milliseconds; less than 0 for back.
    pub(crate) const fn set_since(self, earlier: Self) -> i64 {
        let wall = self.wall_ms.saturating_sub(earlier.wall_ms);
        wall.saturating_sub(self.boot_ms.saturating_sub(earlier.boot_ms))
    }
}

fn since_1970() -> Duration {
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}
