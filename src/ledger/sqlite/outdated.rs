//! The texts of invoices that were over long ago: which there are, and how they are emptied so that the file does not keep
//! them either.
//!
//! Nothing of it is filed in an index, which every notification would pay for: a walk reads the rows of a stretch one after
//! the other, and of most of them only what stands before the texts. Of those that have none of their own any more it asks
//! for what scripts wrote since: a delivery may be run again long after its order was emptied.

use rusqlite::{Connection, named_params};

use super::failure::from_sqlite;
use super::read_store::ReadStore;
use crate::ledger::retention::{Cutoffs, Emptied, Stretch};
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::StoreError;

/// `CLOCK_IS_SET_MS`: what is dated before was dated by a clock that was never set.
macro_rules! clock_is_set {
    () => {
        "1735689600000"
    };
}

/// When an invoice was over by our clock, milliseconds since 1970; `NULL` while it is not.
macro_rules! over_by_our_clock {
    () => {
        "iif(i.outcome <> 'open', i.outcome_ms, iif(i.unresolved <> 0, i.updated_ms, NULL))"
    };
}

/// The same by all that is known of its times: where our clock may have been wrong the service's newest instant must say so,
/// and without one it is kept.
macro_rules! over {
    () => {
        concat!(
            "iif(i.newest_ns / 1000000 >= ",
            clock_is_set!(),
            " OR ",
            over_by_our_clock!(),
            " >= ",
            clock_is_set!(),
            " AND NOT EXISTS (SELECT 1 FROM event u WHERE u.invoice = i.id AND u.time_unsure = 1), max(",
            over_by_our_clock!(),
            ", i.created_ms, i.newest_ns / 1000000), NULL)"
        )
    };
}

/// No hook is owed anything more of it: what a hook is told has these texts in it.
macro_rules! nothing_owed {
    () => {
        "NOT EXISTS (SELECT 1 FROM delivery d WHERE d.invoice = i.id AND d.state <> 'done' AND d.state <> 'abandoned')"
    };
}

/// What scripts wrote of this invoice in runs that were over then. The order of the tables is the one the indexes lead through.
macro_rules! outdated_output {
    ($invoice:literal) => {
        concat!(
            "FROM event e CROSS JOIN delivery d ON d.event = e.seq CROSS JOIN attempt a ON a.delivery = d.id WHERE e.invoice = ",
            $invoice,
            " AND a.ended_ms BETWEEN ",
            clock_is_set!(),
            " AND :raw AND (length(a.stdout) > 0 OR length(a.stderr) > 0)"
        )
    };
}

/// Cases, since SQLite works out both sides of an `OR` that is a column: the second is asked only where the first says no.
const OUTDATED: &str = concat!(
    "SELECT id, of_requisites, of_raw FROM (SELECT i.id AS id, ",
    over!(),
    " <= :requisites AND (i.requisites IS NOT NULL OR i.payment_url IS NOT NULL) AS of_requisites, ",
    "CASE WHEN ",
    over!(),
    " <= :raw THEN CASE WHEN i.raw IS NOT NULL THEN 1 ELSE EXISTS (SELECT 1 ",
    outdated_output!("i.id"),
    ") END END AS of_raw \
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
    "UPDATE invoice AS i SET raw = NULL WHERE i.id = :id AND ",
    over!(),
    " <= :raw AND i.raw IS NOT NULL AND ",
    nothing_owed!()
);

const EMPTY_EVENTS: &str = "UPDATE event SET raw = NULL WHERE invoice = ?1 AND raw IS NOT NULL";

const EMPTY_OUTPUT: &str = concat!(
    "UPDATE attempt SET stdout = x'', stderr = x'' WHERE (delivery, number) IN (SELECT a.delivery, a.number ",
    outdated_output!(":id"),
    ") AND (SELECT ",
    over!(),
    " <= :raw AND ",
    nothing_owed!(),
    " FROM invoice i WHERE i.id = :id)"
);

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
        .planned(newest)?
        .query_row([], |row| row.get(0))?;
    let last = after.0.saturating_add(among);
    let mut found = Stretch {
        next: (last < newest).then_some(InvoiceKey(last)),
        ..Stretch::default()
    };
    let mut statement = connection.planned(OUTDATED)?;
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
        .planned(EMPTY_REQUISITES)?
        .execute(named_params! { ":id": key.0, ":requisites": cutoffs.requisites_ms })?;
    let raw = connection
        .planned(EMPTY_RAW)?
        .execute(named_params! { ":id": key.0, ":raw": cutoffs.raw_ms })?;
    if raw > 0 {
        connection.planned(EMPTY_EVENTS)?.execute([key.0])?;
    }
    let output = connection
        .planned(EMPTY_OUTPUT)?
        .execute(named_params! { ":id": key.0, ":raw": cutoffs.raw_ms })?;
    let count = |rows: usize| u64::try_from(rows).unwrap_or_default();
    Ok(Emptied {
        requisites: count(requisites),
        raw: count(raw.max(output.min(1))),
    })
}

