//! The questions behind the overview, in one read transaction. Where an index makes a question cheap it is named, so that
//! the question is refused instead of slow when it does not fit; tables without one are looked at from their newest row,
//! up to a bound.

mod undelivered;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Params, params};

use crate::invoice::attention::Attention;
use crate::invoice::silence::Class;
use crate::ledger::apply::{HELD_RESTORED, LISTS, SERVED};
use crate::ledger::choice::Choice;
use crate::ledger::fact::{
    CLOCK, GENERATION, LOG_HELD, LOST, PRESENTATION, REFUSED_UNRECORDED, REPOLL, RESTORED,
    SERVING_SINCE, UNSORTED, UNSORTED_OTHERS,
};
use crate::ledger::overview::{AttentionCount, OWN_REQUEST, Overview, ServedBy, Tally};
use crate::ledger::repoll::Repolled;
use crate::ledger::sqlite::deliveries::aside;
use crate::ledger::sqlite::due;
use crate::ledger::sqlite::facts::{fact, of_family};
use crate::ledger::sqlite::failure::from_sqlite;
use crate::ledger::sqlite::heard::found_by;
use crate::ledger::sqlite::last_heard;
use crate::ledger::sqlite::missing::missing;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::sqlite::read_store::ReadStore;
use crate::ledger::sqlite::refusals::dropped_since;
use crate::ledger::sqlite::rows;
use crate::ledger::sqlite::silent::silent;
use crate::ledger::store::StoreError;

/// Unsorted names that are told at most; a service has a handful.
const UNSORTED_MOST: u32 = 1_000;

impl ReadStore {
    pub(in crate::ledger) fn overview(
        &self,
        now_ms: i64,
        since_ms: i64,
    ) -> Result<Overview, StoreError> {
        overview(&self.0, now_ms, since_ms).map_err(from_sqlite)
    }
}

fn overview(connection: &Connection, now_ms: i64, since_ms: i64) -> rusqlite::Result<Overview> {
    // Ended by its drop: it only holds the moment.
    let _moment = connection.unchecked_transaction()?;
    let (refusals, commonest_refusal) = refusals(connection, since_ms)?;
    let (attention, more_attention) = attention(connection)?;
    let last_notification = last_heard::last_notification(connection)?;
    let missing = missing(connection, &Choice::default(), Overview::MISSING_MOST)?;
    let aside = |state: &str| {
        tally(
            connection,
            &format!("delivery INDEXED BY delivery_aside {state}"),
            [],
        )
    };
    Ok(Overview {
        presentation: fact(connection, &PRESENTATION)?,
        unheard_since_ms: match last_notification {
            Some(_) => None,
            None => last_heard::unheard_since(connection)?,
        },
        last_notification,
        refusals,
        commonest_refusal,
        due: tally(
            connection,
            "poll INDEXED BY poll_due WHERE class IN (0, 1, 2, 3) AND due_ms <= ?1",
            [now_ms],
        )?,
        oldest_due_ms: due::next_due_ms(connection)?.filter(|due_ms| *due_ms <= now_ms),
        silent: silent(connection, now_ms)?,
        waiting: tally(
            connection,
            "delivery INDEXED BY delivery_due WHERE state = 'waiting'",
            [],
        )?,
        awaited: awaited(connection)?,
        oldest_owed_ms: oldest_owed(connection)?,
        running: aside(concat!("WHERE ", aside!("running")))?,
        held: aside(concat!("WHERE ", aside!("held")))?,
        abandoned: tally(
            connection,
            concat!(
                "delivery INDEXED BY delivery_aside_why WHERE ",
                aside!("abandoned"),
                " AND acknowledged = 0"
            ),
            [],
        )?,
        abandoned_orders: abandoned_orders(connection)?,
        undelivered: undelivered::undelivered(connection)?,
        missing: missing.of,
        more_missing: missing.more,
        served: served_by(connection)?,
        restore: fact(connection, &RESTORED)?,
        repolled: repolled(connection)?,
        lost: fact(connection, &LOST)?.flatten(),
        held_restored: tally(
            connection,
            // What is held is never acknowledged; the index files by that first.
            concat!(
                "delivery INDEXED BY delivery_aside_why WHERE ",
                aside!("held"),
                " AND acknowledged = 0 AND held_why = ?1"
            ),
            [HELD_RESTORED],
        )?,
        attention,
        more_attention,
        unsorted: of_family(connection, &UNSORTED, UNSORTED_MOST)?,
        unsorted_others: fact(connection, &UNSORTED_OTHERS)?.unwrap_or_default(),
        log_held: fact(connection, &LOG_HELD)?.and_then(|noted| noted.held),
        wrong_clock: fact(connection, &CLOCK)?.and_then(|note| note.wrong),
        polled_in_a_row: polled_in_a_row(connection)?,
    })
}

