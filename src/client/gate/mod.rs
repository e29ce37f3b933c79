//! The one gate all requests of a process to the payment service pass, in two lanes. Creates: [`CREATES_AT_ONCE`] under way, as
//! fast as the service answers. Polls: so many at once, at a pace that the service's answers raise and lower ([`rate`]). A lane
//! is shut for as long as the service wished in an answer to it, and few requests leave while it gives no answers (A29).
//!
//! A place is taken by [`Gate::admit`] or [`Gate::admit_within`] and given back when the [`Permit`] ends, best with a
//! verdict on what the request met ([`Permit::ended`]); one that is dropped says nothing. Nothing is reserved ahead: a
//! caller that gives up while waiting costs no other caller a turn, and a turn that was of no use is given back whole.
//!
//! A poll that a person waits for goes before the background's, and tries even while the service gives no answers. After
//! [`IN_A_ROW`] of them the background has a turn, if it waits for nothing else. Where a pace is set for the whole process,
//! creates go before polls in the same way. What is decided is in [`door`], which is pure; here it is only waited for.

pub(crate) mod door;
pub(crate) mod outage;
mod pace;
pub(crate) mod rate;
#[cfg(test)]
mod tests;
mod wishes;

use std::collections::BTreeMap;
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

/// Creates under way at the same time. More wait for one of them to end.
pub(crate) const CREATES_AT_ONCE: NonZeroU32 = NonZeroU32::new(64).expect("not zero");
/// Turns one after the other of those who go first, while others wait: the next is theirs.
const IN_A_ROW: u32 = 4;

/// How much a process may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Requests of both lanes per second, evenly spaced, where they are limited.
    pub per_second: Option<NonZeroU32>,
    /// Polls per second at most, evenly spaced.
    pub polls_per_second: NonZeroU32,
    /// Polls under way at the same time.
    pub polls_at_once: NonZeroU32,
}

impl Limits {
    /// Polls per second at most, within what the whole process may send.
    pub(crate) fn fastest_polls(self) -> NonZeroU32 {
        let own = self.polls_per_second;
        self.per_second.map_or(own, |all| all.min(own))
    }
}

impl Default for Limits {
    /// 20 polls per second, 4 at once (design 7).
    fn default() -> Self {
        let number = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            per_second: None,
            polls_per_second: number(20),
            polls_at_once: number(4),
        }
    }
}

/// Who wants to send a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A customer waits for an invoice to be opened.
    Create,
    /// A person or the shop waits for a poll.
    Operator,
    /// The poller itself.
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
    /// Until when it wants not to be polled.
    pub no_polls: Option<Instant>,
    /// Until when it wants no creates.
    pub no_creates: Option<Instant>,
    /// Polls per second at present.
    pub polls_per_second: u32,
    /// It has answered a request of this process.
    pub answered: bool,
}

/// The gate. Clones are the same gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    door: Door,
    /// Which of the service's wishes are logged, of creates and of polls.
    wishes: [Wishes; 2],
    /// Those who wait, in the order they came.
    creates: Line,
    operators: Line,
    background: Line,
    /// Turns that operators had since the background had one or did not wait.
    operators_in_a_row: u32,
    /// The same of creates and polls.
    creates_in_a_row: u32,
    /// The last number given to one of them.
    number: u64,
}

/// Callers that wait, by their numbers, and what wakes each.
type Line = BTreeMap<u64, Arc<Notify>>;

impl State {
    const fn line(&mut self, caller: Caller) -> &mut Line {
        match caller {
            Caller::Create => &mut self.creates,
            Caller::Operator => &mut self.operators,
            Caller::Background => &mut self.background,
        }
    }

    /// Wakes the first of each line: all others wait for it.
    fn wake(&self) {
        for line in [&self.creates, &self.operators, &self.background] {
            if let Some((_, first)) = line.first_key_value() {
                first.notify_one();
            }
        }
    }

    /// Whether one of this line waits for nothing but a turn.
    fn wants(&self, caller: Caller, now: std::time::Instant) -> bool {
        let line = match caller {
            Caller::Create => &self.creates,
            Caller::Operator => &self.operators,
            Caller::Background => &self.background,
        };
        !line.is_empty() && self.door.is_ready(caller, now)
    }

