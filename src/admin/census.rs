//! What was counted of the ledger: how invoices stand, who found changes and how late, and the last day by the hour. Pure:
//! pieces of invoices and events go in, each once, in their order.

use std::collections::BTreeMap;

use crate::invoice::event::EventKind;
use crate::invoice::observation::Source;
use crate::ledger::{EventMark, Piece};

/// Milliseconds of an hour, and of a day.
const HOUR_MS: i64 = 3_600_000;
/// Hours shown: a day, the one that has begun counted.
pub(super) const HOURS: i64 = 24;
/// Hours kept in which anything happened. More than are shown, since what is the oldest is known by a clock that may be ahead
/// for a moment.
const KEPT: usize = 4 * 24;
/// Upper bounds of the histogram of lags, seconds. A notification comes within seconds; asking finds within a minute, and
/// what is older was found after an outage.
pub(super) const LAG_BOUNDS_S: [u64; 10] = [1, 2, 5, 10, 30, 60, 120, 600, 3_600, 21_600];
/// Who may have found a change, as `found_by` names them; the last for what nobody told.
pub(super) const FINDERS: [&str; 5] = ["notification", "poll", "create", "operator", "tilld"];

/// Everything that was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    /// How many invoices have this status and outcome.
    standing: BTreeMap<(String, String), u64>,
    /// The pieces that were read, each to its last row, with the newest event it shows.
    pieces: Vec<(i64, i64)>,
    /// All invoices of the start were read.
    whole: bool,
    /// The last event that was heard.
    seq: i64,
    /// Events behind this one belong to the counters, which begin with the process.
    counted_from: i64,
    /// Changes by who found them.
    pub(super) found: [u64; FINDERS.len()],
    /// Changes by how late they were recorded, not summed up; the last beyond all bounds.
    pub(super) lags: [u64; LAG_BOUNDS_S.len() + 1],
    /// All lags together, milliseconds.
    pub(super) lag_sum_ms: u64,
    hours: BTreeMap<i64, Hour>,
}

/// What happened within an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hour {
    /// Changes that a notification told first.
    pub(super) notified: u64,
    /// Changes that asking found first.
    pub(super) polled: u64,
    /// Invoices opened.
    pub(super) opened: u64,
    /// Invoices that became paid.
    pub(super) paid: u64,
    /// Invoices that failed.
    pub(super) failed: u64,
    /// Invoices whose money went back.
    pub(super) reversed: u64,
    /// Invoices paid with another sum than agreed.
    pub(super) mismatched: u64,
}

impl Hour {
    fn add(&mut self, other: Self) {
        self.notified += other.notified;
        self.polled += other.polled;
        self.opened += other.opened;
        self.paid += other.paid;
        self.failed += other.failed;
        self.reversed += other.reversed;
        self.mismatched += other.mismatched;
    }
}

impl Census {
    /// Begins: events behind `from` are heard, those behind `counted_from` belong to the counters.
    pub(super) fn new(from: i64, counted_from: i64) -> Self {
        Self {
            seq: from,
            counted_from,
            ..Self::default()
        }
    }

    /// The row behind which invoices are to be read, while there are some.
    pub(super) fn reads_behind(&self) -> Option<i64> {
        let last = self.pieces.last().map_or(0, |(upto, _)| *upto);
        (!self.whole).then_some(last)
    }

    /// Takes a piece that was asked for behind [`Census::reads_behind`].
    pub(super) fn take(&mut self, piece: Piece) {
        if self.reads_behind() == Some(piece.upto) {
            self.whole = true;
            return;
        }
        for (status, outcome, count) in piece.standing {
            // Those the service has not spoken of are what is left of all.
            if let Some(status) = status {
                *self.standing.entry((status, outcome)).or_default() += count;
            }
        }
        self.pieces.push((piece.upto, piece.seq));
    }

    /// The event behind which events are to be read.
    pub(super) const fn seq(&self) -> i64 {
        self.seq
    }

    /// Takes the events behind [`Census::seq`], in their order. All pieces must have been taken.
    pub(super) fn hear(&mut self, marks: &[EventMark], now_ms: i64) {
        for mark in marks {
            self.seq = self.seq.max(mark.seq);
            if mark.seq > self.shown(mark.invoice) {
                self.move_standing(mark);
            }
            if mark.seq > self.counted_from {
                self.count(mark);
            }
            let hour = self
                .hours
                .entry(mark.at_ms.div_euclid(HOUR_MS))
                .or_default();
            hour.add(happened(mark));
        }
        let beyond = self.seq;
        if self.pieces.iter().all(|(_, seq)| *seq <= beyond) {
            self.pieces.retain(|_| false);
        }
        self.forget(now_ms.div_euclid(HOUR_MS));
    }

    /// Forgets the hours beyond [`KEPT`]: those ahead first, which a clock that was ahead has dated. By their number and not by
    /// their age, as the present hour may be ahead itself.
    fn forget(&mut self, now: i64) {
        while self.hours.len() > KEPT {
            let last = self.hours.last_entry();
            match last.filter(|last| *last.key() > now) {
                Some(ahead) => drop(ahead.remove()),
                None => drop(self.hours.pop_first()),
            }
        }
    }

