//! Counts how long this daemon and those before it have served while something was owed to a hook. Relies on the clock that is never
//! set. Promises that a delivery is late only by time in which it could have been made.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::ledger::{Reader, SERVED_FOR_MS, Writer};
use crate::shutdown::Shutdown;
use crate::telemetry::chain;

/// Between two notes: an alert is late by so much at most.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// Counts until the stop.
pub(super) async fn run(writer: Writer, reader: Reader, stop: Shutdown) {
    let mut served = Duration::ZERO;
    while !stop.is_requested() {
        let began = Instant::now();
        tokio::select! {
            () = stop.requested() => {}
            () = sleep(NOTE_EVERY) => {}
        }
        // While this process stood still it served nobody.
        served += began.elapsed().min(NOTE_EVERY * 2);
        // What could not be noted now is noted with the next.
        match note(&writer, &reader, served).await {
            Ok(()) => served = Duration::ZERO,
            Err(reason) => tracing::debug!(%reason, "the time served could not be noted: {reason}"),
        }
    }
}

async fn note(writer: &Writer, reader: &Reader, served: Duration) -> Result<(), String> {
    if !reader.is_owed().await.map_err(|error| chain(&error))? {
        return Ok(());
    }
    let before_ms = reader.fact(&SERVED_FOR_MS).await;
    let before_ms = before_ms
        .map_err(|error| chain(&error))?
        .unwrap_or_default();
    let served_ms = i64::try_from(served.as_millis()).unwrap_or(i64::MAX);
    let served_ms = before_ms.saturating_add(served_ms);
    let noted = writer.note(&SERVED_FOR_MS, &served_ms).await;
    noted.map_err(|error| chain(&error))
}
