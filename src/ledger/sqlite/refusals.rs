//! The statements on refused requests: two rings of bounded length, of known invoices and of strangers, written a batch at a
//! time and read newest first.

use rusqlite::{Connection, OptionalExtension as _, params};

use super::Bounds;
use crate::ledger::command::Refusal;
use crate::ledger::row::{RefusalFilter, RefusalRow};
use crate::ledger::sqlite::planned::Planned as _;

/// The statements of one ring, whose rows are these.
macro_rules! ring {
    ($rows:literal) => {
        Ring {
            insert: concat!(
                "INSERT INTO refusal (at_ms, invoice, ref_hash, header_names, reason, peer, body_bytes, body_sha256, turn) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
                 (SELECT coalesce(max(turn), 0) + 1 FROM refusal WHERE ",
                $rows,
                "))"
            ),
            trim: concat!(
                "DELETE FROM refusal WHERE ",
                $rows,
                " AND turn <= (SELECT max(turn) FROM refusal WHERE ",
                $rows,
                ") - ?1"
            ),
            oldest: concat!(
                "SELECT turn > 1 AND at_ms >= ?1 FROM refusal WHERE ",
                $rows,
                " ORDER BY turn LIMIT 1"
            ),
        }
    };
}

/// What is asked of one ring.
struct Ring {
    insert: &'static str,
    trim: &'static str,
    /// Whether it has dropped one of since then.
    oldest: &'static str,
}

const KNOWN: Ring = ring!("invoice IS NOT NULL");
const STRANGE: Ring = ring!("invoice IS NULL");

/// Writes refused requests and drops the oldest of each ring beyond the bound.
pub(super) fn add(
    connection: &Connection,
    refusals: &[Refusal],
    bounds: &Bounds,
) -> rusqlite::Result<()> {
    for refusal in refusals {
        let Refusal {
            invoice,
            ref_hash,
            header_names,
            reason,
            at_ms,
            peer,
            body_bytes,
            body_sha256,
        } = refusal;
        let ring = if invoice.is_some() { KNOWN } else { STRANGE };
        connection.planned(ring.insert)?.execute(params![
            at_ms,
            invoice.map(|key| key.0),
            ref_hash,
            header_names,
            reason,
            peer,
            i64::try_from(*body_bytes).unwrap_or(i64::MAX),
            body_sha256
        ])?;
    }
    for ring in [KNOWN, STRANGE] {
        let mut trim = connection.planned(ring.trim)?;
        trim.execute([i64::from(bounds.refusal_rows)])?;
    }
    Ok(())
}

/// Whether a ring has dropped some that were refused since this time.
pub(super) fn dropped_since(connection: &Connection, since_ms: i64) -> rusqlite::Result<bool> {
    for ring in [KNOWN, STRANGE] {
        let mut oldest = connection.planned(ring.oldest)?;
        let dropped: Option<bool> = oldest.query_row([since_ms], |row| row.get(0)).optional()?;
        if dropped == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refused requests, newest first. Without an index beside the key: the table is bounded, and few look at it.
pub(super) fn list(
    connection: &Connection,
    filter: &RefusalFilter,
    limit: u32,
) -> rusqlite::Result<Vec<RefusalRow>> {
    let mut statement = connection.planned(
        "SELECT r.id, r.at_ms, i.order_id, i.invoice_id, r.ref_hash, r.header_names, r.reason, r.peer, r.body_bytes, \
         r.body_sha256 FROM refusal r LEFT JOIN invoice i ON i.id = r.invoice \
         WHERE (?1 IS NULL OR i.order_id = ?1) AND (?2 IS NULL OR r.reason = ?2) AND (?3 IS NULL OR r.at_ms >= ?3) \
         AND (?4 IS NULL OR r.body_sha256 = ?4) AND r.id < ?5 ORDER BY r.id DESC LIMIT ?6",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        Ok(RefusalRow {
            number: row.get("id")?,
            at_ms: row.get("at_ms")?,
            order_id: row.get("order_id")?,
            invoice_id: row.get("invoice_id")?,
            ref_hash: row.get("ref_hash")?,
            header_names: row.get("header_names")?,
            reason: row.get("reason")?,
            peer: row.get("peer")?,
            body_bytes: row.get("body_bytes")?,
            body_sha256: row.get("body_sha256")?,
        })
    };
    let RefusalFilter {
        order_id,
        reason,
        since_ms,
        body_sha256,
        before,
    } = filter;
    let before = before.unwrap_or(i64::MAX);
    let asked = params![order_id, reason, since_ms, body_sha256, before, limit];
    statement.query_map(asked, read)?.collect()
}
