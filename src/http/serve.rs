//! The accept loop: takes connections, makes room, keeps every task it started, and stops in time.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Duration, Instant, sleep_until};

use super::accept::{Accept, Complaint, PAUSE, Stream, is_of_the_connection};
use super::connection::{self, End, Shared};
use super::full::Full;
use super::progress::{Late, Progress};
use super::{Limits, Refused, Service, Unserved};
use crate::news;
use crate::panics::contained;
use crate::shutdown::Shutdown;

/// What a listener did in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed to make room for others.
    pub evicted: u64,
    /// Connections closed because a request's head did not come in time.
    pub slow_heads: u64,
    /// Connections closed because no further request came in time.
    pub idle: u64,
    /// Connections closed because the client did not read its answer.
    pub slow_readers: u64,
    /// Requests whose service panicked; each was answered 500.
    pub panics: u64,
    /// Times the system had no connection to give, most often for want of descriptors.
    pub accept_errors: u64,
    /// Newcomers answered 503 since every connection was taken.
    pub turned_away: u64,
    /// Connections cut at the end of the drain, a request still in progress.
    pub cut: u64,
}

/// Serves `listener` until `shutdown` is requested, then closes what is idle, finishes what is in progress within
/// `drain`, and cuts the rest. Returns when every connection has ended.
pub(crate) async fn serve<S: Service<Peer = SocketAddr>>(
    listener: TcpListener,
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    run(listener, limits, service, shutdown, drain).await
}

/// [`serve`] for any source of connections.
pub(super) async fn run<A: Accept, S: Service<Peer = A::Peer>>(
    source: A,
    limits: Limits,
    service: S,
    shutdown: Shutdown,
    drain: Duration,
) -> Served {
    let mut serving = Serving {
        shared: Arc::new(Shared {
            service,
            limits,
            shutdown: shutdown.clone(),
            freed: Arc::new(Notify::new()),
            panics: AtomicU64::new(0),
            pressed: AtomicBool::new(false),
        }),
        tasks: JoinSet::new(),
        open: HashMap::new(),
        asked: None,
        served: Served::default(),
        complaint: Complaint::default(),
        full: Full::default(),
    };
    serving.accept_until_stop(&source, &shutdown).await;
    // Closed before the drain, so that clients are refused at once instead of waiting in a backlog nobody reads.
    drop(source);
    serving.drain(drain).await;
    serving.served.panics = serving.shared.panics.load(Ordering::Relaxed);
    serving.served
}

struct Serving<S> {
    shared: Arc<Shared<S>>,
    tasks: JoinSet<End>,
    /// The progress of every task in `tasks`.
    open: HashMap<Id, Arc<Progress>>,
    /// The connection that was asked last to make room.
    asked: Option<Id>,
    served: Served,
    complaint: Complaint,
    full: Full,
}

impl<S: Service> Serving<S> {
    /// At the cap one newcomer is held in hand, unread, until one without a whole request makes room for it or a busy one
    /// is done, or [`Limits::full_time`] is over; the others stay in the backlog. Deciding before accepting would not do: the connection that could have made
    /// room may have become busy by the time a newcomer is there.
    async fn accept_until_stop<A: Accept<Peer = S::Peer>>(
        &mut self,
        source: &A,
        shutdown: &Shutdown,
    ) {
        let freed = Arc::clone(&self.shared.freed);
        let mut in_hand = None;
        loop {
            let mut later = None;
            let is_pressed = in_hand.is_some() && self.open.len() >= self.shared.limits.connections;
            self.shared.pressed.store(is_pressed, Ordering::Relaxed);
            if is_pressed {
                later = self.ask_for_room();
                if let Some(at) = self.turns_away_at() {
                    if at <= Instant::now()
                        && let Some((io, peer)) = in_hand.take()
                    {
                        self.served.turned_away += 1;
                        self.shared.service.unserved(Unserved::Full, &peer);
                        let answer = self.shared.service.refuses(Refused::Full);
                        self.full.turn_away(io, answer);
                        continue;
                    }
                    later = Some(later.map_or(at, |later| later.min(at)));
                }
            } else if let Some((io, peer)) = in_hand.take() {
                self.full.ends();
                self.admit(io, peer);
            }
            tokio::select! {
                () = shutdown.requested() => break,
                Some(ended) = self.tasks.join_next_with_id() => self.note(ended),
                accepted = source.accept(), if in_hand.is_none() => match accepted {
                    Ok(newcomer) => in_hand = Some(newcomer),
                    Err(error) if is_of_the_connection(&error) => {}
                    Err(error) => self.endure(&error, shutdown).await,
                },
                () = freed.notified(), if in_hand.is_some() => {}
                () = self.full.left() => {}
                () = until(later), if later.is_some() => {}
            }
        }
        // It was accepted, and nobody else will answer it: one more than there is room for, at the stop.
        if let Some((io, peer)) = in_hand {
            self.admit(io, peer);
        }
    }

