//! When the service is out, and how it is found to be back. Pure: what requests met comes in, who may try goes out.
//!
//! After [`EVIDENCES`] requests in a row that met no service, nobody in the background asks for [`FIRST`], then for twice
//! as long each time up to [`MOST`]; after each wait exactly one poll tries. Creates and an operator's polls are not held: a
//! person waits for them, and their answer is as good as any. What was under way when an outage began or ended says nothing
//! about what came after. Creates that fail alone begin one outage, which the first poll ends; then they begin no other until
//! one of them is answered. An outage that polls met is ended by a poll; a create that is answered only brings the next try
//! nearer.

use std::time::{Duration, Instant};

use super::pace::jittered;
use super::{Caller, Hold};

/// Requests in a row that met no service before it is believed to be out. One or two are a lost packet or a restart.
pub(super) const EVIDENCES: u32 = 3;
/// The first wait.
pub(super) const FIRST: Duration = Duration::from_secs(5);
/// The longest wait before its jitter: the end of an outage is noticed within 75 s.
const MOST: Duration = Duration::from_mins(1);

/// What a request says about the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered, if only about this one request.
    Alive,
    /// It answered, and has too much to do.
    Busy,
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
    /// It has answered a request of this process.
    answered: bool,
}

#[derive(Debug)]
enum State {
    Well {
        /// Of polls, and of creates.
        evidences: [u32; 2],
        /// Creates failed while a poll was answered: until one is answered, they say nothing about the service.
        creates_fail_alone: bool,
    },
    Out {
        began: Instant,
        /// A poll met it too.
        polls_failed: bool,
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
    creates: bool,
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

impl State {
    const fn well(creates_fail_alone: bool) -> Self {
        Self::Well {
            evidences: [0; 2],
            creates_fail_alone,
        }
    }
}

impl Outage {
    /// A service that is believed to be there.
    pub(crate) fn new() -> Self {
        Self {
            era: 0,
            state: State::well(false),
            answered: false,
        }
    }

    /// Lets a request go, or says what it waits for.
    pub(crate) fn admit(&mut self, caller: Caller, now: Instant) -> Result<Ticket, Hold> {
        let mut ticket = Ticket {
            era: self.era,
            creates: caller == Caller::Create,
            tries: false,
        };
        let State::Out {
            until, is_tried, ..
        } = &mut self.state
        else {
            return Ok(ticket);
        };
        let is_free = !*is_tried && *until <= now;
        match caller {
            Caller::Operator | Caller::Background if is_free => {
                *is_tried = true;
                ticket.tries = true;
                Ok(ticket)
            }
            Caller::Create | Caller::Operator => Ok(ticket),
            Caller::Background if *until > now => Err(Hold::Until(*until)),
            Caller::Background => Err(Hold::Change),
        }
    }

    /// Whether nobody in the background may go just now.
    pub(crate) fn holds_background(&self, now: Instant) -> bool {
        match &self.state {
            State::Well { .. } => false,
            State::Out {
                until, is_tried, ..
            } => *is_tried || *until > now,
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
        self.answered |= matches!(verdict, Verdict::Alive | Verdict::Busy);
        if verdict == Verdict::Nothing {
            self.dropped(ticket);
            return Change::None;
        }
        let change = match &mut self.state {
            State::Well {
                evidences,
                creates_fail_alone,
            } => {
                let [polls, creates] = evidences;
                let Verdict::Outage(reason) = verdict else {
                    *creates = 0;
                    if ticket.creates {
                        *creates_fail_alone = false;
                    } else {
                        *polls = 0;
                    }
                    return Change::None;
                };
                if ticket.creates {
                    *creates += u32::from(!*creates_fail_alone);
                } else {
                    *polls += 1;
                }
                if *polls + *creates < EVIDENCES {
                    return Change::None;
                }
                let polls_failed = *polls > *creates;
                let wait = jittered(FIRST, dice);
                self.state = State::Out {
                    began: now,
                    polls_failed,
                    reason,
                    wait: FIRST,
                    until: now + wait,
                    is_tried: false,
                };
                Change::Began(wait)
            }
            State::Out {
                began,
                polls_failed,
                reason,
                wait,
                until,
                is_tried,
            } => match verdict {
                Verdict::Outage(met) => {
                    *reason = met;
                    *polls_failed |= !ticket.creates;
                    // An operator who tries again and again must not push the next try ever further away.
                    if !ticket.tries {
                        return Change::None;
                    }
                    *wait = (*wait * 2).min(MOST);
                    let longer = jittered(*wait, dice);
                    *until = now + longer;
                    *is_tried = false;
                    return Change::GoesOn(longer);
                }
                _answered if ticket.creates && *polls_failed => {
                    *until = (*until).min(now + FIRST);
                    return Change::None;
                }
                _answered => {
                    let lasted = now.saturating_duration_since(*began);
                    self.state = State::well(!*polls_failed && !ticket.creates);
                    Change::Ended(lasted)
                }
            },
        };
        self.era += 1;
        change
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

    /// True once it has answered a request of this process.
    pub(crate) const fn has_answered(&self) -> bool {
        self.answered
    }

    /// Since when the service is out, and what the last request met; `None` while it is believed to be there.
    pub(crate) fn since(&self) -> Option<(Instant, &str)> {
        match &self.state {
            State::Well { .. } => None,
            State::Out { began, reason, .. } => Some((*began, reason)),
        }
    }
}
