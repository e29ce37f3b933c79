//! How an invoice is read and written that is as most are when a notification comes, open, answered, with nothing in doubt and
//! nothing for a person to look at, and how the event of most notifications is. Each value that is read or bound costs some
//! hundred instructions; of such an invoice the statements themselves say what nearly half of the values are.
//!
//! Promises the same as the statements for whatever there is: [`stored`] reads the same or nothing, but for a document that
//! an event has, and [`sorted`] and [`cause`] let only those be written in the short way that are written the same.

use rusqlite::types::FromSql;
use rusqlite::{Row, Statement, params};

use super::rows;
use super::standing::standing;
use crate::invoice::event::EventKind;
use crate::invoice::ids::InvoiceRef;
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::status::{Meaning, Outcome, Status};
use crate::invoice::sum::Verdict;
use crate::invoice::transition::{Claim, Decision, Invoice, Sorted, Why};
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::store::{NewEvent, Stored};

/// What [`stored`] reads, in its order, where all that it takes for granted is so.
pub(super) const LOAD: &str = concat!(
    "SELECT i.ref, i.order_id, i.invoice_id, i.mode, i.method, i.creator_deadline_ms, i.outcome_ms, \
      i.amount_agreed, i.currency_agreed, i.amount_reported, i.currency_reported, i.requisites, i.payment_url, \
      iif(n.seq IS NULL, i.raw, NULL), i.expire_ms, i.created_ms, ifnull(n.at_ms, i.updated_ms), \
      ifnull(n.revision, i.revision), ifnull(n.status, i.status), iif(n.seq IS NULL, i.claim_ns, n.cause_ns), \
      iif(n.seq IS NULL, i.sorted_settled, 0), ifnull(n.at_ms, i.heard_ms), i.sorted_by, i.generation, \
      ifnull(n.cause_ns, i.newest_ns), ifnull(n.seq, i.raw_event) FROM ",
    standing!(),
    " WHERE i.id = ?1 AND i.doubt = 0 AND i.paid_counted = 0 AND i.paid_fired = 0 AND i.failed_fired = 0 \
      AND i.unresolved = 0 AND i.attention = '' AND i.outcome = 'open' AND i.found_by IS NULL \
      AND i.opening = 'answered' AND i.opening_note IS NULL AND i.creator_boot IS NULL AND i.doubted IS NULL \
      AND i.pending IS NULL AND i.amount_asked = i.amount_agreed AND i.currency_asked = i.currency_agreed \
      AND NOT EXISTS (SELECT 1 FROM invoice s WHERE s.order_id = i.order_id AND s.rank > abs(i.rank)) \
      AND (n.seq IS NOT NULL OR i.sorted_status = i.status AND i.claim_differs IS NULL \
        AND i.sorted_differs IS NULL AND i.sorted_ns IS i.claim_ns AND i.sorted_meaning = 'open')"
);

/// Stores an invoice whose sorted claim is the one that stands.
pub(super) const SAVE: &str = "UPDATE invoice SET revision = ?2, status = ?3, claim_differs = NULL, claim_ns = ?4, \
  sorted_status = ?3, sorted_meaning = 'open', sorted_differs = NULL, sorted_ns = ?4, sorted_settled = ?5, raw = ?6, \
  heard_ms = ?7, updated_ms = ?8, newest_ns = ?9, raw_event = ?10 WHERE id = ?1";

/// Writes the event of a notification that brought another status and nothing more. With a revision it stands for the
/// invoice's row too, see [`standing`](super::standing).
pub(super) const INSERT_EVENT: &str = "INSERT INTO event (event_id, invoice, kind, rewound, cause_status, cause_differs, \
  cause_ns, status, previous_status, outcome, previous_outcome, source, at_ms, amount_reported, currency_reported, raw, \
  decision, why, revision, vouched, order_outcome) VALUES (?1, ?2, 'status', 0, ?3, NULL, ?4, ?3, ?5, 'open', 'open', \
  'notification', ?6, ?7, ?8, ?9, 'advance', 'newer', ?10, 1, 'open')";

/// The values of a row, one after the other.
struct Values<'r, 's> {
    row: &'r Row<'s>,
    place: usize,
}

impl Values<'_, '_> {
    fn place(&mut self) -> usize {
        let place = self.place;
        self.place += 1;
        place
    }

