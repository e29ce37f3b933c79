//! The daemon's hold on its launcher: tilld started once more, which splits off a process for each run of a hook.
//!
//! A claim must name the process that will run the hook before that process may do anything, and a pid is known only once
//! there is a process. So each run begins as a process that waits for its order on its standard input ([`super::order`])
//! and then becomes the program; `exec` keeps pid and start time. To start tilld itself for each run would cost more than
//! most hooks do; the launcher is started once, is small, and a process split off from it is ready at once. What tilld was
//! started with reaches no hook, since the launcher lets go of it before anything else ([`super::inherited`]).
//!
//! It is started when it is first needed and ended when nothing runs any more. Should it be killed, the next run starts
//! another, and the ends of those that run are lost: whoever waits for them is told.

mod messages;
mod serve;

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
use tokio::time::{sleep, timeout};

use messages::{LENGTH, News, Wish};

pub(super) use messages::End;
pub(super) use serve::{Role, serve};

/// How long a launcher may take to split off a process, its own start included. One that takes longer is stuck.
const START_WAIT: Duration = Duration::from_secs(10);

/// How long a launcher stays when nothing runs: hooks come in bursts, and its start costs what it saves in a few runs.
const IDLE: Duration = Duration::from_secs(1);

/// A launcher, whether it runs or not. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Launcher(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    program: PathBuf,
    args: Vec<OsString>,
    /// Wishes are sent while this is held, so that the answers come in their order.
    current: tokio::sync::Mutex<Option<Arc<Link>>>,
}

/// A process that waits for its order.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) pid: Pid,
    /// How it ended; an error when nobody will ever know.
    pub(super) end: oneshot::Receiver<End>,
    pub(super) link: Arc<Link>,
}

