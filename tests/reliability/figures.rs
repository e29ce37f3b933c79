//! What is read of a process, and the few numbers that are made of many.

use std::fs;
use std::time::Duration;

use crate::harness::World;

/// Whether the daemon that was started still runs.
#[track_caller]
pub(crate) fn serves(world: &World) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", world.serve_pid()));
    // One that ended waits for whoever started it.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Processor time of a process so far.
#[track_caller]
pub(crate) fn processor(pid: u32) -> Duration {
    /// Ticks a second, on every Linux that tells them.
    const TICKS: u64 = 100;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    // The name in parentheses may hold anything.
    let (_, rest) = text.rsplit_once(") ").expect("a name");
    let ticks = rest.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Memory of a process that is really there, KiB.
#[track_caller]
pub(crate) fn resident_kib(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|number| number.parse().ok()).expect("KiB")
}

/// The p-th percentile; zero of nothing.
pub(crate) fn percentile(times: &[Duration], p: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = (times.len() * p).div_ceil(100).saturating_sub(1);
    times.get(at).copied().unwrap_or_default()
}

/// Seconds with two decimals.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f32())
}
