//! Whether a process syncs its files, as the kernel sees it: its calls are counted by strace while it works.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long strace may take to attach.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// How often the process called fsync or fdatasync during `work`. `None`, and `work` not done, where strace is not installed
/// or may not attach. Leaves a file in `directory`.
pub(crate) fn during<T>(pid: u32, directory: &Path, work: impl FnOnce() -> T) -> Option<(u64, T)> {
    let out = directory.join("syncs");
    let mut strace = Command::new("strace")
        .args(["-f", "-c", "-e", "trace=fsync,fdatasync", "-p"])
        .arg(pid.to_string())
        .arg("-o")
        .arg(&out)
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let began = Instant::now();
    let mut attached = false;
    while !attached && began.elapsed() < PATIENCE && matches!(strace.try_wait(), Ok(None)) {
        thread::sleep(LOOK_EVERY);
        attached = is_traced(pid);
    }
    let result = attached.then(work);
    // Where it may have ended already, it is only waited for.
    let _ended = kill_process(Pid::from_child(&strace), Signal::INT).is_err();
    strace.wait().expect("its parent");
    let table = fs::read_to_string(out).unwrap_or_default();
    Some((calls(&table), result?))
}

/// Whether all of its threads are.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    })
}

/// The sum of the column `calls`: `% time, seconds, usecs/call, calls, [errors,] syscall`.
fn calls(table: &str) -> u64 {
    let of = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_sync = words.last().is_some_and(|name| name.ends_with("sync"));
        words
            .get(3)
            .filter(|_| is_sync)
            .and_then(|calls| calls.parse::<u64>().ok())
    };
    table.lines().filter_map(of).sum()
}
