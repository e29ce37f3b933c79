//! When the service is out, and how it is found to be back. Pure: what requests met comes in, who may try goes out.
//!
//! After [`EVIDENCES`] requests in a row that met no service, nobody in the background asks for [`FIRST`], then for twice
//! as long each time up to [`MOST`]; after each wait exactly one request tries. What an operator sends is not held: a
//! person waits for it, and its answer is as good as any. What was under way when an outage began or ended says nothing
//! about what came after.

use std::time::{Duration, Instant};

use super::pace::jittered;
use super::{Caller, Hold};

/// Requests in a row that met no service before it is believed to be out. One or two are a lost packet or a restart.
const EVIDENCES: u32 = 3;
/// The first wait.
const FIRST: Duration = Duration::from_secs(5);
/// The longest wait before its jitter: the end of an outage is noticed within 75 s.
const MOST: Duration = Duration::from_mins(1);

/// What a request says about the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered, if only about this one request.
    Alive,
    /// Nobody was met there; what was, in one line.
    Outage(String),
    /// Nothing: it never left.
    Nothing,
}

/// The service as the requests of this process met it.
#[derive(Debug)]
pub(crate) struct Outage {
    /// Counts beginnings and ends.
    era: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Well {
        evidences: u32,
    },
    Out {
        began: Instant,
        reason: String,
        wait: Duration,
        until: Instant,
        is_tried: bool,
    },
}

/// What a request is to the outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a request that tries holds up the others until its end is told"]
pub(crate) struct Ticket {
    era: u64,
    tries: bool,
}

/// What the end of a request changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The service is out: nobody asks for so long.
    Began(Duration),
    /// It still is.
    GoesOn(Duration),
    /// It is back, after so long.
    Ended(Duration),
}

impl Outage {
    /// A service that is believed to be there.
    pub(crate) fn new() -> Self {
        Self {
            era: 0,
            state: State::Well { evidences: 0 },
        }
    }

    /// Lets a request go, or says what it waits for.
    pub(crate) fn admit(&mut self, caller: Caller, now: Instant) -> Result<Ticket, Hold> {
        let era = self.era;
        let State::Out {
            until, is_tried, ..
        } = &mut self.state
        else {
            return Ok(Ticket { era, tries: false });
        };
        let tries = !*is_tried && *until <= now;
        match caller {
            Caller::Operator | Caller::Background if tries => {
                *is_tried = true;
                Ok(Ticket { era, tries })
            }
            Caller::Operator => Ok(Ticket { era, tries }),
            Caller::Background if *until > now => Err(Hold::Until(*until)),
            Caller::Background => Err(Hold::Change),
        }
    }

    /// The end of a request.
    pub(crate) fn ended(
        &mut self,
        ticket: Ticket,
        verdict: Verdict,
        now: Instant,
        dice: u16,
    ) -> Change {
        if ticket.era != self.era {
            return Change::None;
        }
        match (&mut self.state, verdict) {
            (State::Well { .. } | State::Out { .. }, Verdict::Nothing) => {
                self.dropped(ticket);
                Change::None
            }
            (State::Well { evidences }, Verdict::Alive) => {
                *evidences = 0;
                Change::None
            }
            (State::Well { evidences }, Verdict::Outage(reason)) => {
                *evidences += 1;
                if *evidences < EVIDENCES {
                    return Change::None;
                }
                let wait = jittered(FIRST, dice);
                self.era += 1;
                self.state = State::Out {
                    began: now,
                    reason,
                    wait: FIRST,
                    until: now + wait,
                    is_tried: false,
                };
                Change::Began(wait)
            }
            (State::Out { began, .. }, Verdict::Alive) => {
                let lasted = now.saturating_duration_since(*began);
                self.era += 1;
                self.state = State::Well { evidences: 0 };
                Change::Ended(lasted)
            }
            (
                State::Out {
                    reason,
                    wait,
                    until,
                    is_tried,
                    ..
                },
                Verdict::Outage(met),
            ) => {
                *reason = met;
                // An operator who tries again and again must not push the next try ever further away.
                if !ticket.tries {
                    return Change::None;
                }
                *wait = (*wait * 2).min(MOST);
                let longer = jittered(*wait, dice);
                *until = now + longer;
                *is_tried = false;
                Change::GoesOn(longer)
            }
        }
    }

    /// A request ended without a verdict. When it was the one that tried, another may.
    pub(crate) fn dropped(&mut self, ticket: Ticket) {
        if let State::Out { is_tried, .. } = &mut self.state
            && ticket.era == self.era
            && ticket.tries
        {
            *is_tried = false;
        }
    }

