//! What is read of a process, and the few numbers that are made of many.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::harness::{World, head};
use crate::load::once;

/// Whether the daemon that was started still runs.
#[track_caller]
pub(crate) fn serves(world: &World) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", world.serve_pid()));
    // One that ended waits for whoever started it.
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// What the scheduler says of each thread of a process: nanoseconds it ran, and waited to run.
#[derive(Clone, Debug)]
pub(crate) struct Scheduled {
    at: Instant,
    threads: BTreeMap<OsString, [u64; 2]>,
}

impl Scheduled {
    #[track_caller]
    pub(crate) fn of(pid: u32) -> Self {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let of_thread = |task: fs::DirEntry| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut times = text.split(' ').map_while(|time| time.parse().ok());
            Some((task.file_name(), [times.next()?, times.next()?]))
        };
        Self {
            at: Instant::now(),
            threads: tasks.flatten().filter_map(of_thread).collect(),
        }
    }

    /// Percent of a processor that its threads took of what they could have had since `before`: on a busy machine one that
    /// never rests is seen as such although it seldom runs.
    pub(crate) fn busy_since(&self, before: &Self) -> u128 {
        let wall = (self.at - before.at).as_nanos();
        let shares = self.threads.iter().filter_map(|(name, [ran, waited])| {
            let [ran_before, waited_before] = before.threads.get(name)?;
            let ran = u128::from(ran.saturating_sub(*ran_before));
            let waited = u128::from(waited.saturating_sub(*waited_before));
            Some(ran * 100 / wall.saturating_sub(waited).max(wall / 100))
        });
        shares.sum()
    }
}

/// Memory of a process that is really there, KiB.
#[track_caller]
pub(crate) fn resident_kib(pid: u32) -> u64 {
    of_status(pid, "VmRSS:")
}

/// The most of it that there ever was, KiB.
#[track_caller]
pub(crate) fn most_kib(pid: u32) -> u64 {
    of_status(pid, "VmHWM:")
}

/// That part of it that no file stands behind, KiB.
#[track_caller]
pub(crate) fn anonymous_kib(pid: u32) -> u64 {
    of_status(pid, "RssAnon:")
}

#[track_caller]
fn of_status(pid: u32, name: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|number| number.parse().ok()).expect("KiB")
}

/// What a process has open: what of the ledger, and what else.
#[track_caller]
pub(crate) fn open_files(pid: u32) -> (usize, usize) {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    let names = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let (of_ledger, others): (Vec<_>, Vec<_>) =
        names.partition(|name| name.to_string_lossy().contains("/ledger.db"));
    (of_ledger.len(), others.len())
}

/// What `/healthz` says, if it answers.
pub(crate) fn health(admin: SocketAddr) -> Option<u16> {
    let host = admin.to_string();
    once(admin, &head(&host, "GET", "/healthz", &[], None))
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
