//! Which deliveries may run: the choice a claim makes, and the look that tells beforehand whether it would find any.
//!
//! Each question reads the deliveries of one name from the longest due on, by the index that files them by name and time:
//! behind a hook with thousands due whose places are full, another's are found as fast as alone. The answers are merged
//! by due time, whatever the name, so that at an invoice of several hooks each has its turn.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use rusqlite::{CachedStatement, Connection, Rows, params};

use super::deliveries::aside;
use crate::ledger::command::Lane;
use crate::ledger::row::Outlook;
use crate::ledger::sqlite::planned::Planned as _;

/// Those of one name whose time has come, none behind an earlier unfinished one of the same invoice and hook. Most that are
/// behind one are filed by it (`blocked_by`, which triggers of the schema keep) and not even read: after an outage of the
/// shop, or a restore, they are thousands. But what was done may be replayed while later ones are due, so it is asked as
/// well. The second look at the states names those of the index `delivery_unfinished`, without which it would not be used.
const DUE: &str = "SELECT d.next_ms, d.id, d.invoice FROM delivery d INDEXED BY delivery_due \
  WHERE d.state = 'waiting' AND d.hook = ?1 AND d.blocked_by IS NULL AND d.next_ms <= ?2 \
  AND NOT EXISTS (SELECT 1 FROM delivery o INDEXED BY delivery_unfinished WHERE o.invoice = d.invoice \
    AND o.event < d.event AND o.hook = d.hook AND o.state <> 'done' AND o.state <> 'abandoned') \
  ORDER BY d.next_ms, d.id";

/// [`DUE`] for times after a point.
fn due_after() -> String {
    DUE.replace("d.next_ms <= ?2", "d.next_ms > ?2")
}

/// The first time after a point of those of one name that are behind no other.
const NEXT: &str = "SELECT min(next_ms) FROM delivery INDEXED BY delivery_due \
  WHERE state = 'waiting' AND hook = ?1 AND blocked_by IS NULL AND next_ms > ?2";

/// Invoices with a run under way: as many as there are places, and no more.
const BUSY: &str = concat!(
    "SELECT invoice FROM delivery INDEXED BY delivery_aside WHERE ",
    aside!("running")
);

/// The deliveries a claim takes, see [`Store::claim`](crate::ledger::store::Store::claim).
pub(super) fn choose(
    connection: &Connection,
    ahead: &RangeInclusive<i64>,
    lanes: &[Lane],
) -> rusqlite::Result<Vec<Chosen>> {
    let mut busy = connection.planned(BUSY)?;
    let busy = busy.query_map([], |row| row.get(0))?;
    let mut choice = Choice {
        chosen: Vec::new(),
        busy: busy.collect::<Result<_, _>>()?,
        left: lanes.iter().map(|lane| lane.want).collect(),
    };
    // Two ranges of the index, which both in one statement would not be.
    choice.among(connection, DUE, *ahead.start(), lanes)?;
    choice.among(connection, &due_after(), *ahead.end(), lanes)?;
    Ok(choice.chosen)
}

/// What a claim would find.
pub(super) fn outlook(
    connection: &Connection,
    ahead: &RangeInclusive<i64>,
    lanes: &[Lane],
) -> rusqlite::Result<Outlook> {
    let mut next_ms: Option<i64> = None;
    let mut statement = connection.planned(NEXT)?;
    for name in lanes
        .iter()
        .filter(|lane| lane.want > 0)
        .flat_map(|lane| &lane.names)
    {
        let next: Option<i64> =
            statement.query_row(params![name, ahead.start()], |row| row.get(0))?;
        next_ms = next_ms.into_iter().chain(next).min();
    }
    let one = |lane: &Lane| Lane {
        want: lane.want.min(1),
        ..lane.clone()
    };
    let lanes: Vec<Lane> = lanes.iter().map(one).collect();
    let now = !choose(connection, ahead, &lanes)?.is_empty();
    Ok(Outlook { now, next_ms })
}

/// A delivery that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) key: i64,
    /// The number of the lane it is in.
    pub(super) lane: usize,
}

/// What is chosen so far.
struct Choice {
    chosen: Vec<Chosen>,
    /// Invoices with a run under way, or chosen.
    busy: HashSet<i64>,
    /// How many more each lane wants.
    left: Vec<u32>,
}

/// A due delivery: when, its number, its invoice.
type Due = (i64, i64, i64);

/// The deliveries of one name, the longest due first.
struct Queue<'a> {
    lane: usize,
    rows: Rows<'a>,
    head: Option<Due>,
}

