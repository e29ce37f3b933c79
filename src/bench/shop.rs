//! A ledger with many open invoices, and the poller's look at it, with a service that answers at once and says what it
//! said before.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::clock;
use crate::config::Settings;
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Asked, Observation, Report, Reported, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::silence::Schedule;
use crate::invoice::status::Status;
use crate::invoice::sum::Sum;
use crate::ledger::bulk::{self, Crowd};
use crate::ledger::{Begun, DueRow, FILE_NAME, Intent, InvoiceKey, Ledger, Reader, Settled};
use crate::parts;
use crate::poller::budget::Turn;
use crate::poller::pass;
use crate::poller::recheck::Recheck;
use crate::poller::tidy::tidy;
use crate::process_mark::ProcessMark;

const HOUR_MS: i64 = 3_600_000;
/// Young ones among the invoices.
const YOUNG: u32 = 500;
/// How old they are.
const YOUNG_FOR_MS: i64 = 600_000;
/// How long a closing ledger may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Bytes of the service's document, as measured on a real one.
const DOCUMENT_BYTES: usize = 858;

/// What one look found to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// Invoices that were asked about; each answer is recorded with the next due time.
    pub asked: usize,
    /// Invoices that were only dated anew.
    pub redated: usize,
    /// What it took to find and choose them, without the answers.
    pub picked_in: Duration,
}

/// A shop whose invoices are all open.
pub struct Shop {
    runtime: Runtime,
    ledger: Ledger,
    /// The poller's own, as the daemon has it.
    reader: Reader,
    path: PathBuf,
    schedule: Schedule,
    recheck: Recheck,
    turn: Turn,
}

impl Shop {
    /// Makes the ledger that the settings name, with `count` open invoices, none of them due within the next hour. At
    /// least 1.
    pub fn make(settings: &Settings, count: u32) {
        let shop = Self::open(settings);
        shop.runtime.block_on(shop.first());
        let path = shop.path.clone();
        shop.close();
        let now_ms = clock::wall_ms();
        let crowd = Crowd {
            count,
            young: YOUNG.min(count / 2),
            young_ms: now_ms - YOUNG_FOR_MS,
            old_ms: now_ms - 30 * HOUR_MS,
            due_from_ms: now_ms + HOUR_MS,
            due_within_ms: 4 * HOUR_MS,
        };
        bulk::fill(&path, &crowd).expect("a ledger of its own");
    }

    /// Opens the ledger as the daemon does.
    pub fn open(settings: &Settings) -> Self {
        let directory = settings.state_dir.clone().expect("a state directory");
        let path = directory.join(FILE_NAME);
        let options = parts::ledger_options(settings, directory);
        let ledger = Ledger::open(options.expect("readable")).expect("a ledger");
        let schedule = parts::schedule(settings);
        Self {
            runtime: Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            reader: ledger.reader().for_a_thread(),
            ledger,
            path,
            recheck: Recheck::at_start(&schedule),
            schedule,
            turn: Turn::default(),
        }
    }

    /// Closes the ledger.
    pub fn close(self) {
        drop(self.reader);
        self.runtime.block_on(self.ledger.close(PATIENCE));
    }

    /// Makes so many invoices due, evenly spread among the first `among`; returns how many.
    pub fn make_due(&self, due: u32, among: u32) -> usize {
        let every = (among / due).max(1);
        bulk::make_due(&self.path, (every, among), clock::wall_ms() - 1).expect("stored")
    }

    /// Makes nothing due within the next hour.
    pub fn rest(&self) {
        bulk::put_off(&self.path, clock::wall_ms() + HOUR_MS).expect("stored");
    }

    /// One look at what is due, as the poller makes it, with every question answered and recorded.
    pub fn look(&mut self) -> Looked {
        let (reader, writer) = (self.reader.clone(), self.ledger.writer());
        let (schedule, recheck, turn) = (&self.schedule, &mut self.recheck, &mut self.turn);
        self.runtime.block_on(async move {
            let began = Instant::now();
            let now_ms = clock::wall_ms();
            let ledger = (&reader, &writer);
            let tidied = tidy(ledger, schedule, recheck, &HashSet::new(), now_ms).await;
            let tidied = tidied.expect("looked");
            let chosen = pass::choose(&tidied.ask, tidied.ask.len(), now_ms, turn);
            let picked_in = began.elapsed();
            let mut answers = JoinSet::new();
            for row in chosen {
                let (writer, key, answer) = (writer.clone(), row.key, answer(row, now_ms));
                answers.spawn(async move { writer.record(key, answer).await });
            }
            let mut asked = 0;
            while let Some(recorded) = answers.join_next().await {
                recorded.expect("no panic").expect("stored");
                asked += 1;
            }
            Looked {
                asked,
                redated: tidied.redated,
                picked_in,
            }
        })
    }

    /// The invoice all others are copies of.
    async fn first(&self) {
        let writer = self.ledger.writer();
        let reference = InvoiceRef::from_entropy([7; 16]);
        let token = NotifyToken::from_entropy([7; 32]);
        let now_ms = clock::wall_ms() - 30 * HOUR_MS;
        let intent = Intent {
            order_id: OrderId::new("order").expect("an order id"),
            wanted: Wanted {
                sum: Sum::new(amount(), "RUB").expect("a sum"),
                method: "SBP".to_owned(),
                mode: Mode::H2h,
                anew: false,
            },
            instead_of: None,
            sealed: writer.seal(&token, &reference),
            reference,
            creator: ProcessMark::own(),
            now_ms,
            deadline_ms: now_ms + 35_000,
            window_ms: HOUR_MS,
            polled: Vec::new(),
        };
        let begun = writer.begin_opening(intent).await.expect("stored");
        assert!(matches!(begun, Begun::Fresh(InvoiceKey(1))), "{begun:?}");
        let id = InvoiceId::new("id").expect("an id");
        let opened = Observation {
            source: Source::Create,
            asked: None,
            report: report(id, now_ms),
            received_ms: now_ms,
        };
        let settled = Settled::Answered(Box::new(opened));
        let settled = writer.settle_opening(InvoiceKey(1), settled).await;
        settled.expect("stored");
    }
}

fn amount() -> Amount {
    Amount::parse("1500.00").expect("plain")
}

/// What the service says of an invoice at a time, milliseconds since 1970.
fn report(id: InvoiceId, at_ms: i64) -> Report {
    Report {
        id,
        status: Status::new("new").expect("a status"),
        order_id: Reported::Missing,
        amount: Reported::Value(amount()),
        currency: Some("RUB".to_owned()),
        updated_at: Some(Moment::from_ms(1_700_000_000_000)),
        updated_at_text: None,
        service_ms: Some(at_ms),
        expire_at: None,
        method: None,
        payment_url: None,
        requisites: None,
        odd: Vec::new(),
        raw: format!("\"{}\"", "x".repeat(DOCUMENT_BYTES - 2)),
    }
}

fn answer(row: &DueRow, now_ms: i64) -> Observation {
    Observation {
        source: Source::Poll,
        report: report(row.invoice_id.clone(), now_ms),
        asked: Some(Asked {
            revision: row.revision,
            at_ms: now_ms,
        }),
        received_ms: now_ms,
    }
}
