//! One look at the ledger, with all that needs no question: openings nobody will finish are given up, due times that a wrong
//! clock wrote are counted again, as are those that have moved on, and whoever is past the horizon is told of. Where nothing
//! of this is to be done it reads once and writes nothing, however many invoices are open.

use std::collections::HashSet;

use super::Trouble;
use super::counting::count_again;
use super::pass::{self, PER_CLASS};
use super::recheck::Recheck;
use crate::invoice::silence::Schedule;
use crate::ledger::{DueRow, InvoiceKey, Reader, Writer};

/// What a look left to be done.
#[derive(Debug)]
pub(crate) struct Tidied {
    /// To be asked about, the most pressing class first.
    pub(crate) ask: Vec<DueRow>,
    /// How many were dated anew.
    pub(crate) redated: usize,
    /// The first due time that is still to come.
    pub(crate) next_ms: Option<i64>,
}

/// Looks once. Those that are being asked about already are left alone.
pub(crate) async fn tidy(
    (reader, writer): (&Reader, &Writer),
    schedule: &Schedule,
    recheck: &mut Recheck,
    asked: &HashSet<InvoiceKey>,
    now_ms: i64,
) -> Result<Tidied, Trouble> {
    let mut seen = reader.survey(now_ms, PER_CLASS).await?;
    for row in seen.creating {
        if row.is_given_up(now_ms) {
            writer.give_up_opening(row.key).await?;
            tracing::warn!(order.id = %row.order_id, "nobody knows whether the service opened order {}: look at it", row.order_id);
        }
    }
    let ledger = (reader, writer);
    if count_again(recheck, schedule, ledger, (now_ms, seen.clock_mark_ms)).await? {
        seen.due = reader.due(now_ms, PER_CLASS).await?;
        seen.next_ms = reader.next_due_after(now_ms).await?;
    }
    let sorted = pass::sort(schedule, seen.due, asked, now_ms);
    let dated = !sorted.unresolved.is_empty() || !sorted.redate.is_empty();
    for key in sorted.unresolved {
        writer.unresolve(key, now_ms).await?;
    }
    writer.redate(&sorted.redate, now_ms).await?;
    if dated {
        seen.next_ms = reader.next_due_after(now_ms).await?;
    }
    Ok(Tidied {
        ask: sorted.ask,
        redated: sorted.redate.len(),
        next_ms: seen.next_ms,
    })
}
