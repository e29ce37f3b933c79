//! The process group of a hook: noticing its leader's end, ending what is left, and only then letting the pid go.
//!
//! A group is signalled only while its leader is not yet reaped, since from then on the number may belong to somebody
//! else. So the end of the leader is noticed without reaping it, the group is ended, and the leader is reaped last. A
//! child of an earlier daemon cannot be kept from being reaped: it and its group are signalled through pidfds alone.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{sleep, timeout};

use crate::process_mark::ProcessMark;

/// How long SIGKILL may take. A process it does not end in that time hangs in the kernel and runs no more code of its
/// own, so whatever comes next may come.
const KILL_WAIT: Duration = Duration::from_secs(10);

/// How often a group that was told to end is looked at; its members are not our children and cannot be waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A child that leads its own process group. Dropping it kills the group and reaps the child.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    pid: Pid,
    // Tokio's bell for SIGCHLD. (`AsyncFd` on a pidfd would hear of this child alone, but can be had without `unsafe`
    // only through a deprecated function.)
    some_child_ended: unix::Signal,
}

impl Leader {
    /// Starts a child at the head of a group of its own.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Self> {
        // Registered before there is a child: its end cannot be missed.
        let some_child_ended = unix::signal(SignalKind::child())?;
        let child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        Ok(Self {
            child,
            pid,
            some_child_ended,
        })
    }

    /// The child itself, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// The mark of the child; `None` when it has ended already.
    pub(super) fn mark(&self) -> Option<ProcessMark> {
        ProcessMark::of(self.pid.as_raw_pid())
    }

    /// Resolves when the child has ended. It stays unreaped. May be dropped and called again.
    pub(super) async fn exited(&mut self) {
        while !self.has_exited() {
            if self.some_child_ended.recv().await.is_none() {
                // The runtime is going down: only looking is left.
                sleep(LOOK_EVERY).await;
            }
        }
    }

    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(
            waitid(WaitId::Pid(self.pid), options),
            Ok(None) | Err(Errno::INTR)
        )
    }

    /// Ends whatever runs in the group: TERM, after `grace` KILL. Returns at once when nothing does.
    pub(super) async fn end_group(&mut self, grace: Duration) {
        if self.is_alone().await {
            return;
        }
        self.signal(Signal::TERM);
        if timeout(grace, self.emptied()).await.is_ok() {
            return;
        }
        self.kill_group().await;
    }

    /// Ends whatever runs in the group without grace.
    pub(super) async fn kill_group(&mut self) {
        self.signal(Signal::KILL);
        if timeout(KILL_WAIT, self.emptied()).await.is_err() {
            tracing::error!(
                pid = self.pid.as_raw_pid(),
                "a hook's process group is still there {KILL_WAIT:?} after SIGKILL"
            );
        }
    }

    async fn emptied(&mut self) {
        self.exited().await;
        while !self.is_alone().await {
            sleep(LOOK_EVERY).await;
        }
    }

    /// True when the leader has ended and nobody else is in the group.
    async fn is_alone(&self) -> bool {
        let group = self.pid.as_raw_pid();
        self.has_exited()
            && tokio::task::spawn_blocking(move || !has_members(group))
                .await
                .unwrap_or(false)
    }

    fn signal(&self, signal: Signal) {
        // The unreaped leader keeps the group in being; what may not be signalled (a set-user-id program) is not ours to end.
        if let Err(error) = kill_process_group(self.pid, signal) {
            tracing::debug!(pid = self.pid.as_raw_pid(), error = %error, "could not signal a hook's process group");
        }
    }

    /// How the child ended; from here on its pid may be used again. An error when it has not ended.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        self.child
            .try_wait()?
            .ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // `try_wait` remembers a child that was reaped before: its number is never signalled again.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::KILL);
            // A process in the hands of SIGKILL ends at once, unless the kernel itself holds it.
            if let Err(error) = self.child.wait() {
                tracing::warn!(pid = self.pid.as_raw_pid(), error = %error, "could not reap a hook");
            }
        }
    }
}

