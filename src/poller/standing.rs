//! How the poller stands with the payment service, for whoever asks `status`: written into the ledger when it changes and
//! never on an idle look. Pure.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::ledger::{Fact, POLLER};

/// Where the ledger keeps it.
pub(crate) static FACT: Fact<Standing> = Fact::json(POLLER);

/// The longest wish that is heeded: `retry_after::LONGEST` and the quarter the gate may add.
const LONGEST_HEEDED: Duration = Duration::from_mins(75);

/// How the poller stands. Times are milliseconds since 1970. Holds no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Standing {
    /// What became of the access token.
    pub login: LoginState,
    /// Since when, while it cannot be polled with.
    pub login_since_ms: Option<i64>,
    /// The service gives no answers, since then.
    pub outage: Option<Outage>,
    /// The service wants no polls (`Retry-After`).
    #[serde(default)]
    pub no_polls: Option<LeftAlone>,
    /// It wants no creates.
    #[serde(default)]
    pub no_creates: Option<LeftAlone>,
    /// Polls per second, rounded down to one of [`PACES`]; 0: not known.
    #[serde(default)]
    pub polls_per_second: u32,
}

/// Paces that are told apart, requests per second: one that swings within two of them is not written again and again.
const PACES: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];

/// A wish of the service to be left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftAlone {
    /// Until then.
    pub until_ms: i64,
    /// How long that was when it was heard, milliseconds: more cannot be left of it, whatever the clock shows.
    pub for_ms: i64,
}

/// What is known of the access token that polls are sent with: the one type for poller, ledger, `status` and health.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoginState {
    /// There is one, and it was not refused.
    #[default]
    Good,
    /// There is none, or none that can be used.
    Needed,
    /// The service refuses the one there is.
    Refused,
    /// No daemon has polled with it yet.
    Unknown,
}

impl LoginState {
    /// True where nothing is known against it.
    pub(crate) const fn is_usable(self) -> bool {
        matches!(self, Self::Good | Self::Unknown)
    }

    /// The state in words.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Needed => "there is none that can be used",
            Self::Refused => "the service refuses it",
            Self::Unknown => "the daemon has not looked at it yet",
        }
    }
}

/// A time without answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outage {
    /// Since when.
    pub since_ms: i64,
    /// What the last question met, in one line.
    pub reason: String,
}

impl LeftAlone {
    /// How much is left of it at this time; it outlives the process that heard it. A wish of which more is left than it was
    /// long was dated by a clock that was ahead.
    pub(crate) fn left(self, now_ms: i64) -> Option<Duration> {
        let left_ms = self.until_ms.checked_sub(now_ms)?;
        let left = Duration::from_millis(u64::try_from(left_ms).ok()?);
        (left <= LONGEST_HEEDED && left_ms <= self.for_ms).then_some(left)
    }
}

/// What a look found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The access token.
    pub login: LoginState,
    /// Since when the service gives no answers, and what the last request met.
    pub outage: Option<(Instant, String)>,
    /// The service has answered this process.
    pub answered: bool,
    /// Until when the service wants no polls.
    pub no_polls: Option<Instant>,
    /// Until when it wants no creates.
    pub no_creates: Option<Instant>,
    /// Polls per second at present.
    pub polls_per_second: u32,
    /// This moment by the monotonic clock.
    pub now: Instant,
    /// This moment by the wall clock.
    pub now_ms: i64,
}

/// What is stored, and the times it was dated with. A moment is dated once: counted anew by a clock that is corrected a
/// little all the time, an idle look would find a change in it.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// What the ledger has; `None`: nothing, or nobody knows.
    stored: Option<Standing>,
    /// The outage that an earlier process left.
    earlier: Option<Outage>,
    outage: Option<(Instant, i64)>,
    no_polls: Option<(Instant, LeftAlone)>,
    no_creates: Option<(Instant, LeftAlone)>,
}

impl Book {
    /// Begins with what the ledger has.
    pub(super) fn new(stored: Option<Standing>) -> Self {
        Self {
            earlier: stored.as_ref().and_then(|stored| stored.outage.clone()),
            stored,
            ..Self::default()
        }
    }

    /// How it stands, if that is not what the ledger has.
    pub(super) fn see(&mut self, found: &Found) -> Option<Standing> {
        let before = self.stored.as_ref();
        let before = before.filter(|stored| stored.login == found.login);
        let since_ms = before.and_then(|stored| stored.login_since_ms);
        let began = found.outage.as_ref().map(|(since, _)| *since);
        self.outage = dated(self.outage, began, found);
        self.no_polls = wished(self.no_polls, found.no_polls, found);
        self.no_creates = wished(self.no_creates, found.no_creates, found);
        let outage = self.outage.zip(found.outage.as_ref());
        let outage = outage.map(|((_, since_ms), (_, reason))| Outage {
            since_ms,
            reason: reason.clone(),
        });
        // Until it answers, an outage that an earlier process met goes on.
        if found.answered {
            self.earlier = None;
        }
        let earlier = self.earlier.as_ref();
        let standing = Standing {
            login: found.login,
            login_since_ms: (!found.login.is_usable()).then(|| since_ms.unwrap_or(found.now_ms)),
            outage: match (outage, earlier) {
                (Some(now), Some(earlier)) => Some(Outage {
                    since_ms: earlier.since_ms,
                    ..now
                }),
                (now, earlier) => now.or_else(|| earlier.cloned()),
            },
            no_polls: self.no_polls.map(|(_, wish)| wish),
            no_creates: self.no_creates.map(|(_, wish)| wish),
            polls_per_second: pace(found.polls_per_second),
        };
        (self.stored.as_ref() != Some(&standing)).then_some(standing)
    }