/// What is not polled yet of what was filed has a due time.
fn repolled(connection: &Connection) -> rusqlite::Result<Option<Repolled>> {
    let generation = fact(connection, &GENERATION)?.unwrap_or_default();
    let known = fact(connection, &REPOLL)?;
    let Some(repoll) = known.filter(|known| known.generation == generation) else {
        return Ok(None);
    };
    let filed = "poll INDEXED BY poll_due WHERE class = ?1 AND due_ms IS NOT NULL";
    let waits = tally(connection, filed, [Class::Restored.number()])?;
    Ok(repoll.repolled(waits))
}

fn served_by(connection: &Connection) -> rusqlite::Result<Option<ServedBy>> {
    let (served, lists) = (fact(connection, &SERVED)?, fact(connection, &LISTS)?);
    Ok(served.zip(lists).map(|(served, lists)| ServedBy {
        names: served.run_names(),
        lists: lists.lists(),
    }))
}

/// Numbers of events rise with their times.
fn oldest_owed(connection: &Connection) -> rusqlite::Result<Option<i64>> {
    let sql = format!(
        concat!(
            "SELECT at_ms FROM event WHERE seq = (SELECT min(event) FROM (\
               SELECT event FROM (SELECT event FROM delivery INDEXED BY delivery_due WHERE state = 'waiting' LIMIT {most}) \
               UNION ALL SELECT event FROM delivery INDEXED BY delivery_aside WHERE ",
            aside!("running"),
            "))"
        ),
        most = Tally::MOST
    );
    let mut statement = connection.planned(&sql)?;
    statement.query_row([], |row| row.get(0)).optional()
}

/// From name to name in the index that files what waits by its hook: a million that wait cost no more than one.
fn awaited(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let first = "SELECT min(hook) FROM delivery INDEXED BY delivery_due WHERE state = 'waiting'";
    let sql = format!(
        "WITH RECURSIVE name (hook) AS ({first} UNION ALL \
           SELECT ({first} AND hook > name.hook) FROM name WHERE name.hook IS NOT NULL) \
         SELECT hook FROM name WHERE hook IS NOT NULL LIMIT {}",
        Tally::MOST
    );
    let mut found = connection.planned(&sql)?;
    let names = found.query_map([], |row| row.get(0))?;
    names.collect()
}

/// Counts rows, one beyond the bound at most.
pub(super) fn tally(
    connection: &Connection,
    rows: &str,
    values: impl Params,
) -> rusqlite::Result<Tally> {
    let beyond = Tally::MOST + 1;
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {rows} LIMIT {beyond})");
    let found: i64 = connection
        .planned(&sql)?
        .query_row(values, |row| row.get(0))?;
    Ok(Tally::up_to_most(u64::try_from(found).unwrap_or_default()))
}

/// Of the newest that were given up, whoever gave them up.
fn abandoned_orders(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = format!(
        concat!(
            "SELECT i.order_id FROM (SELECT id, invoice, acknowledged FROM delivery INDEXED BY delivery_aside WHERE ",
            aside!("abandoned"),
            " ORDER BY id DESC LIMIT {}) d JOIN invoice i ON i.id = d.invoice WHERE d.acknowledged = 0 ORDER BY d.id DESC"
        ),
        Tally::MOST
    );
    let mut statement = connection.planned(&sql)?;
    let mut rows = statement.query([])?;
    let mut orders = Vec::new();
    while let Some(row) = rows.next()? {
        let order: String = row.get(0)?;
        if !orders.contains(&order) {
            orders.push(order);
        }
        if orders.len() == AttentionCount::ORDERS_MOST {
            break;
        }
    }
    Ok(orders)
}

