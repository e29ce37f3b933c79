//! The ledger through its own doors, on a real file.

use super::*;
mod abandonment;
mod acts;
mod again;
mod asking;
mod claims;
mod clock;
mod conformance;
mod documents;
mod foreign;
mod lists;
mod names;
mod operator;
mod order;
mod owed;
mod restored;
mod served;

use super::command::{Command, Reply};
use super::store::Store;
use crate::hook::{Selector, Subscription};
use crate::invoice::amount::Amount;
use crate::invoice::attention::Attention;
use crate::invoice::event::EventKind;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Asked, Observation, Report, Reported, Source};
use crate::invoice::opening::{Mode, Opening, Wanted};
use crate::invoice::silence::{Schedule, Step};
use crate::invoice::status::{Outcome, Status, StatusLists};
use crate::invoice::sum::Sum;
use crate::invoice::transition::{Decision, Policy};
use crate::process_mark::ProcessMark;

/// For the writer's end.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Any time; the ledger only compares.
const NOW: i64 = 1_800_000_000_000;

fn rules() -> Rules {
    let lists = StatusLists {
        paid: vec!["paid".into()],
        failed: vec!["failed".into()],
        ..StatusLists::default()
    };
    let subscription = |hook: &str, on| Subscription {
        hook: hook.into(),
        on,
    };
    Rules {
        author: Author::Daemon,
        policy: Policy {
            lists,
            confirm_paid: false,
        },
        schedule: Schedule {
            steps: vec![Step {
                until_ms: 1_800_000,
                every_ms: 60_000,
            }],
            after_expiry_ms: 5_000,
            horizon_ms: 259_200_000,
        },
        subscriptions: vec![
            subscription("fulfil", vec![Selector::Kind(EventKind::Paid)]),
            subscription("log", vec![Selector::All]),
        ],
        on_abandoned: false,
        first_delay_ms: 0,
        longest_delay_ms: 60_000,
        sorted_by: None,
        restore: Restore::default(),
    }
}

/// The same as the settings of a command.
fn of_a_command(rules: Rules) -> Rules {
    Rules {
        author: Author::Command,
        ..rules
    }
}

/// So many of whatever hook.
fn lanes(want: u32) -> Vec<Lane> {
    let names = ["fulfil", "log"].map(str::to_owned).to_vec();
    let children = Vec::new();
    vec![Lane {
        names,
        want,
        children,
    }]
}

pub(super) fn open(directory: &tempfile::TempDir) -> Ledger {
    open_with(directory, rules())
}

fn open_with(directory: &tempfile::TempDir, rules: Rules) -> Ledger {
    let bounds = Bounds {
        history_per_invoice: 5,
        history_rows: 1_000,
        refusal_rows: 10,
    };
    let state_dir = directory.path().join("state");
    let busy_budget = Duration::from_millis(100);
    Ledger::open(Options {
        state_dir,
        busy_budget,
        queue: 64,
        batch: 256,
        checkpoint: Checkpoint::AfterAnswers,
        log_limits: LogLimits::WIDE,
        network: Network::Refused,
        bounds,
        rules,
    })
    .expect("it opens")
}

fn intent(writer: &Writer, order: &str) -> Intent {
    let reference = InvoiceRef::from_entropy(crate::entropy::bytes());
    let sum = Sum::new(Amount::parse("1500.00").expect("plain"), "RUB").expect("a sum");
    Intent {
        order_id: OrderId::new(order).expect("an order id"),
        wanted: Wanted {
            sum,
            method: "SBP".into(),
            mode: Mode::H2h,
            anew: false,
        },
        sealed: writer.seal(&NotifyToken::from_entropy([9; 32]), &reference),
        reference,
        instead_of: None,
        creator: ProcessMark::own(),
        now_ms: NOW,
        deadline_ms: NOW + 35_000,
        window_ms: 3_600_000,
        polled: Vec::new(),
    }
}