#[cfg(test)]
mod tests {
    use super::super::check::as_made;
    use super::*;
    use crate::invoice::silence::CLOCK_IS_SET_MS;

    /// An invoice that was over 10 ms after the first time that a clock can show, and has no text left; run once at 20 with something
    /// to say.
    fn emptied_and_run_again() -> ReadStore {
        let connection = as_made().expect("in memory");
        connection
            .execute_batch(
                "INSERT INTO invoice (id, ref, order_id, mode, method, opening, creator_deadline_ms, amount_asked, currency_asked, \
                   amount_agreed, currency_agreed, outcome, outcome_ms, created_ms, updated_ms) \
                 VALUES (1, 'r', 'o', 'h2h', 'SBP', 'answered', 0, '1', 'RUB', '1', 'RUB', 'paid', 1735689600010, 1735689600000, 0); \
                 INSERT INTO event (seq, event_id, invoice, kind, rewound, outcome, previous_outcome, at_ms) \
                 VALUES (1, 'e', 1, 'paid', 0, 'paid', 'open', 1735689600010); \
                 INSERT INTO delivery (id, event, invoice, hook, state) VALUES (1, 1, 1, 'fulfil', 'done'); \
                 INSERT INTO attempt VALUES (1, 1, 1735689600010, 1735689600010, 'exit 0', x'', x''), \
                   (1, 2, 1735689600020, 1735689600020, 'exit 0', x'', x'7361')",
            )
            .expect("filled");
        ReadStore::from(connection)
    }

    const fn raw_before(ms: i64) -> Cutoffs {
        Cutoffs {
            requisites_ms: None,
            raw_ms: Some(CLOCK_IS_SET_MS + ms),
        }
    }

    #[test]
    fn what_a_replay_wrote_is_found_when_it_is_as_old_itself() {
        let store = emptied_and_run_again();
        let found = |ms| {
            let stretch = store.outdated(InvoiceKey(0), 10, raw_before(ms));
            stretch.expect("read").count.raw
        };
        let empty = |ms| empty(&store.0, InvoiceKey(1), raw_before(ms)).expect("written");
        assert_eq!((found(19), empty(19).raw), (0, 0));
        assert_eq!(found(20), 1);
        // Owed again, it is left alone.
        let owed = |state: &str| {
            let owed = store.0.execute("UPDATE delivery SET state = ?1", [state]);
            owed.expect("written");
        };
        owed("waiting");
        assert_eq!((found(20), empty(20).raw), (0, 0));
        owed("abandoned");
        assert_eq!((empty(20).raw, empty(20).raw), (1, 0));
        assert_eq!(found(20), 0);
    }

    /// What is at stake: a payment that came while the clock showed 1970 is new, and its requisites are all a customer has.
    #[test]
    fn nothing_is_old_by_the_word_of_a_clock_that_may_have_been_wrong() {
        assert_eq!(clock_is_set!(), CLOCK_IS_SET_MS.to_string());
        let found = |change: &str| {
            let store = emptied_and_run_again();
            let change = format!("UPDATE invoice SET raw = '{{}}'; {change}");
            store.0.execute_batch(&change).expect("changed");
            let stretch = store.outdated(InvoiceKey(0), 10, raw_before(1_000));
            stretch.expect("read").count.raw
        };
        assert_eq!(found(""), 1);
        for wrong in [
            "UPDATE invoice SET outcome_ms = 17000",
            "UPDATE event SET time_unsure = 1",
            "UPDATE invoice SET created_ms = 1735689602000",
            "UPDATE invoice SET newest_ns = 1735689602000000000",
            "UPDATE invoice SET outcome_ms = 17000, newest_ns = 1735689602000000000",
        ] {
            assert_eq!(found(wrong), 0, "{wrong}");
        }
        // The service's own instant is no word of our clock.
        for right in [
            "UPDATE invoice SET outcome_ms = 17000, newest_ns = 1735689600005000000",
            "UPDATE event SET time_unsure = 1; UPDATE invoice SET newest_ns = 1735689600005000000",
        ] {
            assert_eq!(found(right), 1, "{right}");
        }
    }

    /// A walk goes through all there is once a day.
    #[test]
    fn no_table_is_scanned_for_one_stretch_or_one_invoice() {
        let store = emptied_and_run_again();
        for sql in [
            OUTDATED,
            EMPTY_REQUISITES,
            EMPTY_RAW,
            EMPTY_EVENTS,
            EMPTY_OUTPUT,
        ] {
            let asked = format!("EXPLAIN QUERY PLAN {sql}");
            let mut statement = store.0.prepare(&asked).expect("it is SQL");
            // Not what is asked for is of interest, but how.
            let steps = statement.raw_query().mapped(|row| row.get("detail"));
            let steps: Vec<String> = steps.collect::<rusqlite::Result<_>>().expect("a plan");
            let scans = steps
                .iter()
                .find(|step| step.starts_with("SCAN") && step.as_str() != "SCAN CONSTANT ROW");
            assert_eq!(scans, None, "{sql}: {steps:?}");
        }
    }
}
