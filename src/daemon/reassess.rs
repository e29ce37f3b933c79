//! Since when tilld serves, by the clock as it is now. And looks over the stored invoices once after the lists of status names changed, in small commits with pauses between, so
//! that notifications are not held up. Relies on the ledger, which remembers how far it came; promises to go on where it
//! was after any end, and to say at the end what changed and which line runs the hooks.

use std::time::Duration;

use tokio::time::Instant;

use crate::clock::wall_ms;
use crate::ledger::{Reader, SERVING_SINCE, WriteError, Writer};
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Between two commits: room for what comes from outside.
const PAUSE: Duration = Duration::from_millis(20);
/// After a commit that could not be stored: the disk is full, or another program holds the ledger.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How often the clock is looked at: one that was ahead at the start is set right soon after, mostly.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// A clock set back by less changes nothing that matters.
const SET_BACK: Duration = Duration::from_secs(1);

/// Runs the pass, if one is due, and keeps since when tilld serves, until the wish to stop: a part of the daemon that ends alone
/// ends all.
pub(super) async fn run(writer: Writer, reader: Reader, stop: Shutdown) {
    let writer = &writer;
    let note = |since| async move { writer.note(&SERVING_SINCE, &since).await };
    let beside = async {
        tokio::join!(serving_since(wall_ms, note), pass(writer, &reader));
    };
    tokio::select! {
        () = beside => {}
        () = stop.requested() => {}
    }
}

/// Stores since when tilld serves: what the service dates before that was nobody's to hear. The clock of the start may have been
/// ahead; then all that is found would count as dated before, until a restart. Never ends.
async fn serving_since<Noted: Future<Output = Result<(), WriteError>>>(
    wall_ms: impl Fn() -> i64,
    note: impl Fn(i64) -> Noted,
) {
    let began = Instant::now();
    let mut stored = None;
    loop {
        if let Some(since_ms) = earlier(stored, wall_ms(), began.elapsed()) {
            match note(since_ms).await {
                Ok(()) => stored = Some(since_ms),
                Err(error) => {
                    tracing::debug!(reason = %telemetry::chain(&error), "since when tilld serves could not be stored");
                }
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// When tilld began to serve, by the clock as it is now, if that is earlier than what is stored. Not if it is later: a clock may be
/// ahead for a moment.
fn earlier(stored_ms: Option<i64>, wall_ms: i64, served_for: Duration) -> Option<i64> {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let since_ms = wall_ms.saturating_sub(ms(served_for));
    let is_news = |stored: i64| since_ms < stored.saturating_sub(ms(SET_BACK));
    stored_ms.is_none_or(is_news).then_some(since_ms)
}

async fn pass(writer: &Writer, reader: &Reader) {
    let mut begun = false;
    loop {
        match writer.reassess(wall_ms()).await {
            Ok(done) if done.more => {
                if !begun {
                    tracing::info!(
                        "the lists under `[statuses]` changed: stored invoices are looked over"
                    );
                }
                begun = true;
                tokio::time::sleep(PAUSE).await;
            }
            Ok(done) => {
                if begun || done.changed > 0 {
                    tell(reader, done.changed).await;
                }
                return;
            }
            Err(WriteError::Ended) => return,
            Err(error) => {
                let reason = telemetry::chain(&error);
                tracing::warn!(%reason, "stored invoices could not be looked over: {reason}");
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }
}

/// The one line at the end.
async fn tell(reader: &Reader, changed: u64) {
    let held = match reader.held_count().await {
        Ok(held) => held,
        Err(error) => {
            let reason = telemetry::chain(&error);
            tracing::warn!(%reason, "held deliveries could not be counted: {reason}");
            return;
        }
    };
    let run = if held == 0 {
        ""
    } else {
        ": `tilld delivery release --all` runs them, with `--dry-run` it shows them"
    };
    tracing::warn!(
        invoices = changed,
        held,
        "stored invoices were sorted by the new lists: {changed} changed, {held} deliveries are held{run}"
    );
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::ready;

    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn a_clock_that_is_set_back_moves_the_start_with_it_and_one_set_forward_does_not() {
        let an_hour = Duration::from_hours(1);
        let now = 100 * DAY_MS;
        for (stored, wall, served, wanted) in [
            (None, now, Duration::ZERO, Some(now)),
            (Some(now), now + 3_600_000, an_hour, None),
            // A day ahead at the start.
            (Some(now + DAY_MS), now + 3_600_000, an_hour, Some(now)),
            // By less than it has served: it lies in the past by now, and is wrong all the same.
            (Some(now + 60_000), now + 3_600_000, an_hour, Some(now)),
            (Some(now), now + DAY_MS, an_hour, None),
            (Some(now), now + 3_599_500, an_hour, None),
        ] {
            assert_eq!(earlier(stored, wall, served), wanted, "{stored:?} {wall}");
        }
    }

    /// The clock is a day ahead at the start, and right in the third minute; the ledger takes nothing at first.
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_ahead_at_the_start_does_not_count_until_a_restart() {
        let (began, started_ms) = (Instant::now(), 100 * DAY_MS);
        let (wall, asked, noted) = (Cell::new(DAY_MS), Cell::new(0), RefCell::new(Vec::new()));
        let wall_ms = || {
            let ran = i64::try_from(began.elapsed().as_millis()).expect("small");
            if ran > 150_000 {
                wall.set(0);
            }
            started_ms + wall.get() + ran
        };
        let note = |since: i64| {
            asked.set(asked.get() + 1);
            if asked.get() == 1 {
                return ready(Err(WriteError::Ended));
            }
            noted.borrow_mut().push(since);
            ready(Ok(()))
        };
        let ten_minutes = Duration::from_mins(10);
        let never = tokio::time::timeout(ten_minutes, serving_since(wall_ms, note)).await;
        assert!(never.is_err());
        assert_eq!(*noted.borrow(), [started_ms + DAY_MS, started_ms]);
    }
}
