//! What was said of invoices: which ones a status name occurs in, and all that was heard of one, in its order.

use rusqlite::{Connection, params};

use super::rows;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Decision, Why};
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::HeardClaim;

/// Causes of events read for one invoice at most, the newest; an honest service makes a handful.
const EVENTS_MOST: i64 = 256;

/// Who found what the event `e` tells: a notification that only made us ask, and was believed when the answer said the same,
/// told it. It stands in the history as a doubt, of the same status, heard before the event and after the last one of that status
/// before it: an older one told an older change. Reads the invoice's own lines, which `ledger.history_per_invoice` bounds, and
/// of those that were dropped nothing is known.
macro_rules! found_by {
    () => {
        "iif(e.source = 'poll' AND EXISTS (SELECT 1 FROM history h WHERE h.invoice = e.invoice \
           AND h.source = 'notification' AND h.decision = 'doubt' AND h.status = e.cause_status AND h.after_event < e.seq \
           AND h.after_event >= ifnull((SELECT max(p.seq) FROM event p WHERE p.invoice = e.invoice AND p.seq < e.seq \
             AND +p.cause_status = e.cause_status), 0)), 'notification', e.source)"
    };
}
pub(super) use found_by;

pub(super) fn with_status(
    connection: &Connection,
    from: InvoiceKey,
    names: &[String],
    among: u32,
    most: u32,
) -> rusqlite::Result<(Vec<InvoiceKey>, Option<InvoiceKey>)> {
    let mut range = connection.planned(
        "SELECT max(id), count(*) FROM (SELECT id FROM invoice WHERE id >= ?1 ORDER BY id LIMIT ?2)",
    )?;
    let (last, count): (Option<i64>, u32) =
        range.query_row(params![from.0, among], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(last) = last else {
        return Ok((Vec::new(), None));
    };
    let names = serde_json::to_string(names).expect("names are JSON");
    // Without the `+` SQLite may start from an index over all invoices instead of the range of keys.
    let mut statement = connection.planned(
        "WITH name (word) AS MATERIALIZED (SELECT value FROM json_each(?3)) \
         SELECT i.id FROM invoice i WHERE i.id BETWEEN ?1 AND ?2 AND (\
           +i.status IN name OR +i.sorted_status IN name \
           OR EXISTS (SELECT 1 FROM event e WHERE e.invoice = i.id AND +e.cause_status IN name) \
           OR EXISTS (SELECT 1 FROM history h WHERE h.invoice = i.id AND +h.status IN name)) \
         ORDER BY i.id LIMIT ?4",
    )?;
    let found = statement.query_map(params![from.0, last, names, most], |row| {
        Ok(InvoiceKey(row.get(0)?))
    })?;
    let found: Vec<InvoiceKey> = found.collect::<rusqlite::Result<_>>()?;
    let full = u32::try_from(found.len()).is_ok_and(|found| found >= most);
    let next = match found.last() {
        Some(found) if full => Some(InvoiceKey(found.0 + 1)),
        Some(_) | None => (count >= among).then_some(InvoiceKey(last + 1)),
    };
    Ok((found, next))
}

pub(super) fn claims(
    connection: &Connection,
    key: InvoiceKey,
) -> rusqlite::Result<Vec<HeardClaim>> {
    // An event whose cause is another claim than was heard, or whose `updatedAt` was not readable, has a line of history beside
    // it; where that was dropped the event stands for it.
    let mut statement = connection.planned(
        "SELECT * FROM (SELECT e.seq AS place, 0 AS kind, 0 AS number, e.source, e.cause_status AS status, \
           e.cause_differs AS differs, e.cause_ns AS claim_ns, e.amount_reported, e.currency_reported, \
           coalesce(e.decision, 'advance') AS decision, coalesce(e.why = ?2, 0) AS known, e.at_ms \
         FROM event e WHERE e.invoice = ?1 AND e.cause_status IS NOT NULL AND e.raw IS NOT NULL \
           AND e.source IS NOT NULL AND (e.decision IS NOT NULL OR NOT EXISTS (SELECT 1 FROM history h \
             WHERE h.invoice = e.invoice AND h.at_ms = e.at_ms AND h.source = e.source)) \
         ORDER BY e.seq DESC LIMIT ?3) \
         UNION ALL SELECT h.after_event, 1, h.id, h.source, h.status, h.differs, h.claim_ns, h.amount_reported, h.currency_reported, h.decision, \
           h.why = ?2, h.at_ms FROM history h WHERE h.invoice = ?1 AND h.status <> '' \
         ORDER BY place, kind, number",
    )?;
    let values = params![key.0, Why::Known.as_str(), EVENTS_MOST];
    let found = statement.query_map(values, heard)?;
    found.filter_map(Result::transpose).collect()
}

fn heard(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<HeardClaim>> {
    let source = rows::word(row, "source", Source::parse)?;
    let decision = rows::word(row, "decision", Decision::parse)?;
    let (known, at_ms) = (row.get("known")?, row.get("at_ms")?);
    let reported = (row.get("amount_reported")?, row.get("currency_reported")?);
    let claim = rows::claim(row, ["status", "differs", "claim_ns"])?;
    Ok(claim.map(|claim| HeardClaim {
        claim,
        source,
        decision,
        known,
        at_ms,
        reported,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::sqlite::check::as_made;

    #[test]
    fn lines_of_history_keep_their_place_among_events() {
        let connection = as_made().expect("in memory");
        // The line of the first event was dropped, that of the second stands before it; the others are lines themselves.
        connection
            .execute_batch(
                "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, \
                   currency_asked, amount_agreed, currency_agreed, outcome_ms, created_ms, updated_ms) \
                 VALUES (1, 'r', 'a', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 0, 0, 0); \
                 INSERT INTO event (seq, event_id, invoice, kind, rewound, cause_status, outcome, previous_outcome, source, \
                   at_ms, raw, decision, why) \
                 SELECT column1, 'e' || column1, 1, 'status', 0, column2, 'open', 'open', 'poll', column1, '{}', column3, \
                   iif(column3 IS NULL, NULL, 'newer') \
                 FROM (VALUES (1, 'one', NULL), (2, 'other', NULL), (3, 'four', 'advance'), (4, 'six', 'advance')); \
                 INSERT INTO history (invoice, at_ms, source, status, decision, why, after_event) VALUES \
                   (1, 2, 'poll', 'two', 'advance_agreed', 'agreed', 1), (1, 3, 'poll', 'three', 'confirmed', 'same', 2), \
                   (1, 9, 'poll', 'five', 'confirmed', 'same', 3), (1, 9, 'poll', 'seven', 'confirmed', 'same', 4)",
            )
            .expect("filled");
        let heard = claims(&connection, InvoiceKey(1)).expect("read");
        let words: Vec<&str> = heard
            .iter()
            .map(|heard| heard.claim.status.as_str())
            .collect();
        assert_eq!(
            words,
            ["one", "two", "three", "four", "five", "six", "seven"]
        );
    }
}
