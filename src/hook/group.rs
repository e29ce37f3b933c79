//! The process group of a hook: noticing its leader's end, ending what is left, and only then letting the pid go.
//!
//! A group is signalled only while its leader is not yet reaped, since from then on the number may belong to somebody
//! else. So the end of the leader is told without its being reaped, the group is ended, and the leader is released last. A
//! child of an earlier daemon, or of a launcher that was killed, cannot be kept from being reaped: that is
//! [`super::old_group`]'s matter.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Signal, kill_process_group};
use tokio::time::sleep;

use super::launcher::{Ended, Launcher, Started};
use super::members::has_members;
use super::old_group::settle_old_child;
use crate::news;
use crate::process_mark::ProcessMark;

/// How long SIGKILL may take. A process it does not end in that time hangs in the kernel and runs no more code of its
/// own, so whatever comes next may come.
pub(super) const KILL_WAIT: Duration = Duration::from_secs(10);

/// How often a group that was told to end is looked at; its members are not our children and cannot be waited for.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that leads its own process group and was started by the launcher. Dropping it kills the group.
#[derive(Debug)]
pub(super) struct Leader {
    mark: ProcessMark,
    process: Started,
}

impl Leader {
    /// Has a process started that waits for its order, at the head of a group of its own.
    pub(super) async fn start(launcher: &Launcher, streams: [OwnedFd; 3]) -> io::Result<Self> {
        let process = launcher.start(streams).await?;
        // It waits unless it was killed, and then its entry is there as long as it is unreaped.
        let Some(mark) = ProcessMark::of(process.pid().as_raw_pid()) else {
            return Err(io::Error::other("it ended by itself"));
        };
        Ok(Self { mark, process })
    }

    /// Which process it is.
    pub(super) fn mark(&self) -> &ProcessMark {
        &self.mark
    }

    /// Resolves when it has ended, or its end is lost. It stays unreaped. May be dropped and called again.
    pub(super) async fn exited(&mut self) {
        self.process.exited().await;
    }

    /// True while it has not ended, and its end is going to be known.
    pub(super) fn runs(&mut self) -> bool {
        self.process.look().is_none()
    }

    /// True when nobody was left in the group at the end of its leader: nobody can have come since who had not left it.
    pub(super) fn left_nobody(&mut self) -> bool {
        matches!(self.process.look(), Some(Ended::So(end)) if end.alone)
    }

    /// Ends whatever runs in the group: TERM, after `grace` KILL. Returns at once when nothing does.
    pub(super) async fn end_group(&mut self, grace: Duration) {
        if self.process.look() == Some(Ended::Lost) {
            return self.settle(grace).await;
        }
        if self.is_alone().await {
            return;
        }
        self.signal(Signal::TERM);
        if news::within(grace, self.emptied()).await.is_some() {
            return;
        }
        self.kill_group().await;
    }

    /// Ends whatever runs in the group without grace.
    pub(super) async fn kill_group(&mut self) {
        if self.process.look() == Some(Ended::Lost) {
            return self.settle(Duration::ZERO).await;
        }
        self.signal(Signal::KILL);
        if news::within(KILL_WAIT, self.emptied()).await.is_none() {
            tracing::error!(
                pid = self.mark.pid,
                "a hook's process group is still there {KILL_WAIT:?} after SIGKILL"
            );
        }
    }

    /// Nobody keeps its number any more: it is ended like one of an earlier daemon.
    async fn settle(&mut self, grace: Duration) {
        while let Err(error) = settle_old_child(&self.mark, Duration::ZERO, grace).await {
            tracing::warn!(pid = self.mark.pid, error = %error, "could not watch a hook whose launcher was ended");
            sleep(KILL_WAIT).await;
        }
    }

    async fn emptied(&mut self) {
        self.exited().await;
        while !self.is_alone().await {
            sleep(LOOK_EVERY).await;
        }
    }

    /// True when the leader has ended and nobody else is in the group.
    async fn is_alone(&mut self) -> bool {
        let group = self.mark.pid;
        self.process.look().is_some()
            && tokio::task::spawn_blocking(move || !has_members(group))
                .await
                .unwrap_or(false)
    }

    fn signal(&self, signal: Signal) {
        // With the launcher gone somebody else reaps the leader, and whose the number is nobody knows.
        if self.process.is_lost() {
            return;
        }
        // The unreaped leader keeps the group in being; what may not be signalled (a set-user-id program) is not ours to end.
        if let Err(error) = kill_process_group(self.process.pid(), signal) {
            tracing::debug!(pid = self.mark.pid, error = %error, "could not signal a hook's process group");
        }
    }

