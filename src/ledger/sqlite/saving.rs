//! How a changed invoice is stored: what most notifications change by a short statement, everything when something else
//! changed too.
//!
//! Relies on what is known of the file within the transaction. Promises that a value is left out only when the file has it.

use rusqlite::params;

use super::often::{Often, Statements};
use super::rows::{claim_columns, meaning_word, pack_attention, pack_claims, pack_pending};
use crate::invoice::attention::Attention;
use crate::invoice::observation::Source;
use crate::invoice::opening::{Mode, Opening};
use crate::invoice::status::Outcome;
use crate::invoice::transition::{Claim, Invoice, Pending};
use crate::ledger::row::InvoiceRow;
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::Stored;
use crate::process_mark::ProcessMark;

macro_rules! save {
    ($more:literal) => {
        concat!(
            "UPDATE invoice SET revision = ?2, status = ?3, claim_differs = ?4, claim_ns = ?5, sorted_status = ?6, \
             sorted_meaning = ?7, sorted_differs = ?8, sorted_ns = ?9, sorted_settled = ?10, raw = ?11, heard_ms = ?12, \
             updated_ms = ?13, newest_ns = ?14",
            $more,
            " WHERE id = ?1"
        )
    };
}

/// What most notifications change.
pub(super) const SAVE_OFTEN: &str = save!("");

/// Everything that can change.
const SAVE_ALL: &str = save!(
    ", invoice_id = ?15, opening = ?16, opening_note = ?17, creator_boot = ?18, creator_pid = ?19, creator_start = ?20, \
      amount_agreed = ?21, currency_agreed = ?22, amount_reported = ?23, currency_reported = ?24, outcome = ?25, \
      outcome_ms = ?26, found_by = ?27, doubt = ?28, doubted = ?29, pending = ?30, paid_counted = ?31, paid_fired = ?32, \
      failed_fired = ?33, attention = ?34, unresolved = ?35, requisites = ?36, payment_url = ?37, expire_ms = ?38, \
      sorted_by = ?39, mode = ?40, method = ?41, creator_deadline_ms = ?42, created_ms = ?43, generation = ?44"
);

macro_rules! execute {
    ($statement:expr, $stored:ident $(, $more:expr)* $(,)?) => {{
        let invoice = &$stored.invoice;
        let (status, differs, at) = claim_columns(invoice.claim.as_ref());
        let sorted = invoice.sorted.as_ref();
        let (sorted_status, sorted_differs, sorted_at) =
            claim_columns(sorted.map(|sorted| &sorted.claim));
        $statement.execute(params![
            $stored.row.key.0,
            invoice.revision,
            status,
            differs,
            at,
            sorted_status,
            sorted.map(|sorted| meaning_word(sorted.meaning)),
            sorted_differs,
            sorted_at,
            sorted.is_some_and(|sorted| sorted.settled),
            $stored.row.raw,
            $stored.heard_ms,
            $stored.row.updated_ms,
            $stored.newest.as_ns(),
            $($more,)*
        ]).map(drop)
    }};
}

/// Stores an invoice that stands in the file as `before`; `None` when that is not known.
pub(super) fn save(
    connection: &mut impl Statements,
    before: Option<&Stored>,
    stored: &Stored,
) -> rusqlite::Result<()> {
    let often = before.is_some_and(|before| Seldom::of(before) == Seldom::of(stored));
    if often {
        return connection.often(Often::Save, |statement| execute!(statement, stored));
    }
    let mut statement = connection.planned(SAVE_ALL)?;
    let (row, creator) = (&stored.row, stored.row.creator.as_ref());
    let decides = &stored.invoice;
    execute!(
        statement,
        stored,
        row.invoice_id,
        row.opening.as_str(),
        row.opening_note,
        creator.map(|mark| mark.boot_id.as_str()),
        creator.map(|mark| mark.pid),
        creator.map(|mark| mark.start_ticks),
        row.amount_agreed,
        row.currency_agreed,
        row.amount_reported,
        row.currency_reported,
        row.outcome.as_str(),
        row.outcome_ms,
        row.found_by.map(Source::as_str),
        decides.doubt,
        pack_claims(&decides.doubted),
        decides.pending.as_ref().map(pack_pending),
        decides.paid_counted,
        decides.paid_fired,
        decides.failed_fired,
        pack_attention(&row.attention),
        row.unresolved,
        row.requisites,
        row.payment_url,
        row.expire_ms,
        stored.sorted_by,
        row.mode.as_str(),
        row.method,
        row.creator_deadline_ms,
        row.created_ms,
        stored.generation,
    )
}

/// The values that seldom change.
#[derive(PartialEq)]
struct Seldom<'s> {
    texts: [Option<&'s str>; 9],
    numbers: [Option<i64>; 6],
    marks: [bool; 5],
    words: (Mode, Opening, Outcome, Option<Source>),
    creator: Option<&'s ProcessMark>,
    attention: &'s [Attention],
    doubted: &'s [Claim],
    pending: Option<&'s Pending>,
}

