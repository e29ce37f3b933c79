//! How far one connection has come, and by when it must have come further.
//!
//! Shared by the connection's own task, which moves it, and the accept loop, which looks who may be asked to make room
//! and asks. The answer is the task's own: it reads what is there first, so that a request that has come whole is served
//! and not lost to a newcomer. Only the task moves the phase, so a request is either answered or evicted, never both.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use super::Limits;
use super::head::{Heads, Length, Told};

/// How long a client may take to notice that it was refused and to close, so that the answer is not lost to a reset.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// How long a connection is left alone before it may be asked to make room for want of a whole request. Long enough for
/// bytes that are there already to be looked at, and for most senders' first ones to arrive: otherwise, with all others
/// busy, each newcomer would push out the one before it. Short, since a wall passes at the cap's number of connections
/// in this time.
pub(super) const GRACE: Duration = Duration::from_millis(50);

/// How long a client may leave its answers unread, all in all, before another may have its place. No round trip takes as
/// long; a sender that has hung up or stands still loses nothing that it looks at.
const STUCK: Duration = Duration::from_secs(1);

/// What each byte that was taken is worth of the time that answers waited, microseconds: 62 KiB in a second, which any sender
/// reads, and whoever only wants to keep its place does not.
const BYTE_US: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing of a first request yet.
    Fresh,
    /// Part of a request's head has come.
    Head,
    /// A request is with the service, its body not read whole. Nothing was decided on it, so it may make room: half
    /// bodies cost a client nothing and would wall off the listener.
    Body,
    /// A request is with the service, read whole.
    Busy,
    /// The service has answered; the answer is being written.
    Answering,
    /// The answer is out; nothing of the next request yet.
    Idle,
    /// Refused and shut for writing; waiting for the client to notice.
    Lingering,
    /// Closed by the accept loop to make room.
    Evicted,
}

/// Why a connection's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The head was not complete in time.
    Head,
    /// No further request in time.
    Idle,
    /// The client does not read its answer.
    Write,
    /// A refused client did not close; that is no news.
    Linger,
}

/// What a stop finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Not a byte of a request would be lost by closing now.
    Between,
    /// Nothing has come yet from a client that connected then.
    Fresh(Instant),
    /// Part of a head has come.
    Head,
    /// A request is with the service or its answer under way.
    Request,
}

/// Whether more may come from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sends {
    /// It may.
    On,
    /// It may, and the service wants to be told when it may not.
    Watched,
    /// It has sent more before it was answered, so that it cannot be told when it may not.
    Ahead,
    /// It does not.
    NoMore,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Start of the phase; of a request that was read whole, of its body's.
    since: Instant,
    /// Since when an answer has been waiting to be written. Not reset by a further, pipelined answer: a client that
    /// only asks and never reads must not renew its time by asking.
    unwritten_since: Option<Instant>,
    /// How long earlier answers waited to be read, less what was earned by reading. It ends with the connection alone, so
    /// that a client which reads a little now and then renews no time by it.
    waited: Duration,
    /// The answer under way goes on until somebody ends it.
    flows: bool,
    /// The request in progress has a body that may not have been read to its end.
    unread: bool,
    sends: Sends,
    /// The start of the phase in which the connection was asked to make room, until its task has answered.
    asked: Option<Instant>,
    heads: Heads,
}

