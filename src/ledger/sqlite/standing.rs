//! An event in the place of an invoice's row. Most notifications bring another status of an open invoice and nothing more: their
//! event tells all of it. It is written with the invoice's new revision, and the row, one of fifty columns on a page of its own
//! among all invoices', is left as it was until something else changes.
//!
//! Relies on two things: no row is changed in what an event may tell but by a save of all of it, and whoever reads any
//! of that reads it through [`standing`], as the view `invoices` does. Promises that an event tells what the row would.

use super::usual;
use crate::invoice::status::Outcome;
use crate::invoice::transition::Claim;
use crate::ledger::store::{NewEvent, Stored};

/// An invoice with the event that its row does not know of yet, if there is one: its newest, when that has a higher revision than the
/// row. Looked for only where there can be one, of an open invoice that was heard of. `$invoice` is where the invoice is found.
macro_rules! standing {
    () => {
        standing!("invoice i")
    };
    ($invoice:literal) => {
        concat!(
            $invoice,
            " LEFT JOIN event n ON n.seq = iif(i.outcome = 'open' AND i.status IS NOT NULL, \
              (SELECT max(l.seq) FROM event l WHERE l.invoice = i.id), NULL) AND n.revision > i.revision"
        )
    };
}
pub(super) use standing;

/// The revision of the invoice that is to be saved next, when the event of it, whose cause is given, tells all that is to be
/// saved but for what seldom changes. [`columns`](super::columns) and
/// [`usual::LOAD`] read back what is asked for here.
pub(super) fn stands(stored: &Stored, event: &NewEvent<'_>, cause: &Claim) -> Option<i64> {
    let sorted = usual::sorted(&stored.invoice)?;
    let tells_all = event.invoice == stored.row.key
        && sorted.claim == *cause
        && !sorted.settled
        && event.change.previous_status.is_some()
        && stored.row.outcome == Outcome::Open
        && stored.heard_ms == Some(event.at_ms)
        && stored.row.updated_ms == event.at_ms
        && cause.at == Some(stored.newest)
        && stored.document.is_none()
        && event.raw.is_some()
        && stored.row.raw.as_deref() == event.raw;
    tells_all.then_some(stored.invoice.revision)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::due::tests::plan;
    use super::super::usual::tests::{ledger, read_usual};
    use super::super::{columns, rows};
    use super::*;
    use crate::invoice::event::{Change, EventKind};
    use crate::invoice::moment::Moment;
    use crate::invoice::observation::Source;
    use crate::invoice::status::{Meaning, Status};
    use crate::invoice::sum::Verdict;
    use crate::invoice::transition::{Decision, Sorted, Why};
    use crate::ledger::row::InvoiceKey;

    /// The invoice of [`ledger`] after a notification of another status.
    fn notified(connection: &Connection) -> (Stored, Change) {
        let mut stored = read_usual(connection).expect("as most are");
        let claim = Claim {
            status: Status::new("wip").expect("a status"),
            verdict: Verdict::Agrees,
            at: Some(Moment::from_ns(50)),
        };
        let change = Change {
            kind: EventKind::Status,
            rewound: false,
            cause: Some(claim.clone()),
            status: Some(claim.status.clone()),
            previous_status: Status::new("new"),
            outcome: Outcome::Open,
            previous_outcome: Outcome::Open,
            order_outcome: Outcome::Open,
        };
        stored.invoice.sorted = Some(Sorted {
            claim: claim.clone(),
            meaning: Meaning::Open,
            settled: false,
        });
        stored.invoice.claim = Some(claim);
        (stored.invoice.revision, stored.row.revision) = (20, 20);
        stored.row.status = Some("wip".to_owned());
        stored.row.raw = Some("[5]".to_owned());
        stored.row.updated_ms = 70;
        stored.heard_ms = Some(70);
        stored.newest = Moment::from_ns(50);
        (stored, change)
    }

    fn told(change: &Change) -> NewEvent<'_> {
        NewEvent {
            event_id: "one",
            invoice: InvoiceKey(7),
            change,
            source: Some(Source::Notification),
            at_ms: 70,
            reported: (Some("100.5"), Some("RUB")),
            raw: Some("[5]"),
            judged: Some((Decision::Advance, Why::Newer)),
        }
    }

    fn revision(stored: &Stored, event: &NewEvent<'_>) -> Option<i64> {
        stands(stored, event, usual::cause(event)?)
    }

    fn text(connection: &Connection, sql: &str) -> String {
        let found = connection.query_row(sql, [], |row| row.get(0));
        found.expect("read")
    }

    #[test]
    fn an_event_that_tells_all_is_read_as_the_row_until_that_is_saved() {
        let connection = ledger();
        let (mut stored, change) = notified(&connection);
        let event = told(&change);
        assert_eq!(revision(&stored, &event), Some(20));
        let cause = usual::cause(&event).expect("a usual event");
        let mut insert = connection.prepare(usual::INSERT_EVENT).expect("prepared");
        let seq = usual::insert_event(&mut insert, &event, cause, Some(20));
        stored.document = Some(seq.expect("written"));
        let own = "SELECT status || ' ' || revision || ' ' || updated_ms FROM invoice";
        assert_eq!(text(&connection, own), "new 9 8", "the row is left alone");
        let shown = "SELECT status || ' ' || updated_ms || ' ' || updated_at FROM invoices";
        let seen = "wip 70 1970-01-01T00:00:00.070Z";
        assert_eq!(text(&connection, shown), seen);
        let whole = connection.query_row(columns::BY_KEY, [7], rows::stored);
        assert_eq!(format!("{:?}", whole.expect("read")), format!("{stored:?}"));
        let short = read_usual(&connection).expect("as most are");
        stored.row.raw = None;
        assert_eq!(format!("{short:?}"), format!("{stored:?}"));
        let saved = connection.execute("UPDATE invoice SET revision = 20, updated_ms = 80", []);
        assert_eq!(saved, Ok(1));
        let seen = "new 80 1970-01-01T00:00:00.080Z";
        assert_eq!(text(&connection, shown), seen, "the row stands");
    }

    /// An event after it that does not tell all goes with a save of the row.
    #[test]
    fn whatever_an_event_does_not_tell_is_left_to_the_row() {
        let connection = ledger();
        let others: [fn(&mut Stored); 11] = [
            |stored| stored.row.key = InvoiceKey(8),
            |stored| stored.heard_ms = Some(71),
            |stored| stored.row.updated_ms = 71,
            |stored| stored.newest = Moment::from_ns(51),
            |stored| stored.document = Some(1),
            |stored| stored.row.raw = Some("[6]".to_owned()),
            |stored| stored.row.outcome = Outcome::Paid,
            |stored| stored.invoice.claim = None,
            |stored| stored.invoice.sorted = None,
            |stored| {
                let sorted = stored.invoice.sorted.as_mut();
                sorted.expect("sorted").settled = true;
            },
            |stored| {
                for claim in [
                    stored.invoice.claim.as_mut(),
                    stored
                        .invoice
                        .sorted
                        .as_mut()
                        .map(|sorted| &mut sorted.claim),
                ] {
                    claim.expect("a claim").at = Some(Moment::from_ns(49));
                }
            },
        ];
        for (place, other) in others.into_iter().enumerate() {
            let (mut stored, change) = notified(&connection);
            other(&mut stored);
            assert_eq!(revision(&stored, &told(&change)), None, "{place}");
        }
        let (stored, mut change) = notified(&connection);
        change.previous_status = None;
        assert_eq!(revision(&stored, &told(&change)), None);
    }

    /// It is looked for whenever an invoice is read.
    #[test]
    fn the_event_is_found_by_its_invoice() {
        let connection = ledger();
        for sql in [columns::BY_KEY, usual::LOAD] {
            let steps = plan(&connection, sql).join("; ");
            assert!(steps.contains("event_invoice (invoice=?)"), "{steps}");
            assert!(steps.contains("n USING INTEGER PRIMARY KEY"), "{steps}");
        }
    }
}