impl<'s> Seldom<'s> {
    fn of(stored: &'s Stored) -> Self {
        // Named one by one: what is added later is not forgotten here.
        let Stored {
            invoice,
            row,
            heard_ms: _,
            sorted_by,
            generation,
            newest: _,
        } = stored;
        let InvoiceRow {
            key: _,
            reference: _,
            order_id: _,
            invoice_id,
            mode,
            method,
            opening,
            opening_note,
            creator,
            creator_deadline_ms,
            status: _,
            outcome,
            outcome_ms,
            found_by,
            amount_asked: _,
            currency_asked: _,
            amount_agreed,
            currency_agreed,
            amount_reported,
            currency_reported,
            doubt: _,
            attention,
            unresolved,
            requisites,
            payment_url,
            raw: _,
            expire_ms,
            created_ms,
            updated_ms: _,
            revision: _,
            // Stored by a statement of its own.
            superseded: _,
        } = row;
        let Invoice {
            order_id: _,
            id: _,
            agreed: _,
            revision: _,
            claim: _,
            sorted: _,
            outcome: _,
            superseded: _,
            doubt,
            doubted,
            pending,
            paid_counted,
            paid_fired,
            failed_fired,
            recorded: _,
        } = invoice;
        Self {
            texts: [
                invoice_id.as_deref(),
                Some(method),
                opening_note.as_deref(),
                Some(amount_agreed),
                Some(currency_agreed),
                amount_reported.as_deref(),
                currency_reported.as_deref(),
                requisites.as_deref(),
                payment_url.as_deref(),
            ],
            numbers: [
                Some(*sorted_by),
                Some(*generation),
                Some(*creator_deadline_ms),
                Some(*outcome_ms),
                *expire_ms,
                Some(*created_ms),
            ],
            marks: [
                *doubt,
                *paid_counted,
                *paid_fired,
                *failed_fired,
                *unresolved,
            ],
            words: (*mode, *opening, *outcome, *found_by),
            creator: creator.as_ref(),
            attention,
            doubted,
            pending: pending.as_ref(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use rusqlite::Connection;

    use super::super::often::Passing;
    use super::super::{columns, rows};
    use super::*;
    use crate::ledger::sqlite::check::as_made;

    /// The invoice of [`ledger`].
    pub(in super::super) fn read(connection: &Connection) -> Stored {
        let read = connection.query_row(columns::BY_KEY, [7], rows::stored);
        read.expect("it is read")
    }

    /// A ledger with one invoice, the seventh, that is as most are.
    pub(in super::super) fn ledger() -> Connection {
        let connection = as_made().expect("in memory");
        connection
            .execute_batch(
                "INSERT INTO invoice (id, ref, order_id, invoice_id, mode, method, opening, creator_boot, creator_pid, \
                   creator_start, creator_deadline_ms, amount_asked, currency_asked, amount_agreed, currency_agreed, amount_reported, currency_reported, \
                   status, claim_ns, sorted_status, sorted_meaning, sorted_ns, outcome_ms, requisites, payment_url, raw, \
                   expire_ms, heard_ms, created_ms, updated_ms, revision, sorted_by, generation, newest_ns) \
                 VALUES (7, 'AAAAAAAAAAAAAAAAAAAAAA', 'order-7', 'id-7', 'h2h', 'SBP', 'answered', 'boot', 13, 14, 1, '100.50', 'RUB', \
                   '100.50', 'RUB', '100.5', 'RUB', 'new', 2, 'new', 'open', 2, 3, '{}', 'https://pay', '{\"a\":1}', \
                   4, 5, 6, 8, 9, 10, 11, 12)",
            )
            .expect("it is written");
        connection
    }

    /// Whatever is another than it was is stored, and by the short statement only where that has it.
    #[test]
    fn each_column_is_saved_when_it_changes() {
        let mut connection = Passing::around(ledger());
        let before = read(&connection);
        let odd = [
            "NULL",
            "0",
            "1",
            "77",
            "''",
            "'paid'",
            "'refused'",
            "'redirect'",
            "'poll'",
            "'200'",
            "'USD'",
            "'[[\"a\",null,1],5]'",
            "'[[\"a\",null,1]]'",
            "'mismatch'",
        ];
        // What an invoice keeps for good, and what has a statement of its own.
        let kept =
            "'id', 'ref', 'order_id', 'amount_asked', 'currency_asked', 'rank', 'history_count'";
        let sql =
            format!("SELECT name FROM pragma_table_info('invoice') WHERE name NOT IN ({kept})");
        let names: Vec<String> = {
            let mut named = connection.prepare(&sql).expect("prepared");
            let names = named.query_map([], |row| row.get(0)).expect("read");
            names.collect::<Result<_, _>>().expect("read")
        };
        let unchanged = format!("{before:?}");
        for column in names {
            let mut changed = 0;
            for value in odd {
                connection.execute_batch("SAVEPOINT odd").expect("marked");
                // What the table does not take, or the row cannot be read with, is no invoice.
                let set = format!("UPDATE invoice SET {column} = {value}");
                let is_one = connection.execute(&set, []).is_ok();
                let other = connection.query_row(columns::BY_KEY, [7], rows::stored);
                let back = connection.execute_batch("ROLLBACK TO odd; RELEASE odd");
                back.expect("taken back");
                let Some(other) = other.ok().filter(|_| is_one) else {
                    continue;
                };
                changed += usize::from(format!("{other:?}") != unchanged);
                save(&mut connection, Some(&before), &other).expect("saved");
                assert_eq!(
                    format!("{:?}", read(&connection)),
                    format!("{other:?}"),
                    "{set}"
                );
                save(&mut connection, None, &before).expect("saved");
                assert_eq!(format!("{:?}", read(&connection)), unchanged, "{set}");
            }
            assert!(changed > 0, "{column}");
        }
    }
}
