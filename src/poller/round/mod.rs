//! The poller's loop: when to look, when to ask, and how many at once. What is looked at and asked is behind [`Work`], so
//! that the loop runs in virtual time in its tests.
//!
//! Who is asked about is chosen when the gate's turn has come and not before: whoever became due while the turn was waited
//! for is chosen as if it had always been there. Between the looks it sleeps until the next due time it knows of, and never
//! spins: when what is due cannot be asked about, only the bell, a wake or the end of a question brings the next look. Of
//! several places one is never taken by an invoice of a patient class.

use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Bell;
use crate::client::gate::{Gate, Permit};
use crate::fault;
use crate::invoice::silence::Class;
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;
use crate::wake::Wake;

/// Rings that may fail to come before a look is made all the same and the bell is built anew.
pub(super) const MISSED_RINGS: u32 = 3;
/// The next due time is never waited for shorter than this.
const SHORTEST_SLEEP: Duration = Duration::from_millis(10);

/// What a look found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Something is due and may be asked about.
    pub(super) wants: bool,
    /// Something may be asked about after this time, if nothing is now.
    pub(super) next_in: Option<Duration>,
}

/// A question that was chosen.
#[derive(Debug)]
pub(super) struct Chosen<Q> {
    /// The question.
    pub(super) question: Q,
    /// Its class.
    pub(super) class: Class,
    /// More is due behind it.
    pub(super) more: bool,
}

/// What the loop drives.
pub(super) trait Work: Send {
    /// A question.
    type Question: Send;
    /// What became of it.
    type Ended: Send + 'static;

    /// Looks at what is due, and does what needs no question.
    fn look(&mut self) -> impl Future<Output = Seen> + Send;
    /// The most pressing question at this moment; its turn has come. `None` when there is none after all. Old ones are
    /// chosen among only when there is a place for them.
    fn choose(
        &mut self,
        old_too: bool,
    ) -> impl Future<Output = Option<Chosen<Self::Question>>> + Send;
    /// How long until something is due that is not yet, a cheap look.
    fn next_in(&mut self) -> impl Future<Output = Option<Duration>> + Send;
    /// Asks a question that was chosen.
    fn ask(
        &mut self,
        question: Self::Question,
        permit: Permit,
    ) -> impl Future<Output = Self::Ended> + Send + 'static;
    /// A question has ended.
    fn ended(&mut self, ended: Self::Ended) -> impl Future<Output = ()> + Send;
}

/// How often, and how many at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beat {
    /// How often the bell rings.
    pub(super) cadence: Duration,
    /// Questions under way at once, until their answers are recorded.
    pub(super) at_once: usize,
}

struct Round<W: Work> {
    work: W,
    /// Questions under way, and their classes.
    asking: JoinSet<(Class, W::Ended)>,
    /// How many of them are old ones.
    old_under_way: usize,
    /// Old ones under way at most: slow answers about them must not take the last place from a young one.
    old_at_once: usize,
    /// An old one may be due, and waits for another to end.
    old_waits: bool,
    /// Something is due and may be asked about, as far as is known.
    wants: bool,
    /// The next look, if nothing comes before it.
    next: Option<Instant>,
}

/// Runs until the stop is requested. Questions under way are dropped then: an answer not recorded is asked for again.
pub(super) async fn run<W: Work>(
    work: W,
    gate: Gate,
    beat: Beat,
    mut bell: impl Bell,
    (wake, pulse): (Wake, Pulse),
    shutdown: Shutdown,
) {
    let mut round = Round {
        work,
        asking: JoinSet::new(),
        old_under_way: 0,
        old_at_once: beat.at_once.saturating_sub(1).max(1),
        old_waits: false,
        wants: false,
        next: None,
    };
    let patience = beat.cadence * MISSED_RINGS;
    let mut rung_by = Instant::now() + patience;
    round.look().await;
    loop {
        pulse.turn();
        fault::point("poller");
        let has_room = round.asking.len() < beat.at_once;
        let next = round.next.filter(|_| !round.wants);
        tokio::select! {
            () = shutdown.requested() => break,
            () = wake.rung() => round.look().await,
            rung = timeout_at(rung_by, bell.rung()) => {
                if rung.is_err() {
                    tracing::warn!(patience_s = patience.as_secs(), "the poller's bell has not rung: looking all the same");
                    bell.renew().await;
                }
                rung_by = Instant::now() + patience;
                round.look().await;
            }
            Some(ended) = round.asking.join_next() => round.ended(ended).await,
            () = sleep_until(next.unwrap_or(rung_by)), if next.is_some() => round.look().await,
            permit = gate.admit(), if round.wants && has_room => round.turn(permit).await,
        }
    }
    round.asking.shutdown().await;
}

impl<W: Work> Round<W> {
    async fn look(&mut self) {
        let Seen { wants, next_in } = self.work.look().await;
        self.wants = wants;
        self.sleep_for(next_in);
    }

    /// The gate's turn has come.
    async fn turn(&mut self, permit: Permit) {
        let old_too = self.old_under_way < self.old_at_once;
        if let Some(chosen) = self.work.choose(old_too).await {
            let (class, asking) = (chosen.class, self.work.ask(chosen.question, permit));
            self.asking.spawn(async move { (class, asking.await) });
            self.old_under_way += usize::from(class.is_patient());
            self.wants = chosen.more;
        } else {
            permit.unused();
            self.wants = false;
        }
        // No old one was looked at: the end of another says that it is its turn.
        self.old_waits = !self.wants && !old_too;
        if !self.wants {
            self.look_ahead().await;
        }
    }

    /// A question ended: it may be due again sooner than anything else.
    async fn ended(&mut self, ended: Result<(Class, W::Ended), JoinError>) {
        match ended {
            Ok((class, ended)) => {
                if class.is_patient() {
                    self.old_under_way = self.old_under_way.saturating_sub(1);
                    self.wants |= std::mem::take(&mut self.old_waits);
                }
                self.work.ended(ended).await;
            }
            // A panic in one question is a bug, and the process ends by it as by one in the loop itself.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_cancelled) => {}
        }
        if !self.wants {
            self.look_ahead().await;
        }
    }

    async fn look_ahead(&mut self) {
        let next_in = self.work.next_in().await;
        self.sleep_for(next_in);
    }

    fn sleep_for(&mut self, next_in: Option<Duration>) {
        self.next = next_in.and_then(|wait| Instant::now().checked_add(wait.max(SHORTEST_SLEEP)));
    }
}

#[cfg(test)]
mod tests;
