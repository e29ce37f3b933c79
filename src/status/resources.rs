//! What this process may still take of the machine: descriptors, threads and processes. Relies on `/proc` and the control
//! groups; what cannot be read needs nobody. Promises an alert while something is left, since what cannot be started then cannot
//! say so either.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, geteuid, getrlimit};

use super::reason::Need;

/// An alert from this part of a limit on, per cent.
const HIGH: u64 = 80;
/// Where control groups lie: the second version, and the controller of the first.
const GROUPS: [(&str, &str); 2] = [("0::", "/sys/fs/cgroup"), (":pids:", "/sys/fs/cgroup/pids")];

/// A part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    used: u64,
    limit: u64,
}

impl Share {
    const fn is_high(self) -> bool {
        self.used.saturating_mul(100) >= self.limit.saturating_mul(HIGH)
    }
}

/// What needs an operator.
pub(crate) fn of_this_process() -> Vec<Need> {
    let descriptors = descriptors().filter(|share| share.is_high());
    let descriptors = descriptors.map(|share| Need::descriptors_low(share.used, share.limit));
    let tasks = tasks().into_iter().find(|(share, _)| share.is_high());
    let tasks = tasks.map(|(share, what)| Need::processes_low(share.used, share.limit, what));
    descriptors.into_iter().chain(tasks).collect()
}

fn descriptors() -> Option<Share> {
    let limit = getrlimit(Resource::Nofile).current?;
    let used = fs::read_dir("/proc/self/fd").ok()?.count();
    let used = u64::try_from(used).unwrap_or(u64::MAX);
    Some(Share { used, limit })
}

/// Threads and processes by each limit there is, and what sets it.
fn tasks() -> Vec<(Share, &'static str)> {
    let group = groups().into_iter().filter_map(|group| of_group(&group));
    let mut all: Vec<_> = group
        .map(|share| {
            (
                share,
                "`TasksMax=` of the unit, or `pids.max` of its control group",
            )
        })
        .collect();
    all.extend(of_user().map(|share| (share, "`LimitNPROC=` of the unit, or `ulimit -u`")));
    all.extend(of_machine().map(|share| (share, "`kernel.pid_max`")));
    all
}

/// The control groups this process is in, up to the highest.
fn groups() -> Vec<PathBuf> {
    let listed = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut found = Vec::new();
    for line in listed.lines() {
        for (mark, root) in GROUPS {
            if let Some((_, path)) = line.split_once(mark) {
                let own = Path::new(root).join(path.trim_start_matches('/'));
                let above = own.ancestors().take_while(|path| path.starts_with(root));
                found.extend(above.map(Path::to_owned));
            }
        }
    }
    found
}

fn of_group(group: &Path) -> Option<Share> {
    let number = |name: &str| {
        let text = fs::read_to_string(group.join(name)).ok()?;
        text.trim().parse().ok()
    };
    // `max` is no number.
    let limit = number("pids.max")?;
    let used = number("pids.current")?;
    Some(Share { used, limit })
}

/// Root has no such limit.
fn of_user() -> Option<Share> {
    let limit = getrlimit(Resource::Nproc).current?;
    let own = geteuid().as_raw();
    if own == 0 {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?;
    let threads = processes.filter_map(|process| {
        let path = process.ok()?.path().join("status");
        threads_of(&fs::read_to_string(path).ok()?, own)
    });
    let used = threads.sum();
    Some(Share { used, limit })
}

/// How many threads a process of this user has.
fn threads_of(status: &str, user: u32) -> Option<u64> {
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
    };
    let is_its = field("Uid:")?.parse::<u32>().ok()? == user;
    is_its.then(|| field("Threads:")?.parse().ok()).flatten()
}

fn of_machine() -> Option<Share> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    let (_running, all) = load.split(' ').nth(3)?.split_once('/')?;
    let limit = fs::read_to_string("/proc/sys/kernel/pid_max").ok()?;
    Some(Share {
        used: all.parse().ok()?,
        limit: limit.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_comes_while_something_is_left() {
        for (used, limit, is_high) in [(79, 100, false), (80, 100, true), (0, 0, true)] {
            assert_eq!(Share { used, limit }.is_high(), is_high, "{used} {limit}");
        }
    }

    #[test]
    fn the_threads_of_one_user_are_counted() {
        let status = "Name:\tx\nUid:\t7\t8\t7\t7\nThreads:\t12\n";
        assert_eq!(threads_of(status, 7), Some(12));
        assert_eq!(threads_of(status, 8), None);
        assert_eq!(threads_of("", 7), None);
    }

    #[test]
    fn a_group_without_a_limit_has_none() {
        let group = tempfile::tempdir().expect("a directory");
        let write = |name, text| fs::write(group.path().join(name), text).expect("written");
        write("pids.current", "9\n");
        write("pids.max", "max\n");
        assert_eq!(of_group(group.path()), None);
        write("pids.max", "10\n");
        let share = Share { used: 9, limit: 10 };
        assert_eq!(of_group(group.path()), Some(share));
    }

    #[test]
    fn what_this_process_has_can_be_read() {
        assert!(descriptors().is_some_and(|share| share.used > 0));
        assert!(of_machine().is_some_and(|share| share.used > 0));
    }
}
