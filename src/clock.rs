//! The only place that reads the wall clock. Everything pure takes the time as an argument; nothing orders the
//! service's claims by this clock, it only dates rows and due times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01 UTC by the machine's clock. A clock set before 1970 reads as 0.
pub(crate) fn wall_ms() -> i64 {
    i64::try_from(since_1970().as_millis()).unwrap_or(i64::MAX)
}

/// The same in microseconds, for log lines.
pub(crate) fn wall_us() -> u64 {
    u64::try_from(since_1970().as_micros()).unwrap_or(u64::MAX)
}

fn since_1970() -> Duration {
    let now = SystemTime::now();
    now.duration_since(UNIX_EPOCH).unwrap_or_default()
}
