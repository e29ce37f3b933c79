//! How a changed invoice is stored: what most notifications change by their event alone, what any notification changes by a
//! short statement, everything only when something else changed too.
//!
//! Relies on the transaction: between loading an invoice and saving it nobody else changes it. Promises that a value is left
//! out only when it is the one that was loaded.

use rusqlite::{Connection, params};

use super::often::{Often, Statements};
use super::rows::{claim_columns, meaning_word, pack_attention, pack_claims, pack_pending};
use super::{standing, usual};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Claim, Invoice, Pending};
use crate::ledger::row::{InvoiceKey, InvoiceRow};
use crate::ledger::sqlite::planned::Planned as _;
use crate::ledger::store::{NewEvent, Stored};

/// What most notifications change.
pub(super) const SAVE_OFTEN: &str = "UPDATE invoice SET revision = ?2, status = ?3, claim_differs = ?4, claim_ns = ?5, \
  sorted_status = ?6, sorted_meaning = ?7, sorted_differs = ?8, sorted_ns = ?9, sorted_settled = ?10, raw = ?11, \
  heard_ms = ?12, updated_ms = ?13, newest_ns = ?14, raw_event = ?15 WHERE id = ?1";

/// Everything that can change.
const SAVE_ALL: &str = "UPDATE invoice SET revision = ?2, status = ?3, claim_differs = ?4, claim_ns = ?5, \
  sorted_status = ?6, sorted_meaning = ?7, sorted_differs = ?8, sorted_ns = ?9, sorted_settled = ?10, raw = ?11, \
  heard_ms = ?12, updated_ms = ?13, newest_ns = ?14, raw_event = ?15, \
  invoice_id = ?16, opening = ?17, opening_note = ?18, creator_boot = ?19, creator_pid = ?20, creator_start = ?21, \
  amount_agreed = ?22, currency_agreed = ?23, amount_reported = ?24, currency_reported = ?25, outcome = ?26, \
  outcome_ms = ?27, found_by = ?28, doubt = ?29, doubted = ?30, pending = ?31, paid_counted = ?32, paid_fired = ?33, \
  failed_fired = ?34, attention = ?35, unresolved = ?36, requisites = ?37, payment_url = ?38, expire_ms = ?39, \
  sorted_by = ?40, mode = ?41, method = ?42, creator_deadline_ms = ?43, created_ms = ?44, generation = ?45 WHERE id = ?1";

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
            usual::own_document($stored),
            $stored.heard_ms,
            $stored.row.updated_ms,
            $stored.newest.as_ns(),
            $stored.document,
            $($more,)*
        ])
    }};
}

/// What the invoice that was loaded last held of what seldom changes.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    key: Option<InvoiceKey>,
    then: Seldom,
    now: Seldom,
}

impl Loaded {
    /// Takes note of an invoice that was read in this transaction.
    pub(super) fn note(&mut self, stored: &Stored) {
        self.key = Some(stored.row.key);
        self.then.take(stored);
    }

    /// What was read may not be what stands there any more.
    pub(super) fn forget(&mut self) {
        self.key = None;
    }

    /// The revision with which an event stands for this invoice's row, when nothing else of it changed; its cause is given.
    pub(super) fn stands(
        &mut self,
        stored: &Stored,
        event: &NewEvent<'_>,
        cause: &Claim,
    ) -> Option<i64> {
        let revision = standing::stands(stored, event, cause)?;
        self.now.take(stored);
        let same = self.key == Some(stored.row.key) && self.then == self.now;
        same.then_some(revision)
    }

    /// Stores an invoice.
    pub(super) fn save(
        &mut self,
        connection: &mut impl Statements,
        stored: &Stored,
    ) -> rusqlite::Result<()> {
        self.now.take(stored);
        let often = self.key == Some(stored.row.key) && self.then == self.now;
        if often && let Some(sorted) = usual::sorted(&stored.invoice) {
            connection.often(Often::SaveUsual, |statement| {
                usual::save(statement, stored, sorted)
            })
        } else if often {
            connection.often(Often::Save, |statement| {
                execute!(statement, stored).map(drop)
            })
        } else {
            self.key = None;
            save_all(connection, stored)
        }
    }
}

