//! Deliveries that wait for a hook which is not configured, because it was renamed or taken out: no claim asks for them, so
//! nothing else of the outbox would ever mention them.
//!
//! Relies on the config being read once: told at the start, it stays true until the next one.

use std::error::Error;

use super::Settings;
use crate::clock::wall_ms;
use crate::ledger::Reader;

/// Tells of each such hook, in one line.
pub(super) async fn tell(reader: &Reader, settings: &Settings) {
    let now_ms = wall_ms();
    let awaited = match reader.overview(now_ms, now_ms).await {
        Ok(overview) => overview.awaited,
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn Error,
                "could not look for deliveries whose hook is not configured"
            );
            return;
        }
    };
    for hook in awaited
        .iter()
        .filter(|hook| settings.hook_of(hook).is_none())
    {
        tracing::error!(
            hook.name = hook,
            "deliveries wait for hook {hook}, which is not configured, and are never run: \
             `tilld delivery list --hook {hook} --state waiting` shows them"
        );
    }
}
