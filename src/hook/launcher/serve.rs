//! The launcher's own side: on a wish of the daemon it splits off a process that waits, and it tells when one has ended.
//!
//! Relies on one thread, on its standard input being the daemon's socket, and on being bare before the first wish
//! ([`super::super::inherited`]): what it does not have, no hook can get. It is the parent of the hooks' processes and
//! reaps none of them before the daemon says so, and since it has every signal blocked nothing but SIGKILL ends it while the daemon
//! lives. When the daemon is gone so is it, and whatever still waits for an order.
//!
//! While it lives it is also the parent of whoever a hook leaves behind, and reaps those once they have ended, so that the end of a hook which left nobody is told
//! without a look at every process of the machine.

use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use fork::{ProcessFork, fork_process};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, kill_process, pidfd_open,
    set_child_subreaper, setpgid, waitid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::messages::{End, LENGTH, News, Wish};
use crate::hook::inherited;
use crate::hook::members::has_members;

/// What this process is, once the loop is left.
#[derive(Debug)]
pub(in crate::hook) enum Role {
    /// The launcher, at its end.
    Launcher,
    /// A process that was split off: its standard input brings its order.
    Waiting,
}

/// Standard input, output and error of a hook.
type Streams = [OwnedFd; 3];

/// A process that was split off and is not released.
struct Child {
    pid: Pid,
    /// Until its end was told.
    pidfd: Option<OwnedFd>,
}

/// Serves until the daemon is gone. Returns in every process that was split off as well.
pub(in crate::hook) fn serve() -> io::Result<Role> {
    inherited::block_signals()?;
    // Where that is refused, nobody knows whether a hook has left somebody, and it is looked for each time.
    let adopts = set_child_subreaper(Some(getpid())).is_ok();
    let mut children: Vec<Child> = Vec::new();
    loop {
        let (wished, ended) = wait(&children)?;
        if !wished && ended.is_empty() {
            // What hooks that still run have left, and has ended, is reaped meanwhile.
            left_somebody(&children);
        }
        for pid in ended {
            if let Some(status) = status_of(pid)? {
                let alone = adopts && !left_somebody(&children) || !has_members(pid.as_raw_pid());
                let its = children.iter_mut().filter(|child| child.pid == pid);
                its.for_each(|child| child.pidfd = None);
                tell(News::Ended(pid.as_raw_pid(), End { status, alone }))?;
            }
        }
        if !wished {
            continue;
        }
        match hear()? {
            None => return Ok(Role::Launcher),
            Some((Wish::Release(pid), _)) => {
                // One may be released before its end was told: there is nothing to be told any more.
                children.retain(|child| child.pid.as_raw_pid() != pid);
                reap(pid);
            }
            Some((Wish::Start, streams)) => {
                let Ok(streams) = Streams::try_from(streams) else {
                    tell(News::Refused(Errno::BADF.raw_os_error()))?;
                    continue;
                };
                match split_off() {
                    Ok(None) => {
                        take(streams)?;
                        return Ok(Role::Waiting);
                    }
                    Ok(Some(child)) => {
                        let started = News::Started(child.pid.as_raw_pid());
                        children.push(child);
                        tell(started)?;
                    }
                    Err(errno) => tell(News::Refused(errno.raw_os_error()))?,
                }
            }
        }
    }
}

/// Between two looks at what hooks that run have left, seconds.
const REAPS_EVERY_S: i64 = 2;