/// True when a process that has not ended belongs to the group. Reads the process table: some milliseconds. Blocks.
pub(super) fn has_members(group: i32) -> bool {
    members(group).next().is_some()
}

/// The processes that belong to the group and have not ended. Blocks.
fn members(group: i32) -> impl Iterator<Item = i32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(move |pid| is_member(*pid, group))
}

fn is_member(pid: i32, group: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| belongs_to(&stat, group))
}

/// Reads state and group out of `/proc/PID/stat`: the name before them may hold blanks and parentheses.
fn belongs_to(stat: &str, group: i32) -> bool {
    let Some((_, fields)) = stat.rsplit_once(')') else {
        return false;
    };
    let mut fields = fields.split_ascii_whitespace();
    let runs = fields
        .next()
        .is_some_and(|state| state != "Z" && state != "X");
    runs && fields.nth(1).and_then(|field| field.parse().ok()) == Some(group)
}

/// A process that is held by a descriptor: a signal sent through it reaches this process and no later one with its number.
#[derive(Debug)]
struct Held {
    mark: ProcessMark,
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
        // Opened first, read then: the mark is of what the descriptor stands for, or of nothing that runs.
        Ok(ProcessMark::of(pid).map(|mark| Self { mark, pidfd }))
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = pidfd_send_signal(&self.pidfd, signal) {
            tracing::debug!(pid = self.mark.pid, error = %error, "could not signal it");
        }
    }
}

/// Takes hold of everybody in the group of a leader that nobody keeps unreaped. The kernel gives the number to nobody else
/// while one of `witnesses`, who are in the group, runs; so when none does any more, nothing found counts. Blocks.
fn take_members(group: i32, witnesses: &[ProcessMark]) -> Vec<Held> {
    let found: Vec<Held> = members(group)
        .filter_map(|pid| {
            let held = Held::take(pid).ok().flatten()?;
            is_member(pid, group).then_some(held)
        })
        .collect();
    let vouched = witnesses.iter().any(ProcessMark::is_running);
    if vouched { found } else { Vec::new() }
}

/// Sees to it that exactly this process, a child of an earlier daemon, runs no more: waits up to `patience` for it to
/// end by itself, then TERM, after `grace` KILL, to it and to its group, each through a pidfd that was opened before the
/// start time was compared. What it left behind when it ended by itself lives on: nobody vouches for its group any more.
/// An error when it cannot be watched: ask again.
pub async fn settle_old_child(
    mark: &ProcessMark,
    patience: Duration,
    grace: Duration,
) -> io::Result<()> {
    let Some(leader) = Held::take(mark.pid)?.filter(|leader| leader.mark == *mark) else {
        return Ok(());
    };
    let mut held = vec![leader];
    for (wait, signal) in [(patience, Signal::TERM), (grace, Signal::KILL)] {
        if timeout(wait, all_gone(&held)).await.is_ok() {
            return Ok(());
        }
        tracing::warn!(
            pid = mark.pid,
            "ending a hook of an earlier daemon with {signal:?}"
        );
        let group = mark.pid;
        let witnesses: Vec<ProcessMark> = held.iter().map(|one| one.mark.clone()).collect();
        let found = tokio::task::spawn_blocking(move || take_members(group, &witnesses)).await;
        let known = |one: &Held| held.iter().any(|other| other.mark == one.mark);
        let more: Vec<Held> = found
            .unwrap_or_default()
            .into_iter()
            .filter(|one| !known(one))
            .collect();
        held.extend(more);
        for one in &held {
            one.signal(signal);
        }
    }
    if timeout(KILL_WAIT, all_gone(&held)).await.is_err() {
        tracing::error!(
            pid = mark.pid,
            "a hook of an earlier daemon is still there {KILL_WAIT:?} after SIGKILL"
        );
    }
    Ok(())
}

