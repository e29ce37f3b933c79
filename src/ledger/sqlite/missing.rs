//! Events that are without a delivery they were to have. What tilld's writer records has what it is owed, and says so with the event
//! (`vouched`); so only what another program wrote, or took a delivery from, is looked at.
//!
//! Relies on the schema, which takes the word back when a delivery is taken away, and on what the daemon served by. Promises to
//! look at the newest of those events alone, a bounded number.

use rusqlite::Connection;

use super::facts::fact;
use crate::invoice::event::{Change, EventKind};
use crate::invoice::status::{Outcome, Status};
use crate::ledger::apply::SERVED;
use crate::ledger::choice::{Choice, Missing, Whose};
use crate::ledger::overview::Tally;
use crate::ledger::row::InvoiceKey;
use crate::ledger::sqlite::planned::Planned as _;

const UNVOUCHED: &str = "SELECT e.seq, e.event_id, e.invoice, e.kind, e.status, i.order_id \
  FROM event e INDEXED BY event_unvouched JOIN invoice i ON i.id = e.invoice WHERE e.vouched = 0 ORDER BY e.seq DESC";

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The newest, as many as were asked for.
    pub(super) of: Vec<Missing>,
    /// There are more, or more events to be looked at.
    pub(super) more: bool,
}

/// The newest of this choice.
pub(super) fn missing(
    connection: &Connection,
    choice: &Choice,
    most: u32,
) -> rusqlite::Result<Found> {
    let mut found = Found::default();
    // A missing delivery has come nowhere.
    let Some(served) = fact(connection, &SERVED)?.filter(|_| choice.state.is_none()) else {
        return Ok(found);
    };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut stands = connection
        .planned("SELECT EXISTS (SELECT 1 FROM delivery WHERE event = ?1 AND hook = ?2)")?;
    let mut statement = connection.planned(UNVOUCHED)?;
    let mut rows = statement.query([])?;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        seen += 1;
        if seen > Tally::MOST {
            found.more = !found.of.is_empty();
            break;
        }
        let (seq, event_id): (i64, String) = (row.get("seq")?, row.get("event_id")?);
        let order_id: String = row.get("order_id")?;
        let is_meant = match &choice.whose {
            Whose::All => true,
            Whose::Event(named) => *named == event_id,
            Whose::Order(named) => *named == order_id,
        };
        let Some(change) = change(row)?.filter(|_| is_meant) else {
            continue;
        };
        for hook in served.owed(seq, &change) {
            let wanted = choice.hook.as_ref().is_none_or(|named| named == hook);
            if !wanted || stands.query_row((seq, hook), |row| row.get(0))? {
                continue;
            }
            if found.of.len() == most {
                found.more = true;
                return Ok(found);
            }
            found.of.push(Missing {
                seq,
                invoice: InvoiceKey(row.get("invoice")?),
                order_id: order_id.clone(),
                hook: hook.to_owned(),
            });
        }
    }
    Ok(found)
}

/// What a subscription looks at; `None` for a kind of event that no version of this tilld has.
fn change(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Change>> {
    let (kind, status): (String, Option<String>) = (row.get("kind")?, row.get("status")?);
    let of = |kind| Change {
        kind,
        rewound: false,
        cause: None,
        status: status.and_then(Status::new),
        previous_status: None,
        outcome: Outcome::Open,
        previous_outcome: Outcome::Open,
        order_outcome: Outcome::Open,
    };
    Ok(EventKind::parse(&kind).map(of))
}

#[cfg(test)]
mod tests {
    use super::super::check::as_made;
    use super::super::due::tests::plan;
    use super::*;

    #[test]
    fn events_that_are_vouched_for_are_not_read() {
        let connection = as_made().expect("in memory");
        let steps = plan(&connection, UNVOUCHED);
        assert_eq!(
            steps,
            [
                "SCAN e USING INDEX event_unvouched",
                "SEARCH i USING INTEGER PRIMARY KEY (rowid=?)"
            ]
        );
    }
}
