//! Looks whether this machine's clock can be right: it is compared with the service's, and with the newest event. Relies on the
//! dates of the service's answers. Promises that a wrong clock is stored for the alert, and that what was recorded since it was
//! last known to be right is marked in the ledger.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::client::Client;
use crate::client::fetches::ServiceClock;
use crate::clock::Reading;
use crate::invoice::silence::CLOCK_IS_SET_MS;
use crate::ledger::{CLOCK, ReadError, Reader, WriteError, Writer, WrongClock};
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Two clocks that differ by more cannot both be right, milliseconds: a payment window is judged wrongly from here on.
const DIFFERS_MS: i64 = 60_000;
/// A service's date that is older is asked for again before a clock is called wrong by it: the machine may have been paused.
const FRESH_MS: i64 = 60_000;

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The service's clock agrees.
    Right,
    /// Nothing speaks against it.
    Unknown,
    /// It cannot be right.
    Wrong(WrongClock),
}

/// Looks until the wish to stop: a part of the daemon that ends alone ends all.
pub(super) async fn run(writer: Writer, reader: Reader, client: Client, stop: Shutdown) {
    let told = client.fetches().clock();
    let looks = async {
        let mut watch = Watch {
            writer,
            reader,
            client,
            told,
            seen: None,
            asked: None,
        };
        loop {
            if let Err(reason) = watch.look().await {
                tracing::debug!(%reason, "what the clock shows could not be judged: {reason}");
            }
            sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        () = looks => {}
        () = stop.requested() => {}
    }
}

/// What the ledger knows of the clock.
#[derive(Clone, Copy, Debug)]
struct Seen {
    wrong: Option<WrongClock>,
    /// Later events are not judged yet.
    upto: i64,
    /// When the newest event of before the start was recorded.
    newest_ms: Option<i64>,
}

struct Watch {
    writer: Writer,
    reader: Reader,
    client: Client,
    told: watch::Receiver<Option<ServiceClock>>,
    /// `None` until the ledger was read.
    seen: Option<Seen>,
    /// When the service was last asked for its clock alone.
    asked: Option<Instant>,
}

impl Watch {
    async fn look(&mut self) -> Result<(), String> {
        let seen = match self.seen {
            Some(seen) => seen,
            None => self
                .begin()
                .await
                .map_err(|error| telemetry::chain(&error))?,
        };
        let seen = self
            .judged(seen)
            .await
            .map_err(|error| telemetry::chain(&error))?;
        self.seen = Some(seen);
        Ok(())
    }

    /// Events of an earlier daemon are judged again only where it left the clock wrong.
    async fn begin(&self) -> Result<Seen, ReadError> {
        let note = self.reader.fact(&CLOCK).await?.unwrap_or_default();
        let newest = self.reader.newest_event().await?;
        Ok(Seen {
            wrong: note.wrong,
            upto: if note.wrong.is_some() {
                note.upto
            } else {
                newest
            },
            newest_ms: self.reader.newest_sure().await?,
        })
    }

    async fn judged(&mut self, seen: Seen) -> Result<Seen, Trouble> {
        let mut verdict = self.verdict(seen);
        let differed = matches!(seen.wrong, Some(WrongClock::Differs { .. }));
        let needs_word = match verdict {
            Verdict::Wrong(WrongClock::Differs { .. }) => self.is_stale(),
            Verdict::Unknown => differed,
            Verdict::Right | Verdict::Wrong(_) => false,
        };
        if needs_word && self.may_ask() {
            // Whatever it brings is heard by the client.
            self.asked = Some(Instant::now());
            self.client.knock().await.map(drop).unwrap_or_default();
            verdict = self.verdict(seen);
        }
        let newest = self.reader.newest_event().await?;
        match verdict {
            // Without a word of the service what it said last stands.
            Verdict::Unknown if differed || seen.wrong.is_none() => Ok(seen),
            Verdict::Right if seen.wrong.is_none() => Ok(Seen {
                upto: newest,
                newest_ms: None,
                ..seen
            }),
            Verdict::Right | Verdict::Unknown => {
                // Only what was recorded before: by which clock the old ones were dated is known by nobody.
                let doubted = !matches!(seen.wrong, Some(WrongClock::Behind { .. }));
                let after = if doubted { seen.upto } else { i64::MAX };
                let upto = self.writer.see_clock(None, after).await?;
                tracing::info!("the clock may be right again");
                Ok(Seen {
                    wrong: None,
                    upto,
                    newest_ms: None,
                })
            }
            Verdict::Wrong(wrong)
                if seen.wrong.is_some_and(|was| is_same(was, wrong)) && newest == seen.upto =>
            {
                Ok(seen)
            }
            Verdict::Wrong(wrong) => {
                let upto = self.writer.see_clock(Some(wrong), seen.upto).await?;
                if seen.wrong.is_none() {
                    tracing::warn!(
                        ?wrong,
                        "the clock of this machine cannot be right: `tilld status` says why"
                    );
                }
                let wrong = Some(wrong);
                Ok(Seen {
                    wrong,
                    upto,
                    ..seen
                })
            }
        }
    }

    fn verdict(&self, seen: Seen) -> Verdict {
        let now = Reading::now();
        let service_ms = self.told.borrow().map(|told| told.at(now));
        judge(now.wall_ms, service_ms, seen.newest_ms)
    }

    fn is_stale(&self) -> bool {
        let told = *self.told.borrow();
        told.is_some_and(|told| told.age_ms(Reading::now()) > FRESH_MS)
    }

    /// Once a minute at most.
    fn may_ask(&self) -> bool {
        let fresh = Duration::from_millis(FRESH_MS.unsigned_abs());
        self.asked.is_none_or(|asked| asked.elapsed() > fresh)
    }
}

#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The service's word goes first; without one a clock is wrong that shows less than when the newest event was recorded.
fn judge(wall_ms: i64, service_ms: Option<i64>, newest_ms: Option<i64>) -> Verdict {
    if wall_ms < CLOCK_IS_SET_MS {
        return Verdict::Wrong(WrongClock::NotSet);
    }
    if let Some(service_ms) = service_ms {
        let ahead_ms = wall_ms.saturating_sub(service_ms);
        return if ahead_ms.saturating_abs() > DIFFERS_MS {
            Verdict::Wrong(WrongClock::Differs { ahead_ms })
        } else {
            Verdict::Right
        };
    }
    match newest_ms {
        Some(newest_ms) if wall_ms.saturating_add(DIFFERS_MS) < newest_ms => {
            Verdict::Wrong(WrongClock::Behind { newest_ms })
        }
        _ => Verdict::Unknown,
    }
}

/// True for a difference that goes on: dates have whole seconds.
fn is_same(was: WrongClock, is: WrongClock) -> bool {
    match (was, is) {
        (WrongClock::Differs { ahead_ms: was }, WrongClock::Differs { ahead_ms: is }) => {
            was.abs_diff(is) < DIFFERS_MS.unsigned_abs()
        }
        _ => was == is,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_wrong_by_the_services_word_or_the_newest_event() {
        const NOW: i64 = CLOCK_IS_SET_MS + 9_999_999_999;
        const HOUR: i64 = 3_600_000;
        let differs = |ahead_ms| Verdict::Wrong(WrongClock::Differs { ahead_ms });
        for (wall, service, newest, wanted) in [
            (
                17_000,
                Some(17_000),
                None,
                Verdict::Wrong(WrongClock::NotSet),
            ),
            (NOW, None, None, Verdict::Unknown),
            (NOW, None, Some(NOW + DIFFERS_MS), Verdict::Unknown),
            (
                NOW,
                None,
                Some(NOW + HOUR),
                Verdict::Wrong(WrongClock::Behind {
                    newest_ms: NOW + HOUR,
                }),
            ),
            (
                NOW,
                Some(NOW - DIFFERS_MS),
                Some(NOW + HOUR),
                Verdict::Right,
            ),
            (NOW, Some(NOW - 3 * HOUR), None, differs(3 * HOUR)),
            (NOW, Some(NOW + HOUR), None, differs(-HOUR)),
        ] {
            assert_eq!(
                judge(wall, service, newest),
                wanted,
                "{wall} {service:?} {newest:?}"
            );
        }
    }
}