/// Waits for a wish or the end of a child; while some run not for longer than [`REAPS_EVERY_S`].
fn wait(children: &[Child]) -> io::Result<(bool, Vec<Pid>)> {
    let socket = io::stdin();
    let mut watched = vec![PollFd::new(&socket, PollFlags::IN)];
    let running = children
        .iter()
        .filter_map(|child| Some((child.pid, child.pidfd.as_ref()?)));
    let pidfds = running.clone().map(|(_, pidfd)| pidfd);
    watched.extend(pidfds.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
    let at_most = Timespec {
        tv_sec: REAPS_EVERY_S,
        tv_nsec: 0,
    };
    let at_most = (watched.len() > 1).then_some(&at_most);
    while let Err(error) = poll(&mut watched, at_most) {
        if error != Errno::INTR {
            return Err(error.into());
        }
    }
    let mut ready = watched.iter().map(|one| !one.revents().is_empty());
    let wished = ready.next().unwrap_or(false);
    let ended = ready.zip(running).filter(|(ready, _)| *ready);
    Ok((wished, ended.map(|(_, (pid, _))| pid).collect()))
}

/// The next wish, and the descriptors that came with it; `None` when there will be none.
fn hear() -> io::Result<Option<(Wish, Vec<OwnedFd>)>> {
    let mut bytes = [0; LENGTH];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut room);
    let received = loop {
        let into = &mut [IoSliceMut::new(&mut bytes)];
        match recvmsg(io::stdin(), into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            received => break received?.bytes,
        }
    };
    let mut streams = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            streams.extend(descriptors);
        }
    }
    let wish = bytes.get(..received).and_then(Wish::read);
    Ok(wish.map(|wish| (wish, streams)))
}

fn tell(news: News) -> io::Result<()> {
    match send(io::stdin(), &news.write(), SendFlags::NOSIGNAL) {
        // The next thing to be heard is that the daemon is gone.
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A process more, at the head of a group of its own; `None` in that process itself.
fn split_off() -> Result<Option<Child>, Errno> {
    let again = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::AGAIN);
    let ProcessFork::Parent(pid) = fork_process().map_err(again)? else {
        return Ok(None);
    };
    let pid = Pid::from_raw(pid.get()).ok_or(Errno::SRCH)?;
    // By whoever comes first of the two: before the daemon knows of the process, its group is there.
    let grouped = setpgid(Some(pid), Some(pid));
    match grouped.and_then(|()| pidfd_open(pid, PidfdFlags::empty())) {
        Ok(pidfd) => {
            let pidfd = Some(pidfd);
            Ok(Some(Child { pid, pidfd }))
        }
        Err(error) => {
            kill_process(pid, Signal::KILL)?;
            reap(pid.as_raw_pid());
            Err(error)
        }
    }
}

/// In the process that was split off: its own group and streams, and signals that mean what they usually mean.
fn take([stdin, stdout, stderr]: Streams) -> io::Result<()> {
    setpgid(None, None)?;
    dup2_stdin(stdin)?;
    dup2_stdout(stdout)?;
    dup2_stderr(stderr)?;
    inherited::unblock_signals()
}

/// How a child ended; it stays unreaped. `None` when it has not.
fn status_of(pid: Pid) -> io::Result<Option<i32>> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(pid), options)?.map(|status| raw(&status)))
}

/// False when no hook that has ended left a process which still runs: that would be a child of this one, or have an ancestor
/// that is. True also when it cannot be known. Those that have ended are reaped.
fn left_somebody(children: &[Child]) -> bool {
    let own = getpid();
    // In one piece as long as they are few; and none but this process takes one away from the list.
    let Ok(all) = fs::read_to_string(format!("/proc/{own}/task/{own}/children")) else {
        return true;
    };
    let all = all
        .split_ascii_whitespace()
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
    let others = all.filter(|pid| children.iter().all(|child| child.pid != *pid));
    let runs = |pid| {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        matches!(waitid(WaitId::Pid(pid), options), Ok(None))
    };
    // Each is asked: those that have ended are reaped by it.
    others.filter(|pid| runs(*pid)).count() > 0
}

/// The status as `wait` has it: the exit code in the second byte, or the signal in the first.
fn raw(status: &WaitIdStatus) -> i32 {
    let signal = || status.terminating_signal().unwrap_or_default();
    status.exit_status().map_or_else(signal, |code| code << 8)
}

fn reap(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid.max(0)) {
        // One that is no child of ours, or was reaped, is nobody's matter.
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED).unwrap_or_default();
    }
}
