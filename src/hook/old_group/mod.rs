//! What an earlier daemon left running: waiting for the end of one old run, or bringing it about, so that the same
//! delivery never runs twice at once (A41).
//!
//! An old run is its whole process group, whose number is the pid of its leader: a script that waits for a program is not
//! over while that program works, nor when the script alone has died. Nobody keeps the leader from being reaped here, so
//! the number alone proves nothing. It is the old group's as long as no other process has it as its pid, since Linux gives
//! a number to nobody while a group still bears it; and only who started no earlier than the leader can belong to it.
//! What is signalled is held by a pidfd that was opened before all this was looked at. A descendant that left the group
//! (`setsid`) lives on.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getpgrp, pidfd_open, pidfd_send_signal};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::group::{KILL_WAIT, LOOK_EVERY};
use super::members::{Entry, members};
use crate::process_mark::ProcessMark;

/// How often the process table is read while a group is being ended: whoever was started meanwhile is told as well.
const SEARCH_EVERY: Duration = Duration::from_millis(200);

/// Sees to it that nothing of this run, one of an earlier daemon, runs any more: waits up to `patience` for it to end by
/// itself, then TERM, after `grace` KILL. An error when it cannot be watched: ask again.
pub async fn settle_old_child(
    leader: &ProcessMark,
    patience: Duration,
    grace: Duration,
) -> io::Result<()> {
    if let Ok(gone) = timeout(patience, ended(leader)).await {
        return gone;
    }
    for (signal, name, wait) in [
        (Signal::TERM, "SIGTERM", grace),
        (Signal::KILL, "SIGKILL", KILL_WAIT),
    ] {
        tracing::warn!(
            pid = leader.pid,
            "ending a hook of an earlier daemon with {name}"
        );
        if let Ok(gone) = timeout(wait, ended_by(leader, signal)).await {
            return gone;
        }
    }
    tracing::error!(
        pid = leader.pid,
        "a hook of an earlier daemon is still there {KILL_WAIT:?} after SIGKILL"
    );
    Ok(())
}

/// Resolves when nobody is left.
async fn ended(leader: &ProcessMark) -> io::Result<()> {
    loop {
        let left = left_of(leader).await?;
        if left.is_empty() {
            return Ok(());
        }
        // To look at these is cheap; whom they started meanwhile is found when they are gone.
        all_ended(&left).await;
    }
}

/// Sends the signal to everybody once, and resolves when nobody is left.
async fn ended_by(leader: &ProcessMark, signal: Signal) -> io::Result<()> {
    let mut told: Vec<Held> = Vec::new();
    loop {
        let left = left_of(leader).await?;
        if left.is_empty() {
            return Ok(());
        }
        for one in left {
            if !told.iter().any(|other| other.is_same(&one)) {
                one.signal(signal);
                told.push(one);
            }
        }
        told.retain(Held::is_running);
        // Not all in time: the next look tells who came.
        timeout(SEARCH_EVERY, all_ended(&told))
            .await
            .unwrap_or_default();
    }
}

async fn all_ended(held: &[Held]) {
    while held.iter().any(Held::is_running) {
        sleep(LOOK_EVERY).await;
    }
}

/// A process that is held by a descriptor: a signal sent through it reaches this process and no later one with its number.
#[derive(Debug)]
struct Held {
    entry: Entry,
    pidfd: OwnedFd,
}

impl Held {
    /// Takes hold of a running process; `None` when there is none.
    fn take(pid: i32) -> io::Result<Option<Self>> {
        let Some(raw) = Pid::from_raw(pid.max(0)) else {
            return Ok(None);
        };
        let pidfd = match pidfd_open(raw, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            Err(Errno::SRCH) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Opened first, read then: the entry is of what the descriptor stands for, or that has ended.
        let entry = Entry::of(pid)?.filter(|entry| entry.runs);
        Ok(entry.map(|entry| Self { entry, pidfd }))
    }

    fn is_same(&self, other: &Self) -> bool {
        let id = |held: &Self| (held.entry.pid, held.entry.start_ticks);
        id(self) == id(other)
    }

    /// True also when it cannot be known.
    fn is_running(&self) -> bool {
        Entry::of(self.entry.pid).map_or(true, |now| {
            now.is_some_and(|now| now.runs && now.start_ticks == self.entry.start_ticks)
        })
    }

    fn signal(&self, signal: Signal) {
        // What may not be signalled (a set-user-id program) is not ours to end.
        if let Err(error) = pidfd_send_signal(&self.pidfd, signal) {
            tracing::debug!(pid = self.entry.pid, error = %error, "could not signal it");
        }
    }
}

/// Everybody who is left of the run.
async fn left_of(leader: &ProcessMark) -> io::Result<Vec<Held>> {
    let leader = leader.clone();
    spawn_blocking(move || find_left(&leader, &ProcessMark::own().boot_id))
        .await
        .map_err(io::Error::other)?
}

/// Blocks. `boot_id` is that of now: after a reboot nothing is left.
fn find_left(leader: &ProcessMark, boot_id: &str) -> io::Result<Vec<Held>> {
    let group = leader.pid;
    // This process belongs to no hook: where it bears the number, the number is another group's.
    if group <= 0 || leader.boot_id != boot_id || getpgrp().as_raw_pid() == group {
        return Ok(Vec::new());
    }
    let is_leader = |entry: &Entry| entry.pid == group && entry.start_ticks == leader.start_ticks;
    let is_left = |entry: &Entry| {
        is_leader(entry) || (entry.group == group && entry.start_ticks >= leader.start_ticks)
    };
    let mut left = Vec::new();
    // The leader on its own account: it may have joined another group.
    let pids = members(group)?.into_iter().map(|entry| entry.pid);
    for pid in pids.filter(|pid| *pid != group).chain([group]) {
        left.extend(Held::take(pid)?.filter(|held| is_left(&held.entry)));
    }
    // Last: if they are of the old group, nobody else can have got its number until now. An unreaped leader is the leader.
    let taken_over = Entry::of(group)?.is_some_and(|entry| !is_leader(&entry));
    Ok(if taken_over { Vec::new() } else { left })
}

#[cfg(test)]
mod tests;
