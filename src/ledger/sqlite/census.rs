//! Reads for those who count: stored invoices a piece at a time, and events in their order. Every question reads at most as
//! many rows as it is told to, by the tables' own order.

use rusqlite::{Connection, OptionalExtension as _};

use super::failure::from_sqlite;
use super::heard::found_by;
use super::read_store::ReadStore;
use super::rows;
use crate::invoice::event::EventKind;
use crate::invoice::observation::Source;
use crate::ledger::census::{EventMark, Piece};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::StoreError;

const STANDING: &str = "SELECT i.status, i.outcome, count(*) FROM invoice i WHERE i.id > ?1 AND i.id <= ?2 GROUP BY 1, 2";

const MARKS: &str = concat!(
    "SELECT e.seq, e.invoice, e.kind, ",
    found_by!(),
    ", e.previous_status, e.status, e.previous_outcome, e.outcome, e.at_ms, e.cause_ns \
     FROM event e WHERE e.seq > ?1 ORDER BY e.seq LIMIT ?2"
);

impl ReadStore {
    /// The standing of at most `limit` invoices behind this row.
    pub(in crate::ledger) fn piece(&self, after: i64, limit: u32) -> Result<Piece, StoreError> {
        self.at_one_moment(|store| piece(&store.0, after, limit).map_err(from_sqlite))
    }

    pub(in crate::ledger) fn marks(
        &self,
        after: i64,
        limit: u32,
    ) -> Result<Vec<EventMark>, StoreError> {
        marks(&self.0, after, limit).map_err(from_sqlite)
    }