    /// Since when the service is out, and what the last request met; `None` while it is believed to be there.
    pub(crate) fn since(&self) -> Option<(Instant, &str)> {
        match &self.state {
            State::Well { .. } => None,
            State::Out { began, reason, .. } => Some((*began, reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn nobody() -> Verdict {
        Verdict::Outage("could not connect".to_owned())
    }

    fn asks(outage: &mut Outage, now: Instant) -> Ticket {
        outage.admit(Caller::Background, now).expect("admitted")
    }

    /// An outage that began now, with the longest wait jitter gives.
    fn out(now: Instant) -> Outage {
        let mut outage = Outage::new();
        for _ in 0..EVIDENCES {
            let ticket = asks(&mut outage, now);
            outage.ended(ticket, nobody(), now, u16::MAX);
        }
        assert!(outage.since().is_some());
        outage
    }

    #[test]
    fn three_in_a_row_are_an_outage_and_an_answer_between_them_is_none() {
        let (mut outage, now) = (Outage::new(), Instant::now());
        let mut course = Vec::new();
        for verdict in [
            nobody(),
            nobody(),
            Verdict::Alive,
            nobody(),
            Verdict::Nothing,
            nobody(),
            nobody(),
        ] {
            let ticket = asks(&mut outage, now);
            course.push(outage.ended(ticket, verdict, now, 0));
        }
        assert_eq!(course.pop(), Some(Change::Began(FIRST)));
        assert!(course.iter().all(|change| *change == Change::None));
        assert_eq!(outage.since(), Some((now, "could not connect")));
    }

    #[test]
    fn one_tries_after_each_wait_and_the_waits_double() {
        let mut now = Instant::now();
        let mut outage = out(now);
        for wanted in [5, 10, 20, 40, 60, 60] {
            let wait = jittered(SECOND * wanted, u16::MAX);
            let opens = now + wait;
            let early = now + wait / 1_000 * 999;
            let early = outage.admit(Caller::Background, early);
            assert_eq!(early, Err(Hold::Until(opens)));
            now = opens;
            let probe = asks(&mut outage, now);
            let second = outage.admit(Caller::Background, now);
            assert_eq!(second, Err(Hold::Change), "exactly one");
            let change = outage.ended(probe, nobody(), now, u16::MAX);
            assert!(matches!(change, Change::GoesOn(_)), "{change:?}");
        }
    }

    #[test]
    fn an_answer_ends_it_and_the_next_one_begins_anew() {
        let began = Instant::now();
        let mut outage = out(began);
        let now = began + SECOND * 7;
        let probe = asks(&mut outage, now);
        let ended = outage.ended(probe, Verdict::Alive, now, 0);
        assert_eq!(ended, Change::Ended(SECOND * 7));
        let (one, other) = (asks(&mut outage, now), asks(&mut outage, now));
        for ticket in [one, other] {
            assert_eq!(outage.ended(ticket, nobody(), now, 0), Change::None);
        }
        let third = asks(&mut outage, now);
        assert_eq!(outage.ended(third, nobody(), now, 0), Change::Began(FIRST));
    }

    #[test]
    fn a_try_that_comes_to_nothing_admits_another() {
        let began = Instant::now();
        let mut outage = out(began);
        let now = began + SECOND * 7;
        let dropped = asks(&mut outage, now);
        outage.dropped(dropped);
        let unsent = asks(&mut outage, now);
        let change = outage.ended(unsent, Verdict::Nothing, now, 0);
        assert_eq!(change, Change::None);
        let probe = asks(&mut outage, now);
        let change = outage.ended(probe, Verdict::Alive, now, 0);
        assert!(matches!(change, Change::Ended(_)), "{change:?}");
    }

    #[test]
    fn what_was_under_way_counts_nothing_further() {
        let began = Instant::now();
        let mut outage = Outage::new();
        let before: Vec<Ticket> = (0..6).map(|_| asks(&mut outage, began)).collect();
        let mut ends = before.into_iter();
        for ticket in ends.by_ref().take(3) {
            outage.ended(ticket, nobody(), began, u16::MAX);
        }
        for verdict in [nobody(), Verdict::Alive, Verdict::Nothing] {
            let ticket = ends.next().expect("one more");
            assert_eq!(outage.ended(ticket, verdict, began, 0), Change::None);
        }
        assert!(outage.since().is_some());
        // And what was sent during the outage says nothing about the time after it.
        let operator = outage.admit(Caller::Operator, began).expect("not held");
        let probe = asks(&mut outage, began + SECOND * 7);
        outage.ended(probe, Verdict::Alive, began + SECOND * 7, 0);
        for _ in 0..EVIDENCES {
            outage.ended(operator, nobody(), began + SECOND * 8, 0);
        }
        assert!(outage.since().is_none());
    }

    #[test]
    fn an_operator_is_not_held_and_does_not_push_the_next_try_away() {
        let began = Instant::now();
        let mut outage = out(began);
        for _ in 0..10 {
            let ticket = outage.admit(Caller::Operator, began).expect("not held");
            let change = outage.ended(ticket, nobody(), began, u16::MAX);
            assert_eq!(change, Change::None);
        }
        let now = began + SECOND * 7;
        let probe = outage.admit(Caller::Operator, now).expect("the try");
        let held = outage.admit(Caller::Background, now);
        assert_eq!(held, Err(Hold::Change), "an operator's is the one try");
        let change = outage.ended(probe, nobody(), now, 0);
        assert_eq!(change, Change::GoesOn(FIRST * 2));
        let ticket = outage.admit(Caller::Operator, now).expect("not held");
        let change = outage.ended(ticket, Verdict::Alive, now, 0);
        assert_eq!(change, Change::Ended(SECOND * 7));
    }
}