    /// Whether this caller lets another one go first.
    fn gives_way(&self, caller: Caller, now: std::time::Instant) -> bool {
        let polls_turn = self.creates_in_a_row >= IN_A_ROW;
        let is_background_turn = self.operators_in_a_row >= IN_A_ROW
            // One that an outage holds is waited for by no other.
            && !self.door.outage().holds_background(now)
            && !self.background.is_empty();
        let wants = |caller| self.wants(caller, now);
        let common = self.door.has_common_pace();
        let to_creates = common && !polls_turn && wants(Caller::Create);
        match caller {
            Caller::Create => {
                common && polls_turn && (wants(Caller::Operator) || wants(Caller::Background))
            }
            Caller::Operator => to_creates || is_background_turn,
            Caller::Background => to_creates || !self.operators.is_empty() && !is_background_turn,
        }
    }

    fn enter(&mut self, caller: Caller, number: u64, now: Instant) -> Result<Pass, Hold> {
        let is_first = self.line(caller).keys().next() == Some(&number);
        let now = now.into_std();
        if !is_first || self.gives_way(caller, now) {
            return Err(Hold::Change);
        }
        let pass = self.door.enter(caller, now)?;
        let longer = |waits: bool, row: u32| if waits { row.saturating_add(1) } else { 0 };
        match caller {
            Caller::Create => {
                let polls_wait = !self.operators.is_empty() || !self.background.is_empty();
                self.creates_in_a_row = longer(polls_wait, self.creates_in_a_row);
            }
            Caller::Operator => {
                self.creates_in_a_row = 0;
                let waits = !self.background.is_empty();
                self.operators_in_a_row = longer(waits, self.operators_in_a_row);
            }
            Caller::Background => {
                self.creates_in_a_row = 0;
                self.operators_in_a_row = 0;
            }
        }
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
#[error("{}", self.reason())]
pub(crate) struct Closed {
    /// How long until it is worth coming back. Zero when the service did not wish for that time.
    pub opens_in: Duration,
}

impl Closed {
    fn reason(self) -> String {
        if self.opens_in.is_zero() {
            return "too many requests to the payment service wait before it".to_owned();
        }
        let seconds = self.opens_in.as_millis().div_ceil(1_000);
        format!("the payment service wants to be left alone for another {seconds} s")
    }
}

impl Gate {
    /// An open gate.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(State {
            door: Door::new(limits),
            wishes: Default::default(),
            creates: Line::new(),
            operators: Line::new(),
            background: Line::new(),
            operators_in_a_row: 0,
            creates_in_a_row: 0,
            number: 0,
        })))
    }

    /// Waits for a place and a turn, however long it takes, behind those for whom a person waits. Safe to drop while waiting.
    pub(crate) async fn admit(&self) -> Permit {
        self.wait(Caller::Background).await
    }

    /// Waits for a place and a turn, an outage or not. Says at once when the service wants the caller's lane to be left alone
    /// for longer than `patience`, and gives up after it. For what a person waits for, and for a create, whose row must not
    /// outlive its request by hours.
    pub(crate) async fn admit_within(
        &self,
        caller: Caller,
        patience: Duration,
    ) -> Result<Permit, Closed> {
        let deadline = Instant::now() + patience;
        let closed = self.shut_for(caller);
        if closed > patience {
            return Err(Closed { opens_in: closed });
        }
        timeout_at(deadline, self.wait(caller))
            .await
            .map_err(|_elapsed| Closed {
                opens_in: self.shut_for(caller),
            })
    }

    async fn wait(&self, caller: Caller) -> Permit {
        let place = InLine::new(self, caller);
        loop {
            let entered = self.with(|state| state.enter(caller, place.number, Instant::now()));
            let changed = place.changed.notified();
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

    /// Shuts a caller's lane for at least `wish`, and up to a quarter more so that a crowd does not come back in step. Clamped
    /// to [`retry_after::LONGEST`] before that. A shorter wish never undoes a longer one.
    fn heed(&self, caller: Caller, wish: Duration) {
        let now = Instant::now().into_std();
        let (wait, is_logged) = self.with(|state| {
            let wait = state.door.heed(caller, wish, now, dice());
            let [creates, polls] = &mut state.wishes;
            let wishes = if caller == Caller::Create {
                creates
            } else {
                polls
            };
            (wait, wishes.tell(wish, now))
        });
        let wait_s = wait.as_secs();
        let lane = caller.lane();
        if is_logged {
            tracing::warn!(
                wait_s,
                lane,
                "the payment service wants to be left alone for {wait_s} s: no {lane} until then"
            );
        } else {
            tracing::debug!(
                wait_s,
                lane,
                "the payment service wants to be left alone for {wait_s} s, again: no {lane} until then"
            );
        }
    }

    /// Shuts a caller's lane for what is left of a wish that an earlier process heard and stretched already.
    pub(crate) fn heed_still(&self, caller: Caller, left: Duration) {
        let now = Instant::now().into_std();
        self.with(|state| state.door.heed_still(caller, left, now));
        let lane = caller.lane();
        tracing::info!(
            wait_s = left.as_secs(),
            lane,
            "the payment service still wants to be left alone for {} s: no {lane} until then",
            left.as_secs()
        );
    }

    /// How long a caller's lane is shut by the service's wish; zero when it is not.
    pub(crate) fn shut_for(&self, caller: Caller) -> Duration {
        let now = Instant::now().into_std();
        let until = self.with(|state| state.door.is_shut_until(caller, now));
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// How the service stands with this process.
    pub(crate) fn view(&self) -> View {
        let now = Instant::now().into_std();
        self.with(|state| {
            let outage = state.door.outage().since();
            let shut = |caller| state.door.is_shut_until(caller, now).map(Instant::from_std);
            View {
                outage: outage.map(|(since, reason)| (Instant::from_std(since), reason.to_owned())),
                no_polls: shut(Caller::Background),
                no_creates: shut(Caller::Create),
                polls_per_second: state.door.polls_per_second(),
                answered: state.door.outage().has_answered(),
            }
        })
    }

    fn end(&self, pass: &Pass, verdict: Verdict) {
        let reason = match &verdict {
            Verdict::Outage(reason) => reason.clone(),
            Verdict::Alive | Verdict::Busy | Verdict::Nothing => String::new(),
        };
        let now = Instant::now().into_std();
        let change = self.with(|state| {
            let change = state.door.ended(pass, verdict, now, dice());
            state.wake();
            change
        });
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
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn dice() -> u16 {
    u16::from_le_bytes(entropy::bytes())
}

impl Caller {
    /// What leaves by its lane.
    const fn lane(self) -> &'static str {
        match self {
            Self::Create => "creates",
            Self::Operator | Self::Background => "polls",
        }
    }
}

impl Permit {
    /// The request leaves now and not when its turn came: the next one keeps its distance from this moment.
    pub(crate) fn leaves(&self) {
        let now = Instant::now().into_std();
        if let Some(pass) = &self.pass {
            self.gate.with(|state| {
                state.door.leaves(pass.caller(), now);
                state.wake();
            });
        }
    }

    /// The service wants no requests of this caller's kind: for at least so long, and at most [`retry_after::LONGEST`] and a
    /// quarter. A poll may have left by the lane of the create that needed it, and its answer is about polls.
    pub(crate) fn heed(&self, kind: Caller, wish: Duration) {
        self.gate.heed(kind, wish);
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
            self.gate.with(|state| {
                state.door.unused(&pass);
                state.wake();
            });
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
    /// Wakes it when it should look before the time it was given.
    changed: Arc<Notify>,
}

impl<'a> InLine<'a> {
    fn new(gate: &'a Gate, caller: Caller) -> Self {
        let changed = Arc::new(Notify::new());
        let number = gate.with(|state| {
            state.number += 1;
            let number = state.number;
            state.line(caller).insert(number, Arc::clone(&changed));
            number
        });
        Self {
            gate,
            caller,
            number,
            changed,
        }
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.gate.with(|state| {
            state.line(self.caller).remove(&self.number);
            state.wake();
        });
    }
}
