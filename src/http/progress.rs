//! How far one connection has come, and by when it must have come further.
//!
//! Shared by the connection's own task, which moves it, and the accept loop, which only asks who has been waiting and
//! may take a connection that has no request in progress. The lock decides between the two: a connection is either
//! busy or taken, never both.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use super::Limits;

/// How long a client may take to notice that it was refused and to close, so that the answer is not lost to a reset.
const LINGER_TIME: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing of a first request yet.
    Fresh,
    /// Part of a request's head has come.
    Head,
    /// A request is with the service.
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
    /// Part of a head has come.
    Head,
    /// A request is with the service or its answer under way.
    Request,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Start of the phase.
    since: Instant,
    /// Since when an answer has been waiting to be written. Not reset by a further, pipelined answer: a client that
    /// only asks and never reads must not renew its time by asking.
    unwritten_since: Option<Instant>,
    /// The request in progress has a body that may not have been read to its end.
    unread: bool,
    /// The client will send nothing more.
    ended: bool,
}

/// One connection's progress.
#[derive(Debug)]
pub(super) struct Progress {
    state: Mutex<State>,
    evicted: Notify,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                phase: Phase::Fresh,
                since: Instant::now(),
                unwritten_since: None,
                unread: false,
                ended: false,
            }),
            evicted: Notify::new(),
        }
    }

    /// Bytes came in; none means that the client will send nothing more.
    pub(super) fn received(&self, bytes: usize) {
        let mut state = self.lock();
        if bytes == 0 {
            state.ended = true;
            return;
        }
        match state.phase {
            // The head's time runs from the connection on, so that one byte at the end buys nothing.
            Phase::Fresh => state.phase = Phase::Head,
            Phase::Idle => state.enter(Phase::Head),
            Phase::Head | Phase::Busy | Phase::Answering | Phase::Lingering | Phase::Evicted => {}
        }
    }

    /// A request's head is complete. False when the connection was taken in the same moment: the request must not
    /// reach the service then.
    pub(super) fn begin(&self, has_body: bool) -> bool {
        let mut state = self.lock();
        if state.phase == Phase::Evicted {
            return false;
        }
        state.enter(Phase::Busy);
        state.unread = has_body;
        true
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

    /// Everything handed to the socket is out. True when that ended an answer.
    pub(super) fn flushed(&self) -> bool {
        let mut state = self.lock();
        state.unwritten_since = None;
        let answered = state.phase == Phase::Answering;
        if answered {
            state.enter(Phase::Idle);
        }
        answered
    }

    /// The socket is shut for writing. True when bytes may still be on their way, which, left unread, would make the
    /// kernel answer with a reset and so destroy the answer (a body not read to its end, a head too long).
    pub(super) fn lingers(&self) -> bool {
        let mut state = self.lock();
        let lingers = !state.ended && (state.unread || state.phase == Phase::Head);
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
            Phase::Busy | Phase::Answering | Phase::Evicted => None,
        };
        let of_answer = state
            .unwritten_since
            .map(|since| (since + limits.write_time, Late::Write));
        of_phase
            .into_iter()
            .chain(of_answer)
            .min_by_key(|(at, _)| *at)
    }

    /// Since when the connection has been without a request in progress; `None` while one is.
    pub(super) fn waiting_since(&self) -> Option<Instant> {
        let state = self.lock();
        state.is_waiting().then_some(state.since)
    }

    /// What a stop would interrupt.
    pub(super) fn stand(&self) -> Stand {
        match self.lock().phase {
            Phase::Fresh | Phase::Idle | Phase::Lingering | Phase::Evicted => Stand::Between,
            Phase::Head => Stand::Head,
            Phase::Busy | Phase::Answering => Stand::Request,
        }
    }

    /// Takes the connection unless a request is in progress; its task then ends. True when it was taken.
    pub(super) fn evict(&self) -> bool {
        let mut state = self.lock();
        let taken = state.is_waiting();
        if taken {
            state.enter(Phase::Evicted);
            drop(state);
            self.evicted.notify_one();
        }
        taken
    }

    /// Resolves when the connection was taken. For its own task alone.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
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

    fn is_waiting(&self) -> bool {
        match self.phase {
            Phase::Fresh | Phase::Head | Phase::Idle | Phase::Lingering => true,
            Phase::Busy | Phase::Answering | Phase::Evicted => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_in_progress_cannot_be_taken_and_a_taken_connection_gets_no_request() {
        let busy = Progress::new();
        busy.received(10);
        assert!(busy.begin(false));
        assert!(!busy.evict());
        busy.answered(false);
        assert!(!busy.evict());
        assert!(busy.flushed());
        assert!(busy.evict());
        assert!(!busy.begin(false));
    }

    #[test]
    fn a_client_that_asks_and_never_reads_does_not_renew_its_time() {
        let limits = Limits::default();
        let progress = Progress::new();
        assert!(progress.begin(false));
        progress.answered(false);
        let first = progress.deadline(&limits);
        assert!(matches!(first, Some((_, Late::Write))));
        assert!(progress.begin(false));
        progress.answered(false);
        assert_eq!(progress.deadline(&limits), first);
    }

    #[test]
    fn the_first_byte_does_not_renew_the_time_for_the_head() {
        let limits = Limits::default();
        let progress = Progress::new();
        let silent = progress.deadline(&limits);
        progress.received(1);
        assert_eq!(progress.deadline(&limits), silent);
    }
}
