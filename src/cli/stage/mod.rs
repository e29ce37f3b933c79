//! Everything that runs while a demo or a scenario plays: the sandbox in this process, the real daemon as a child, a visitor
//! with a browser, and a reader of the ledger. Promises that nothing of it is left running: dropped it ends at once.

pub(super) mod command;
pub(super) mod daemon;
pub(super) mod directory;
pub(super) mod script;
pub(super) mod signals;
pub(super) mod trouble;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use self::daemon::Daemon;
use self::directory::Directory;
use self::trouble::Trouble;
use crate::invoice::status::Outcome;
use crate::ledger::{EventRow, InvoiceRow, Ledger, ReadError, Reader};
use crate::sandbox::{self, Page, Sandbox, Visitor};
use crate::shutdown::Shutdown;

/// What is promised is waited for so long. The slowest of it, a poll after silence, comes within five seconds.
const BOUND: Duration = Duration::from_secs(12);
/// Between two looks at the ledger.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Events of one order that are looked at. Nothing played makes more than some.
const MOST_EVENTS: u32 = 100;

/// A fact that is waited for, or what there is so far.
pub(in crate::cli) enum Look<T> {
    There(T),
    NotYet(String),
}

/// Starts the imitation payment service on free ports, with a login that is polled every second.
pub(in crate::cli) async fn start_sandbox(settings: sandbox::Settings) -> Result<Sandbox, Trouble> {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let settings = sandbox::Settings {
        listen: anywhere,
        control: anywhere,
        interval_s: 1,
        ..settings
    };
    Ok(sandbox::start(settings, Shutdown::new()).await?)
}

/// What runs. Dropping it ends it at once; [`Stage::stop`] ends it in order.
pub(in crate::cli) struct Stage<'d> {
    pub(in crate::cli) directory: &'d Directory,
    pub(in crate::cli) sandbox: Sandbox,
    pub(in crate::cli) daemon: Daemon,
    pub(in crate::cli) visitor: Visitor,
    pub(in crate::cli) reader: Reader,
}

impl<'d> Stage<'d> {
    /// Puts together what was started.
    pub(in crate::cli) fn new(
        directory: &'d Directory,
        sandbox: Sandbox,
        daemon: Daemon,
    ) -> Result<Self, Trouble> {
        Ok(Self {
            visitor: Visitor::new()?,
            reader: Ledger::open_reader(&directory.state())?,
            directory,
            sandbox,
            daemon,
        })
    }

    /// Stops the daemon, then the sandbox, each in order and within its time.
    pub(in crate::cli) async fn stop(self) -> Result<(), Trouble> {
        let stopped = self.daemon.stop().await;
        self.sandbox.stop().await;
        stopped
    }

    /// Runs a command of tilld's to its end and gives its answer.
    pub(in crate::cli) async fn tilld(&self, words: &[&str]) -> Result<Value, Trouble> {
        command::ask(&self.directory.config(), words).await
    }

    /// Waits for a fact of the ledger, with a bound, and for as long as the daemon runs.
    pub(in crate::cli) async fn until<T>(
        &mut self,
        expected: &str,
        look: impl AsyncFn(&Reader) -> Result<Look<T>, Trouble>,
    ) -> Result<T, Trouble> {
        let reader = self.reader.clone();
        tokio::select! {
            fact = wait(expected, async || look(&reader).await) => fact,
            trouble = self.daemon.ended() => Err(trouble),
        }
    }

    /// Waits until the newest invoice of an order has this outcome.
    pub(in crate::cli) async fn outcome(
        &mut self,
        order_id: &str,
        wanted: Outcome,
    ) -> Result<InvoiceRow, Trouble> {
        let expected = format!("order {order_id} to be {wanted}");
        self.until(&expected, async |reader| {
            let newest = reader.invoices_of_order(order_id).await?.into_iter().next();
            Ok(match newest {
                Some(row) if row.outcome == wanted => Look::There(row),
                Some(row) => Look::NotYet(format!("it {}", row.outcome)),
                None => Look::NotYet("no invoice of it".to_owned()),
            })
        })
        .await
    }

