//! Whether the refusal of the doctor's own notification came into the ledger of this state directory; and if it did not, whether
//! that says anything of the way it went. A ledger that stores nothing, or one that was flooded meanwhile, is no fault of a proxy.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Patient;
use crate::ledger::{ReadError, Reader, RefusalFilter, RefusalRow};

/// Refusals are gathered for a second; a busy machine takes a few more.
const WITHIN: Duration = Duration::from_secs(6);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// From here on it is asked what else may be the cause, each so often.
const USUAL: Duration = Duration::from_secs(2);
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A daemon gathers so many refusals for one commit, and counts the rest.
const GATHERED_MOST: u64 = 1_000;

/// What became of it.
#[derive(Debug)]
pub(super) enum Trace {
    /// It is there.
    Recorded(Box<RefusalRow>),
    /// The ledger could not be read.
    Unread(ReadError),
    /// The daemon stores nothing, and what is to be done about that.
    Unstored(String),
    /// As many others were refused since as are kept.
    Displaced,
    /// It is not there, and the daemon that could tell why has nothing to tell.
    Absent,
    /// It is not there, and the daemon could not be asked why.
    Untold,
}

/// Looks for it by the hash of its body, which nobody else sends. `since_ms`: when it was posted.
pub(super) async fn find(
    patient: &Patient<'_>,
    reader: &Reader,
    since_ms: i64,
    body_sha256: &str,
) -> Trace {
    let began = Instant::now();
    let mut ask_at = began + USUAL;
    let mut asked = Asked::Never;
    loop {
        let filter = RefusalFilter {
            body_sha256: Some(body_sha256.to_owned()),
            ..RefusalFilter::default()
        };
        let looked = match reader.refusals(filter, 1).await {
            Ok(rows) => match rows.into_iter().next() {
                Some(row) => return Trace::Recorded(Box::new(row)),
                None => Ok(()),
            },
            Err(error) => Err(error),
        };
        if Instant::now() >= ask_at {
            if is_flooded(patient, reader, since_ms).await {
                return Trace::Displaced;
            }
            asked = ask(patient).await;
            if let Asked::StoresNothing(advice) = asked {
                return Trace::Unstored(advice);
            }
            ask_at = Instant::now() + ASK_EVERY;
        }
        if began.elapsed() >= WITHIN {
            return match (looked, asked) {
                (Err(error), _) => Trace::Unread(error),
                (Ok(()), Asked::IsWell) => Trace::Absent,
                (Ok(()), Asked::Never | Asked::StoresNothing(_)) => Trace::Untold,
            };
        }
        sleep(LOOK_EVERY).await;
    }
}

/// What the daemon says of its storing.
enum Asked {
    Never,
    IsWell,
    StoresNothing(String),
}

async fn ask(patient: &Patient<'_>) -> Asked {
    let Some(report) = (patient.ask_daemon)().await else {
        return Asked::Never;
    };
    let mut reasons = report.attention.into_iter();
    let reason = reasons.find(|of| of.reason.stops_storing());
    reason.map_or(Asked::IsWell, |told| {
        Asked::StoresNothing(told.advice.into_owned())
    })
}

/// So many were refused since that the ledger need not have kept this one, or the daemon not have gathered it.
async fn is_flooded(patient: &Patient<'_>, reader: &Reader, since_ms: i64) -> bool {
    let kept = patient.settings.ledger.refusal_rows.min(GATHERED_MOST);
    let kept = u32::try_from(kept).unwrap_or(u32::MAX);
    let filter = RefusalFilter {
        since_ms: Some(since_ms),
        ..RefusalFilter::default()
    };
    let since = reader.refusals(filter, kept).await;
    // One that cannot be read is told at the end.
    since.is_ok_and(|rows| rows.len() >= kept as usize)
}