    /// How it ended; from here on its pid may be used again. An error when it has not ended, or its end is lost.
    pub(super) fn reap(mut self) -> io::Result<ExitStatus> {
        match self.process.look() {
            Some(Ended::So(end)) => Ok(ExitStatus::from_raw(end.status)),
            Some(Ended::Lost) => Err(io::Error::other("the launcher was killed")),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // What has ended is let go of as it is.
        if self.runs() {
            self.signal(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{PipeReader, Read as _, Write as _, pipe};
    use std::thread;

    use rustix::process::{Pid, kill_process};
    use tokio::runtime::Handle;
    use tokio::time::timeout;

    use super::*;
    use crate::hook::launch::stand_in;
    use crate::hook::order::Order;

    /// A script at the head of a group of its own, after it has said a word: its trap is set.
    async fn running(launcher: &Launcher, script: &str) -> (Leader, PipeReader) {
        let (its_stdin, mut stdin) = pipe().expect("a pipe");
        let (mut stdout, its_stdout) = pipe().expect("a pipe");
        let its_stderr = its_stdout.try_clone().expect("a descriptor");
        let streams = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
        let leader = Leader::start(launcher, streams).await.expect("it starts");
        let order = Order {
            dir: "/".into(),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            variables: Vec::new(),
        };
        let order = order.write().expect("short");
        stdin.write_all(&order).expect("it waits");
        stdout.read_exact(&mut [0]).expect("it says a word");
        (leader, stdout)
    }

    async fn until(fact: impl Fn() -> bool) {
        let look = async {
            while !fact() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(KILL_WAIT, look).await.expect("it comes true");
    }

    fn is_there(pid: i32) -> bool {
        fs::exists(format!("/proc/{pid}")).expect("readable")
    }

    #[tokio::test]
    async fn the_whole_group_ends_before_its_leader_is_reaped() {
        let script = "trap '' TERM; (trap '' TERM; echo; exec sleep 60) & wait; sleep 60";
        let (mut leader, _stdout) = running(&stand_in(), script).await;
        let group = leader.mark.pid;
        assert!(has_members(group));
        leader.end_group(Duration::from_millis(50)).await;
        assert!(!has_members(group));
        assert!(is_there(group), "it is unreaped");
        let status = leader.reap().expect("it has ended");
        assert_eq!(status.signal(), Some(9));
        until(|| !is_there(group)).await;
    }

    #[tokio::test]
    async fn whether_somebody_is_left_is_known_at_the_end() {
        let launcher = stand_in();
        for (script, nobody) in [("echo; exit 3", true), ("sleep 60 & echo; exit 3", false)] {
            let (mut leader, _stdout) = running(&launcher, script).await;
            leader.exited().await;
            assert_eq!(leader.left_nobody(), nobody, "{script}");
            leader.end_group(KILL_WAIT).await;
            let status = leader.reap().expect("it has ended");
            assert_eq!(status.code(), Some(3));
        }
    }

    #[tokio::test]
    async fn a_leader_that_is_dropped_leaves_no_process() {
        let (leader, _stdout) = running(&stand_in(), "echo; sleep 60").await;
        let group = leader.mark.pid;
        drop(leader);
        until(|| !has_members(group) && !is_there(group)).await;
    }

    /// A hook that runs for long may start many: none of them waits for its end to be taken off the list of processes.
    #[tokio::test]
    async fn whom_a_running_hook_has_left_is_reaped_meanwhile() {
        let script = "echo; (sleep 0.05 & echo $!); sleep 60";
        let (_leader, mut stdout) = running(&stand_in(), script).await;
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            stdout.read_exact(&mut byte).expect("it says a number");
            line.extend(byte);
        }
        let left = String::from_utf8(line).expect("a number");
        let left = left.trim().parse().expect("a number");
        until(|| !is_there(left)).await;
    }

    /// Its end may come while it is let go of: then nobody else will ever release it.
    #[tokio::test]
    async fn none_that_ends_while_it_is_dropped_stays_unreaped() {
        let launcher = stand_in();
        for _ in 0..100 {
            let mut groups = Vec::new();
            for _ in 0..4 {
                let (its_stdin, stdin) = pipe().expect("a pipe");
                let (_stdout, its_stdout) = pipe().expect("a pipe");
                let its_stderr = its_stdout.try_clone().expect("a descriptor");
                let streams = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
                let leader = Leader::start(&launcher, streams).await.expect("it starts");
                groups.push(leader.mark.pid);
                // Without an order it ends.
                drop(stdin);
                let runtime = Handle::current();
                thread::spawn(move || {
                    let _entered = runtime.enter();
                    drop(leader);
                });
            }
            until(|| groups.iter().all(|group| !is_there(*group))).await;
        }
    }

    /// Its children are somebody else's then, who reaps them when he will: their group is ended in another way.
    #[tokio::test]
    async fn a_launcher_that_is_killed_loses_the_end_and_nothing_more() {
        let launcher = stand_in();
        let (mut leader, _stdout) = running(&launcher, "echo; sleep 60 & sleep 60").await;
        let group = leader.mark.pid;
        let stat = fs::read_to_string(format!("/proc/{group}/stat")).expect("it runs");
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1));
        let parent = parent.and_then(|parent| Pid::from_raw(parent.parse().ok()?));
        kill_process(parent.expect("a parent"), Signal::KILL).expect("killed");
        leader.exited().await;
        assert!(has_members(group));
        leader.end_group(KILL_WAIT).await;
        assert!(!has_members(group));
        assert!(leader.reap().is_err());
        // The next run has a launcher again.
        let (mut leader, _stdout) = running(&launcher, "echo; exit 0").await;
        leader.exited().await;
        assert!(leader.reap().expect("it has ended").success());
    }

    #[tokio::test]
    async fn the_launcher_ends_when_nothing_runs() {
        let launcher = stand_in();
        let (mut leader, _stdout) = running(&launcher, "echo $PPID; exit 0").await;
        let mark = leader.mark().clone();
        leader.exited().await;
        drop(leader);
        until(|| !is_there(mark.pid)).await;
        until(|| launcher.is_resting()).await;
    }
}
