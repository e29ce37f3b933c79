//! The one gate all requests of a process to the payment service pass: so many per second, so many at once, none while the
//! service wants to be left alone, and few while it gives no answers (A29).
//!
//! A place is taken by [`Gate::admit`] or [`Gate::admit_within`] and given back when the [`Permit`] ends, best with a
//! verdict on what the request met ([`Permit::ended`]); one that is dropped says nothing. Nothing is reserved ahead: a
//! caller that gives up while waiting costs nobody a turn, and a turn that was of no use is given back whole.
//!
//! Whoever a person waits for goes before the background, and tries even while the service gives no answers. After
//! [`IN_A_ROW`] of them the background has a turn, if it waits for nothing else: whoever asks without end, who holds no secret
//! and may be mistaken, does not keep the daemon from its own questions. What is decided is in [`door`], which is pure; here
//! it is only waited for and told.

pub(crate) mod door;
pub(crate) mod outage;
mod pace;
#[cfg(test)]
mod tests;
mod wishes;

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::retry_after;
use crate::entropy;
use door::{Door, Pass};
use outage::{Change, Verdict};
use wishes::Wishes;

/// Turns of those a person waits for, one after the other, while the background waits: the next is its own.
const IN_A_ROW: u32 = 4;

/// How much a process may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Requests per second, evenly spaced.
    pub per_second: NonZeroU32,
    /// Requests under way at the same time.
    pub at_once: NonZeroU32,
}

impl Default for Limits {
    /// 5 per second, 4 at once (design 7).
    fn default() -> Self {
        let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            per_second: number(5),
            at_once: number(4),
        }
    }
}

/// Who wants to send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A person or the shop waits for it.
    Operator,
    /// Nobody waits for it.
    Background,
}

/// What a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// This time, unless something changes before.
    Until(std::time::Instant),
    /// The end of another request.
    Change,
}

/// How the service stands with this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Since when it gives no answers, and what the last request met.
    pub outage: Option<(Instant, String)>,
    /// Until when it wants to be left alone.
    pub shut_until: Option<Instant>,
    /// It has answered a request of this process.
    pub answered: bool,
}

/// The gate. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Owned by the gate; held for a few instructions, never across an await.
    state: Mutex<State>,
    /// Told when a caller that waits should look again before the time it was given.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    door: Door,
    /// Which of the service's wishes are told.
    wishes: Wishes,
    /// Those who wait, in the order they came.
    operators: VecDeque<u64>,
    background: VecDeque<u64>,
    /// Turns that operators had since the background had one or had nobody waiting.
    in_a_row: u32,
    /// The last number given to one of them.
    number: u64,
}

impl State {
    fn line(&mut self, caller: Caller) -> &mut VecDeque<u64> {
        match caller {
            Caller::Operator => &mut self.operators,
            Caller::Background => &mut self.background,
        }
    }

    fn enter(&mut self, caller: Caller, number: u64, now: Instant) -> Result<Pass, Hold> {
        let is_first = self.line(caller).front() == Some(&number);
        let now = now.into_std();
        // One that an outage holds is waited for by nobody.
        let is_theirs = self.in_a_row >= IN_A_ROW
            && !self.background.is_empty()
            && !self.door.outage().holds_background(now);
        let gives_way = match caller {
            Caller::Operator => is_theirs,
            Caller::Background => !self.operators.is_empty() && !is_theirs,
        };
        if !is_first || gives_way {
            return Err(Hold::Change);
        }
        let pass = self.door.enter(caller, now)?;
        self.in_a_row = match caller {
            Caller::Operator if !self.background.is_empty() => self.in_a_row.saturating_add(1),
            Caller::Operator | Caller::Background => 0,
        };
        Ok(pass)
    }
}

/// The right to one request, until it ends or is dropped.
#[derive(Debug)]
#[must_use = "the place is given back when the permit ends: hold it until the answer is read"]
pub(crate) struct Permit {
    gate: Gate,
    pass: Option<Pass>,
}

/// The gate did not open within the time the caller had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payment service wants to be left alone for another {} s", opens_in.as_millis().div_ceil(1_000).max(1))]
pub(crate) struct Closed {
    /// How long until it is worth coming back.
    pub opens_in: Duration,
}

