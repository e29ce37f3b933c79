//! A delivery that stands as running though its daemon is gone: its old process is waited for or ended, and only then
//! does the delivery wait again (A41). How the old run ended nobody can know, so it is run once more.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Went, store_end};
use super::{Action, Desk};
use crate::clock::wall_ms;
use crate::hook::process::Ending;
use crate::hook::settle_old_child;
use crate::ledger::{After, AttemptRecord, Running};

/// Patience and grace for a program that is not configured any more.
const UNKNOWN_HOOK: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(5));

/// Settles it. Safe to abort: nothing is stored before the old process is gone.
pub(super) async fn run(desk: Arc<Desk>, left: Running) -> Went {
    // Unnamed, it never ran: it saw its pipe close. A request that was posted ended with its daemon, and has no
    // process to wait for.
    if let Some(child) = &left.child {
        let (longest, grace) =
            desk.action(&left.hook)
                .map_or(UNKNOWN_HOOK, |action| match action {
                    Action::Run(program) => (program.timeout, program.grace),
                    // The name was a program's when it was run.
                    Action::Post(_) => UNKNOWN_HOOK,
                });
        // By the wall clock, which may have been set: never more than the whole time, never less than none.
        let ran_ms = u64::try_from(wall_ms().saturating_sub(left.started_ms)).unwrap_or_default();
        let patience = longest.saturating_sub(Duration::from_millis(ran_ms));
        if let Err(error) = settle_old_child(child, patience, grace).await {
            tracing::warn!(
                pid = child.pid,
                error = &error as &dyn Error,
                "could not watch a hook of an earlier daemon"
            );
            return Went::Trouble;
        }
    }
    let result = Ending::Interrupted.to_string();
    tracing::info!(
        hook.name = left.hook,
        attempt = left.attempt,
        "hook {} of an earlier daemon: {result}",
        left.hook
    );
    let record = AttemptRecord {
        started_ms: left.started_ms,
        ended_ms: wall_ms(),
        result,
        stdout: Vec::new(),
        stderr: Vec::new(),
    };
    if store_end(&desk, left.key, record, After::Interrupted).await {
        Went::Stored
    } else {
        Went::Trouble
    }
}
