//! What one look at the ledger decides. Pure: due rows and the time come in; which to ask about, which to count again and
//! which are past their horizon go out. The loop in `mod.rs` reads, writes and asks; nothing is judged there.

use std::collections::HashSet;

use super::budget::{self, Turn};
use crate::invoice::silence::{self, Class, Due, Schedule};
use crate::ledger::{DueRow, InvoiceKey, Place};

/// Due invoices of one class looked at in one pass.
pub(crate) const PER_CLASS: u32 = 128;
/// Due times counted again in one pass.
pub(crate) const LOOKED_AT: u32 = 256;
/// A step back of the clock smaller than this is its ordinary correction, milliseconds.
const CLOCK_SLACK_MS: i64 = 1_000;

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
        let is_misfiled = row.class != silence::class(&row.heard, now_ms);
        match silence::next(schedule, &row.heard, now_ms) {
            Due::At(at) if at <= now_ms && !is_misfiled => sorted.ask.push(row),
            Due::Unresolved => sorted.unresolved.push(row.key),
            Due::At(_) | Due::Never => sorted.redate.push(row.key),
        }
    }
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

/// Counts far due times again, some in each pass: at the start, and after the clock was set back. They were written by a
/// clock that was ahead, and nobody would ask until it had caught up.
#[derive(Debug)]
pub(crate) struct Recheck {
    /// The time of the last look.
    looked_ms: i64,
    /// How far due times were counted again, while they are.
    place: Option<Place>,
    /// The time behind which they are.
    from_ms: i64,
}

impl Recheck {
    /// The state of a poller that starts now. The clock may have been set back while none ran, and a due time written by
    /// the clock before looks like any other: all are counted again.
    pub(crate) fn at_start(now_ms: i64) -> Self {
        Self {
            looked_ms: now_ms,
            place: Some(after(Class::Urgent, now_ms)),
            from_ms: now_ms,
        }
    }

    /// Takes note of a look at this time. True when the clock was set back since the last one.
    pub(crate) fn look(&mut self, now_ms: i64) -> bool {
        let set_back = now_ms < self.looked_ms.saturating_sub(CLOCK_SLACK_MS);
        if set_back {
            self.place = Some(after(Class::Urgent, now_ms));
            self.from_ms = now_ms;
        }
        self.looked_ms = now_ms;
        set_back
    }

    /// The place in the order of due times after which the next rows are to be read; `None` when all are counted.
    pub(crate) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Goes on behind the rows read after [`Recheck::place`], once those dated wrongly are stored anew; with the next class
    /// when there were none.
    pub(crate) fn done(&mut self, rows: &[DueRow]) {
        self.place = match rows.last() {
            Some(row) => Some(Place {
                class: row.class,
                due_ms: row.due_ms,
                key: row.key,
            }),
            None => self.place.and_then(|place| {
                let later = Class::ALL.into_iter().find(|class| *class > place.class);
                later.map(|class| after(class, self.from_ms))
            }),
        };
    }

    /// Which of the rows read after [`Recheck::place`] are dated wrongly.
    pub(crate) fn wrong(schedule: &Schedule, rows: &[DueRow], now_ms: i64) -> Vec<InvoiceKey> {
        let wrong = |row: &&DueRow| match silence::next(schedule, &row.heard, now_ms) {
            Due::At(at) => at < row.due_ms,
            Due::Unresolved | Due::Never => true,
        };
        rows.iter().filter(wrong).map(|row| row.key).collect()
    }
}

/// The place behind everything of a class that is due at this time.
pub(super) const fn after(class: Class, now_ms: i64) -> Place {
    Place {
        class,
        due_ms: now_ms,
        key: InvoiceKey(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invoice::ids::InvoiceId;
    use crate::invoice::silence::{Heard, Step};
    use crate::invoice::status::Outcome;

    const NOW: i64 = 1_700_000_000_000;
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
                nudged_ms: None,
                failures: 0,
                doubt: false,
                pending_since_ms: None,
                outcome: Outcome::Open,
                outcome_ms: NOW - made_ago,
                unresolved: false,
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
        let rows = vec![
            row(1, 10 * MINUTE, 2 * MINUTE, NOW),
            row(2, 10 * MINUTE, MINUTE / 2, NOW),
            row(3, 90 * MINUTE, MINUTE, NOW),
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

    #[test]
    fn a_clock_set_back_counts_every_later_due_time_again() {
        let schedule = schedule();
        // Set back while the poller runs, or while none did.
        let mut running = Recheck::at_start(NOW + 9 * MINUTE);
        for _class in Class::ALL {
            running.done(&[]);
        }
        assert_eq!(running.place(), None);
        let ordinary = running.look(NOW + 9 * MINUTE - CLOCK_SLACK_MS);
        assert!(!ordinary && running.place().is_none());
        assert!(running.look(NOW));
        for mut recheck in [running, Recheck::at_start(NOW)] {
            assert_eq!(recheck.place(), Some(after(Class::Urgent, NOW)));
            recheck.done(&[]);
            assert_eq!(recheck.place(), Some(after(Class::Young, NOW)));
            // The first is right where it is; the second was dated by the clock that was ahead.
            let rows = [
                row(1, 10 * MINUTE, MINUTE / 2, NOW + MINUTE / 2),
                row(2, 10 * MINUTE, MINUTE / 2, NOW + 9 * MINUTE),
            ];
            assert_eq!(Recheck::wrong(&schedule, &rows, NOW), [InvoiceKey(2)]);
            recheck.done(&rows);
            let last = Place {
                class: Class::Young,
                due_ms: NOW + 9 * MINUTE,
                key: InvoiceKey(2),
            };
            assert_eq!(recheck.place(), Some(last));
            recheck.done(&[]);
            assert_eq!(recheck.place(), Some(after(Class::Old, NOW)));
            recheck.done(&[]);
            assert_eq!(recheck.place(), None);
        }
    }
}
