//! The daemon's hold on its launcher: tilld started once more, which splits off a process for each run of a hook.
//!
//! A claim must name the process that will run the hook before that process may do anything, and a pid is known only once
//! there is a process. So each run begins as a process that waits for its order on its standard input ([`super::order`])
//! and then becomes the program; `exec` keeps pid and start time. To start tilld itself for each run would cost more than
//! most hooks do; the launcher is started once, is small, and a process split off from it is ready at once. What tilld was
//! started with reaches no hook, since the launcher lets go of it before anything else ([`super::inherited`]).
//!
//! It is started when it is first needed and ended when nothing runs any more. Should it be killed, the next run starts
//! another, and the ends of those that run are lost: whoever waits for them is told. One that is slow loses nobody: the
//! start that waited too long fails alone, and the process it comes to have is let go of.

mod messages;
mod serve;
mod started;

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    SocketType, send, sendmsg, shutdown, socketpair,
};
use rustix::process::Pid;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::news;

use messages::{End, LENGTH, News, Wish};

pub(super) use serve::{Role, serve};
pub(super) use started::{Ended, Started};

/// How long a launcher may take to split off a process, its own start included: on a machine that is so busy, an attempt
/// later does better than one that waits.
const START_WAIT: Duration = Duration::from_secs(10);

/// A launcher that owes an answer and says nothing for so long is stopped, by somebody or in the kernel, and will start nothing
/// more. It is replaced, and those that run are looked after as when it is killed: longer than any machine is that slow.
const STUCK_AFTER: Duration = Duration::from_mins(1);

/// How long a launcher stays when nothing runs: hooks come in bursts, and its start costs what it saves in a few runs.
const IDLE: Duration = Duration::from_secs(1);

/// A launcher, whether it runs or not. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Launcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    args: Vec<OsString>,
    /// How long a start is waited for.
    patience: Duration,
    /// How long an answer may be owed.
    stuck_after: Duration,
    /// Wishes are sent while this is held, so that the answers come in their order.
    current: tokio::sync::Mutex<Option<Arc<Link>>>,
}

impl Launcher {
    /// The launcher that this command line starts.
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        Self::with_patience(program, args, START_WAIT, STUCK_AFTER)
    }

    fn with_patience(
        program: PathBuf,
        args: Vec<OsString>,
        patience: Duration,
        stuck_after: Duration,
    ) -> Self {
        let current = tokio::sync::Mutex::default();
        Self(Arc::new(Shared {
            program,
            args,
            patience,
            stuck_after,
            current,
        }))
    }

    /// True when its process is ended; the next run starts it again.
    #[cfg(test)]
    pub(super) fn is_resting(&self) -> bool {
        self.0
            .current
            .try_lock()
            .is_ok_and(|current| current.is_none())
    }

    /// Has a process started that waits for its order and has these three streams. One that comes too late, or when nobody
    /// waits for it any more, ends by itself: nobody holds the other end of its input.
    pub(super) async fn start(&self, streams: [OwnedFd; 3]) -> io::Result<Started> {
        let answered = async {
            let answer = self.ask(streams).await?.await;
            let answer = answer.map_err(|_gone| io::Error::other("the launcher ended"))?;
            Ok(answer?)
        };
        let in_time = news::within(self.0.patience, answered).await;
        in_time.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn ask(&self, streams: [OwnedFd; 3]) -> io::Result<oneshot::Receiver<Answer>> {
        let mut current = self.0.current.lock().await;
        let link = match current.take().filter(|link| !link.is_gone()) {
            Some(link) => link,
            None => self.open()?,
        };
        // Whatever keeps this wish from being sent, others may be running: only one that is gone has lost them.
        current.insert(link).send_start(&streams).await
    }

    /// Starts the launcher's process.
    fn open(&self) -> io::Result<Arc<Link>> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut command = Command::new(&self.0.program);
        command
            .args(&self.0.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let process = command.spawn()?;
        let ours = net::UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        let link = Arc::new(Link {
            socket: UnixDatagram::from_std(ours)?,
            state: Mutex::default(),
            stuck_after: self.0.stuck_after,
        });
        tokio::spawn(listen(Arc::clone(&link), Arc::downgrade(&self.0), process));
        Ok(link)
    }
}

type Answer = Result<Started, Errno>;

/// The connection with one launcher process.
#[derive(Debug)]
pub(super) struct Link {
    // One message at a time, with an end that is noticed: a socket of packets, which tokio knows under this name alone.
    socket: UnixDatagram,
    state: Mutex<State>,
    /// One that answers nothing for so long is not slow but stopped.
    stuck_after: Duration,
}

#[derive(Debug, Default)]
struct State {
    /// Who waits for a process to be started, the first first.
    wishes: VecDeque<oneshot::Sender<Answer>>,
    /// Those that are not released, and who is told of their end.
    children: HashMap<i32, Option<oneshot::Sender<End>>>,
    /// Those that are to be released once there is room for the wish.
    overdue: Vec<i32>,
    gone: bool,
}

impl Link {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds it can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True once the launcher is known to be gone: its children are somebody else's, who reaps them.
    pub(super) fn is_gone(&self) -> bool {
        self.state().gone
    }

    /// True while it owes an answer.
    fn is_asked(&self) -> bool {
        !self.state().wishes.is_empty()
    }

