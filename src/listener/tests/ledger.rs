//! The listener on a real ledger.

use super::*;
use crate::invoice::amount::Amount;
use crate::invoice::event::EventKind;
use crate::invoice::ids::OrderId;
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::silence::Schedule;
use crate::invoice::status::{Outcome, StatusLists};
use crate::invoice::sum::Sum;
use crate::invoice::transition::Policy;
use crate::ledger::{Author, Begun, Bounds, Intent, Ledger, Options, Restore, Rules};
use crate::process_mark::ProcessMark;

fn open(directory: &tempfile::TempDir) -> Ledger {
    let options = Options {
        state_dir: directory.path().join("state"),
        busy_budget: Duration::from_secs(1),
        queue: 64,
        batch: 256,
        checkpoint: crate::ledger::Checkpoint::AfterAnswers,
        log_limits: crate::ledger::LogLimits::WIDE,
        network: crate::ledger::Network::Refused,
        bounds: Bounds {
            history_per_invoice: 5,
            history_rows: 100,
            refusal_rows: 100,
        },
        rules: Rules {
            author: Author::Daemon,
            policy: Policy {
                lists: StatusLists {
                    paid: vec!["paid".to_owned()],
                    ..StatusLists::default()
                },
                confirm_paid: false,
            },
            schedule: Schedule {
                steps: Vec::new(),
                after_expiry_ms: 5_000,
                horizon_ms: 259_200_000,
            },
            on_abandoned: false,
            first_delay_ms: 0,
            longest_delay_ms: 60_000,
            sorted_by: None,
            restore: Restore::default(),
            subscriptions: Vec::new(),
        },
    };
    Ledger::open(options).expect("it opens")
}

/// An invoice whose create answer is still under way.
async fn opening(ledger: &Ledger) -> InvoiceKey {
    let now_ms = clock::wall_ms();
    let reference = InvoiceRef::parse(REF).expect("a ref");
    let token = NotifyToken::from_stored(TOKEN.to_owned()).expect("long enough");
    let sum = Sum::new(Amount::parse("10.50").expect("plain"), "RUB").expect("a sum");
    let intent = Intent {
        order_id: OrderId::new("order-1").expect("an order id"),
        wanted: Wanted {
            sum,
            method: "SBP".to_owned(),
            mode: Mode::H2h,
            anew: false,
        },
        sealed: ledger.writer().seal(&token, &reference),
        reference,
        instead_of: None,
        creator: ProcessMark::own(),
        now_ms,
        deadline_ms: now_ms + 35_000,
        window_ms: 3_600_000,
        polled: Vec::new(),
    };
    match ledger.writer().begin_opening(intent).await {
        Ok(Begun::Fresh(key)) => key,
        other => panic!("not fresh: {other:?}"),
    }
}

/// A01 and A02: the notification is there before the create answer, twenty times at once, over twenty connections.
#[tokio::test]
async fn twenty_at_once_are_twenty_200_and_one_payment() {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = open(&directory);
    let invoice = opening(&ledger).await;
    let book = LedgerBook {
        reader: ledger.reader(),
        writer: ledger.writer(),
    };
    let running = Arc::new(Running::start_on(book, BOUND).await);
    let mut senders = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let running = Arc::clone(&running);
        senders.spawn(async move { running.post(REF, "{T}\r\n", BODY).await });
    }
    for answer in senders.join_all().await {
        assert_eq!(status(&answer), "200", "{answer}");
    }
    let wrong = running
        .post(REF, "x-notification-token: no\r\n", BODY)
        .await;
    let unknown = running.post(UNKNOWN, "{T}\r\n", BODY).await;
    assert_eq!(status(&wrong), "401");
    assert_eq!(wrong, unknown);

    let reader = ledger.reader();
    let events = reader.events(Some("order-1"), 0, 100).await.expect("read");
    let paid = events.iter().filter(|event| event.kind == EventKind::Paid);
    assert_eq!(paid.count(), 1, "{events:?}");
    let row = reader.invoice(invoice).await.expect("read").expect("there");
    assert_eq!(row.outcome, Outcome::Paid);
    assert_eq!(row.invoice_id.as_deref(), Some("i-1"));
}
