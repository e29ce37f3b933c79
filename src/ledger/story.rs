//! One invoice as it went: all that the ledger keeps of it, read at one moment.
//!
//! Relies on the bounds of the ledger; what has none there (events, attempts, refusals of one invoice) is given up to a
//! bound here, newest first, and it is said when there is more. Promises that nothing is missing between the oldest and
//! the newest row of a kind, and that all kinds are of the same moment.

use super::error::ReadError;
use super::reader::Reader;
use super::row::{AttemptRow, DeliveryRow, EventRow, InvoiceKey, InvoiceRow};
use crate::invoice::moment::Moment;
use crate::invoice::observation::Source;
use crate::invoice::transition::{Decision, Why};

/// How much is read of what scripts wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The beginning of each stream, at most [`Output::BEGINNING_BYTES`].
    Beginning,
    /// All that was kept.
    Full,
}

impl Output {
    /// Bytes of each stream that are its beginning: more than the lines a timeline shows.
    pub(in crate::ledger) const BEGINNING_BYTES: u32 = 4_096;
}

/// One invoice with all that happened to it. Each list is oldest first.
#[derive(Clone, Debug)]
pub struct Story {
    /// The invoice as it stands.
    pub invoice: InvoiceRow,
    /// The observations that are still kept.
    pub history: Vec<HistoryRow>,
    /// How many older ones were dropped.
    pub history_dropped: u64,
    /// Refused notifications.
    pub refusals: Vec<RefusedRow>,
    /// There are older ones than those.
    pub more_refusals: bool,
    /// Events with what they are owed to.
    pub events: Vec<EventStory>,
    /// There are older ones than those.
    pub more_events: bool,
    /// When it was asked about, and is again; `None` before it was ever dated.
    pub asking: Option<Asking>,
}

/// When an invoice was asked about and is again. Times are milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asking {
    /// When the last question was sent.
    pub asked_ms: Option<i64>,
    /// Questions in a row without an answer.
    pub unanswered: u32,
    /// When it is due next; `None`: not at all.
    pub due_ms: Option<i64>,
}

/// One observation as it was judged.
#[derive(Clone, Debug)]
pub struct HistoryRow {
    /// When it reached us, milliseconds since 1970.
    pub at_ms: i64,
    /// Who said it.
    pub source: Source,
    /// The service's word; `None` for what a person did.
    pub status: Option<String>,
    /// The service's own instant.
    pub claimed_at: Option<Moment>,
    /// In what it differed from what was agreed.
    pub differs: Option<String>,
    /// The amount it reported.
    pub amount_reported: Option<String>,
    /// The currency it reported.
    pub currency_reported: Option<String>,
    /// What was decided.
    pub decision: Decision,
    /// By which rule.
    pub why: Why,
}

/// One refused notification for the invoice's ref.
#[derive(Clone, Debug)]
pub struct RefusedRow {
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// Why, as a fixed word.
    pub reason: String,
    /// The client's address.
    pub peer: String,
    /// The body's length, bytes; `None` when it was not read.
    pub body_bytes: Option<i64>,
    /// The names of its headers with a comma between; empty when they were not kept.
    pub header_names: String,
}

/// One event and what it is owed to.
#[derive(Clone, Debug)]
pub struct EventStory {
    /// The event.
    pub event: EventRow,
    /// Its deliveries.
    pub deliveries: Vec<DeliveryStory>,
}

/// One delivery and its runs.
#[derive(Clone, Debug)]
pub struct DeliveryStory {
    /// The delivery.
    pub row: DeliveryRow,
    /// When the run that is under way began, milliseconds since 1970.
    pub running_since_ms: Option<i64>,
    /// The runs that have ended, the newest of them when there are very many.
    pub attempts: Vec<AttemptStory>,
}

/// One run that has ended.
#[derive(Clone, Debug)]
pub struct AttemptStory {
    /// The run, with as much of its output as was asked for.
    pub row: AttemptRow,
    /// Bytes that are kept of its stdout.
    pub stdout_bytes: u64,
    /// Bytes that are kept of its stderr.
    pub stderr_bytes: u64,
}

impl Reader {
    /// All that is kept of an invoice, as of one moment.
    pub async fn story(&self, key: InvoiceKey, output: Output) -> Result<Option<Story>, ReadError> {
        self.ask(move |store| store.story(key, output)).await
    }
}

#[cfg(test)]
mod tests {
    use super::super::FILE_NAME;
    use super::super::sqlite::count_for_tests;
    use super::super::tests::{PATIENCE, open, opened, said};
    use super::*;

    #[tokio::test]
    async fn an_invoice_tells_its_beginning() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = open(&directory);
        let key = opened(&ledger.writer(), "a").await;
        let reader = ledger.reader();
        let told = reader.story(key, Output::Beginning).await.expect("read");
        let told = told.expect("it is there");
        assert_eq!(told.invoice.order_id, "a");
        let [line] = told.history.as_slice() else {
            panic!("{:?}", told.history);
        };
        assert_eq!(
            (line.source, line.status.as_deref()),
            (Source::Create, Some("new"))
        );
        assert_eq!((line.decision, line.why), (Decision::Advance, Why::First));
        assert_eq!(line.amount_reported.as_deref(), Some("1500"));
        assert_eq!((told.history_dropped, told.more_events), (0, false));
        let [event] = told.events.as_slice() else {
            panic!("{:?}", told.events);
        };
        // Of the two hooks one wants all events.
        assert_eq!(event.deliveries.len(), 1);
        assert!(told.asking.is_some_and(|state| state.due_ms.is_some()));
        let nobody = reader.story(InvoiceKey(99), Output::Full).await;
        assert!(nobody.expect("read").is_none());
    }

    /// What made an event is told once in the file, and among the lines all the same.
    #[tokio::test]
    async fn an_event_is_its_own_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = open(&directory);
        let writer = ledger.writer();
        let key = opened(&writer, "a").await;
        for (source, status, at) in [
            (Source::Poll, "new", 2),
            (Source::Notification, "paid", 3),
            (Source::Notification, "new", 1),
        ] {
            let heard = said(source, "id-a", status, at);
            writer.record(key, heard).await.expect("stored");
        }
        let told = ledger.reader().story(key, Output::Beginning).await;
        let told = told.expect("read").expect("it is there");
        let lines: Vec<_> = told
            .history
            .iter()
            .map(|line| (line.decision, line.why))
            .collect();
        let wanted = [
            (Decision::Advance, Why::First),
            (Decision::Confirmed, Why::Same),
            (Decision::Advance, Why::Newer),
            (Decision::Repeat, Why::Known),
        ];
        assert_eq!(lines, wanted);
        assert_eq!((told.events.len(), told.history_dropped), (2, 0));
        drop(writer);
        ledger.close(PATIENCE).await;
        let path = directory.path().join("state").join(FILE_NAME);
        assert_eq!(count_for_tests(&path, "history"), 2);
    }
}
