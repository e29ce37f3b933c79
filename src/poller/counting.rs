//! Carries out what [`Recheck`] wants: reads some stored times in each pass and has those counted again that a wrong clock
//! wrote. Relies on being called in every pass; promises small commits, and none where the clock was right.

use super::Trouble;
use super::pass::LOOKED_AT;
use super::recheck::{Clock, Recheck, Stage};
use crate::invoice::silence::Schedule;
use crate::ledger::{CLOCK_MARK, InvoiceKey, Reader, Writer};

/// One pass, at this time and with the ledger's mark as it is then. True when times were counted again.
pub(crate) async fn count_again(
    recheck: &mut Recheck,
    schedule: &Schedule,
    (reader, writer): (&Reader, &Writer),
    (now_ms, mark_ms): (i64, Option<i64>),
) -> Result<bool, Trouble> {
    match recheck.look(now_ms, mark_ms) {
        Clock::NotSet => return Ok(false),
        Clock::Steady => {}
        Clock::SetBack => {
            tracing::warn!("the clock was ahead and was set back: due times are counted again");
        }
    }
    match recheck.stage() {
        None => Ok(false),
        Some(Stage::Due(place)) => {
            let rows = reader.due_after(place, LOOKED_AT).await?;
            let wrong = Recheck::wrong(schedule, &rows, now_ms);
            writer.redate(&wrong, now_ms).await?;
            recheck.done(&rows);
            Ok(!wrong.is_empty())
        }
        Some(Stage::Retired(since_ms, key)) => {
            let found = reader.retired_after((since_ms, key), LOOKED_AT).await?;
            let keys: Vec<InvoiceKey> = found.iter().map(|(_, key)| *key).collect();
            writer.redate(&keys, now_ms).await?;
            if recheck.done_retired(&found, now_ms) {
                writer.note(&CLOCK_MARK, &now_ms).await?;
            }
            Ok(!keys.is_empty())
        }
    }
}