    fn next<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        let place = self.place();
        self.row.get(place)
    }

    fn word<T>(&mut self, parse: fn(&str) -> Option<T>) -> rusqlite::Result<T> {
        let place = self.place();
        rows::word(self.row, place, parse)
    }
}

/// Reads an invoice that [`LOAD`] found, without a document that an event has. Fields are read in the order they stand here.
pub(super) fn stored(row: &Row<'_>, key: InvoiceKey) -> rusqlite::Result<Stored> {
    let mut values = Values { row, place: 0 };
    let mut shown = InvoiceRow {
        key,
        reference: values.word(InvoiceRef::parse)?,
        order_id: values.next()?,
        invoice_id: values.next()?,
        mode: values.word(Mode::parse)?,
        method: values.next()?,
        opening: Opening::Answered,
        opening_note: None,
        creator: None,
        creator_deadline_ms: values.next()?,
        status: None,
        outcome: Outcome::Open,
        outcome_ms: values.next()?,
        found_by: None,
        amount_asked: String::new(),
        currency_asked: String::new(),
        amount_agreed: values.next()?,
        currency_agreed: values.next()?,
        amount_reported: values.next()?,
        currency_reported: values.next()?,
        doubt: false,
        attention: Vec::new(),
        unresolved: false,
        requisites: values.next()?,
        payment_url: values.next()?,
        raw: values.next()?,
        expire_ms: values.next()?,
        created_ms: values.next()?,
        updated_ms: values.next()?,
        revision: values.next()?,
        superseded: None,
    };
    shown.amount_asked.clone_from(&shown.amount_agreed);
    shown.currency_asked.clone_from(&shown.currency_agreed);
    let claim = Claim {
        status: values.word(|text| Status::new(text))?,
        verdict: Verdict::Agrees,
        at: values.next::<Option<i64>>()?.map(Moment::from_ns),
    };
    shown.status = Some(claim.status.as_str().to_owned());
    let decides = Invoice {
        order_id: rows::order(&shown.order_id)?,
        id: rows::id(shown.invoice_id.as_deref())?,
        agreed: rows::sum(&shown.amount_agreed, &shown.currency_agreed)?,
        revision: shown.revision,
        sorted: Some(Sorted {
            claim: claim.clone(),
            meaning: Meaning::Open,
            settled: values.next()?,
        }),
        claim: Some(claim),
        outcome: Outcome::Open,
        superseded: None,
        doubt: false,
        doubted: Vec::new(),
        pending: None,
        paid_counted: false,
        paid_fired: false,
        failed_fired: false,
        recorded: Vec::new(),
    };
    Ok(Stored {
        invoice: decides,
        row: shown,
        heard_ms: values.next()?,
        sorted_by: values.next()?,
        generation: values.next()?,
        newest: Moment::from_ns(values.next()?),
        document: values.next()?,
    })
}

/// The sorted claim, when [`SAVE`] stores what is to be stored of the claims.
pub(super) fn sorted(invoice: &Invoice) -> Option<&Sorted> {
    invoice.sorted.as_ref().filter(|sorted| {
        sorted.meaning == Meaning::Open
            && sorted.claim.verdict == Verdict::Agrees
            && invoice.claim.as_ref() == Some(&sorted.claim)
    })
}

/// The document as it is to be written to the invoice's own row: not when an event has it.
pub(super) fn own_document(stored: &Stored) -> Option<&str> {
    let raw = stored.row.raw.as_deref();
    raw.filter(|_| stored.document.is_none())
}

/// Runs [`SAVE`].
pub(super) fn save(
    statement: &mut Statement<'_>,
    stored: &Stored,
    sorted: &Sorted,
) -> rusqlite::Result<()> {
    let saved = statement.execute(params![
        stored.row.key.0,
        stored.invoice.revision,
        sorted.claim.status.as_str(),
        sorted.claim.at.map(Moment::as_ns),
        sorted.settled,
        own_document(stored),
        stored.heard_ms,
        stored.row.updated_ms,
        stored.newest.as_ns(),
        stored.document,
    ]);
    saved.map(drop)
}

