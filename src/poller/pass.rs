//! What one look at the ledger decides. Pure: due rows and the time come in; which to ask about, which to count again and
//! which are past their horizon go out. The loop in `mod.rs` reads, writes and asks; nothing is judged there.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::budget::{self, Turn};
use crate::invoice::silence::{self, Class, Due, Schedule};
use crate::ledger::{DueRow, InvoiceKey, Place};

/// Due invoices of one class looked at in one pass.
pub(crate) const PER_CLASS: u32 = 128;
/// Due times counted again in one pass.
pub(crate) const LOOKED_AT: u32 = 256;

/// Rows whose stored due time has come, sorted by what is to be done about them.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// To be asked about, as far as there is room: see [`choose`].
    pub ask: Vec<DueRow>,
    /// Past their horizon: event and attention.
    pub unresolved: Vec<InvoiceKey>,
    /// Heard of since their due time was written, grown old since, or expected no more: to be counted again, lazily. One
    /// that is still due then is asked about by the next look, in the class it has now.
    pub redate: Vec<InvoiceKey>,
}

/// Sorts due rows, without those that are being asked about already.
pub(crate) fn sort(
    schedule: &Schedule,
    rows: Vec<DueRow>,
    asked: &HashSet<InvoiceKey>,
    now_ms: i64,
) -> Sorted {
    let mut sorted = Sorted::default();
    for row in rows.into_iter().filter(|row| !asked.contains(&row.key)) {
        let is_misfiled =
            now_ms >= silence::CLOCK_IS_SET_MS && row.class != silence::class(&row.heard, now_ms);
        match silence::next(schedule, &row.heard, now_ms) {
            Due::At(at) if at <= now_ms && !is_misfiled => sorted.ask.push(row),
            Due::Unresolved => sorted.unresolved.push(row.key),
            Due::At(_) | Due::Never => sorted.redate.push(row.key),
        }
    }
    // Of a restored ledger's the newest first: it is the likeliest to have changed since the copy.
    let newest_first = |row: &DueRow| (row.class == Class::Restored).then_some(Reverse(row.key));
    sorted.ask.sort_by_key(newest_first);
    sorted
}

/// Chooses up to `room` of the rows that are to be asked about, fair between their classes.
pub(crate) fn choose<'a>(
    due: &'a [DueRow],
    room: usize,
    now_ms: i64,
    turn: &mut Turn,
) -> Vec<&'a DueRow> {
    let classes: Vec<Class> = due
        .iter()
        .map(|row| silence::class(&row.heard, now_ms))
        .collect();
    budget::choose(&classes, room, turn)
        .into_iter()
        .filter_map(|at| due.get(at))
        .collect()
}

/// With whom an outage is tried: those that failed least. Were it tried with the most pressing ones alone, one that the
/// service is silent about would keep it from ending.
pub(crate) fn to_try_with(mut due: Vec<DueRow>) -> Vec<DueRow> {
    let least = due.iter().map(|row| row.heard.failures).min();
    due.retain(|row| Some(row.heard.failures) == least);
    due
}

/// The place behind everything of a class that is due at this time.
pub(crate) const fn after(class: Class, due_ms: i64) -> Place {
    Place {
        class,
        due_ms,
        key: InvoiceKey(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::ids::InvoiceId;
    use crate::invoice::silence::{Heard, Step};
    use crate::invoice::status::Outcome;

    const NOW: i64 = 1_800_000_000_000;
    const MINUTE: i64 = 60_000;

    fn schedule() -> Schedule {
        Schedule {
            steps: vec![Step {
                until_ms: 30 * MINUTE,
                every_ms: MINUTE,
            }],
            after_expiry_ms: 5_000,
            horizon_ms: 60 * MINUTE,
        }
    }

    /// An open invoice made so long ago and heard of so long ago, stored as due at `due_ms`.
    fn row(key: i64, made_ago: i64, heard_ago: i64, due_ms: i64) -> DueRow {
        DueRow {
            key: InvoiceKey(key),
            order_id: format!("order-{key}"),
            invoice_id: InvoiceId::new(format!("id-{key}")).expect("an id"),
            revision: 1,
            heard: Heard {
                created_ms: NOW - made_ago,
                expire_ms: None,
                heard_ms: Some(NOW - heard_ago),
                asked_ms: Some(NOW - heard_ago),
                service_ms: None,
                ended: silence::Ended::default(),
                nudged_ms: None,
                failures: 0,
                doubt: false,
                pending_since_ms: None,
                outcome: Outcome::Open,
                outcome_ms: NOW - made_ago,
                unresolved: false,
                restored: false,
            },
            due_ms,
            class: if made_ago < silence::YOUNG_MS {
                Class::Young
            } else {
                Class::Old
            },
        }
    }

    fn keys(rows: &[DueRow]) -> Vec<i64> {
        rows.iter().map(|row| row.key.0).collect()
    }

    #[test]
    fn due_rows_are_asked_dated_anew_or_given_up() {
        let mut past_its_end = row(3, 90 * MINUTE, MINUTE, NOW);
        past_its_end.heard.service_ms = Some(NOW - MINUTE);
        let rows = vec![
            row(1, 10 * MINUTE, 2 * MINUTE, NOW),
            row(2, 10 * MINUTE, MINUTE / 2, NOW),
            past_its_end,
            row(4, 10 * MINUTE, 2 * MINUTE, NOW),
        ];
        let mut grown_old = row(5, 40 * MINUTE, 2 * MINUTE, NOW);
        grown_old.class = Class::Young;
        let rows = rows.into_iter().chain([grown_old]).collect();
        let asked = HashSet::from([InvoiceKey(4)]);
        let sorted = sort(&schedule(), rows, &asked, NOW);
        assert_eq!(keys(&sorted.ask), [1]);
        assert_eq!(sorted.redate, [InvoiceKey(2), InvoiceKey(5)]);
        assert_eq!(sorted.unresolved, [InvoiceKey(3)]);
    }

    #[test]
    fn an_outage_is_not_tried_with_one_that_failed_while_another_did_not() {
        let mut poisoned = row(1, 5 * MINUTE, 2 * MINUTE, NOW - 9);
        poisoned.heard.failures = 4;
        let due = vec![poisoned.clone(), row(2, 50 * MINUTE, 20 * MINUTE, NOW)];
        assert_eq!(keys(&to_try_with(due)), [2]);
        assert_eq!(keys(&to_try_with(vec![poisoned])), [1]);
        assert!(to_try_with(Vec::new()).is_empty());
    }

    #[test]
    fn room_is_shared_between_young_and_old() {
        let due = [
            row(1, 50 * MINUTE, 20 * MINUTE, NOW - 3),
            row(2, 50 * MINUTE, 20 * MINUTE, NOW - 2),
            row(3, 5 * MINUTE, 2 * MINUTE, NOW - 1),
        ];
        let chosen: Vec<i64> = choose(&due, 2, NOW, &mut Turn::default())
            .iter()
            .map(|row| row.key.0)
            .collect();
        assert_eq!(chosen, [3, 1]);
    }
}
