//! Asks about invoices nobody speaks of. Works from the ledger's state alone: the bell and the wake only say when to look.
//!
//! Promises: at most the configured requests per second and at once; one question per invoice at a time; whatever is not
//! a proper answer changes nothing and moves the invoice back; a 401 stops all questions until the login changes.

mod ask;
pub(crate) mod budget;
pub(crate) mod counting;
mod login;
pub(crate) mod pass;
pub(crate) mod recheck;
pub(crate) mod single;
pub(crate) mod standing;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::Gate;
use crate::clock;
use crate::invoice::silence::Schedule;
use crate::ledger::{DueRow, InvoiceKey, Reader, Writer};
use crate::shutdown::Shutdown;
use crate::telemetry::chain;
use crate::wake::Wake;

use ask::{Asker, Ended, Outcome};
use budget::Turn;
use counting::count_again;
use login::Login;
use pass::PER_CLASS;
use recheck::Recheck;

/// Rings that may fail to come before a pass is made all the same and the bell is built anew.
const MISSED_RINGS: u32 = 3;

/// How to poll.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// When silent invoices are due.
    pub schedule: Schedule,
    /// How often the bell rings.
    pub cadence: Duration,
    /// Questions under way at once.
    pub at_once: usize,
}

/// What the poller works with.
pub(crate) struct Parts {
    /// Where answers are recorded.
    pub writer: Writer,
    /// Where due invoices are found.
    pub reader: Reader,
    /// The service.
    pub client: Client,
    /// The gate all requests pass.
    pub gate: Gate,
    /// Where the login lies; looked at again in every pass.
    pub store: Store,
    /// Where else a token may come from.
    pub elsewhere: Elsewhere,
}

/// The bell that sets the cadence. Rings may be lost; then [`Bell::renew`] is called.
pub(crate) trait Bell: Send {
    /// Resolves at the next ring.
    fn rung(&mut self) -> impl Future<Output = ()> + Send;
    /// Called when the bell has been silent for too long.
    fn renew(&mut self) -> impl Future<Output = ()> + Send;
}

struct Poller {
    asker: Arc<Asker>,
    reader: Reader,
    writer: Writer,
    settings: Settings,
    login: Login,
    /// Questions under way.
    asking: JoinSet<Ended>,
    /// Their invoices.
    asked: HashSet<InvoiceKey>,
    /// Times that are counted again after the clock was wrong.
    recheck: Recheck,
    /// Which class goes first.
    turn: Turn,
}

/// Runs until the stop is requested. Questions under way are dropped then: an answer not recorded is asked for again.
pub(crate) async fn run(
    parts: Parts,
    settings: Settings,
    mut bell: impl Bell,
    wake: Wake,
    shutdown: Shutdown,
) {
    let Parts {
        writer,
        reader,
        client,
        gate,
        store,
        elsewhere,
    } = parts;
    let login = Login::new(store, elsewhere, client.origin());
    let asker = Arc::new(Asker {
        writer: writer.clone(),
        reader: reader.clone(),
        client,
        gate,
    });
    let (asking, asked) = (JoinSet::new(), HashSet::new());
    let patience = settings.cadence * MISSED_RINGS;
    let recheck = Recheck::at_start(&settings.schedule);
    let mut poller = Poller {
        asker,
        reader,
        writer,
        settings,
        login,
        asking,
        asked,
        recheck,
        turn: Turn::default(),
    };
    // Looked for here only to say at the start that there is none, and not when the first invoice falls due.
    drop(poller.login.token());
    loop {
        poller.pass().await;
        tokio::select! {
            () = shutdown.requested() => break,
            () = wake.rung() => {}
            rung = tokio::time::timeout(patience, bell.rung()) => if rung.is_err() {
                tracing::warn!(patience_s = patience.as_secs(), "the poller's bell has not rung: looking all the same");
                bell.renew().await;
            },
            Some(ended) = poller.asking.join_next() => poller.ended(ended),
        }
    }
    poller.asking.shutdown().await;
}

impl Poller {
    /// One look at what is due. Asks as much as there is room for.
    async fn pass(&mut self) {
        while let Some(ended) = self.asking.try_join_next() {
            self.ended(ended);
        }
        let now_ms = clock::wall_ms();
        if let Err(error) = self.look(now_ms).await {
            tracing::warn!(reason = %chain(&error), "could not look at what is due: {}", chain(&error));
        }
    }

    async fn look(&mut self, now_ms: i64) -> Result<(), Trouble> {
        for row in self.reader.creating().await? {
            if row.is_given_up(now_ms) {
                self.writer.give_up_opening(row.key).await?;
                tracing::warn!(order.id = %row.order_id, "nobody knows whether the service opened order {}: look at it", row.order_id);
            }
        }
        self.recheck(now_ms).await?;
        let rows = self.reader.due(now_ms, PER_CLASS).await?;
        let sorted = pass::sort(&self.settings.schedule, rows, &self.asked, now_ms);
        for key in sorted.unresolved {
            self.writer.unresolve(key, now_ms).await?;
        }
        self.writer.redate(&sorted.redate, now_ms).await?;
        if !sorted.ask.is_empty()
            && let Some(token) = self.login.token()
        {
            self.ask(&sorted.ask, now_ms, &token);
        }
        Ok(())
    }

    /// Counts stored times again where a wrong clock may have written them, some in each pass.
    async fn recheck(&mut self, now_ms: i64) -> Result<(), Trouble> {
        let ledger = (&self.reader, &self.writer);
        count_again(&mut self.recheck, &self.settings.schedule, ledger, now_ms).await
    }

    fn ask(&mut self, due: &[DueRow], now_ms: i64, token: &login::Token) {
        let room = self.settings.at_once.saturating_sub(self.asking.len());
        for row in pass::choose(due, room, now_ms, &mut self.turn) {
            self.asked.insert(row.key);
            let (asker, row, token) = (Arc::clone(&self.asker), row.clone(), token.clone());
            self.asking.spawn(async move {
                let permit = asker.gate.admit().await;
                asker.ask(row, token, permit).await
            });
        }
    }

    fn ended(&mut self, ended: Result<Ended, tokio::task::JoinError>) {
        match ended {
            Ok(ended) => {
                self.asked.remove(&ended.key);
                if let Outcome::LoginRefused(number) = ended.outcome {
                    self.login.refused(number);
                }
            }
            // A panic in one question is a bug, and the process ends by it as by one in the loop itself.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_cancelled) => {}
        }
    }
}

/// Why a look was cut short. The next one starts anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("could not read what is due")]
    Read(#[from] crate::ledger::ReadError),
    #[error("could not store a due time")]
    Write(#[from] crate::ledger::WriteError),
}
