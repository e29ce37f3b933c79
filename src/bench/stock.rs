//! Invoices that notifications can be sent for, opened by the front door, and what a sender must know of each.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::clock;
use crate::config::{ConfigFile, Flags, Settings, Sources, load};
use crate::invoice::amount::Amount;
use crate::invoice::ids::{InvoiceId, InvoiceRef, OrderId};
use crate::invoice::moment::Moment;
use crate::invoice::notify_token::NotifyToken;
use crate::invoice::observation::{Observation, Report, Reported, Source};
use crate::invoice::opening::{Mode, Wanted};
use crate::invoice::status::Status;
use crate::invoice::sum::Sum;
use crate::ledger::{Begun, Intent, Ledger, Settled, Writer};
use crate::parts;
use crate::process_mark::ProcessMark;

/// How long a closing ledger may take.
const PATIENCE: Duration = Duration::from_mins(1);
/// Invoices opened at once.
const AT_ONCE: usize = 256;
/// How long such an invoice counts as open, milliseconds.
const WINDOW_MS: i64 = 86_400_000;

/// An open invoice, as the service knows it.
#[derive(Clone, Debug)]
pub struct Stocked {
    /// Its number, from 1.
    pub number: u32,
    /// The last segment of its notificationUrl.
    pub reference: String,
    /// Its notify token.
    pub token: String,
    /// The service's id.
    pub invoice_id: String,
    /// The merchant's order id.
    pub order_id: String,
}

/// Reads a config file as `serve --config` does.
pub fn settings(config: &Path) -> Settings {
    let sources = Sources {
        file: ConfigFile::Named(config.to_owned()),
        variables: Vec::new(),
        flags: Flags::default(),
    };
    load(&sources).expect("a config").settings
}

/// Opens `count` invoices in the ledger that the settings name, with the order ids `order-0000001` and so on. Must be an empty
/// ledger. They are of 1500.00 RUB, their status is `new`, and the service said so in 2023.
pub fn stock(settings: &Settings, count: u32) -> Vec<Stocked> {
    let directory = settings.state_dir.clone().expect("a state directory");
    let options = parts::ledger_options(settings, directory);
    let mut options = options.expect("readable");
    // What is measured later with short queues and small batches is not filled with them.
    (options.queue, options.batch) = (2 * AT_ONCE, AT_ONCE);
    let ledger = Ledger::open(options).expect("a ledger");
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let numbers: Vec<u32> = (1..=count).collect();
    let mut made = Vec::new();
    for some in numbers.chunks(AT_ONCE) {
        made.extend(runtime.block_on(async {
            let mut opened = JoinSet::new();
            for number in some {
                let (writer, number) = (ledger.writer(), *number);
                opened.spawn(async move { open(&writer, number).await });
            }
            opened.join_all().await
        }));
    }
    made.sort_by_key(|stocked| stocked.number);
    runtime.block_on(ledger.close(PATIENCE));
    made
}

async fn open(writer: &Writer, number: u32) -> Stocked {
    let reference = InvoiceRef::from_entropy(crate::entropy::bytes());
    let token = NotifyToken::from_entropy(crate::entropy::bytes());
    // Of one length each, so that every notification of such an invoice is as long as another.
    let order_id = format!("order-{number:07}");
    let id = format!("00000000-0000-4000-8000-{number:012}");
    let now_ms = clock::wall_ms();
    let amount = Amount::parse("1500.00").expect("plain");
    let intent = Intent {
        order_id: OrderId::new(order_id.as_str()).expect("an order id"),
        wanted: Wanted {
            sum: Sum::new(amount.clone(), "RUB").expect("a sum"),
            method: "SBP".to_owned(),
            mode: Mode::H2h,
            anew: false,
        },
        instead_of: None,
        sealed: writer.seal(&token, &reference),
        reference: reference.clone(),
        creator: ProcessMark::own(),
        now_ms,
        deadline_ms: now_ms + 35_000,
        window_ms: WINDOW_MS,
        polled: Vec::new(),
    };
    let Begun::Fresh(key) = writer.begin_opening(intent).await.expect("stored") else {
        panic!("{order_id} was there already");
    };
    let opened = Observation {
        source: Source::Create,
        asked: None,
        report: Report {
            id: InvoiceId::new(id.as_str()).expect("an id"),
            status: Status::new("new").expect("a status"),
            order_id: Reported::Missing,
            amount: Reported::Value(amount),
            currency: Some("RUB".to_owned()),
            updated_at: Some(Moment::from_ms(1_700_000_000_000)),
            updated_at_text: None,
            service_ms: Some(now_ms),
            expire_at: None,
            method: None,
            payment_url: None,
            requisites: None,
            odd: Vec::new(),
            raw: "{}".to_owned(),
        },
        received_ms: now_ms,
    };
    let settled = Settled::Answered(Box::new(opened));
    writer.settle_opening(key, settled).await.expect("stored");
    Stocked {
        number,
        reference: reference.as_str().to_owned(),
        token: token.secret().expose().to_owned(),
        invoice_id: id,
        order_id,
    }
}