/// What caused an event, when [`INSERT_EVENT`] writes all there is to it.
pub(super) fn cause<'e>(event: &NewEvent<'e>) -> Option<&'e Claim> {
    let change = event.change;
    let plain = change.kind == EventKind::Status
        && !change.rewound
        && change.outcome == Outcome::Open
        && change.previous_outcome == Outcome::Open
        && change.order_outcome == Outcome::Open
        && event.source == Some(Source::Notification)
        && event.judged == Some((Decision::Advance, Why::Newer));
    let cause = change.cause.as_ref().filter(|_| plain)?;
    let shown = change.status.as_ref() == Some(&cause.status);
    (shown && cause.verdict == Verdict::Agrees).then_some(cause)
}

/// Runs [`INSERT_EVENT`]; `stands`: with this revision it is the invoice's row too.
pub(super) fn insert_event(
    statement: &mut Statement<'_>,
    event: &NewEvent<'_>,
    cause: &Claim,
    stands: Option<i64>,
) -> rusqlite::Result<i64> {
    statement.insert(params![
        event.event_id,
        event.invoice.0,
        cause.status.as_str(),
        cause.at.map(Moment::as_ns),
        event.change.previous_status.as_ref().map(Status::as_str),
        event.at_ms,
        event.reported.0,
        event.reported.1,
        event.raw,
        stands,
    ])
}

#[cfg(test)]
pub(super) mod tests {
    use rusqlite::types::Value;
    use rusqlite::{Connection, OptionalExtension as _};

    use super::*;
    use crate::invoice::event::Change;
    use crate::ledger::sqlite::check::as_made;
    use crate::ledger::sqlite::columns;
    use crate::ledger::sqlite::invoices;

    /// The invoice of [`ledger`], where it is as most are.
    pub(in super::super) fn read_usual(connection: &Connection) -> Option<Stored> {
        let key = InvoiceKey(7);
        let read = connection.query_row(LOAD, [key.0], |row| stored(row, key));
        read.optional().expect("it is read")
    }

    fn both(connection: &Connection) -> (Option<String>, String) {
        let key = InvoiceKey(7);
        let usual = read_usual(connection);
        let whole = connection.query_row(columns::BY_KEY, [key.0], rows::stored);
        let whole = whole.expect("it is read");
        (
            usual.map(|usual| format!("{usual:?}")),
            format!("{whole:?}"),
        )
    }

    /// A ledger with one invoice, the seventh, that is as most are.
    pub(in super::super) fn ledger() -> Connection {
        let connection = as_made().expect("in memory");
        connection
            .execute_batch(
                "INSERT INTO invoice (id, ref, order_id, invoice_id, mode, method, opening, creator_deadline_ms, \
                   amount_asked, currency_asked, amount_agreed, currency_agreed, amount_reported, currency_reported, \
                   status, claim_ns, sorted_status, sorted_meaning, sorted_ns, outcome_ms, requisites, payment_url, raw, \
                   expire_ms, heard_ms, created_ms, updated_ms, revision, sorted_by, generation, newest_ns) \
                 VALUES (7, 'AAAAAAAAAAAAAAAAAAAAAA', 'order-7', 'id-7', 'h2h', 'SBP', 'answered', 1, '100.50', 'RUB', \
                   '100.50', 'RUB', '100.5', 'RUB', 'new', 2, 'new', 'open', 2, 3, '{}', 'https://pay', '{\"a\":1}', \
                   4, 5, 6, 8, 9, 10, 11, 12)",
            )
            .expect("it is written");
        connection
    }

