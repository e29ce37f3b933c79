//! The texts of invoices that were over long ago: which there are, and how they are emptied so that the file does not keep
//! them either.
//!
//! Nothing of it is filed in an index, which every notification would pay for: a walk reads the rows of a stretch one after
//! the other, and of most of them only what stands before the texts.

use rusqlite::{Connection, named_params};

use super::failure::from_sqlite;
use super::read_store::ReadStore;
use crate::ledger::retention::{Cutoffs, Emptied, Stretch};
use crate::ledger::row::InvoiceKey;
use crate::ledger::store::StoreError;

/// When an invoice was over, milliseconds since 1970; `NULL` while it is not.
macro_rules! over {
    () => {
        "iif(i.outcome <> 'open', i.outcome_ms, iif(i.unresolved <> 0, i.updated_ms, NULL))"
    };
}

/// No hook is owed anything more of it: what a hook is told has these texts in it.
macro_rules! nothing_owed {
    () => {
        "NOT EXISTS (SELECT 1 FROM delivery d WHERE d.invoice = i.id AND d.state <> 'done' AND d.state <> 'abandoned')"
    };
}

const OUTDATED: &str = concat!(
    "SELECT id, of_requisites, of_raw FROM (SELECT i.id AS id, ",
    over!(),
    " <= :requisites AND (i.requisites IS NOT NULL OR i.payment_url IS NOT NULL) AS of_requisites, ",
    over!(),
    " <= :raw AND (i.raw IS NOT NULL OR i.raw_event IS NOT NULL) AS of_raw \
     FROM invoice i WHERE i.id > :after AND i.id <= :last AND ",
    nothing_owed!(),
    ") WHERE of_requisites IS TRUE OR of_raw IS TRUE"
);

const EMPTY_REQUISITES: &str = concat!(
    "UPDATE invoice AS i SET requisites = NULL, payment_url = NULL WHERE i.id = :id AND ",
    over!(),
    " <= :requisites AND (i.requisites IS NOT NULL OR i.payment_url IS NOT NULL) AND ",
    nothing_owed!()
);

const EMPTY_RAW: &str = concat!(
    "UPDATE invoice AS i SET raw = NULL, raw_event = NULL WHERE i.id = :id AND ",
    over!(),
    " <= :raw AND (i.raw IS NOT NULL OR i.raw_event IS NOT NULL) AND ",
    nothing_owed!()
);

const EMPTY_EVENTS: &str = "UPDATE event SET raw = NULL WHERE invoice = ?1 AND raw IS NOT NULL";

const EMPTY_OUTPUT: &str = "UPDATE attempt SET stdout = x'', stderr = x'' WHERE delivery IN \
  (SELECT d.id FROM event e JOIN delivery d ON d.event = e.seq WHERE e.invoice = ?1) \
  AND (length(stdout) > 0 OR length(stderr) > 0)";

impl ReadStore {
    /// What is to be emptied of the next invoices.
    pub(in crate::ledger) fn outdated(
        &self,
        after: InvoiceKey,
        among: i64,
        cutoffs: Cutoffs,
    ) -> Result<Stretch, StoreError> {
        stretch(&self.0, after, among, cutoffs).map_err(from_sqlite)
    }
}

fn stretch(
    connection: &Connection,
    after: InvoiceKey,
    among: i64,
    cutoffs: Cutoffs,
) -> rusqlite::Result<Stretch> {
    let newest = "SELECT coalesce(max(id), 0) FROM invoice";
    let newest: i64 = connection
        .prepare_cached(newest)?
        .query_row([], |row| row.get(0))?;
    let last = after.0.saturating_add(among);
    let mut found = Stretch {
        next: (last < newest).then_some(InvoiceKey(last)),
        ..Stretch::default()
    };
    let mut statement = connection.prepare_cached(OUTDATED)?;
    let mut rows = statement.query(named_params! {
        ":after": after.0,
        ":last": last,
        ":requisites": cutoffs.requisites_ms,
        ":raw": cutoffs.raw_ms,
    })?;
    while let Some(row) = rows.next()? {
        found.keys.push(InvoiceKey(row.get(0)?));
        let is_so = |place| row.get::<_, Option<bool>>(place);
        found.count.requisites += u64::from(is_so(1)?.unwrap_or_default());
        found.count.raw += u64::from(is_so(2)?.unwrap_or_default());
    }
    Ok(found)
}

/// Empties what is outdated of an invoice, within the open transaction. The writer's connection overwrites what was there.
pub(super) fn empty(
    connection: &Connection,
    key: InvoiceKey,
    cutoffs: Cutoffs,
) -> rusqlite::Result<Emptied> {
    let requisites = connection
        .prepare_cached(EMPTY_REQUISITES)?
        .execute(named_params! { ":id": key.0, ":requisites": cutoffs.requisites_ms })?;
    let raw = connection
        .prepare_cached(EMPTY_RAW)?
        .execute(named_params! { ":id": key.0, ":raw": cutoffs.raw_ms })?;
    if raw > 0 {
        for empty in [EMPTY_EVENTS, EMPTY_OUTPUT] {
            connection.prepare_cached(empty)?.execute([key.0])?;
        }
    }
    let count = |rows: usize| u64::try_from(rows).unwrap_or_default();
    Ok(Emptied {
        requisites: count(requisites),
        raw: count(raw),
    })
}
