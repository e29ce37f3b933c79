//! What was said of invoices: which ones a status name occurs in, and all that was heard of one, in its order.

use rusqlite::{Connection, params};

use super::rows;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Decision, Why};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::HeardClaim;

/// Causes of events read for one invoice at most, the newest; an honest service makes a handful.
const EVENTS_MOST: i64 = 256;

pub(super) fn with_status(
    connection: &Connection,
    from: InvoiceKey,
    names: &[String],
    among: u32,
    most: u32,
) -> rusqlite::Result<(Vec<InvoiceKey>, Option<InvoiceKey>)> {
    let mut range = connection.prepare_cached(
        "SELECT max(id), count(*) FROM (SELECT id FROM invoice WHERE id >= ?1 ORDER BY id LIMIT ?2)",
    )?;
    let (last, count): (Option<i64>, u32) =
        range.query_row(params![from.0, among], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some(last) = last else {
        return Ok((Vec::new(), None));
    };
    let names = serde_json::to_string(names).expect("names are JSON");
    // Without the `+` SQLite may start from an index over all invoices instead of the range of keys.
    let mut statement = connection.prepare_cached(
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
    // The oldest lines are dropped first: an event without its line is older than all lines that are left.
    let mut events = connection.prepare_cached(
        "SELECT e.source, e.cause_status, e.cause_differs, e.cause_ns, e.amount_reported, e.currency_reported, \
         'advance' AS decision, 0 AS known, e.at_ms FROM event e WHERE e.invoice = ?1 AND e.cause_status IS NOT NULL \
         AND e.raw IS NOT NULL AND NOT EXISTS (SELECT 1 FROM history h WHERE h.invoice = e.invoice \
           AND h.at_ms = e.at_ms AND h.source = e.source) ORDER BY e.seq DESC LIMIT ?2",
    )?;
    let columns = ["cause_status", "cause_differs", "cause_ns"];
    let found = events.query_map([key.0, EVENTS_MOST], |row| heard(row, columns))?;
    let mut claims: Vec<HeardClaim> = found
        .filter_map(Result::transpose)
        .collect::<rusqlite::Result<_>>()?;
    claims.reverse();
    let mut history = connection.prepare_cached(
        "SELECT source, status, differs, claim_ns, amount_reported, currency_reported, decision, \
         why = ?2 AS known, at_ms FROM history WHERE invoice = ?1 AND status <> '' ORDER BY id",
    )?;
    let found = history.query_map(params![key.0, Why::Known.as_str()], |row| {
        heard(row, ["status", "differs", "claim_ns"])
    })?;
    for claim in found.filter_map(Result::transpose) {
        claims.push(claim?);
    }
    Ok(claims)
}

fn heard(
    row: &rusqlite::Row<'_>,
    columns: [&'static str; 3],
) -> rusqlite::Result<Option<HeardClaim>> {
    let source = rows::word(row, "source", Source::parse)?;
    let decision = rows::word(row, "decision", Decision::parse)?;
    let (known, at_ms) = (row.get("known")?, row.get("at_ms")?);
    let reported = (row.get("amount_reported")?, row.get("currency_reported")?);
    Ok(rows::claim(row, columns)?.map(|claim| HeardClaim {
        claim,
        source,
        decision,
        known,
        at_ms,
        reported,
    }))
}
