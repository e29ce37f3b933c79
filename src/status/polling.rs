//! How the polling stands, in the words of `--json`: who waits to be asked about, how soon a lost notification is made up
//! for, and what keeps the service from being asked. Pure.
//!
//! Relies on what the daemon last wrote of itself. Promises a bound only while somebody asks: with no daemon, no login, or
//! a service that gives no answers, nothing is found by asking.

use serde::{Deserialize, Serialize};

use super::report::{Around, Count, time};
use crate::config::Settings;
use crate::invoice::silence::delay::{Load, Older, longest_delay_ms};
use crate::invoice::silence::{Class, Step, YOUNG_MS};
use crate::ledger::{DueOf, Overview, Tally};
use crate::parts;
use crate::poller::budget::YOUNG_IN_A_ROW;
use crate::poller::standing::{LeftAlone, LoginState};

/// A running daemon has looked at a new login after this time at the latest, milliseconds: three of the longest cadences.
const LOOKED_AT_WITHIN_MS: i64 = 180_000;

/// How the polling stands. Times are UTC with milliseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Polling {
    /// Polls, at most.
    pub(crate) requests_per_second: u64,
    /// The pace that the service's answers allow at present, rounded down; `None` while no daemon polls.
    pub(crate) requests_per_second_now: Option<u32>,
    /// Polls under way at once, at most.
    pub(crate) at_once: u64,
    pub(crate) login: LoginState,
    /// Since when a login is needed, or the one there is is refused.
    pub(crate) login_since: Option<String>,
    /// Since when the service gives no answers.
    pub(crate) outage_since: Option<String>,
    /// What the last request met.
    pub(crate) outage_reason: Option<String>,
    /// For how long it has given none when this was built, milliseconds.
    #[serde(skip)]
    pub(crate) outage_ms: Option<i64>,
    /// Until when the service wants no polls.
    pub(crate) left_alone_until: Option<String>,
    /// Until when it wants no creates.
    pub(crate) creates_left_alone_until: Option<String>,
    /// An invoice is young below this age.
    pub(crate) young_below_ms: i64,
    /// Young invoices that are watched, due or not.
    pub(crate) young: Count,
    /// A lost notification of a young invoice is made up for within this time; `None` while nobody asks, or when there are
    /// too many to tell.
    pub(crate) found_within_ms: Option<i64>,
}

/// Invoices of one class that are due to be asked about.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DueOfClass {
    pub(crate) count: u64,
    pub(crate) more: bool,
    pub(crate) oldest_due_at: Option<String>,
    pub(crate) oldest_late_ms: Option<i64>,
}

impl DueOfClass {
    /// How many.
    pub(crate) const fn all(&self) -> Count {
        Count {
            count: self.count,
            more: self.more,
        }
    }

    pub(crate) fn new(overview: &Overview, class: Class, now_ms: i64) -> Self {
        let of = overview.silent.due.iter().find(|of| of.class == class);
        let oldest_ms = of.and_then(|of| of.oldest_ms);
        let Tally { count, more } = of.map(|of| of.count).unwrap_or_default();
        Self {
            count,
            more,
            oldest_due_at: oldest_ms.map(time),
            oldest_late_ms: oldest_ms.map(|ms| now_ms.saturating_sub(ms)),
        }
    }
}

impl Polling {
    pub(crate) fn new(overview: &Overview, settings: &Settings, around: &Around) -> Self {
        let (login, login_since_ms) = login_state(around);
        // Of a daemon that is gone it says nothing how the service stands now.
        let standing = around.standing.as_ref().filter(|_| around.daemon_running);
        let outage = standing.and_then(|standing| standing.outage.as_ref());
        let until_ms = |wish: Option<LeftAlone>| {
            let until_ms = wish.map(|wish| wish.until_ms);
            until_ms.filter(|until_ms| *until_ms > around.now_ms)
        };
        let left_alone_until_ms = until_ms(standing.and_then(|standing| standing.no_polls));
        let no_creates_until_ms = until_ms(standing.and_then(|standing| standing.no_creates));
        let pace = standing.map_or(0, |standing| standing.polls_per_second);
        let asks = around.daemon_running
            && login.is_usable()
            && outage.is_none()
            && left_alone_until_ms.is_none();
        let young = overview.silent.young;
        Self {
            requests_per_second: settings.poller.requests_per_second,
            requests_per_second_now: Some(pace).filter(|pace| *pace > 0),
            at_once: settings.poller.concurrency,
            login,
            login_since: login_since_ms.map(time),
            outage_since: outage.map(|outage| time(outage.since_ms)),
            outage_reason: outage.map(|outage| outage.reason.clone()),
            outage_ms: outage.map(|outage| around.now_ms.saturating_sub(outage.since_ms)),
            left_alone_until: left_alone_until_ms.map(time),
            creates_left_alone_until: no_creates_until_ms.map(time),
            young_below_ms: YOUNG_MS,
            young: young.into(),
            found_within_ms: (asks && !young.more)
                .then(|| found_within_ms(overview, settings, pace)),
        }
    }
}