/// Of an invoice without a notify token no notification is known, so that asking finds all there is.
fn polled_in_a_row(connection: &Connection) -> rusqlite::Result<(u64, Option<i64>)> {
    let sql = format!(
        concat!(
            "SELECT ",
            found_by!(),
            ", e.at_ms FROM (SELECT seq, invoice, kind, source, at_ms, cause_ns, cause_status FROM event ORDER BY seq DESC LIMIT {}) e \
         WHERE e.source IN ('notification', 'poll') AND e.kind NOT IN ('opened', 'operator', 'unresolved') \
           AND ifnull(e.cause_ns / 1000000, e.at_ms) >= ?1 AND EXISTS (SELECT 1 FROM secret s WHERE s.invoice = e.invoice) ORDER BY e.seq DESC"
        ),
        Overview::CHANGES_LOOKED_AT
    );
    let since_ms = fact(connection, &SERVING_SINCE)?.unwrap_or_default();
    let mut statement = connection.planned(&sql)?;
    let mut rows = statement.query([since_ms])?;
    let (mut count, mut last_ms) = (0, None);
    while let Some(row) = rows.next()? {
        let found_by: String = row.get(0)?;
        if found_by != "poll" {
            break;
        }
        count += 1;
        last_ms = last_ms.or(Some(row.get(1)?));
    }
    Ok((count, last_ms))
}

fn refusals(
    connection: &Connection,
    since_ms: i64,
) -> rusqlite::Result<(Tally, Option<(String, u64)>)> {
    let sql = format!(
        "SELECT reason, count(*) AS times FROM (SELECT reason, at_ms FROM refusal ORDER BY id DESC LIMIT {}) \
         WHERE at_ms >= ?1 AND reason <> ?2 GROUP BY reason ORDER BY times DESC, reason",
        Tally::MOST + 1
    );
    let mut statement = connection.planned(&sql)?;
    let found = statement.query_map(params![since_ms, OWN_REQUEST], |row| {
        let times: i64 = row.get(1)?;
        Ok((row.get(0)?, u64::try_from(times).unwrap_or_default()))
    })?;
    let found: Vec<(String, u64)> = found.collect::<rusqlite::Result<_>>()?;
    let all = found.iter().map(|(_, times)| times).sum();
    let mut all = Tally::up_to_most(all);
    all.more |= refused_unrecorded(connection, since_ms)?;
    Ok((all, found.into_iter().next()))
}

/// Whether some that were refused since this time are on no row: they came too fast, or newer ones took their place.
fn refused_unrecorded(connection: &Connection, since_ms: i64) -> rusqlite::Result<bool> {
    let noted = fact(connection, &REFUSED_UNRECORDED)?;
    if noted.is_some_and(|at_ms| at_ms >= since_ms) {
        return Ok(true);
    }
    dropped_since(connection, since_ms)
}