    /// The newest event that was known when this invoice was read. One that was not read is newer than all that were.
    fn shown(&self, invoice: i64) -> i64 {
        let at = self.pieces.partition_point(|(upto, _)| *upto < invoice);
        self.pieces.get(at).map_or(0, |(_, seq)| *seq)
    }

    fn move_standing(&mut self, mark: &EventMark) {
        if let Some(before) = &mark.previous_status {
            let key = (before.clone(), mark.previous_outcome.clone());
            if let Some(count) = self.standing.get_mut(&key) {
                *count = count.saturating_sub(1);
            }
        }
        if let Some(after) = &mark.status {
            let key = (after.clone(), mark.outcome.clone());
            *self.standing.entry(key).or_default() += 1;
        }
    }

    fn count(&mut self, mark: &EventMark) {
        let by = mark.source.map_or("tilld", Source::as_str);
        let at = FINDERS.iter().position(|finder| *finder == by);
        if let Some(count) = at.and_then(|at| self.found.get_mut(at)) {
            *count += 1;
        }
        let Some(claimed_ns) = mark.claimed_ns.filter(|_| is_found(mark)) else {
            return;
        };
        // The service's clock and ours may differ: nothing is found before it was.
        let lag_ms = mark.at_ms.saturating_sub(claimed_ns.div_euclid(1_000_000));
        let lag_ms = u64::try_from(lag_ms).unwrap_or_default();
        let at = LAG_BOUNDS_S
            .iter()
            .position(|bound| lag_ms <= bound * 1_000);
        if let Some(count) = self.lags.get_mut(at.unwrap_or(LAG_BOUNDS_S.len())) {
            *count += 1;
        }
        self.lag_sum_ms = self.lag_sum_ms.saturating_add(lag_ms);
    }

    /// Status, outcome and how many, none of them 0.
    pub(super) fn standing(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        let all = self.standing.iter().filter(|(_, count)| **count > 0);
        all.map(|((status, outcome), count)| (status.as_str(), outcome.as_str(), *count))
    }

    /// The last day by the hour, the present one last, each with when it began, milliseconds since 1970.
    pub(super) fn day(&self, now_ms: i64) -> Vec<(i64, Hour)> {
        let now = now_ms.div_euclid(HOUR_MS);
        let at = |hour: i64| self.hours.get(&hour).copied().unwrap_or_default();
        (now - HOURS + 1..=now)
            .map(|hour| (hour * HOUR_MS, at(hour)))
            .collect()
    }

    /// What happened since the last midnight, by UTC.
    pub(super) fn today(&self, now_ms: i64) -> Hour {
        let now = now_ms.div_euclid(HOUR_MS);
        let midnight = now.div_euclid(HOURS) * HOURS;
        let mut sum = Hour::default();
        for (_, hour) in self.hours.range(midnight..=now) {
            sum.add(*hour);
        }
        sum
    }
}

/// A change that somebody had to hear of: not an opening, whose answer is asked for, and not a person's own wish.
fn is_found(mark: &EventMark) -> bool {
    let by_service = matches!(mark.source, Some(Source::Notification | Source::Poll));
    let is_own = matches!(
        mark.kind,
        EventKind::Opened | EventKind::Operator | EventKind::Unresolved
    );
    by_service && !is_own
}