impl Gate {
    /// An open gate.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                door: Door::new(limits),
                wishes: Wishes::default(),
                operators: VecDeque::new(),
                background: VecDeque::new(),
                in_a_row: 0,
                number: 0,
            }),
            changed: Notify::new(),
        }))
    }

    /// Waits for a place and a turn, however long it takes, behind those for whom a person waits. Safe to drop while waiting.
    pub(crate) async fn admit(&self) -> Permit {
        self.wait(Caller::Background).await
    }

    /// Waits for a place and a turn before the background, an outage or not. Says at once when the service wants to be
    /// left alone for longer than `patience`, and gives up after it. For whatever a person waits for, and for a create,
    /// whose row must not outlive its request by hours.
    pub(crate) async fn admit_within(&self, patience: Duration) -> Result<Permit, Closed> {
        let deadline = Instant::now() + patience;
        let closed = self.shut_for();
        if closed > patience {
            return Err(Closed { opens_in: closed });
        }
        timeout_at(deadline, self.wait(Caller::Operator))
            .await
            .map_err(|_elapsed| Closed {
                opens_in: self.shut_for(),
            })
    }

    async fn wait(&self, caller: Caller) -> Permit {
        let place = InLine::new(self, caller);
        loop {
            // Registered before the look: a change that lands in between would otherwise be lost.
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let entered = self.with(|state| state.enter(caller, place.number, Instant::now()));
            match entered {
                Ok(pass) => {
                    let pass = Some(pass);
                    let gate = self.clone();
                    return Permit { gate, pass };
                }
                Err(Hold::Change) => changed.await,
                Err(Hold::Until(at)) => tokio::select! {
                    () = sleep_until(Instant::from_std(at)) => {}
                    () = changed => {}
                },
            }
        }
    }

    /// Shuts the gate for at least `wish`, and up to a quarter more so that a crowd does not come back in step. Clamped to
    /// [`retry_after::LONGEST`] before that. A shorter wish never undoes a longer one.
    pub(crate) fn heed(&self, wish: Duration) {
        let now = Instant::now().into_std();
        let (wait, is_told) = self.with(|state| {
            let wait = state.door.heed(wish, now, dice());
            (wait, state.wishes.tell(wish, now))
        });
        let wait_s = wait.as_secs();
        if is_told {
            tracing::warn!(
                wait_s,
                "the payment service wants to be left alone for {wait_s} s"
            );
        } else {
            tracing::debug!(
                wait_s,
                "the payment service wants to be left alone for {wait_s} s, again"
            );
        }
    }

    /// Shuts the gate for what is left of a wish that an earlier process heard and stretched already.
    pub(crate) fn heed_still(&self, left: Duration) {
        let now = Instant::now().into_std();
        self.with(|state| state.door.heed_still(left, now));
        tracing::info!(
            wait_s = left.as_secs(),
            "the payment service still wants to be left alone for {} s",
            left.as_secs()
        );
    }

    /// How long the gate is shut by the service's wish; zero when it is not.
    pub(crate) fn shut_for(&self) -> Duration {
        let now = Instant::now();
        self.view()
            .shut_until
            .map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// How the service stands with this process.
    pub(crate) fn view(&self) -> View {
        let now = Instant::now().into_std();
        self.with(|state| {
            let outage = state.door.outage().since();
            View {
                outage: outage.map(|(since, reason)| (Instant::from_std(since), reason.to_owned())),
                shut_until: state.door.is_shut_until(now).map(Instant::from_std),
                answered: state.door.outage().has_answered(),
            }
        })
    }

    fn end(&self, pass: &Pass, verdict: Verdict) {
        let reason = match &verdict {
            Verdict::Outage(reason) => reason.clone(),
            Verdict::Alive | Verdict::Nothing => String::new(),
        };
        let now = Instant::now().into_std();
        let change = self.with(|state| state.door.ended(pass, verdict, now, dice()));
        self.0.changed.notify_waiters();
        match change {
            Change::None => {}
            Change::Began(wait) => tracing::warn!(
                %reason,
                wait_s = wait.as_secs(),
                "the payment service gives no answers: it is tried again in {} s, then less often until it does: {reason}",
                wait.as_secs()
            ),
            Change::GoesOn(wait) => tracing::debug!(
                %reason,
                wait_s = wait.as_secs(),
                "the payment service still gives no answers"
            ),
            Change::Ended(lasted) => tracing::info!(
                lasted_s = lasted.as_secs(),
                "the payment service answers again, after {} s without an answer",
                lasted.as_secs()
            ),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn dice() -> u16 {
    u16::from_le_bytes(entropy::bytes())
}

impl Permit {
    /// The request leaves now and not when its turn came: the next one keeps its distance from this moment.
    pub(crate) fn leaves(&self) {
        let now = Instant::now().into_std();
        self.gate.with(|state| state.door.leaves(now));
    }

    /// The service wants to be left alone: see [`Gate::heed`].
    pub(crate) fn heed(&self, wish: Duration) {
        self.gate.heed(wish);
    }

    /// The request ended, and this is what it says about the service.
    pub(crate) fn ended(mut self, verdict: Verdict) {
        if let Some(pass) = self.pass.take() {
            self.gate.end(&pass, verdict);
        }
    }

    /// There was nothing to ask: the turn is given back, and the next caller has it at once.
    pub(crate) fn unused(mut self) {
        if let Some(pass) = self.pass.take() {
            self.gate.with(|state| state.door.unused(&pass));
            self.gate.0.changed.notify_waiters();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.gate.end(&pass, Verdict::Nothing);
        }
    }
}

/// A place among those who wait, left when it is dropped.
struct InLine<'a> {
    gate: &'a Gate,
    caller: Caller,
    number: u64,
}

impl<'a> InLine<'a> {
    fn new(gate: &'a Gate, caller: Caller) -> Self {
        let number = gate.with(|state| {
            state.number += 1;
            let number = state.number;
            state.line(caller).push_back(number);
            number
        });
        Self {
            gate,
            caller,
            number,
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let number = self.number;
        self.gate
            .with(|state| state.line(self.caller).retain(|other| *other != number));
        self.gate.0.changed.notify_waiters();
    }
}