/// One connection's progress.
#[derive(Debug)]
pub(super) struct Progress {
    state: Mutex<State>,
    asked: Notify,
    ended: Notify,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Fresh,
                since: Instant::now(),
                unwritten_since: None,
                waited: Duration::ZERO,
                flows: false,
                unread: false,
                sends: Sends::On,
                asked: None,
                heads: Heads::default(),
            }),
            asked: Notify::new(),
            ended: Notify::new(),
        }
    }

    /// Bytes came in; none means that the client will send nothing more.
    pub(super) fn received(&self, bytes: &[u8]) {
        let mut state = self.lock();
        if bytes.is_empty() {
            state.sends = Sends::NoMore;
            drop(state);
            self.ended.notify_one();
            return;
        }
        state.heads.received(bytes);
        match state.phase {
            // The head's time runs from the connection on, so that one byte at the end buys nothing.
            Phase::Fresh => state.phase = Phase::Head,
            Phase::Idle => state.enter(Phase::Head),
            Phase::Head
            | Phase::Body
            | Phase::Busy
            | Phase::Answering
            | Phase::Lingering
            | Phase::Evicted => {}
        }
    }

    /// More than the request in progress came in, which nobody reads before its answer is out.
    pub(super) fn sent_ahead(&self) {
        let mut state = self.lock();
        if state.sends == Sends::Watched {
            state.sends = Sends::Ahead;
            drop(state);
            self.ended.notify_one();
        }
    }

    /// Resolves once the client will send nothing more, or cannot be watched for that. For one who asks at a time.
    pub(super) async fn ended(&self) {
        while self.watch() == Sends::Watched {
            self.ended.notified().await;
        }
    }

    fn watch(&self) -> Sends {
        let mut state = self.lock();
        if state.sends == Sends::On {
            state.sends = Sends::Watched;
        }
        state.sends
    }

    /// Somebody waits for [`Self::ended`], which has not come.
    pub(super) fn is_watched(&self) -> bool {
        self.lock().sends == Sends::Watched
    }

    /// A request's head is complete. Returns when that was, and what it says of the body's length.
    pub(super) fn begin(&self, has_body: bool, length: Length) -> (Instant, Told) {
        let mut state = self.lock();
        let told = state.heads.complete(length);
        state.enter(if has_body { Phase::Body } else { Phase::Busy });
        state.unread = has_body;
        // Whoever watched did so for the request before.
        if let Sends::Watched | Sends::Ahead = state.sends {
            state.sends = Sends::On;
        }
        (state.since, told)
    }

    /// Not all of the request's body has come with its head.
    pub(super) fn is_body_to_come(&self) -> bool {
        self.lock().heads.is_body_to_come()
    }

    /// The request's body was read whole: from now on it is answered, whoever wants its place.
    pub(super) fn whole(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Body {
            // Without a look at the clock: nobody asks since when.
            state.phase = Phase::Busy;
            state.unread = false;
        }
    }

    /// The request in progress has a body that was not read to its end.
    pub(super) fn is_half_read(&self) -> bool {
        self.lock().phase == Phase::Body
    }

    /// The service has answered.
    pub(super) fn answered(&self, unread: bool) {
        let mut state = self.lock();
        if state.phase == Phase::Evicted {
            return;
        }
        state.enter(Phase::Answering);
        state.unread = unread;
        state.unwritten_since = state.unwritten_since.or(Some(state.since));
    }

    /// The answer that is under way goes on; each of its pieces has its own time to be written.
    pub(super) fn flows(&self) {
        self.lock().flows = true;
    }

    /// An answer that goes on is under way.
    pub(super) fn is_flowing(&self) -> bool {
        self.lock().flows
    }

    /// Another piece of it is being written.
    pub(super) fn flows_on(&self) {
        let mut state = self.lock();
        state.unwritten_since = state.unwritten_since.or_else(|| Some(Instant::now()));
    }

    /// It has come to its end, which is being written.
    pub(super) fn flowed_out(&self) {
        self.lock().flows = false;
        self.flows_on();
    }

    /// Everything handed to the socket is out, so many bytes since the last time. True when that ended an answer.
    pub(super) fn flushed(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        let answered = state.phase == Phase::Answering && !state.flows;
        let Some(since) = state.unwritten_since.take() else {
            if answered {
                state.enter(Phase::Idle);
            }
            return answered;
        };
        let now = Instant::now();
        state.waited = if state.flows {
            // It keeps its place for as long as it flows, and all of it so far was taken.
            Duration::ZERO
        } else {
            let earned = Duration::from_micros(bytes.saturating_mul(BYTE_US));
            (state.waited + (now - since)).saturating_sub(earned)
        };
        if answered {
            (state.phase, state.since) = (Phase::Idle, now);
        }
        answered
    }

    /// An answer waits to be read.
    pub(super) fn is_unread(&self) -> bool {
        self.lock().unwritten_since.is_some()
    }

    /// The socket is shut for writing. True when bytes may still be on their way, which, left unread, would make the
    /// kernel answer with a reset and so destroy the answer (a body not read to its end, a head too long).
    pub(super) fn lingers(&self) -> bool {
        let mut state = self.lock();
        let lingers = state.phase != Phase::Evicted
            && state.sends != Sends::NoMore
            && (state.unread || state.phase == Phase::Head || state.heads.has_begun());
        if lingers {
            state.enter(Phase::Lingering);
        }
        lingers
    }

    /// Until when the connection may go on like this, and what it is called when it does not.
    pub(super) fn deadline(&self, limits: &Limits) -> Option<(Instant, Late)> {
        let state = self.lock();
        let of_phase = match state.phase {
            Phase::Fresh | Phase::Head => Some((state.since + limits.header_time, Late::Head)),
            Phase::Idle => Some((state.since + limits.idle_time, Late::Idle)),
            Phase::Lingering => Some((state.since + LINGER_TIME, Late::Linger)),
            // The body's time is kept by its reader, which can still answer.
            Phase::Body | Phase::Busy | Phase::Answering | Phase::Evicted => None,
        };
        let of_answer = state
            .unwritten_for(limits.write_time)
            .map(|at| (at, Late::Write));
        of_phase
            .into_iter()
            .chain(of_answer)
            .min_by_key(|(at, _)| *at)
    }

    /// A request was read whole and its answer is not out yet.
    pub(super) fn is_awaited(&self) -> bool {
        match self.lock().phase {
            Phase::Busy | Phase::Answering => true,
            Phase::Fresh
            | Phase::Head
            | Phase::Body
            | Phase::Idle
            | Phase::Lingering
            | Phase::Evicted => false,
        }
    }

    /// From when on the connection may be asked to make room; `None` while a whole request is in progress whose answer the
    /// client does not leave unread.
    pub(super) fn may_leave_at(&self) -> Option<Instant> {
        self.lock().may_leave_at()
    }

    /// What a stop would interrupt.
    pub(super) fn stand(&self) -> Stand {
        let state = self.lock();
        match state.phase {
            Phase::Fresh => Stand::Fresh(state.since),
            Phase::Idle | Phase::Lingering | Phase::Evicted => Stand::Between,
            Phase::Head => Stand::Head,
            Phase::Body | Phase::Busy | Phase::Answering => Stand::Request,
        }
    }

    /// Asks the connection to make room. Its task answers by ending or with [`Self::gives_way`] being false.
    pub(super) fn ask(&self) {
        let mut state = self.lock();
        state.asked = Some(state.since);
        drop(state);
        self.asked.notify_one();
    }

    /// True from [`Self::ask`] until the connection's task has answered.
    pub(super) fn is_asked(&self) -> bool {
        self.lock().asked.is_some()
    }

    /// Resolves when the connection was asked to make room. For its own task alone.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// The task's answer, once it has read what was there: true when it makes room and has to end. False when a request
    /// has become whole meanwhile, or one has begun: others have been waiting for longer then.
    pub(super) fn gives_way(&self) -> bool {
        let mut state = self.lock();
        let asked = state.asked.take();
        let gives_way = state.may_leave_at().is_some() && asked == Some(state.since);
        if gives_way {
            state.enter(Phase::Evicted);
        }
        gives_way
    }

    /// The connection makes room; its request, if any, must not be decided on.
    pub(super) fn is_evicted(&self) -> bool {
        self.lock().phase == Phase::Evicted
    }

    /// A panic while it is held cannot leave a half-made state: every method writes plain fields.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = Instant::now();
    }

    fn may_leave_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Fresh | Phase::Head | Phase::Body => Some(self.since + GRACE),
            // Both have had their answer.
            Phase::Idle | Phase::Lingering => Some(self.since),
            // In progress; but who does not read its answers keeps nobody else out.
            Phase::Busy | Phase::Answering => self.unwritten_for(STUCK),
            Phase::Evicted => None,
        }
    }

    /// When the client will have left its answers unread for so long, all in all; `None` when none is unread now.
    fn unwritten_for(&self, time: Duration) -> Option<Instant> {
        let since = self.unwritten_since?;
        Some(since + time.saturating_sub(self.waited))
    }
}
