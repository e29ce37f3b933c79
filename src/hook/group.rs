//! The process group of a hook: noticing its leader's end, ending what is left, and only then letting the pid go.
//!
//! A group is signalled only while its leader is not yet reaped, since from then on the number may belong to somebody
//! else. So the end of the leader is noticed without reaping it, the group is ended, and the leader is reaped last. A
//! child of an earlier daemon cannot be kept from being reaped: that is [`super::old_group`]'s matter.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{sleep, timeout};

use super::members::has_members;
use crate::process_mark::ProcessMark;

/// How long SIGKILL may take. A process it does not end in that time hangs in the kernel and runs no more code of its
/// own, so whatever comes next may come.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(10);

/// How often a group that was told to end is looked at; its members are not our children and cannot be waited for.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long a leader that is dropped may hold up its thread: in the hands of SIGKILL a process ends at once, unless the
/// kernel itself holds it, and then nobody knows for how long.
const REAP_WAIT: Duration = Duration::from_millis(500);

/// Between two looks meanwhile.
const REAP_EVERY: Duration = Duration::from_millis(1);

/// A child that leads its own process group. Dropping it kills the group and reaps the child, within half a second.
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
            match reap_within(&mut self.child, REAP_WAIT) {
                Ok(true) => {}
                Ok(false) => tracing::error!(
                    pid = self.pid.as_raw_pid(),
                    "a hook does not end on SIGKILL; it stays a zombie until tilld ends"
                ),
                Err(error) => {
                    tracing::warn!(pid = self.pid.as_raw_pid(), error = %error, "could not reap a hook");
                }
            }
        }
    }
}

/// False when the child has not ended in this time. Blocks so long at most.
fn reap_within(child: &mut Child, bound: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + bound;
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(REAP_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
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

    #[test]
    fn a_child_that_does_not_end_holds_nobody() {
        let mut child = sleeper("exec sleep 60").spawn().expect("sh starts");
        let bound = Duration::from_millis(5);
        assert!(!reap_within(&mut child, bound).expect("a child"));
        child.kill().expect("killed");
        assert!(reap_within(&mut child, KILL_WAIT).expect("a child"));
        assert!(reap_within(&mut child, bound).expect("reaped before"));
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
}