fn attention(connection: &Connection) -> rusqlite::Result<(Vec<AttentionCount>, bool)> {
    let sql = format!(
        "SELECT attention, order_id FROM invoice INDEXED BY invoice_attention WHERE attention <> '' \
         ORDER BY id DESC LIMIT {}",
        Tally::MOST + 1
    );
    let mut statement = connection.planned(&sql)?;
    let mut rows = statement.query([])?;
    let mut counts: BTreeMap<Attention, AttentionCount> = BTreeMap::new();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if seen > Tally::MOST {
            break;
        }
        let (words, order): (String, String) = (row.get(0)?, row.get(1)?);
        for reason in rows::attention(&words) {
            let counted = counts.entry(reason).or_insert(AttentionCount {
                reason,
                count: 0,
                orders: Vec::new(),
            });
            counted.count += 1;
            let orders = &mut counted.orders;
            if orders.len() < AttentionCount::ORDERS_MOST && !orders.contains(&order) {
                orders.push(order.clone());
            }
        }
    }
    Ok((counts.into_values().collect(), seen > Tally::MOST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::fact::LAST_HEARD;
    use crate::ledger::overview::LastHeard;
    use crate::ledger::row::InvoiceKey;
    use crate::ledger::sqlite::check::as_made;
    use crate::ledger::sqlite::facts::note;

    fn ledger() -> Connection {
        as_made().expect("in memory")
    }

    /// `count` invoices numbered from 1, with what hangs on them.
    fn fill(connection: &Connection, count: u64) {
        let numbers = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        );
        connection
            .execute_batch(&format!(
                "{numbers} INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, \
                   amount_asked, currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms, \
                   attention) \
                 SELECT i, 'ref' || i, 'o' || (i / 2), 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0, \
                   'mismatch rewound' FROM n; \
                 {numbers} INSERT INTO poll (invoice, due_ms, class, ended_answers) SELECT i, 1000 + i, 2, 0 FROM n; \
                 {numbers} INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
                 SELECT i, 'e' || i, i, 'paid', 0, 'paid', 'open', 0 FROM n; \
                 {numbers} INSERT INTO delivery (event, invoice, hook, state) SELECT i, i, 'h', 'abandoned' FROM n; \
                 {numbers} INSERT INTO history (invoice, at_ms, source, status, decision, why, after_event) \
                 SELECT i, i, iif(i = 2, 'notification', 'poll'), 'new', 'advance', 'newer', {count} FROM n; \
                 {numbers} INSERT INTO refusal (at_ms, reason, peer, body_bytes, body_sha256, ref_hash, header_names, turn) \
                 SELECT i, iif(i % 3 = 0, 'a', 'b'), 'p', 0, '', '', '', i FROM n;"
            ))
            .expect("filled");
    }

    #[test]
    fn an_empty_ledger_has_nothing_to_tell() {
        let found = overview(&ledger(), 5_000, 0).expect("read");
        assert_eq!(found.due, Tally::default());
        assert_eq!(found.oldest_due_ms, None);
        assert_eq!((found.attention.len(), found.unsorted.len()), (0, 0));
        assert!(found.last_notification.is_none() && found.commonest_refusal.is_none());
    }

    #[test]
    fn what_is_there_is_counted_and_named() {
        let connection = ledger();
        fill(&connection, 12);
        let names =
            "INSERT INTO meta VALUES ('unsorted:a:b', '2'), ('unsorted', 'x'), ('unsorted;', 'x')";
        connection.execute_batch(names).expect("written");
        let found = overview(&connection, 1_004, 7).expect("read");
        let few = |count| Tally { count, more: false };
        assert_eq!((found.due, found.oldest_due_ms), (few(4), Some(1_001)));
        assert_eq!((found.abandoned, found.held), (few(12), few(0)));
        assert_eq!(found.abandoned_orders, ["o6", "o5", "o4", "o3", "o2"]);
        assert_eq!(found.last_notification, Some((2, "o1".to_owned())));
        assert_eq!(found.refusals, few(6));
        assert_eq!(found.commonest_refusal, Some(("b".to_owned(), 4)));
        assert_eq!(found.unsorted, [("a:b".to_owned(), 2)]);
        let [mismatch, rewound] = found.attention.as_slice() else {
            panic!("{:?}", found.attention);
        };
        assert_eq!((mismatch.reason, mismatch.count), (Attention::Mismatch, 12));
        assert_eq!(mismatch.orders, ["o6", "o5", "o4", "o3", "o2"]);
        assert_eq!(rewound.count, 12);
    }

    #[test]
    fn claims_judged_again_are_not_taken_for_notifications() {
        let connection = ledger();
        fill(&connection, 3);
        let judged = "INSERT INTO history (invoice, at_ms, source, status, decision, why, after_event) \
                      VALUES (3, 9, 'notification', 'new', 'reassessed', 'lists_changed', 3)";
        connection.execute_batch(judged).expect("written");
        let found = overview(&connection, 0, 0).expect("read");
        assert_eq!(found.last_notification, Some((2, "o1".to_owned())));
    }

    #[test]
    fn silence_is_counted_from_what_is_known() {
        let connection = ledger();
        fill(&connection, 12);
        let found = || {
            let found = overview(&connection, 0, 0).expect("read");
            (found.last_notification, found.unheard_since_ms)
        };
        assert_eq!(found(), (Some((2, "o1".to_owned())), None));
        // Older lines are dropped, and the notification's with them.
        let dropped = "DELETE FROM history WHERE id < 5";
        connection.execute_batch(dropped).expect("written");
        assert_eq!(found(), (None, Some(5)));
        let last = LastHeard {
            at_ms: 4,
            invoice: InvoiceKey(6),
        };
        note(&connection, &LAST_HEARD.note(&last)).expect("written");
        assert_eq!(found(), (Some((4, "o3".to_owned())), None));
    }

    #[test]
    fn refusals_that_are_on_no_row_are_more() {
        let connection = ledger();
        fill(&connection, 12);
        let more = |since_ms| {
            let found = overview(&connection, 0, since_ms).expect("read");
            found.refusals.more
        };
        assert!(!more(0));
        let dropped = "DELETE FROM refusal WHERE id < 5";
        connection.execute_batch(dropped).expect("written");
        assert!(more(5) && !more(6));
        note(&connection, &REFUSED_UNRECORDED.note(&9)).expect("written");
        assert!(more(9) && !more(10));
    }

    #[test]
    fn what_a_notification_told_first_was_not_found_by_asking() {
        let connection = ledger();
        fill(&connection, 4);
        // Invoice 4 told before its change; 3 told of an earlier change to the same status, 2 of another status, 1 too late.
        connection
            .execute_batch(
                "UPDATE event SET source = 'poll', cause_status = 'done', at_ms = seq; \
                 INSERT INTO secret (invoice, sealed) SELECT id, x'00' FROM invoice; \
                 DELETE FROM history; \
                 INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms, source, cause_status) \
                 SELECT 10 + id, 'f' || id, id, 'status', 0, 'paid', 'open', 10 + id, 'poll', 'done' FROM invoice; \
                 INSERT INTO history (invoice, at_ms, source, status, decision, why, after_event) VALUES \
                   (4, 9, 'notification', 'done', 'doubt', 'unconfirmed', 5), \
                   (3, 1, 'notification', 'done', 'doubt', 'unconfirmed', 2), \
                   (2, 9, 'notification', 'new', 'doubt', 'unconfirmed', 5), \
                   (1, 90, 'notification', 'done', 'doubt', 'unconfirmed', 20)",
            )
            .expect("written");
        assert_eq!(
            overview(&connection, 0, 0).expect("read").polled_in_a_row,
            (0, None)
        );
        let gone = "DELETE FROM event WHERE seq = 14";
        connection.execute_batch(gone).expect("written");
        let found = overview(&connection, 0, 0).expect("read");
        // Back to event 4, of which nothing was told, and on to event 3, of which something was.
        assert_eq!(found.polled_in_a_row, (4, Some(13)));
    }

    #[test]
    fn changes_that_asking_found_are_counted_back_to_the_last_that_was_told() {
        let connection = ledger();
        fill(&connection, 5);
        connection
            .execute_batch(
                "UPDATE event SET source = iif(seq = 2, 'notification', 'poll'), at_ms = seq; \
                 INSERT INTO secret SELECT id, x'00' FROM invoice WHERE id <> 4; \
                 UPDATE event SET kind = 'opened' WHERE seq = 5",
            )
            .expect("written");
        let found = overview(&connection, 0, 0).expect("read");
        assert_eq!(found.polled_in_a_row, (1, Some(3)));
        let told = "UPDATE event SET source = 'notification' WHERE seq = 3";
        connection.execute_batch(told).expect("written");
        let found = overview(&connection, 0, 0).expect("read");
        assert_eq!(found.polled_in_a_row, (0, None));
    }

    #[test]
    fn counting_stops_at_the_bound() {
        let connection = ledger();
        fill(&connection, Tally::MOST + 5);
        let found = overview(&connection, i64::MAX, 0).expect("read");
        let many = Tally {
            count: Tally::MOST,
            more: true,
        };
        assert_eq!(found.due, many);
        assert_eq!(found.abandoned, many);
        assert_eq!(found.refusals, many);
        assert!(found.more_attention);
        let counts: Vec<u64> = found.attention.iter().map(|word| word.count).collect();
        assert_eq!(counts, [Tally::MOST, Tally::MOST]);
        // The only notification is older than what is looked at.
        assert_eq!(found.last_notification, None);
    }
}