impl Choice {
    /// Takes what may run and is wanted, the longest due first whatever its name.
    fn among(
        &mut self,
        connection: &Connection,
        sql: &str,
        than_ms: i64,
        lanes: &[Lane],
    ) -> rusqlite::Result<()> {
        let mut asked: Vec<(usize, &str, CachedStatement<'_>)> = Vec::new();
        for (lane, wanted) in lanes
            .iter()
            .enumerate()
            .filter(|(lane, _)| self.wants(*lane))
        {
            for name in &wanted.names {
                asked.push((lane, name, connection.planned(sql)?));
            }
        }
        let mut queues = Vec::new();
        for (lane, name, statement) in &mut asked {
            let mut rows = statement.query(params![*name, than_ms])?;
            let head = next(&mut rows)?;
            let lane = *lane;
            queues.push(Queue { lane, rows, head });
        }
        loop {
            let open = queues.iter_mut().filter(|queue| self.wants(queue.lane));
            let Some((due, queue)) = open
                .filter_map(|queue| Some((queue.head?, queue)))
                .min_by_key(|(due, _)| *due)
            else {
                return Ok(());
            };
            self.take(queue.lane, due);
            queue.head = next(&mut queue.rows)?;
        }
    }

    fn wants(&self, lane: usize) -> bool {
        self.left.get(lane).is_some_and(|left| *left > 0)
    }

    /// Two deliveries of one invoice may both be due: they run one after the other.
    fn take(&mut self, lane: usize, (_, key, invoice): Due) {
        if let Some(left) = self.left.get_mut(lane)
            && self.busy.insert(invoice)
        {
            *left -= 1;
            self.chosen.push(Chosen { key, lane });
        }
    }
}

fn next(rows: &mut Rows<'_>) -> rusqlite::Result<Option<Due>> {
    let row = rows.next()?;
    row.map(|row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::super::check::as_made;
    use super::super::deliveries;
    use super::super::due::tests::plan;
    use super::*;

    /// Due of the hook that is behind: more than any claim may read past.
    const BEHIND: i64 = 5_000;

    /// A ledger with so many invoices, each with one event owed to `full` since long ago, and the last with one to `other`.
    fn ledger(invoices: i64) -> Connection {
        let connection = as_made().expect("in memory");
        connection
            .execute_batch(&format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {invoices}) \
                 INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, \
                   amount_asked, currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
                 SELECT i, printf('%022x', i), 'o' || i, 'h2h', 'SBP', 'answered', 0, \
                   '1', 'RUB', '1', 'RUB', 0, 0, 0 FROM n; \
                 INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
                 SELECT id, 'e' || id, id, 'paid', 0, 'paid', 'open', 0 FROM invoice; \
                 INSERT INTO delivery (event, invoice, hook, state, next_ms) \
                 SELECT seq, invoice, 'full', 'waiting', seq FROM event; \
                 INSERT INTO delivery (event, invoice, hook, state, next_ms) \
                 VALUES ({invoices}, {invoices}, 'other', 'waiting', {invoices} + 5)"
            ))
            .expect("filled");
        connection
    }

    fn keys(connection: &Connection, ahead: &RangeInclusive<i64>, lanes: &[Lane]) -> Vec<i64> {
        let chosen = choose(connection, ahead, lanes).expect("read");
        chosen.into_iter().map(|chosen| chosen.key).collect()
    }

    fn lane(names: &[&str], want: u32) -> Lane {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        let children = Vec::new();
        Lane {
            names,
            want,
            children,
        }
    }

    #[test]
    fn every_question_is_a_range_of_one_name_in_the_index_and_sorts_nothing() {
        let connection = ledger(10);
        for sql in [DUE, &due_after(), NEXT] {
            let steps = plan(&connection, sql);
            let by_name =
                |step: &String| step.contains("delivery_due (hook=? AND blocked_by=? AND next_ms");
            assert!(steps.iter().any(by_name), "{steps:?}");
            let plain =
                |step: &String| step.starts_with("SEARCH ") || step.starts_with("CORRELATED");
            assert!(steps.iter().all(plain), "{steps:?}");
        }
        let busy = plan(&connection, BUSY);
        assert!(
            busy.iter()
                .all(|step| step.contains("delivery_aside (state=?)")),
            "{busy:?}"
        );
    }

    /// What is at stake: a hook that hangs for everybody leaves thousands due, and each claim for the others would read them.
    #[test]
    fn a_hook_whose_places_are_full_is_not_read_past() {
        let connection = ledger(BEHIND);
        let lanes = [lane(&["full"], 0), lane(&["other"], 3)];
        let ahead = BEHIND + 9..=BEHIND + 99;
        let steps = |lanes: &[Lane]| {
            let found = keys(&connection, &ahead, lanes);
            let statement = connection.prepare_cached(DUE).expect("prepared");
            let read = statement.reset_status(rusqlite::StatementStatus::VmStep);
            (found, read)
        };
        let (found, read) = steps(&lanes);
        assert_eq!(found, [BEHIND + 1]);
        assert!(read < 200, "{read} steps");
        assert_eq!(
            outlook(&connection, &ahead, &lanes).expect("read"),
            Outlook {
                now: true,
                next_ms: None
            }
        );
        // Nor is more read of a hook than its places hold.
        let (found, read) = steps(&[lane(&["full"], 2)]);
        assert_eq!(found, [1, 2]);
        assert!(read < 200, "{read} steps");
    }

