//! Empties what was over long ago, once a day and after each start, in small commits with pauses between. Relies on the walk
//! (`ledger::walk`), which may be cut off anywhere; promises that a ledger which cannot store is left alone for a while, and
//! that no clock of this machine alone, which may be years ahead, decides that something is old: the service's must agree; and that it is not what fills the log while a long read holds it.

use std::time::Duration;

use tokio::sync::watch;

use crate::client::fetches::ServiceClock;
use crate::clock::Reading;
use crate::config::Settings;
use crate::ledger::{Cutoffs, Reader, WalkError, WriteError, Writer, walk};
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Between two steps of a walk: room for what comes from outside.
const PAUSE: Duration = Duration::from_millis(50);
/// While the log is long.
const WAIT_FOR_THE_LOG: Duration = Duration::from_secs(1);
/// Between two walks.
const EVERY: Duration = Duration::from_hours(24);
/// After a walk that was cut off.
const TRY_AGAIN_AFTER: Duration = Duration::from_mins(10);

/// For how long texts are kept after an invoice is over, days; 0: for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keep {
    /// Requisites and payment page.
    pub(super) requisites_days: u64,
    /// Raw documents, and what scripts wrote.
    pub(super) raw_days: u64,
}

impl Keep {
    /// What the settings say.
    pub(super) const fn of(settings: &Settings) -> Self {
        Self {
            requisites_days: settings.retention.requisites_days,
            raw_days: settings.retention.raw_days,
        }
    }
}

/// Walks until the wish to stop: a part of the daemon that ends alone ends all.
pub(super) async fn run(
    (writer, reader): (Writer, Reader),
    keep: Keep,
    mut clock: watch::Receiver<Option<ServiceClock>>,
    stop: Shutdown,
) {
    let walks = async {
        loop {
            let Ok(Some(service)) = clock.wait_for(Option::is_some).await.map(|told| *told) else {
                // The service's client is gone: so is the daemon.
                return std::future::pending().await;
            };
            let now = Reading::now();
            let now_ms = now.wall_ms.min(service.at(now));
            tokio::time::sleep(once(&writer, &reader, keep, now_ms).await).await;
        }
    };
    tokio::select! {
        () = walks => {}
        () = stop.requested() => {}
    }
}

/// One walk. Gives the time until the next.
async fn once(writer: &Writer, reader: &Reader, keep: Keep, now_ms: i64) -> Duration {
    let cutoffs = Cutoffs::after_days(keep.requisites_days, keep.raw_days, now_ms);
    if cutoffs.is_never() {
        return EVERY;
    }
    let rest = || async {
        tokio::time::sleep(PAUSE).await;
        room(reader).await;
    };
    room(reader).await;
    match walk(reader, Some(writer), cutoffs, rest).await {
        Ok(emptied) => {
            if emptied.requisites > 0 || emptied.raw > 0 {
                tracing::info!(
                    requisites = emptied.requisites,
                    raw = emptied.raw,
                    "old invoices were emptied: requisites of {}, raw documents of {}",
                    emptied.requisites,
                    emptied.raw
                );
            }
            EVERY
        }
        // The daemon ends, and says why.
        Err(WalkError::Write(WriteError::Ended)) => EVERY,
        Err(error) => {
            let reason = telemetry::chain(&error);
            tracing::warn!(%reason, "old invoices could not be emptied: {reason}");
            TRY_AGAIN_AFTER
        }
    }
}

/// Waits while the log is long: all that is emptied goes through it, and a read that lasts keeps it there.
async fn room(reader: &Reader) {
    let mut told = false;
    while reader.log_is_long() {
        if !told {
            told = true;
            tracing::info!("old invoices are emptied once the ledger's log is short again");
        }
        tokio::time::sleep(WAIT_FOR_THE_LOG).await;
    }
}