    /// The number before the first event that is not older than this, by halves: numbers and times rise together.
    pub(in crate::ledger) fn events_before(&self, at_ms: i64) -> Result<i64, StoreError> {
        let newest = self.newest_event()?;
        let (mut low, mut high) = (0, newest);
        while low < high {
            let middle = low + (high - low) / 2;
            let older = self.is_older(middle + 1, at_ms).map_err(from_sqlite)?;
            if older {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// What is wrong with the file first, or nothing.
    pub(in crate::ledger) fn quick_check(&self) -> Result<Option<String>, StoreError> {
        let asked = self
            .0
            .query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
        let told = asked.map_err(from_sqlite)?;
        Ok(Some(told).filter(|told| told != "ok"))
    }

    /// The number of the newest invoice; none is ever removed, so there are as many.
    pub(in crate::ledger) fn newest_invoice(&self) -> Result<i64, StoreError> {
        let newest = "SELECT coalesce(max(id), 0) FROM invoice";
        let asked = self.0.query_row(newest, [], |row| row.get(0));
        asked.map_err(from_sqlite)
    }

    /// The orders of events of this kind behind a number, oldest first.
    pub(in crate::ledger) fn orders_of_kind(
        &self,
        kind: EventKind,
        after: i64,
        most: u32,
    ) -> Result<(i64, Vec<String>), StoreError> {
        self.at_one_moment(|store| orders_of_kind(&store.0, kind, after, most).map_err(from_sqlite))
    }

    fn is_older(&self, seq: i64, at_ms: i64) -> rusqlite::Result<bool> {
        let mut statement = self
            .0
            .planned("SELECT at_ms < ?2 FROM event WHERE seq >= ?1 ORDER BY seq LIMIT 1")?;
        let older = statement.query_row([seq, at_ms], |row| row.get(0));
        Ok(older.optional()?.unwrap_or(false))
    }
}

fn piece(connection: &Connection, after: i64, limit: u32) -> rusqlite::Result<Piece> {
    let last: Option<i64> = connection
        .planned("SELECT max(id) FROM (SELECT id FROM invoice WHERE id > ?1 ORDER BY id LIMIT ?2)")?
        .query_row((after, limit), |row| row.get(0))?;
    let upto = last.unwrap_or(after);
    let seq = connection
        .planned("SELECT coalesce(max(seq), 0) FROM event")?
        .query_row([], |row| row.get(0))?;
    let mut statement = connection.planned(STANDING)?;
    let found = statement.query_map([after, upto], |row| {
        let count: i64 = row.get(2)?;
        Ok((
            row.get(0)?,
            row.get(1)?,
            u64::try_from(count).unwrap_or_default(),
        ))
    })?;
    Ok(Piece {
        upto,
        seq,
        standing: found.collect::<rusqlite::Result<_>>()?,
    })
}

fn marks(connection: &Connection, after: i64, limit: u32) -> rusqlite::Result<Vec<EventMark>> {
    let mut statement = connection.planned(MARKS)?;
    let found = statement.query_map((after, limit), |row| {
        Ok(EventMark {
            seq: row.get(0)?,
            invoice: row.get(1)?,
            kind: rows::word(row, 2, EventKind::parse)?,
            source: rows::optional(row, 3, Source::parse)?,
            previous_status: row.get(4)?,
            status: row.get(5)?,
            previous_outcome: row.get(6)?,
            outcome: row.get(7)?,
            at_ms: row.get(8)?,
            claimed_ns: row.get(9)?,
        })
    })?;
    found.collect()
}

fn orders_of_kind(
    connection: &Connection,
    kind: EventKind,
    after: i64,
    most: u32,
) -> rusqlite::Result<(i64, Vec<String>)> {
    let upto: Option<i64> = connection
        .planned(
            "SELECT max(seq) FROM (SELECT seq FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2)",
        )?
        .query_row((after, most), |row| row.get(0))?;
    let Some(upto) = upto else {
        return Ok((after, Vec::new()));
    };
    let mut statement = connection.planned(
        "SELECT i.order_id FROM event e JOIN invoice i ON i.id = e.invoice \
         WHERE e.seq > ?1 AND e.seq <= ?2 AND e.kind = ?3 ORDER BY e.seq",
    )?;
    let found = statement.query_map((after, upto, kind.as_str()), |row| row.get(0))?;
    Ok((upto, found.collect::<rusqlite::Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::super::check::as_made;
    use super::*;

    fn ledger(count: u32) -> ReadStore {
        let connection = as_made().expect("in memory");
        let numbers = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        );
        connection
            .execute_batch(&format!(
                "{numbers} INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, \
                   amount_asked, currency_asked, amount_agreed, currency_agreed, status, outcome, outcome_ms, created_ms, \
                   updated_ms) \
                 SELECT i, 'ref' || i, 'o' || i, 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', \
                   iif(i % 2 = 0, 'done', 'new'), iif(i % 2 = 0, 'paid', 'open'), 0, 0, 0 FROM n; \
                 {numbers} INSERT INTO event (seq, event_id, invoice, kind, rewound, status, previous_status, outcome, \
                   previous_outcome, at_ms, source) \
                 SELECT i, 'e' || i, i, iif(i % 5 = 0, 'reversed', 'paid'), 0, 'done', 'new', 'paid', 'open', 10 * i, 'poll' FROM n;"
            ))
            .expect("filled");
        ReadStore::from(connection)
    }

    #[test]
    fn invoices_are_counted_a_piece_at_a_time() {
        let store = ledger(10);
        let first = store.piece(0, 4).expect("read");
        assert_eq!((first.upto, first.seq), (4, 10));
        let count = |piece: &Piece| piece.standing.iter().map(|(.., count)| count).sum::<u64>();
        assert_eq!((first.standing.len(), count(&first)), (2, 4));
        let last = store.piece(8, 4).expect("read");
        assert_eq!((last.upto, count(&last)), (10, 2));
        assert_eq!(store.piece(10, 4).expect("read").upto, 10);
        assert_eq!(store.newest_invoice().expect("read"), 10);
    }

    #[test]
    fn events_are_found_by_their_time() {
        let store = ledger(100);
        for (at_ms, before) in [
            (0, 0),
            (10, 0),
            (11, 1),
            (500, 49),
            (1_000, 99),
            (1_001, 100),
        ] {
            assert_eq!(store.events_before(at_ms).expect("read"), before, "{at_ms}");
        }
        let marks = store.marks(98, 10).expect("read");
        let seqs: Vec<i64> = marks.iter().map(|mark| mark.seq).collect();
        assert_eq!(seqs, [99, 100]);
        let reversed = store
            .orders_of_kind(EventKind::Reversed, 89, 6)
            .expect("read");
        assert_eq!(reversed, (95, vec!["o90".to_owned(), "o95".to_owned()]));
        let none = store
            .orders_of_kind(EventKind::Reversed, 100, 6)
            .expect("read");
        assert_eq!(none, (100, Vec::new()));
    }

    #[test]
    fn no_question_scans_a_table() {
        let store = ledger(10);
        for sql in [STANDING, MARKS] {
            let mut statement = store
                .0
                .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                .expect("a question");
            let steps = statement.query_map([1, 2], |row| row.get::<_, String>(3));
            let steps: Vec<String> = steps
                .expect("a plan")
                .collect::<rusqlite::Result<_>>()
                .expect("a plan");
            let scans = steps.iter().find(|step| step.starts_with("SCAN"));
            assert_eq!(scans, None, "{steps:?}");
        }
    }
}
