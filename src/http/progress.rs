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

    /// The request's body was read whole: from now on it is answered, whoever wants its place.
    pub(super) fn whole(&self) {
        let mut state = self.lock();
        if state.phase == Phase::Body {
            // Without a look at the clock: nobody asks since when.
            state.phase = Phase::Busy;
            state.unread = false;
        }
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

    /// Everything handed to the socket is out. True when that ended an answer.
    pub(super) fn flushed(&self) -> bool {
        let mut state = self.lock();
        state.unwritten_since = None;
        let answered = state.phase == Phase::Answering && !state.flows;
        if answered {
            state.enter(Phase::Idle);
        }
        answered
    }

    /// The socket is shut for writing. True when bytes may still be on their way, which, left unread, would make the
    /// kernel answer with a reset and so destroy the answer (a body not read to its end, a head too long).
    pub(super) fn lingers(&self) -> bool {
        let mut state = self.lock();
        let lingers = state.phase != Phase::Evicted
            && state.sends != Sends::NoMore
            && (state.unread || state.phase == Phase::Head);
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
            .unwritten_since
            .map(|since| (since + limits.write_time, Late::Write));
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

    /// From when on the connection may be asked to make room; `None` while a whole request is in progress.
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
            Phase::Busy | Phase::Answering | Phase::Evicted => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Length = Length::Known(0);

    fn makes_room(progress: &Progress) -> bool {
        progress.ask();
        progress.gives_way()
    }

    #[test]
    fn a_request_makes_room_until_its_body_is_whole_and_again_when_it_is_answered() {
        let progress = Progress::new();
        progress.received(b"GET / HTTP");
        progress.begin(true, NONE);
        assert!(progress.may_leave_at().is_some());
        progress.whole();
        assert!(progress.may_leave_at().is_none());
        assert!(!makes_room(&progress));
        progress.answered(false);
        assert!(!makes_room(&progress));
        assert!(progress.flushed());
        assert!(makes_room(&progress));
        assert!(progress.is_evicted());

        let half = Progress::new();
        half.begin(true, NONE);
        assert!(makes_room(&half));
    }

    #[test]
    fn a_request_that_begins_after_the_asking_is_not_what_was_asked() {
        let progress = Progress::new();
        progress.begin(false, NONE);
        progress.answered(false);
        assert!(progress.flushed());
        progress.ask();
        progress.received(b"GET / HTTP");
        progress.begin(true, NONE);
        assert!(!progress.gives_way());
        assert!(!progress.is_asked());
    }

    #[test]
    fn a_newcomer_is_left_alone_for_a_moment_and_an_idle_one_is_not() {
        let before = Instant::now();
        let progress = Progress::new();
        let moment = Duration::from_millis(1);
        assert!(progress.may_leave_at() > Some(before + moment));
        progress.begin(true, NONE);
        assert!(progress.may_leave_at() > Some(before + moment));
        progress.answered(false);
        assert!(progress.flushed());
        assert!(progress.may_leave_at() <= Some(Instant::now()));
    }

    #[test]
    fn a_client_that_asks_and_never_reads_does_not_renew_its_time() {
        let limits = Limits::default();
        let progress = Progress::new();
        progress.begin(false, NONE);
        progress.answered(false);
        let first = progress.deadline(&limits);
        assert!(matches!(first, Some((_, Late::Write))));
        progress.begin(false, NONE);
        progress.answered(false);
        assert_eq!(progress.deadline(&limits), first);
    }

    /// A page of what happens is open for hours: it is neither idle nor in nobody's use, and what counts is whether it is read.
    #[test]
    fn an_answer_that_goes_on_is_in_progress_until_it_has_flowed_out() {
        let limits = Limits::default();
        let progress = Progress::new();
        progress.begin(false, NONE);
        progress.flows();
        progress.answered(false);
        assert!(matches!(progress.deadline(&limits), Some((_, Late::Write))));
        assert!(!progress.flushed(), "it goes on");
        assert_eq!(progress.deadline(&limits), None, "all of it is read");
        assert!(!makes_room(&progress));
        assert_eq!(progress.stand(), Stand::Request);

        progress.flows_on();
        let first = progress.deadline(&limits);
        assert!(matches!(first, Some((_, Late::Write))));
        progress.flows_on();
        assert_eq!(progress.deadline(&limits), first, "its time is not renewed");

        progress.flowed_out();
        assert!(progress.flushed());
        assert!(matches!(progress.deadline(&limits), Some((_, Late::Idle))));
        assert!(makes_room(&progress));
    }

    #[test]
    fn the_first_byte_does_not_renew_the_time_for_the_head() {
        let limits = Limits::default();
        let progress = Progress::new();
        let silent = progress.deadline(&limits);
        progress.received(b"G");
        assert_eq!(progress.deadline(&limits), silent);
    }
}