pub(super) fn said(source: Source, id: &str, status: &str, at: i64) -> Observation {
    Observation {
        source,
        report: Report {
            id: InvoiceId::new(id).expect("an id"),
            status: Status::new(status).expect("a status"),
            order_id: Reported::Missing,
            amount: Reported::Value(Amount::parse("1500").expect("plain")),
            currency: Some("RUB".into()),
            updated_at: Some(Moment::from_ms(NOW + at)),
            service_ms: None,
            expire_at: Some(Moment::from_ms(NOW + 1_800_000)),
            method: None,
            payment_url: None,
            requisites: None,
            updated_at_text: None,
            odd: Vec::new(),
            raw: "{}".into(),
        },
        asked: None,
        received_ms: NOW + at,
    }
}

async fn fresh(writer: &Writer, order: &str) -> InvoiceKey {
    match writer
        .begin_opening(intent(writer, order))
        .await
        .expect("stored")
    {
        Begun::Fresh(key) => key,
        other => panic!("not fresh: {other:?}"),
    }
}

pub(super) async fn opened(writer: &Writer, order: &str) -> InvoiceKey {
    let key = fresh(writer, order).await;
    let answer = said(Source::Create, &format!("id-{order}"), "new", 1);
    let (row, _) = writer
        .settle_opening(key, Settled::Answered(Box::new(answer)))
        .await
        .expect("stored");
    assert_eq!(
        (row.opening, row.status.as_deref()),
        (Opening::Answered, Some("new"))
    );
    key
}

#[tokio::test]
async fn a_payment_is_one_event_and_one_delivery_per_hook_however_often_it_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    for _ in 0..20 {
        writer
            .record(key, said(Source::Notification, "id-a", "paid", 9))
            .await
            .expect("stored");
    }
    let kinds: Vec<_> = reader
        .events(Some("a"), 0, 10)
        .await
        .expect("read")
        .into_iter()
        .map(|e| e.kind)
        .collect();
    assert_eq!(kinds, [EventKind::Opened, EventKind::Paid]);
    let mut owed: Vec<_> = reader
        .list_deliveries(None, 10)
        .await
        .expect("read")
        .into_iter()
        .map(|d| (d.hook, d.seq))
        .collect();
    owed.sort();
    assert_eq!(
        owed,
        [("fulfil".into(), 2), ("log".into(), 1), ("log".into(), 2)]
    );
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!(
        (row.outcome, row.found_by),
        (Outcome::Paid, Some(Source::Notification))
    );
}

#[tokio::test]
async fn what_was_answered_is_there_after_reopening() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let key = opened(&ledger.writer(), "a").await;
    ledger.close(PATIENCE).await;
    let ledger = open(&directory);
    let row = ledger
        .reader()
        .invoice(key)
        .await
        .expect("read")
        .expect("there");
    assert_eq!(row.order_id, "a");
    let watched = ledger
        .reader()
        .watched(row.reference)
        .await
        .expect("read")
        .expect("there");
    let token = NotifyToken::from_entropy([9; 32]);
    assert!(
        watched
            .token
            .is_some_and(|t| t.matches(token.secret().expose().as_bytes()))
    );
}

#[tokio::test]
async fn a_notification_before_the_answer_gives_the_invoice_its_id() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = fresh(&writer, "a").await;
    let early = writer
        .record(key, said(Source::Notification, "id-a", "paid", 9))
        .await
        .expect("stored");
    assert_eq!(early.decision, Decision::Advance);
    let late = Settled::Answered(Box::new(Observation {
        asked: Some(Asked {
            revision: 0,
            at_ms: NOW,
        }),
        ..said(Source::Create, "id-a", "new", 1)
    }));
    let (row, recorded) = writer.settle_opening(key, late).await.expect("stored");
    assert_eq!(recorded.map(|r| r.decision), Some(Decision::Overtaken));
    assert_eq!(
        (row.outcome, row.opening),
        (Outcome::Paid, Opening::Answered)
    );
    assert_eq!(
        reader.due(NOW + 10, 10).await.expect("read").len(),
        1,
        "asked at once"
    );
}

#[tokio::test]
async fn a_lost_answer_is_unknown_until_a_notification_names_the_id() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = fresh(&writer, "a").await;
    let (row, _) = writer
        .settle_opening(key, Settled::Unknown("timed out".into()))
        .await
        .expect("stored");
    assert_eq!(
        (row.opening, row.attention),
        (Opening::Unknown, vec![Attention::OutcomeUnknown])
    );
    assert!(matches!(
        writer.begin_opening(intent(&writer, "a")).await,
        Ok(Begun::Unknown(_))
    ));
    writer
        .record(key, said(Source::Notification, "id-a", "new", 1))
        .await
        .expect("stored");
    let row = reader.invoice(key).await.expect("read").expect("there");
    assert_eq!((row.opening, row.attention.len()), (Opening::Answered, 0));
}

