//! What a process costs, as the kernel tells it under /proc. All functions give `None` for a process that is gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The kernel counts processor time for user space in hundredths of a second, on every architecture Linux still has.
pub(super) const TICK: Duration = Duration::from_millis(10);

/// Memory of a process, KiB.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    /// Pages it has in memory, shared ones included.
    pub(crate) rss_kib: u64,
    /// The same with each shared page divided among those who share it.
    pub(crate) pss_kib: u64,
}

/// Processor time of the threads that live, user and system together, by the scheduler's own clock: exact also for
/// what costs little.
pub(crate) fn ran(pid: u32) -> Option<Duration> {
    let mut sum = 0;
    for thread in threads(pid)? {
        // One that ended meanwhile has no file any more.
        let Ok(text) = fs::read_to_string(thread.join("schedstat")) else {
            continue;
        };
        sum += number(text.split(' ').next()?)?;
    }
    Some(Duration::from_nanos(sum))
}

/// What the living threads ran since then, those that began since as well.
pub(crate) fn ran_since(before: &BTreeMap<PathBuf, (Duration, u64)>, pid: u32) -> Option<Duration> {
    let each = by_thread(pid)?.into_iter().map(|(thread, (ran, _waits))| {
        let earlier = before.get(&thread).map(|(ran, _waits)| *ran);
        ran.saturating_sub(earlier.unwrap_or_default())
    });
    Some(each.sum())
}

/// What each living thread ran and how often it waited, by its number. A total over all of them would go back when one
/// ends.
pub(crate) fn by_thread(pid: u32) -> Option<BTreeMap<PathBuf, (Duration, u64)>> {
    let mut found = BTreeMap::new();
    for thread in threads(pid)? {
        let (Ok(schedstat), Ok(status)) = (
            fs::read_to_string(thread.join("schedstat")),
            fs::read_to_string(thread.join("status")),
        ) else {
            continue;
        };
        let ran = Duration::from_nanos(number(schedstat.split(' ').next()?)?);
        let waits = field(&status, "voluntary_ctxt_switches:")?;
        found.insert(thread, (ran, waits));
    }
    Some(found)
}

/// What it has in memory.
pub(crate) fn memory(pid: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(Memory {
        rss_kib: field(&status, "VmRSS:")?,
        pss_kib: field(&rollup, "Pss:")?,
    })
}

/// Processor time of this process and of all that it started, however deep, and of those among them that have ended.
pub(super) fn cpu_with_descendants() -> Duration {
    let mut by_parent: BTreeMap<u32, Vec<(u32, Duration)>> = BTreeMap::new();
    let own = std::process::id();
    let mut sum = Duration::ZERO;
    for entry in fs::read_dir("/proc").expect("it is mounted").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if let Some(times) = Times::of(pid) {
            let all = times.own + times.waited_for;
            by_parent.entry(times.parent).or_default().push((pid, all));
            if pid == own {
                sum += all;
            }
        }
    }
    let mut left = vec![own];
    while let Some(parent) = left.pop() {
        for (pid, times) in by_parent.remove(&parent).unwrap_or_default() {
            sum += times;
            left.push(pid);
        }
    }
    sum
}

/// What /proc/PID/stat tells.
struct Times {
    parent: u32,
    own: Duration,
    /// Of children that ended and were waited for, with theirs.
    waited_for: Duration,
}

impl Times {
    fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; what follows it are numbers, from the third field on.
        let (_, rest) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| -> Option<Duration> {
            let ticks = number(fields.get(at - 3)?)?;
            Some(TICK * u32::try_from(ticks).ok()?)
        };
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(14)? + ticks(15)?,
            waited_for: ticks(16)? + ticks(17)?,
        })
    }
}

fn threads(pid: u32) -> Option<Vec<PathBuf>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    Some(entries.flatten().map(|entry| entry.path()).collect())
}

/// The number behind a name at the start of a line.
pub(super) fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    number(line.split_whitespace().next()?)
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