impl Launcher {
    /// The launcher that this command line starts.
    pub fn new(program: PathBuf, args: Vec<OsString>) -> Self {
        let current = tokio::sync::Mutex::default();
        Self(Arc::new(Shared {
            program,
            args,
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

    /// Has a process started that waits for its order and has these three streams.
    pub(super) async fn start(&self, streams: [OwnedFd; 3]) -> io::Result<Started> {
        let (link, answer) = self.ask(streams).await?;
        match timeout(START_WAIT, answer).await {
            Ok(Ok(Ok((pid, end)))) => Ok(Started { pid, end, link }),
            Ok(Ok(Err(errno))) => Err(errno.into()),
            Ok(Err(_gone)) => Err(io::Error::other("the launcher ended")),
            Err(_elapsed) => {
                link.hang_up();
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    async fn ask(
        &self,
        streams: [OwnedFd; 3],
    ) -> io::Result<(Arc<Link>, oneshot::Receiver<Answer>)> {
        let mut current = self.0.current.lock().await;
        let link = match current.take().filter(|link| !link.is_gone()) {
            Some(link) => link,
            None => self.open()?,
        };
        let link = current.insert(link);
        match link.send_start(&streams).await {
            Ok(answer) => Ok((Arc::clone(link), answer)),
            Err(error) => {
                link.hang_up();
                Err(error)
            }
        }
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
        });
        tokio::spawn(listen(Arc::clone(&link), Arc::downgrade(&self.0), process));
        Ok(link)
    }
}

type Answer = Result<(Pid, oneshot::Receiver<End>), Errno>;

/// The connection with one launcher process.
#[derive(Debug)]
pub(super) struct Link {
    // One message at a time, with an end that is noticed: a socket of packets, which tokio knows under this name alone.
    socket: UnixDatagram,
    state: Mutex<State>,
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
    pub(super) fn release(&self, pid: Pid) {
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

    fn take(&self, news: News) {
        let mut state = self.state();
        match news {
            News::Started(pid) => {
                let (told, end) = oneshot::channel();
                state.children.insert(pid, Some(told));
                let wish = state.wishes.pop_front();
                if let (Some(wish), Some(pid)) = (wish, Pid::from_raw(pid)) {
                    // Given up meanwhile, it ends by itself: nobody holds the other end of its input.
                    wish.send(Ok((pid, end))).unwrap_or_default();
                }
            }
            News::Refused(errno) => {
                if let Some(wish) = state.wishes.pop_front() {
                    let refused = Err(Errno::from_raw_os_error(errno));
                    wish.send(refused).unwrap_or_default();
                }
            }
            News::Ended(pid, end) => {
                let told = state.children.get_mut(&pid).and_then(Option::take);
                let is_heard = told.is_some_and(|told| told.send(end).is_ok());
                if !is_heard {
                    state.children.remove(&pid);
                    state.overdue.push(pid);
                }
            }
        }
        self.send_overdue(&mut state);
    }

    /// Ends the connection, and with it the launcher.
    fn hang_up(&self) {
        // Closed already, it is what it is meant to be.
        shutdown(&self.socket, Shutdown::Both).unwrap_or_default();
    }
}

/// Hears what the launcher tells, until it is gone or nothing runs any more.
async fn listen(link: Arc<Link>, launcher: Weak<Shared>, mut process: Child) {
    let mut bytes = [0; LENGTH];
    loop {
        tokio::select! {
            biased;
            received = link.socket.recv(&mut bytes) => {
                let received = received.ok().and_then(|count| bytes.get(..count));
                match received.and_then(News::read) {
                    Some(news) => link.take(news),
                    None => break,
                }
            }
            () = sleep(IDLE) => {
                link.send_overdue(&mut link.state());
                if retire(&link, &launcher).await {
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
async fn retire(link: &Arc<Link>, launcher: &Weak<Shared>) -> bool {
    let Some(shared) = launcher.upgrade() else {
        return link.is_idle();
    };
    let mut current = shared.current.lock().await;
    let is_idle = link.is_idle();
    if is_idle {
        *current = None;
    }
    is_idle
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{PipeWriter, pipe};
    use std::pin::pin;
    use std::task::Poll;

    use super::*;
    use crate::hook::launch::stand_in;

    /// Streams, and what keeps whoever has them waiting.
    fn streams() -> ([OwnedFd; 3], PipeWriter) {
        let (its_stdin, stdin) = pipe().expect("a pipe");
        let its_stdout = its_stdin.try_clone().expect("a descriptor");
        let its_stderr = its_stdin.try_clone().expect("a descriptor");
        let streams = [its_stdin.into(), its_stdout.into(), its_stderr.into()];
        (streams, stdin)
    }

    /// Released unheard, as when its entry in the process table could not be read: those that run must not pay for it.
    #[tokio::test]
    async fn one_that_is_released_before_its_end_costs_nobody_else_his() {
        let launcher = stand_in();
        let ((its, stays), (others, ends)) = (streams(), streams());
        let running = launcher.start(its).await.expect("it starts");
        let released = launcher.start(others).await.expect("it starts");
        released.link.release(released.pid);
        drop(ends);
        // Comes behind the release.
        let ((third, also_ends), patience) = (streams(), START_WAIT);
        let third = launcher.start(third).await.expect("it starts");
        drop(also_ends);
        let end = timeout(patience, third.end).await.expect("in time");
        assert_eq!(end.map(|end| end.status), Ok(0));
        assert!(!running.link.is_gone(), "the launcher lives");
        drop(stays);
        let end = timeout(patience, running.end).await.expect("in time");
        assert_eq!(end.map(|end| end.status), Ok(0));
    }

    /// An answer belongs to whoever wished for it, and a wish that was never sent has none.
    #[tokio::test]
    async fn a_wish_that_is_given_up_takes_nobodys_answer() {
        let launcher = stand_in();
        {
            let (given_up, _stdin) = streams();
            let mut wish = pin!(launcher.start(given_up));
            let first = poll_fn(|context| Poll::Ready(wish.as_mut().poll(context))).await;
            assert!(first.is_pending());
        }
        let (its, stdin) = streams();
        let started = launcher.start(its).await.expect("it starts");
        drop(stdin);
        let end = timeout(START_WAIT, started.end).await.expect("in time");
        assert_eq!(end.map(|end| end.status), Ok(0));
    }
}