#[tokio::test]
async fn another_process_that_holds_the_lock_costs_an_answer_and_no_data() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let writer = ledger.writer();
    let key = opened(&writer, "a").await;
    let other = HeldLock::take(&directory.path().join("state"));
    let refused = writer
        .record(key, said(Source::Notification, "id-a", "paid", 9))
        .await;
    assert!(refused.is_err_and(|error| error.is_transient()));
    drop(other);
    let stored = writer
        .record(key, said(Source::Notification, "id-a", "paid", 9))
        .await
        .expect("stored");
    assert_eq!(stored.outcome, Outcome::Paid);
}

/// Holds the write lock as another process would, through a store of its own.
pub(crate) struct HeldLock(sqlite::SqliteStore);

impl HeldLock {
    /// Takes the lock of the ledger in this state directory.
    pub(crate) fn take(state_dir: &Path) -> Self {
        let bounds = Bounds {
            history_per_invoice: 1,
            history_rows: 1,
            refusal_rows: 1,
        };
        let path = state_dir.join(FILE_NAME);
        let mut other = sqlite::SqliteStore::open(
            path,
            Duration::from_secs(1),
            bounds,
            (Checkpoint::AfterAnswers, LogLimits::WIDE),
        )
        .expect("it opens");
        Store::begin(&mut other).expect("it takes the lock");
        Self(other)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.0.rollback();
    }
}

/// A poll may hang on a refusal for a known invoice, and anybody can cause the others.
#[tokio::test]
async fn strangers_displace_no_refusal_for_a_known_invoice() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    let stranger = |at| Refusal {
        invoice: None,
        ..asking::refused(key, NOW + at)
    };
    // More than are gathered in memory, and more than are kept.
    for at in 0..1_500 {
        writer.refuse(stranger(at));
    }
    writer.refuse(asking::refused(key, NOW + 1_500));
    drop(writer);
    ledger.close(PATIENCE).await;
    let ledger = open(&directory);
    let kept = ledger
        .reader()
        .refusals(RefusalFilter::default(), 100)
        .await;
    let kept = kept.expect("read");
    let known = kept.iter().filter(|row| row.order_id.is_some()).count();
    assert_eq!((known, kept.len()), (1, 11));
    let due = ledger.reader().due(NOW + 1_500, 10).await;
    assert_eq!(due.expect("read").len(), 1, "nudged");
    let told = ledger.reader().overview(NOW, NOW).await.expect("read");
    assert!(told.refusals.more, "some are left out");
    for at in 0..20 {
        ledger.writer().refuse(stranger(at));
    }
    drop(reader);
    ledger.close(PATIENCE).await;
    let ledger = open(&directory);
    let kept = ledger
        .reader()
        .refusals(RefusalFilter::default(), 100)
        .await;
    let kept = kept.expect("read");
    assert_eq!(
        kept.last().and_then(|row| row.order_id.as_deref()),
        Some("a")
    );
}

#[tokio::test]
async fn history_and_refusals_stay_within_their_bounds() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let (writer, reader) = (ledger.writer(), ledger.reader());
    let key = opened(&writer, "a").await;
    for at in 0..20 {
        writer
            .record(key, said(Source::Poll, "id-a", "new", 10 + at))
            .await
            .expect("stored");
        writer.refuse(asking::refused(key, NOW + at));
    }
    drop(writer);
    ledger.close(PATIENCE).await;
    let ledger = open(&directory);
    assert_eq!(
        ledger
            .reader()
            .refusals(RefusalFilter::default(), 100)
            .await
            .expect("read")
            .len(),
        10
    );
    assert_eq!(
        ledger.reader().due(NOW + 19, 10).await.expect("read").len(),
        1,
        "nudged"
    );
    drop(reader);
    let path = directory.path().join("state").join(FILE_NAME);
    let kept = sqlite::count_for_tests(&path, "history");
    assert!((5..10).contains(&kept), "{kept} lines");
}
