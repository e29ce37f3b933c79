//! The load: notifications sent over loopback by one thread, closed loop (each connection has one request at a time) or open
//! loop (a given rate, whoever keeps up).
//!
//! Promises: an invoice has one request under way at a time and its notifications arrive in their order, so that each makes
//! an event, also from one run to the next. Latency counts from when a request was meant to be sent, so what waits for a free
//! connection is not hidden. What is not acknowledged is not forgotten: a refused notification is the invoice's next one
//! again, and an invoice whose request was lost, of which nobody knows what became, is not sent for any more.

mod connection;
mod drive;
mod latency;
mod request;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tilld::bench::Stocked;

pub(crate) use self::latency::Latency;

use self::drive::Drive;
use self::request::Request;

/// Invoices that notifications are about: those of a busy day.
pub(crate) const INVOICES: u32 = 2_000;

/// When requests are meant to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// As soon as a connection is free.
    Closed,
    /// At even distances.
    Open {
        /// How many in a second.
        per_second: f64,
    },
    /// At even distances, then at longer ones. Whoever meant to send before and found no free connection gives up then.
    Falling {
        /// How many in a second at first.
        per_second: f64,
        /// Until when, since the beginning of the run.
        until: Duration,
        /// How many in a second from then on.
        then: f64,
    },
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Connections that are kept open.
    pub(crate) connections: usize,
    /// When requests are meant to be sent.
    pub(crate) pace: Pace,
    /// Sent before what is measured.
    pub(crate) warm: Duration,
    /// What is measured.
    pub(crate) run: Duration,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Requests that were sent.
    pub(crate) sent: u64,
    /// Answered 200.
    pub(crate) acknowledged: u64,
    /// Answered otherwise.
    pub(crate) refused: u64,
    /// Not answered: the connection was lost, or no answer came in time.
    pub(crate) failed: u64,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// Requests that were meant to be sent while it was measured, and were.
    pub(crate) sent: u64,
    /// Answers 200 that came while it was measured.
    pub(crate) acknowledged: u64,
    /// Other answers that came while it was measured.
    pub(crate) refused: u64,
    /// How long it was measured.
    pub(crate) elapsed: Duration,
    /// Of answers 200 to requests meant to be sent while it was measured; with them those that should have been sent and
    /// never found a connection, as long as they had waited.
    pub(crate) latency: Latency,
    /// All of it, with what was before and what was still under way at the end: what the ledger is held against.
    pub(crate) whole: Tally,
}

impl Heard {
    /// Acknowledgements per second.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    pub(crate) fn rate(&self) -> f64 {
        self.acknowledged as f64 / self.elapsed.as_secs_f64()
    }
}

/// One answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// When its request was meant to be sent, since the beginning of the run.
    pub(crate) intended: Duration,
    /// When it came.
    pub(crate) came: Duration,
    /// Its status.
    pub(crate) status: u16,
}

/// Sends notifications for its invoices.
pub(crate) struct Sender {
    requests: Vec<Request>,
    /// Those without a request under way, the one that waits longest first.
    free: VecDeque<usize>,
}

impl Sender {
    /// For these invoices, none of which was notified of yet, to `path` and the ref.
    pub(crate) fn new(stocked: Vec<Stocked>, path: &'static str) -> Self {
        let requests = stocked.into_iter().map(|one| Request::new(&one, path));
        let requests: Vec<Request> = requests.collect();
        Self {
            free: (0..requests.len()).collect(),
            requests,
        }
    }

    /// Sends as planned.
    pub(crate) fn run(&mut self, address: SocketAddr, plan: &Plan) -> Heard {
        self.run_with(address, plan, |_answer| {})
    }

    /// Sends as planned, and shows every answer as it comes.
    pub(crate) fn run_with(
        &mut self,
        address: SocketAddr,
        plan: &Plan,
        mut show: impl FnMut(&Answer),
    ) -> Heard {
        Drive::begin(self, address, plan).run_out(&mut show)
    }

    /// How many notifications were acknowledged in all runs, by invoice in the order in which they were given.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = u64> {
        self.requests.iter().map(Request::acknowledged)
    }
}

/// Fails when the sender's own parts do not hold what they promise.
pub(crate) fn check() {
    latency::check();
    connection::check();
    request::check(&Stocked {
        number: 1,
        reference: "r".repeat(22),
        token: "t".repeat(22),
        invoice_id: format!("00000000-0000-4000-8000-{:012}", 1),
        order_id: format!("order-{:07}", 1),
    });
}