    /// The ledger has this now.
    pub(super) fn stored(&mut self, standing: Standing) {
        self.stored = Some(standing);
    }
}

/// A moment with its time by the wall clock, as it was dated first.
fn dated(
    before: Option<(Instant, i64)>,
    moment: Option<Instant>,
    found: &Found,
) -> Option<(Instant, i64)> {
    let moment = moment?;
    let since = millis(found.now.saturating_duration_since(moment));
    let until = millis(moment.saturating_duration_since(found.now));
    let date = || found.now_ms.saturating_sub(since).saturating_add(until);
    before
        .filter(|(known, _)| *known == moment)
        .or_else(|| Some((moment, date())))
}

/// A wish with its end by the wall clock, as it was dated first.
fn wished(
    before: Option<(Instant, LeftAlone)>,
    until: Option<Instant>,
    found: &Found,
) -> Option<(Instant, LeftAlone)> {
    let (until, until_ms) = dated(None, until, found)?;
    let for_ms = millis(until.saturating_duration_since(found.now));
    before
        .filter(|(known, _)| *known == until)
        .or(Some((until, LeftAlone { until_ms, for_ms })))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// A pace as it is told.
fn pace(per_second: u32) -> u32 {
    let slower = PACES.into_iter().filter(|pace| *pace <= per_second);
    slower.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(now: Instant, now_ms: i64) -> Found {
        Found {
            login: LoginState::Good,
            outage: None,
            answered: true,
            no_polls: None,
            no_creates: None,
            polls_per_second: 0,
            now,
            now_ms,
        }
    }

    #[test]
    fn only_a_change_is_to_be_written_and_one_that_was_not_written_is_again() {
        let (start, mut book) = (Instant::now(), Book::new(None));
        let standing = book.see(&found(start, 1_000)).expect("nothing is stored");
        assert_eq!(book.see(&found(start, 1_001)), Some(standing.clone()));
        book.stored(standing);
        assert_eq!(book.see(&found(start, 9_000)), None);
        // What another process left is as good.
        assert_eq!(
            Book::new(Some(Standing::default())).see(&found(start, 1)),
            None
        );
    }

    #[test]
    fn a_moment_is_dated_once_whatever_the_clock_does() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut book = Book::new(Some(Standing::default()));
        let out = |now: Instant, now_ms, reason: &str| Found {
            login: LoginState::Refused,
            outage: Some((start, reason.to_owned())),
            no_polls: Some(start + second * 10),
            no_creates: Some(start + second * 5),
            polls_per_second: 19,
            ..found(now, now_ms)
        };
        let standing = book.see(&out(start + second, 1_000_000, "cut off"));
        let standing = standing.expect("a change");
        let expected = Standing {
            login: LoginState::Refused,
            login_since_ms: Some(1_000_000),
            outage: Some(Outage {
                since_ms: 999_000,
                reason: "cut off".to_owned(),
            }),
            no_polls: Some(LeftAlone {
                until_ms: 1_009_000,
                for_ms: 9_000,
            }),
            no_creates: Some(LeftAlone {
                until_ms: 1_004_000,
                for_ms: 4_000,
            }),
            polls_per_second: 10,
        };
        assert_eq!(standing, expected);
        book.stored(standing);
        assert_eq!(
            book.see(&out(start + second * 2, 5_000_000, "cut off")),
            None
        );
        let changed = book.see(&out(start + second * 3, 6_000_000, "no answer"));
        let reasons = changed.and_then(|changed| Some(changed.outage?.reason));
        assert_eq!(reasons.as_deref(), Some("no answer"));
        let over = book.see(&found(start + second * 11, 7_000_000));
        assert_eq!(over, Some(Standing::default()));
    }

    #[test]
    fn an_outage_outlives_a_restart_until_the_service_answers() {
        let start = Instant::now();
        let left = Outage {
            since_ms: 5,
            reason: "cut off".to_owned(),
        };
        let mut book = Book::new(Some(Standing {
            outage: Some(left),
            ..Standing::default()
        }));
        let silent = |outage: Option<&str>| Found {
            outage: outage.map(|reason| (start, reason.to_owned())),
            answered: false,
            ..found(start, 9_000)
        };
        assert_eq!(book.see(&silent(None)), None);
        let outage = book
            .see(&silent(Some("no answer")))
            .and_then(|now| now.outage);
        let outage = outage.expect("a change");
        assert_eq!((outage.since_ms, &*outage.reason), (5, "no answer"));
        assert_eq!(book.see(&found(start, 9_000)), Some(Standing::default()));
    }

    #[test]
    fn a_wish_outlives_a_restart_and_not_a_clock_that_was_ahead() {
        let left = |until_ms| {
            let for_ms = 60_000;
            LeftAlone { until_ms, for_ms }.left(1_000)
        };
        assert_eq!(left(31_000), Some(Duration::from_secs(30)));
        assert_eq!(left(999), None);
        assert_eq!(left(1_000 + 86_400_000), None);
        // Half an hour ahead, and heeded wishes are as long: but this one was not.
        assert_eq!(left(1_000 + 1_800_000), None);
    }

    #[test]
    fn it_reads_back_and_an_unknown_form_is_nothing_known() {
        let standing = Standing {
            login: LoginState::Refused,
            login_since_ms: Some(3),
            outage: Some(Outage {
                since_ms: 1,
                reason: "could not connect".to_owned(),
            }),
            no_polls: Some(LeftAlone {
                until_ms: 2,
                for_ms: 1,
            }),
            no_creates: None,
            polls_per_second: 5,
        };
        assert_eq!(FACT.read_back(&standing), Some(standing));
        assert_eq!(FACT.read("{}"), None);
        assert_eq!(FACT.read("no"), None);
    }
}