fn happened(mark: &EventMark) -> Hour {
    let is = |kinds: &[EventKind]| u64::from(kinds.contains(&mark.kind));
    let by = |source| u64::from(is_found(mark) && mark.source == Some(source));
    Hour {
        notified: by(Source::Notification),
        polled: by(Source::Poll),
        opened: is(&[EventKind::Opened]),
        paid: is(&[EventKind::Paid, EventKind::Late]),
        failed: is(&[EventKind::Failed]),
        reversed: is(&[EventKind::Reversed]),
        mismatched: is(&[EventKind::Mismatch]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(seq: i64, invoice: i64, before: Option<&str>, after: &str, source: &str) -> EventMark {
        let outcome = |status: &str| if status == "done" { "paid" } else { "open" };
        EventMark {
            seq,
            invoice,
            kind: if after == "done" {
                EventKind::Paid
            } else {
                EventKind::Opened
            },
            source: Source::parse(source),
            previous_status: before.map(str::to_owned),
            status: Some(after.to_owned()),
            previous_outcome: outcome(before.unwrap_or_default()).to_owned(),
            outcome: outcome(after).to_owned(),
            at_ms: seq * 1_000,
            claimed_ns: Some(seq * 1_000_000_000 - 4_000_000_000),
        }
    }

    fn standing(census: &Census) -> Vec<(String, u64)> {
        let all = census.standing();
        all.map(|(status, outcome, count)| (format!("{status}/{outcome}"), count))
            .collect()
    }

    #[test]
    fn an_invoice_is_counted_once_whether_its_change_came_before_or_after_its_piece() {
        let mut census = Census::new(0, 5);
        assert_eq!(census.reads_behind(), Some(0));
        let open = |count| {
            vec![
                (Some("new".to_owned()), "open".to_owned(), count),
                (None, "open".to_owned(), 7),
            ]
        };
        census.take(Piece {
            upto: 10,
            seq: 5,
            standing: open(10),
        });
        // Event 6, of the first piece, came between the two; event 7, of the second, is shown by it.
        let done = vec![
            (Some("new".to_owned()), "open".to_owned(), 9),
            (Some("done".to_owned()), "paid".to_owned(), 1),
        ];
        census.take(Piece {
            upto: 20,
            seq: 7,
            standing: done,
        });
        assert_eq!(census.reads_behind(), Some(20));
        census.take(Piece {
            upto: 20,
            seq: 9,
            standing: Vec::new(),
        });
        assert_eq!(census.reads_behind(), None);
        census.hear(
            &[
                mark(5, 3, None, "new", "create"),
                mark(6, 3, Some("new"), "done", "poll"),
                mark(7, 13, Some("new"), "done", "notification"),
                mark(8, 21, None, "new", "create"),
            ],
            0,
        );
        let wanted = [("done/paid".to_owned(), 2), ("new/open".to_owned(), 19)];
        assert_eq!(standing(&census), wanted);
        assert_eq!((census.found, census.seq()), ([1, 1, 1, 0, 0], 8));
        // Behind the pieces every event is news.
        census.hear(&[mark(9, 13, Some("done"), "new", "poll")], 0);
        let wanted = [("done/paid".to_owned(), 1), ("new/open".to_owned(), 20)];
        assert_eq!(standing(&census), wanted);
    }

    #[test]
    fn lags_are_of_what_somebody_had_to_hear_of() {
        let mut census = Census::new(0, 0);
        census.hear(
            &[
                mark(1, 1, None, "new", "poll"),
                mark(2, 1, Some("new"), "done", "poll"),
                mark(3, 2, Some("new"), "done", "operator"),
            ],
            0,
        );
        let in_five_seconds = [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!((census.lags, census.lag_sum_ms), (in_five_seconds, 4_000));
        let ahead = EventMark {
            claimed_ns: Some(i64::MAX),
            ..mark(4, 3, Some("new"), "done", "notification")
        };
        census.hear(&[ahead], 0);
        assert_eq!((census.lags.first(), census.lag_sum_ms), (Some(&1), 4_000));
    }

    #[test]
    fn the_day_has_its_hours_and_today_begins_at_midnight() {
        let mut census = Census::new(0, 0);
        let at = |hour: i64, source: &str, seq| EventMark {
            at_ms: hour * HOUR_MS + 5,
            ..mark(seq, seq, Some("new"), "done", source)
        };
        census.hear(
            &[
                at(20, "poll", 1),
                at(23, "notification", 2),
                at(25, "poll", 3),
            ],
            25 * HOUR_MS + 9,
        );
        let day = census.day(25 * HOUR_MS + 9);
        assert_eq!(
            (day.len(), day.last().map(|(at, _)| *at)),
            (24, Some(25 * HOUR_MS))
        );
        let found: Vec<(u64, u64)> = day
            .iter()
            .map(|(_, hour)| (hour.notified, hour.polled))
            .collect();
        assert_eq!(found.iter().filter(|found| **found == (0, 1)).count(), 2);
        assert_eq!(found.iter().filter(|found| **found == (1, 0)).count(), 1);
        let today = census.today(25 * HOUR_MS + 9);
        assert_eq!((today.paid, today.polled, today.notified), (1, 1, 0));
    }

    /// A clock that is ahead for a moment dates an event, or asks, years ahead.
    #[test]
    fn an_hour_ahead_hides_none_of_the_present() {
        let mut census = Census::new(0, 0);
        let at = |hour: i64, seq| EventMark {
            at_ms: hour * HOUR_MS + 5,
            ..mark(seq, seq, Some("new"), "done", "poll")
        };
        let now = |hour: i64| hour * HOUR_MS + 9;
        let paid = |census: &Census, hour: i64| {
            let day = census.day(now(hour));
            let day: u64 = day.iter().map(|(_, hour)| hour.paid).sum();
            (day, census.today(now(hour)).paid)
        };
        census.hear(&[at(47, 1), at(48, 2)], now(48));
        census.hear(&[at(90_000, 3)], now(90_000));
        assert_eq!(paid(&census, 90_000), (1, 1));
        census.hear(&[at(49, 4)], now(49));
        assert_eq!(paid(&census, 49), (3, 2));
        // Of more than are kept those ahead go first, and then the oldest.
        for hour in 50..400 {
            census.hear(&[at(hour, hour)], now(hour));
            // One was paid in each hour since the 47th.
            let of = |hours: i64| u64::try_from(hours).expect("small");
            let wanted = (of(HOURS.min(hour - 46)), of(hour % HOURS + 1));
            assert_eq!(paid(&census, hour), wanted, "{hour}");
        }
        assert!(census.hours.len() <= KEPT, "{:?}", census.hours);
    }
}