async fn all_gone(held: &[Held]) {
    while held.iter().any(|one| one.mark.is_running()) {
        sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    fn sleeper(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// Reads one byte: the script says that its trap is set.
    fn wait_for_word(child: &mut Child) {
        let mut byte = [0];
        io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut byte)
            .expect("it says a word");
    }

    #[test]
    fn the_group_is_read_behind_any_name() {
        assert!(belongs_to("7 (a) Z 9 (b) S 1 42 42 0", 42));
        assert!(!belongs_to("7 (a b) Z 1 42 42 0", 42) && !belongs_to("7 (42) S 42 1 42", 42));
    }

    #[tokio::test]
    async fn the_whole_group_ends_before_its_leader_is_reaped() {
        let script = "trap '' TERM; (trap '' TERM; echo; exec sleep 60) & wait; sleep 60";
        let mut leader = Leader::spawn(&mut sleeper(script)).expect("sh starts");
        wait_for_word(leader.child());
        let group = leader.pid.as_raw_pid();
        assert!(has_members(group));
        leader.end_group(Duration::from_millis(50)).await;
        assert!(!has_members(group));
        let status = leader.reap().expect("it has ended");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9)
        );
    }

    #[tokio::test]
    async fn a_leader_that_is_dropped_leaves_no_process() {
        let mut leader = Leader::spawn(&mut sleeper("echo; sleep 60")).expect("sh starts");
        wait_for_word(leader.child());
        let group = leader.pid.as_raw_pid();
        drop(leader);
        timeout(KILL_WAIT, async {
            while has_members(group) {
                sleep(LOOK_EVERY).await;
            }
        })
        .await
        .expect("nobody is left");
        assert!(
            !fs::exists(format!("/proc/{group}")).expect("readable"),
            "no zombie"
        );
    }

    #[tokio::test]
    async fn an_old_child_is_waited_for_or_ended_and_a_stranger_left_alone() {
        let mut child = sleeper("trap '' TERM; echo; while :; do sleep 0.1; done")
            .spawn()
            .expect("sh starts");
        wait_for_word(&mut child);
        let mark = ProcessMark::of(i32::try_from(child.id()).expect("a pid")).expect("it runs");
        let stranger = ProcessMark {
            start_ticks: mark.start_ticks + 1,
            ..mark.clone()
        };
        settle_old_child(&stranger, Duration::ZERO, Duration::ZERO)
            .await
            .expect("nothing to do");
        assert!(mark.is_running());
        settle_old_child(&mark, Duration::from_millis(20), Duration::from_millis(50))
            .await
            .expect("ended");
        assert!(!mark.is_running());
        child.wait().expect("reaped");

        // Its descendants in its group end with it, those that ignore TERM too.
        let script = "trap '' TERM; (trap '' TERM; echo; exec sleep 60) & wait; sleep 60";
        let mut leader = Leader::spawn(&mut sleeper(script)).expect("sh starts");
        wait_for_word(leader.child());
        let (group, mark) = (leader.pid.as_raw_pid(), leader.mark().expect("it runs"));
        settle_old_child(&mark, Duration::ZERO, Duration::from_millis(50))
            .await
            .expect("ended");
        assert!(!has_members(group));

        // One that ends by itself is not signalled: it ends when its input does.
        let mut child = sleeper("read line; exit 3").spawn().expect("sh starts");
        let mark = ProcessMark::of(i32::try_from(child.id()).expect("a pid")).expect("it runs");
        let (waited, ()) = tokio::join!(
            timeout(
                KILL_WAIT,
                settle_old_child(&mark, KILL_WAIT, Duration::ZERO)
            ),
            async { drop(child.stdin.take()) },
        );
        waited.expect("it was waited for").expect("watched");
        assert_eq!(child.wait().expect("reaped").code(), Some(3));
    }
}