    fn is_idle(&self) -> bool {
        let state = self.state();
        state.wishes.is_empty() && state.children.is_empty()
    }

    /// Sends a wish, and notes it in the same step: whoever gives up before that has wished for nothing.
    async fn send_start(&self, streams: &[OwnedFd; 3]) -> io::Result<oneshot::Receiver<Answer>> {
        let bytes = Wish::Start.write();
        let streams = streams.each_ref().map(OwnedFd::as_fd);
        let send = || {
            let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut control = SendAncillaryBuffer::new(&mut room);
            if !control.push(SendAncillaryMessage::ScmRights(&streams)) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let (piece, flags) = (&[IoSlice::new(&bytes)], SendFlags::NOSIGNAL);
            // Before the answer can be heard.
            let mut state = self.state();
            sendmsg(&self.socket, piece, &mut control, flags)?;
            let (told, answer) = oneshot::channel();
            state.wishes.push_back(told);
            Ok(answer)
        };
        self.socket.async_io(Interest::WRITABLE, send).await
    }

    /// Lets a process that has ended be reaped; from here on its number may be used again.
    fn release(&self, pid: Pid) {
        let mut state = self.state();
        state.children.remove(&pid.as_raw_pid());
        state.overdue.push(pid.as_raw_pid());
        self.send_overdue(&mut state);
    }

    fn send_overdue(&self, state: &mut State) {
        state.overdue.retain(|pid| {
            let sent = send(
                &self.socket,
                &Wish::Release(*pid).write(),
                SendFlags::NOSIGNAL,
            );
            // Without a launcher there is nobody left to reap it for.
            sent == Err(Errno::AGAIN)
        });
    }

    fn take(self: &Arc<Self>, news: News) {
        match news {
            News::Started(pid) => {
                let (told, end) = oneshot::channel();
                let wish = {
                    let mut state = self.state();
                    state.children.insert(pid, Some(told));
                    state.wishes.pop_front()
                };
                if let (Some(wish), Some(pid)) = (wish, Pid::from_raw(pid)) {
                    // Given up meanwhile, it is let go of at once: not while the state is held, which that takes.
                    wish.send(Ok(Started::new(pid, Arc::clone(self), end)))
                        .unwrap_or_else(drop);
                }
            }
            News::Refused(errno) => {
                if let Some(wish) = self.state().wishes.pop_front() {
                    let refused = Err(Errno::from_raw_os_error(errno));
                    wish.send(refused).unwrap_or_else(drop);
                }
            }
            News::Ended(pid, end) => {
                let mut state = self.state();
                let told = state.children.get_mut(&pid).and_then(Option::take);
                let is_heard = told.is_some_and(|told| told.send(end).is_ok());
                if !is_heard {
                    state.children.remove(&pid);
                    state.overdue.push(pid);
                }
            }
        }
        self.send_overdue(&mut self.state());
    }

    /// Ends the connection, and with it the launcher.
    fn hang_up(&self) {
        // Closed already, it is what it is meant to be.
        shutdown(&self.socket, Shutdown::Both).unwrap_or_default();
    }
}

/// Hears what the launcher tells, until it is gone, says nothing though it was asked, or nothing runs any more.
async fn listen(link: Arc<Link>, launcher: Weak<Shared>, mut process: Child) {
    let mut bytes = [0; LENGTH];
    let mut silent = Duration::ZERO;
    loop {
        tokio::select! {
            biased;
            received = link.socket.recv(&mut bytes) => {
                let received = received.ok().and_then(|count| bytes.get(..count));
                match received.and_then(News::read) {
                    Some(news) => link.take(news),
                    None => break,
                }
                silent = Duration::ZERO;
            }
            () = sleep(IDLE) => {
                silent = if link.is_asked() { silent + IDLE } else { Duration::ZERO };
                if silent >= link.stuck_after {
                    tracing::error!("the launcher of hooks has answered nothing for {silent:?}, and is ended");
                    break;
                }
                link.send_overdue(&mut link.state());
                if retire(&link, &launcher) {
                    break;
                }
            }
        }
    }
    link.hang_up();
    {
        let mut state = link.state();
        let lost = state.children.len();
        if lost > 0 {
            tracing::error!("the launcher of hooks was ended while {lost} of them ran");
        }
        // Whoever waits is told by this.
        *state = State {
            gone: true,
            ..State::default()
        };
    }
    // It has nothing to lose but its life, and is not waited for longer than that takes.
    let ended = spawn_blocking(move || process.kill().and_then(|()| process.wait())).await;
    if let Err(error) = ended.map_err(io::Error::other).flatten() {
        tracing::warn!(error = %error, "could not reap the launcher of hooks");
    }
}

/// True when the launcher is not wanted any more: nobody can wish for anything from it from here on.
fn retire(link: &Arc<Link>, launcher: &Weak<Shared>) -> bool {
    let Some(shared) = launcher.upgrade() else {
        return link.is_idle();
    };
    // Not waited for: who holds it sends a wish, and may himself wait until others were heard.
    let Ok(mut current) = shared.current.try_lock() else {
        return false;
    };
    let is_idle = link.is_idle();
    if is_idle {
        *current = None;
    }
    is_idle
}

#[cfg(test)]
mod tests;