    /// Whatever is so of an invoice, it is read as the whole row says or not at all.
    #[test]
    fn the_short_way_leads_to_the_same_or_nowhere() {
        let connection = ledger();
        let (usual, whole) = both(&connection);
        assert_eq!(usual, Some(whole), "most are read the short way");
        let odd = [
            "NULL",
            "0",
            "1",
            "77",
            "''",
            "'paid'",
            "'failed'",
            "'refused'",
            "'redirect'",
            "'poll'",
            "'200'",
            "'USD'",
            "'[]'",
            "'[[\"a\",null,1],5]'",
            "'[[\"a\",null,1]]'",
            "'unresolved'",
            "'BBBBBBBBBBBBBBBBBBBBBB'",
        ];
        let mut compared = 0;
        let mut named = connection
            .prepare("SELECT name FROM pragma_table_info('invoice') WHERE name <> 'id'")
            .expect("prepared");
        let names = named.query_map([], |row| row.get(0)).expect("read");
        let names: Vec<String> = names.collect::<Result<_, _>>().expect("read");
        assert!(names.len() > 45, "{names:?}");
        for column in names {
            for value in odd {
                connection.execute_batch("SAVEPOINT odd").expect("marked");
                // What the table does not take, or the whole row cannot be read with, is no invoice.
                let set = format!("UPDATE invoice SET {column} = {value}");
                let is_one = connection.execute(&set, []).is_ok()
                    && connection
                        .query_row(columns::BY_KEY, [7], rows::stored)
                        .is_ok();
                if is_one && let (Some(usual), whole) = both(&connection) {
                    assert_eq!(usual, whole, "{set}");
                    compared += 1;
                }
                let back = connection.execute_batch("ROLLBACK TO odd; RELEASE odd");
                back.expect("taken back");
            }
        }
        assert!(compared > 100, "{compared}");
    }

    #[test]
    fn what_is_saved_the_short_way_is_read_back() {
        let connection = ledger();
        let key = InvoiceKey(7);
        let found = connection.query_row(LOAD, [key.0], |row| stored(row, key));
        let mut changed = found.expect("it is read");
        let claim = Claim {
            status: Status::new("wip").expect("a status"),
            verdict: Verdict::Agrees,
            at: None,
        };
        changed.invoice.sorted = Some(Sorted {
            claim: claim.clone(),
            meaning: Meaning::Open,
            settled: true,
        });
        changed.invoice.claim = Some(claim);
        changed.invoice.revision = 20;
        changed.row.revision = 20;
        changed.row.status = Some("wip".to_owned());
        changed.row.raw = Some("{}".to_owned());
        changed.row.updated_ms = 21;
        changed.heard_ms = Some(22);
        changed.newest = Moment::from_ns(23);
        let mut statement = connection.prepare(SAVE).expect("prepared");
        let claims = sorted(&changed.invoice).expect("one that is saved this way");
        save(&mut statement, &changed, claims).expect("saved");
        let (usual, whole) = both(&connection);
        assert_eq!(usual.as_ref(), Some(&whole));
        assert_eq!(whole, format!("{changed:?}"));
        changed.invoice.claim = None;
        assert!(sorted(&changed.invoice).is_none(), "the claims differ");
    }

    #[test]
    fn an_event_is_the_same_in_the_short_way() {
        let connection = ledger();
        let cause_of = Claim {
            status: Status::new("wip").expect("a status"),
            verdict: Verdict::Agrees,
            at: Some(Moment::from_ns(5)),
        };
        let change = Change {
            kind: EventKind::Status,
            rewound: false,
            cause: Some(cause_of),
            status: Status::new("wip"),
            previous_status: Status::new("new"),
            outcome: Outcome::Open,
            previous_outcome: Outcome::Open,
            order_outcome: Outcome::Open,
        };
        let mut event = NewEvent {
            event_id: "one",
            invoice: InvoiceKey(7),
            change: &change,
            source: Some(Source::Notification),
            at_ms: 8,
            reported: (Some("100"), None),
            raw: Some("{}"),
            judged: Some((Decision::Advance, Why::Newer)),
        };
        let claim = cause(&event).expect("one that is written this way");
        let mut short = connection.prepare(INSERT_EVENT).expect("prepared");
        insert_event(&mut short, &event, claim, None).expect("written");
        event.event_id = "two";
        let mut whole = connection
            .prepare(invoices::INSERT_EVENT)
            .expect("prepared");
        invoices::insert_any(&mut whole, &event).expect("written");
        let mut all = connection
            .prepare("SELECT * FROM event ORDER BY seq")
            .expect("prepared");
        let values = |row: &Row<'_>| (2..19).map(|at| row.get::<_, Value>(at)).collect();
        let rows: Vec<Vec<Value>> = all
            .query_map([], values)
            .and_then(Iterator::collect)
            .expect("read");
        let [short, whole] = rows.as_slice() else {
            panic!("two events: {rows:?}");
        };
        assert_eq!(short, whole);
        event.judged = Some((Decision::Advance, Why::First));
        assert!(cause(&event).is_none(), "another rule");
    }
}