/// What the daemon says of the login, while that is about the one that lies there, and since when.
fn login_state(around: &Around) -> (LoginState, Option<i64>) {
    let Some(standing) = &around.standing else {
        return (LoginState::Unknown, None);
    };
    let Some(since_ms) = standing.login_since_ms else {
        return (standing.login, None);
    };
    // A daemon that runs and still says so has looked at the newer login: it is the same token again, or for another
    // service.
    let has_looked = |stored_ms: i64| {
        around.daemon_running && around.now_ms.saturating_sub(stored_ms) > LOOKED_AT_WITHIN_MS
    };
    match around.caller.login_stored_ms {
        Some(stored_ms) if stored_ms > since_ms && !has_looked(stored_ms) => {
            (LoginState::Unknown, None)
        }
        Some(_) | None => (standing.login, Some(since_ms)),
    }
}

/// How late a lost notification is known, by the schedule and the pace that are in force; 0 is a pace that is not known.
fn found_within_ms(overview: &Overview, settings: &Settings, pace: u32) -> i64 {
    let poller = parts::poller_settings(settings);
    let waits = |of: &DueOf| of.class.is_patient() && of.count.count > 0;
    let older = if overview.silent.due.iter().any(waits) {
        Older::Wait {
            young_in_a_row: YOUNG_IN_A_ROW,
        }
    } else {
        Older::None
    };
    longest_delay_ms(&Load {
        young: overview.silent.young.count,
        first_gap_ms: longest_young_gap_ms(&poller.schedule.steps),
        cadence_ms: i64::try_from(poller.cadence.as_millis()).unwrap_or(i64::MAX),
        per_second: match pace {
            0 => poller.first_per_second(),
            known => known,
        },
        older,
    })
}

