//! A ledger in a directory of its own that owes the hook `fulfil` every event.

use std::path::Path;
use std::time::Duration;

use crate::clock::wall_ms;
use crate::entropy;
use crate::hook::{Selector, Subscription};
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Observation, Report, Reported, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::silence::Schedule;
use crate::invoice::status::{Status, StatusLists};
use crate::invoice::sum::Sum;
use crate::invoice::transition::Policy;
use crate::ledger::{
    AttemptRow, Author, Begun, Bounds, DeliveryState, Intent, InvoiceKey, Lane, Ledger, Options,
    Reader, Restore, Rules, Settled, Writer,
};
use crate::process_mark::ProcessMark;
use crate::wake::Wake;

/// More than any test makes.
const ALL: u32 = 1_000;
/// All that a ledger owes was heard so long ago, and what an earlier daemon left was begun then: longer than any program
/// here may take, milliseconds.
const AGO_MS: i64 = 120_000;

pub(super) struct Owing(Ledger);

impl Owing {
    pub(super) fn new(dir: &Path) -> Self {
        let policy = Policy {
            lists: StatusLists::default(),
            confirm_paid: false,
        };
        let schedule = Schedule {
            steps: Vec::new(),
            after_expiry_ms: 1_000,
            horizon_ms: 1_000_000,
        };
        let subscriptions = vec![Subscription {
            hook: "fulfil".to_owned(),
            on: vec![Selector::All],
        }];
        let options = Options {
            state_dir: dir.join("state"),
            // Short: a test holds the lock and must not wait for it.
            busy_budget: Duration::from_millis(200),
            queue: 100,
            batch: 256,
            checkpoint: crate::ledger::Checkpoint::AfterAnswers,
            log_limits: crate::ledger::LogLimits::WIDE,
            network: crate::ledger::Network::Refused,
            bounds: Bounds {
                history_per_invoice: 100,
                history_rows: 1_000,
                refusal_rows: 100,
            },
            rules: Rules {
                author: Author::Daemon,
                policy,
                schedule,
                subscriptions,
                on_abandoned: false,
                first_delay_ms: 0,
                longest_delay_ms: 60_000,
                sorted_by: None,
                restore: Restore::default(),
            },
        };
        Self(Ledger::open(options).expect("a new ledger"))
    }

    pub(super) fn writer(&self) -> Writer {
        self.0.writer()
    }

    /// What the ledger's writer rings.
    pub(super) fn owed(&self) -> Wake {
        self.0.bells().owed
    }

    pub(super) fn reader(&self) -> Reader {
        self.0.reader()
    }

    /// Opens an invoice for the order and lets it have so many events, each owed to the hook.
    pub(super) async fn owe(&self, order: &str, events: u32) {
        let key = self.begin(order).await;
        for number in 0..events {
            let status = if number == 0 {
                "new".to_owned()
            } else {
                format!("step{number}")
            };
            let observation = observation(order, &status, number);
            if number == 0 {
                let settled = Settled::Answered(Box::new(observation));
                self.writer()
                    .settle_opening(key, settled)
                    .await
                    .expect("stored");
            } else {
                self.writer()
                    .record(key, observation)
                    .await
                    .expect("stored");
            }
        }
        assert_eq!(self.event_ids(order).await.len(), events as usize);
    }

    async fn begin(&self, order: &str) -> InvoiceKey {
        let reference = InvoiceRef::from_entropy(entropy::bytes());
        let sum = Sum::new(Amount::parse("1.00").expect("an amount"), "RUB").expect("a currency");
        let intent = Intent {
            order_id: OrderId::new(order).expect("an order"),
            wanted: Wanted {
                sum,
                method: "SBP".to_owned(),
                mode: Mode::H2h,
                anew: false,
            },
            instead_of: None,
            sealed: self
                .writer()
                .seal(&NotifyToken::from_entropy(entropy::bytes()), &reference),
            reference,
            creator: ProcessMark::own(),
            now_ms: wall_ms(),
            deadline_ms: wall_ms() + 60_000,
            window_ms: 60_000,
            polled: Vec::new(),
        };
        match self.writer().begin_opening(intent).await.expect("stored") {
            Begun::Fresh(key) => key,
            other => panic!("{other:?}"),
        }
    }

    /// Claims one delivery as a daemon that is gone, with this process as its child if it came so far: its time was over
    /// long ago.
    pub(super) async fn leave_running(&self, child: Option<ProcessMark>) {
        let own = ProcessMark::own();
        let gone = ProcessMark {
            start_ticks: own.start_ticks + 1,
            ..own
        };
        let lane = Lane {
            names: vec!["fulfil".to_owned()],
            want: 1,
            children: Vec::new(),
        };
        let claimed = self
            .writer()
            .claim_deliveries(gone, wall_ms() - AGO_MS, vec![lane])
            .await
            .expect("stored");
        let key = claimed.first().expect("one is owed").key;
        if let Some(child) = child {
            self.writer().name_child(key, child).await.expect("stored");
        }
    }

    /// Every delivery with the attempts that have ended.
    pub(super) async fn deliveries(&self) -> Vec<(DeliveryState, Vec<AttemptRow>)> {
        let mut deliveries = Vec::new();
        for row in self
            .reader()
            .list_deliveries(None, ALL)
            .await
            .expect("readable")
        {
            deliveries.push((
                row.state,
                self.reader().attempts(row.key).await.expect("readable"),
            ));
        }
        deliveries
    }

    /// The events of an order in their order.
    pub(super) async fn event_ids(&self, order: &str) -> Vec<String> {
        let events = self
            .reader()
            .events(Some(order), 0, ALL)
            .await
            .expect("readable");
        events.into_iter().map(|event| event.event_id).collect()
    }
}

fn observation(order: &str, status: &str, minute: u32) -> Observation {
    let report = Report {
        updated_at_text: None,
        odd: Vec::new(),
        id: InvoiceId::new(format!("inv-{order}")).expect("an id"),
        status: Status::new(status).expect("a status"),
        order_id: Reported::Value(order.to_owned()),
        amount: Reported::Missing,
        currency: None,
        updated_at: Moment::parse(&format!("2026-11-28T10:{minute:02}:00Z")),
        service_ms: None,
        expire_at: None,
        method: None,
        payment_url: None,
        requisites: None,
        raw: "{}".to_owned(),
    };
    let source = if minute == 0 {
        Source::Create
    } else {
        Source::Notification
    };
    Observation {
        source,
        report,
        asked: None,
        received_ms: wall_ms() - AGO_MS,
    }
}