    /// Waits until an order's hook is done, and gives the result of its one attempt.
    pub(in crate::cli) async fn hook_done(
        &mut self,
        order_id: &str,
        hook: &str,
    ) -> Result<String, Trouble> {
        let expected = format!("`{hook}` to be done for order {order_id}");
        self.until(&expected, async |reader| {
            let deliveries = deliveries(reader, order_id).await?;
            let Some(delivery) = deliveries.iter().find(|delivery| delivery.hook == hook) else {
                return Ok(Look::NotYet("nothing owed to it".to_owned()));
            };
            let attempts = reader.attempts(delivery.key).await?;
            let last = attempts.last().map(|attempt| attempt.result.clone());
            let state = delivery.state.as_str();
            Ok(match last {
                Some(result) if state == "done" && attempts.len() == 1 => Look::There(result),
                last => {
                    let last = last.unwrap_or_else(|| "nothing".to_owned());
                    let count = attempts.len();
                    Look::NotYet(format!(
                        "it {state} after {count} attempts, the last: {last}"
                    ))
                }
            })
        })
        .await
    }

    /// The events of an order, oldest first.
    pub(in crate::cli) async fn events(&self, order_id: &str) -> Result<Vec<EventRow>, ReadError> {
        self.reader.events(Some(order_id), 0, MOST_EVENTS).await
    }

    /// Opens the payment page of an order's invoice.
    pub(in crate::cli) async fn payment_page(&self, order_id: &str) -> Result<Page, Trouble> {
        let told = self.told_of(order_id).await?;
        let page = told.get("page").and_then(Value::as_str);
        Ok(self.visitor.open(page.unwrap_or_default()).await?)
    }

    /// What the sandbox knows about an order's invoice.
    pub(in crate::cli) async fn told_of(&self, order_id: &str) -> Result<Value, Trouble> {
        let state = self.visitor.state(&self.sandbox.control_url()).await?;
        let invoices = state.get("invoices").and_then(Value::as_array);
        let found = invoices.into_iter().flatten().rev().find(|one| {
            let id = one.pointer("/invoice/internalId");
            id.and_then(Value::as_str) == Some(order_id)
        });
        found.cloned().ok_or_else(|| {
            Trouble::otherwise(
                format!("the service to know order {order_id}"),
                "no such invoice there",
            )
        })
    }

    /// Requests for an invoice's status that the service has had.
    pub(in crate::cli) async fn fetches(&self) -> Result<u64, Trouble> {
        let state = self.visitor.state(&self.sandbox.control_url()).await?;
        let count = state.pointer("/requests/fetch").and_then(Value::as_u64);
        Ok(count.unwrap_or_default())
    }

    /// Has the sandbox's control listener do something.
    pub(in crate::cli) async fn control(&self, path: &str, what: &Value) -> Result<Value, Trouble> {
        let url = self.sandbox.control_url();
        Ok(self.visitor.control(&url, path, what).await?)
    }

    /// How often the fulfilment script has handed this order over, by its own log.
    pub(in crate::cli) fn handed_over(&self, order_id: &str) -> Result<usize, Trouble> {
        let path = self.directory.fulfilled();
        let log = match fs::read_to_string(&path) {
            Ok(log) => log,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Trouble::File { path, source }),
        };
        let start = format!("order={order_id} ");
        Ok(log.lines().filter(|line| line.starts_with(&start)).count())
    }
}

/// Looks again and again until the fact is there or the time is up.
pub(in crate::cli) async fn wait<T>(
    expected: &str,
    look: impl AsyncFn() -> Result<Look<T>, Trouble>,
) -> Result<T, Trouble> {
    let deadline = Instant::now() + BOUND;
    loop {
        let found = match look().await? {
            Look::There(fact) => return Ok(fact),
            Look::NotYet(found) => found,
        };
        if Instant::now() >= deadline {
            let expected = format!("{expected} within {} s", BOUND.as_secs());
            return Err(Trouble::Otherwise { expected, found });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The deliveries of an order, oldest event first.
async fn deliveries(
    reader: &Reader,
    order_id: &str,
) -> Result<Vec<crate::ledger::DeliveryRow>, ReadError> {
    let mut all = Vec::new();
    for event in reader.events(Some(order_id), 0, MOST_EVENTS).await? {
        all.extend(reader.deliveries_of(&event.event_id).await?);
    }
    Ok(all)
}