    /// When the newcomer in hand is turned away, if it finds no room before; never while as many are as can be.
    fn turns_away_at(&mut self) -> Option<Instant> {
        let within = self.shared.limits.full_time?;
        let at = self.full.turns_away_at(within);
        self.full.has_hands().then_some(at)
    }

    fn admit<I>(&mut self, io: I, peer: S::Peer)
    where
        I: Stream,
    {
        self.served.accepted += 1;
        let progress = Arc::new(Progress::new());
        let shared = Arc::clone(&self.shared);
        let serving = connection::run(io, peer, Arc::clone(&progress), shared);
        let task = self.tasks.spawn(contained(Box::pin(serving)));
        self.open.insert(task.id(), progress);
    }

    /// Waits a little after the system had no connection to give.
    async fn endure(&mut self, error: &io::Error, shutdown: &Shutdown) {
        self.served.accept_errors += 1;
        self.complaint.about(error);
        // A silent connection may hold the very descriptor that is missing.
        self.ask_for_room();
        tokio::select! {
            () = shutdown.requested() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }

    /// Asks the connection that has been without a whole request for longest to make room, unless one is still thinking
    /// it over: one at a time, so that no more go than have to. When none may be asked yet, the time at which one may.
    /// Looks at all of them, which happens only at the cap.
    fn ask_for_room(&mut self) -> Option<Instant> {
        let asked = self.asked.and_then(|id| self.open.get(&id));
        if asked.is_some_and(|progress| progress.is_asked()) {
            return None;
        }
        let (at, id, progress) = self
            .open
            .iter()
            .filter_map(|(id, progress)| Some((progress.may_leave_at()?, *id, progress)))
            .min_by_key(|(at, ..)| *at)?;
        if at > Instant::now() {
            return Some(at);
        }
        progress.ask();
        self.asked = Some(id);
        None
    }

    /// Books the end of a connection's task.
    fn note(&mut self, ended: Result<(Id, End), JoinError>) {
        match ended {
            Ok((id, end)) => {
                self.open.remove(&id);
                match end {
                    End::Late(Late::Head) => self.served.slow_heads += 1,
                    End::Late(Late::Idle) => self.served.idle += 1,
                    End::Late(Late::Write) => self.served.slow_readers += 1,
                    End::Evicted => self.served.evicted += 1,
                    End::Closed
                    | End::Broken
                    | End::Unread(_)
                    | End::Stopped
                    | End::Late(Late::Linger) => {}
                }
                tracing::trace!(?end, "connection ended");
            }
            Err(error) => {
                self.open.remove(&error.id());
                if error.is_panic() {
                    tracing::error!("a connection's task panicked");
                } else {
                    self.served.cut += 1;
                }
            }
        }
    }

    async fn drain(&mut self, within: Duration) {
        let all_ended = async {
            while let Some(ended) = self.tasks.join_next_with_id().await {
                self.note(ended);
            }
        };
        if news::within(within, all_ended).await.is_some() {
            return;
        }
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.note(ended);
        }
        tracing::warn!(
            http.cut = self.served.cut,
            "requests were still in progress at the end of the drain"
        );
    }
}

/// Sleeps until `at`; for ever when there is nothing to wait for.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