/// Of the gaps a young invoice meets: a schedule may have several steps for its first half hour.
fn longest_young_gap_ms(steps: &[Step]) -> i64 {
    let begins = std::iter::once(0).chain(steps.iter().map(|step| step.until_ms));
    let met = steps
        .iter()
        .zip(begins)
        .filter(|(_, begin_ms)| *begin_ms < YOUNG_MS);
    met.map(|(step, _)| step.every_ms).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::FromCaller;
    use super::super::report::tests::around;
    use super::*;
    use crate::config;
    use crate::ledger::{Silent, Tally};
    use crate::poller::standing::{Outage, Standing};

    fn polling(around: &Around) -> Polling {
        Polling::new(&Overview::default(), &Settings::default(), around)
    }

    fn said(standing: Standing) -> Around {
        Around {
            standing: Some(standing),
            ..around()
        }
    }

    #[test]
    fn a_login_is_missed_until_a_newer_one_lies_there() {
        let now_ms = around().now_ms;
        let since_ms = now_ms - 3_600_000;
        for login in [LoginState::Refused, LoginState::Needed] {
            let check = |stored_ms: Option<i64>, daemon_running: bool, missed: bool| {
                let told = polling(&Around {
                    caller: FromCaller {
                        login_stored_ms: stored_ms,
                        ..FromCaller::default()
                    },
                    daemon_running,
                    ..said(Standing {
                        login,
                        login_since_ms: Some(since_ms),
                        ..Standing::default()
                    })
                });
                let since = missed.then(|| time(since_ms));
                let state = if missed { login } else { LoginState::Unknown };
                let found = (
                    told.login,
                    told.login_since.clone(),
                    !told.login.is_usable(),
                );
                assert_eq!(found, (state, since, missed), "{stored_ms:?}");
                let finds = daemon_running && !missed;
                assert_eq!(told.found_within_ms.is_some(), finds, "{stored_ms:?}");
            };
            for daemon_running in [true, false] {
                check(None, daemon_running, true);
                check(Some(since_ms - 1), daemon_running, true);
                check(Some(since_ms), daemon_running, true);
                check(Some(now_ms - 1_000), daemon_running, false);
            }
            // A daemon that had the time to look at it and says so still is right.
            check(Some(since_ms + 1), true, true);
            check(Some(since_ms + 1), false, false);
        }
        let good = polling(&said(Standing::default()));
        assert_eq!(
            (good.login, good.login_since.as_ref()),
            (LoginState::Good, None)
        );
        assert_eq!(polling(&around()).login, LoginState::Unknown);
    }

    #[test]
    fn what_keeps_the_daemon_from_asking_is_told_while_it_lasts() {
        let now_ms = around().now_ms;
        let out = Standing {
            outage: Some(Outage {
                since_ms: now_ms - 5_000,
                reason: "could not connect".to_owned(),
            }),
            ..Standing::default()
        };
        let told = polling(&said(out.clone()));
        assert_eq!(told.outage_since, Some(time(now_ms - 5_000)));
        assert_eq!(told.outage_reason.as_deref(), Some("could not connect"));
        assert_eq!(
            (told.found_within_ms, !told.login.is_usable()),
            (None, false)
        );

        let left_alone = |until_ms: i64| Standing {
            no_polls: Some(LeftAlone {
                until_ms,
                for_ms: 1,
            }),
            ..Standing::default()
        };
        let told = polling(&said(left_alone(now_ms + 1)));
        assert_eq!(told.left_alone_until, Some(time(now_ms + 1)));
        assert_eq!(
            (told.found_within_ms, !told.login.is_usable()),
            (None, false)
        );
        let over = polling(&said(left_alone(now_ms)));
        assert_eq!(over.left_alone_until, None);
        assert!(over.found_within_ms.is_some());

        for standing in [out, left_alone(now_ms + 1)] {
            let gone = polling(&Around {
                daemon_running: false,
                ..said(standing)
            });
            assert_eq!((gone.outage_since, gone.outage_reason), (None, None));
            assert_eq!((gone.left_alone_until, gone.found_within_ms), (None, None));
        }
    }

    #[test]
    fn the_delay_is_that_of_the_settings_and_of_who_is_there() {
        let mut settings = Settings::default();
        settings.poller.schedule =
            vec![config::Step::new(1_800, 50), config::Step::new(7_200, 300)];
        let young = |count| Overview {
            silent: Silent {
                young: Tally { count, more: false },
                ..Silent::default()
            },
            ..Overview::default()
        };
        let found = |overview: &Overview, settings: &Settings| {
            Polling::new(overview, settings, &around()).found_within_ms
        };
        assert_eq!(found(&young(12), &settings), Some(55_000));
        assert_eq!(found(&young(600), &settings), Some(120_000));
        let mut beside_old = young(600);
        beside_old.silent.due.push(DueOf {
            class: Class::Old,
            count: Tally {
                count: 1,
                more: false,
            },
            oldest_ms: Some(0),
        });
        assert!(found(&beside_old, &settings) > Some(120_000));
        let at_pace = Around {
            standing: Some(Standing {
                polls_per_second: 10,
                ..Standing::default()
            }),
            ..around()
        };
        let faster = Polling::new(&young(600), &settings, &at_pace);
        assert_eq!(faster.requests_per_second_now, Some(10));
        assert_eq!(faster.found_within_ms, Some(60_000));
        settings.poller.requests_per_second = 3;
        assert_eq!(found(&young(600), &settings), Some(200_000));
        settings.poller.requests_per_second = 20;
        settings.poller.cadence_s = 30;
        assert_eq!(found(&young(0), &settings), Some(80_000));
        // The second step is met by young ones as well.
        settings
            .poller
            .schedule
            .insert(0, config::Step::new(600, 10));
        assert_eq!(found(&young(0), &settings), Some(80_000));
        let mut uncounted = young(10_000);
        uncounted.silent.young.more = true;
        assert_eq!(found(&uncounted, &settings), None);
    }
}
