//! Looks over the stored invoices once after the lists of status names changed, in small commits with pauses between, so
//! that notifications are not held up. Relies on the ledger, which remembers how far it came; promises to go on where it
//! was after any end, and to say at the end what changed and which line runs the hooks.

use std::time::Duration;

use crate::clock::wall_ms;
use crate::ledger::{Reader, SERVING_SINCE, WriteError, Writer};
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Between two commits: room for what comes from outside.
const PAUSE: Duration = Duration::from_millis(20);
/// After a commit that could not be stored: the disk is full, or another program holds the ledger.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Runs the pass, if one is due, and then waits for the wish to stop: a part of the daemon that ends alone ends all.
pub(super) async fn run(writer: Writer, reader: Reader, stop: Shutdown) {
    // What the service dates before that was nobody's to hear.
    if let Err(error) = writer.note(SERVING_SINCE, wall_ms().to_string()).await {
        tracing::debug!(reason = %telemetry::chain(&error), "since when tilld serves could not be stored");
    }
    tokio::select! {
        () = pass(&writer, &reader) => {}
        () = stop.requested() => return,
    }
    // Given back before the wait: the ledger closes when nobody holds it.
    drop((writer, reader));
    stop.requested().await;
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