fn save_all(connection: &Connection, stored: &Stored) -> rusqlite::Result<()> {
    let mut statement = connection.planned(SAVE_ALL)?;
    let (row, creator) = (&stored.row, stored.row.creator.as_ref());
    let decides = &stored.invoice;
    let saved = execute!(
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
    );
    saved.map(drop)
}

/// Numbers of an invoice that seldom change, lengths of texts among them.
const NUMBERS: usize = 24;
/// The same of what decides.
const JUDGED: usize = 6;

/// The values that seldom change: the numbers and how long each text is, and the texts one behind the other, so that two
/// invoices are compared at once and nothing is allocated for it.
#[derive(Debug, PartialEq, Eq)]
struct Seldom {
    numbers: [i64; NUMBERS],
    judged: [i64; JUDGED],
    texts: Vec<u8>,
}

impl Default for Seldom {
    fn default() -> Self {
        Self {
            numbers: [0; NUMBERS],
            judged: [0; JUDGED],
            texts: Vec::new(),
        }
    }
}

/// No number of an invoice, nor a length.
const NONE: i64 = i64::MIN;

fn number(number: Option<i64>) -> i64 {
    number.unwrap_or(NONE)
}

fn count(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

fn numbers_judged(invoice: &Invoice) -> [i64; JUDGED] {
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
    [
        i64::from(*doubt),
        i64::from(*paid_counted),
        i64::from(*paid_fired),
        i64::from(*failed_fired),
        count(doubted.len()),
        number(pending.as_ref().map(|pending| pending.since_ms)),
    ]
}

impl Seldom {
    fn take(&mut self, stored: &Stored) {
        // Named one by one: what is added later is not forgotten here.
        let Stored {
            invoice,
            row,
            heard_ms: _,
            sorted_by,
            generation,
            newest: _,
            document: _,
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
        let Self {
            numbers,
            judged,
            texts,
        } = self;
        texts.clear();
        let mut text = |text: Option<&str>| {
            let Some(text) = text else { return NONE };
            texts.extend_from_slice(text.as_bytes());
            count(text.len())
        };
        *numbers = [
            *sorted_by,
            *generation,
            text(invoice_id.as_deref()),
            i64::from(*mode as u8),
            text(Some(method)),
            i64::from(*opening as u8),
            text(opening_note.as_deref()),
            text(creator.as_ref().map(|mark| mark.boot_id.as_str())),
            number(creator.as_ref().map(|mark| i64::from(mark.pid))),
            number(creator.as_ref().map(|mark| mark.start_ticks)),
            *creator_deadline_ms,
            i64::from(*outcome as u8),
            *outcome_ms,
            number(found_by.map(|source| i64::from(source as u8))),
            text(Some(amount_agreed)),
            text(Some(currency_agreed)),
            text(amount_reported.as_deref()),
            text(currency_reported.as_deref()),
            i64::from(*unresolved),
            text(requisites.as_deref()),
            text(payment_url.as_deref()),
            number(*expire_ms),
            *created_ms,
            count(attention.len()),
        ];
        *judged = numbers_judged(invoice);
        for reason in attention {
            self.word(Some(reason.as_str()));
        }
        for claim in &invoice.doubted {
            self.claim(claim);
        }
        if let Some(Pending { claim, since_ms: _ }) = &invoice.pending {
            self.claim(claim);
        }
    }

    fn claim(
        &mut self,
        Claim {
            status,
            verdict,
            at,
        }: &Claim,
    ) {
        self.word(Some(status.as_str()));
        self.word(verdict.as_stored());
        let at = number(at.map(Moment::as_ns));
        self.texts.extend_from_slice(&at.to_ne_bytes());
    }

    /// A text of those there may be any number of: with its length in front.
    fn word(&mut self, word: Option<&str>) {
        let length = number(word.map(|word| count(word.len())));
        self.texts.extend_from_slice(&length.to_ne_bytes());
        self.texts
            .extend_from_slice(word.unwrap_or_default().as_bytes());
    }
}