    /// What is at stake: a shop that was away for hours, or a restore, leaves thousands due behind one that waits or is held.
    #[test]
    fn those_behind_an_earlier_one_are_not_read_before_it_is_out_of_the_way() {
        let connection = ledger(BEHIND);
        let do_all = |sql: &str| connection.execute_batch(sql).expect("stored");
        do_all(
            "UPDATE delivery SET state = 'held' WHERE hook = 'full'; \
             INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
             SELECT seq + 100000, 'later' || seq, invoice, 'failed', 0, 'failed', 'paid', 0 FROM event",
        );
        let later: Vec<(i64, i64)> = connection
            .prepare("SELECT seq, invoice FROM event WHERE seq > 100000")
            .and_then(|mut later| {
                let rows = later.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
                rows.collect()
            })
            .expect("read");
        for (seq, invoice) in later {
            let values = params![seq, invoice, "full", 1, 0];
            let made = connection.execute(deliveries::INSERT_WAITING, values);
            assert_eq!(made, Ok(1));
        }
        let ahead = BEHIND..=BEHIND + 99;
        let look = || {
            let found = keys(&connection, &ahead, &[lane(&["full"], 3)]);
            let statement = connection.prepare_cached(DUE).expect("prepared");
            let read = statement.reset_status(rusqlite::StatementStatus::VmStep);
            (found, read)
        };
        let (found, read) = look();
        assert_eq!(found, Vec::<i64>::new());
        assert!(read < 200, "{read} steps");
        let of = |event: i64| -> i64 {
            let ask = "SELECT id FROM delivery WHERE hook = 'full' AND event = ?1";
            connection
                .query_row(ask, [event], |row| row.get(0))
                .expect("there is one")
        };
        // However it goes out of the way; what waits in its place is in the way as well.
        do_all(
            "UPDATE delivery SET state = 'done' WHERE event = 1; \
             UPDATE delivery SET state = 'abandoned' WHERE event = 2; \
             DELETE FROM delivery WHERE event = 3; \
             UPDATE delivery SET state = 'waiting', next_ms = 1 WHERE event = 4",
        );
        let (found, read) = look();
        assert_eq!(found, [of(4), of(100_001), of(100_002)]);
        assert!(read < 400, "{read} steps");
        // Done once, and wanted again: the later one, due for long, waits for it.
        do_all("UPDATE delivery SET state = 'waiting', next_ms = 9 WHERE event = 1");
        assert_eq!(look().0, [of(4), of(100_002), of(100_003)]);
        do_all("DELETE FROM delivery WHERE event IN (2, 4, 100002, 100003, 100004)");
        assert_eq!(look().0, [of(1)]);
    }

    /// Each takes the invoice for one run at a time; the longest due goes first, so none waits for another's last retry.
    #[test]
    fn at_one_invoice_the_longest_due_goes_first_whatever_its_hook() {
        let connection = ledger(1);
        let both = [lane(&["full"], 4), lane(&["other"], 4)];
        let choose = |now_ms: i64| keys(&connection, &(now_ms..=now_ms + 50), &both);
        assert_eq!(choose(10), [1], "one at a time");
        // It ran and failed, and may run again at once: it is the other's turn.
        connection
            .execute("UPDATE delivery SET next_ms = 7 WHERE id = 1", [])
            .expect("stored");
        assert_eq!(choose(10), [2]);
        // A time that only a wrong clock can have planned is due, after all that is rightly due.
        connection
            .execute("UPDATE delivery SET next_ms = 900 WHERE id = 2", [])
            .expect("stored");
        assert_eq!((choose(10), choose(1)), (vec![1], vec![2]));
        assert_eq!(
            outlook(&connection, &(1..=999), &both).expect("read"),
            Outlook {
                now: false,
                next_ms: Some(7)
            }
        );
    }

    #[test]
    fn names_of_one_lane_share_its_places() {
        let connection = ledger(3);
        connection
            .execute("UPDATE delivery SET hook = 'told:' || id WHERE id < 4", [])
            .expect("stored");
        let lanes = [
            lane(&["told:1", "told:2", "told:3", "told:4"], 2),
            lane(&["other"], 1),
        ];
        let found = keys(&connection, &(50..=60), &lanes);
        assert_eq!(found, [1, 2, 4]);
    }
}
