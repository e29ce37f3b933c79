//! Asks about invoices nobody speaks of. Works from the ledger's state alone: the bell and the wake only say when to look.
//!
//! Promises: at most the configured requests per second and at once; the most pressing invoice goes first, chosen when the
//! gate's turn has come; one question per invoice at a time; whatever is not a proper answer changes nothing and moves the
//! invoice back; a 401 that is confirmed leaves one poll in ten minutes until the login changes or is accepted; while there is no
//! login or the service gives no answers, one invoice at a time tries, and nothing is dated again. How it stands is in the ledger
//! ([`standing`]).

pub(crate) mod again;
mod ask;
pub(crate) mod budget;
pub(crate) mod counting;
mod ended;
mod login;
pub(crate) mod now;
pub(crate) mod pass;
pub(crate) mod recheck;
mod round;
pub(crate) mod standing;
pub(crate) mod tidy;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::client::Client;
use crate::client::credentials::{Elsewhere, Store};
use crate::client::gate::{Caller, Gate, Permit, rate};
use crate::clock;
use crate::invoice::silence::{self, Class, Schedule};
use crate::ledger::{DueRow, Filter, InvoiceKey, Reader, Writer};
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;
use crate::telemetry::{LogRate, chain};
use crate::wake::Wake;

use again::{Again, poll_again};
use ask::Asker;
use budget::Turn;
use ended::Ended;
use login::{Login, Token};
use pass::Sorted;
use recheck::Recheck;
use round::{Beat, Chosen, Seen, Work};
use standing::{Book, Found, LoginState};
use tidy::{Tidied, tidy};

/// Due invoices of each class read to choose one, beside those that are being asked about.
const CHOSEN_FROM: usize = 16;
/// The newest invoices among which one with an id is looked for.
const PROBED_AMONG: u32 = 16;
/// Between two looks while due times are counted again: a million of them in some minutes, and none of it in a hurry.
const RECHECK_EVERY: Duration = Duration::from_millis(100);

/// How to poll.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// When silent invoices are due.
    pub schedule: Schedule,
    /// How often the bell rings.
    pub cadence: Duration,
    /// Questions under way at once.
    pub at_once: usize,
    /// Requests to the service in a second, at most.
    pub per_second: NonZeroU32,
}

impl Settings {
    /// The loop turns at least so often, what a turn does not counted: when no ring comes, it looks by itself.
    pub(crate) fn turns_within(&self) -> Duration {
        self.cadence * round::MISSED_RINGS
    }

    /// The pace of a poller that starts, requests per second.
    pub(crate) fn first_per_second(&self) -> u32 {
        rate::FIRST.min(self.per_second.get())
    }
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

/// Questions without an answer that are told one by one in [`UNANSWERED_PER`]; of the rest only how many there were. A service
/// that knows none of a million old invoices would write several lines a second for days.
const UNANSWERED_LINES: u32 = 5;
const UNANSWERED_PER: Duration = Duration::from_mins(10);

struct Poller {
    asker: Arc<Asker>,
    reader: Reader,
    writer: Writer,
    schedule: Schedule,
    login: Login,
    /// Invoices that are being asked about.
    asked: HashSet<InvoiceKey>,
    /// Times that are counted again after the clock was wrong.
    recheck: Recheck,
    /// What a restore wants polled once.
    again: Again,
    /// Which class goes first.
    turn: Turn,
    /// What the ledger knows of how it stands.
    book: Book,
    /// Which questions without an answer are told.
    unanswered: LogRate,
}

/// Shuts the lanes that the service wanted left alone when an earlier process stopped. Before the first request can come.
pub(crate) async fn heed_stored(reader: &Reader, gate: &Gate) {
    let stored = reader.fact(&standing::FACT).await.ok().flatten();
    let wishes = stored.iter().flat_map(|stored| {
        let lanes = [Caller::Background, Caller::Create].into_iter();
        lanes.zip([stored.no_polls, stored.no_creates])
    });
    for (caller, wish) in wishes {
        if let Some(left) = wish.and_then(|wish| wish.left(clock::wall_ms())) {
            gate.heed_still(caller, left);
        }
    }
}

/// Runs until the stop is requested. Questions under way are dropped then: an answer not recorded is asked for again.
pub(crate) async fn run(
    parts: Parts,
    settings: Settings,
    bell: impl Bell,
    (wake, pulse): (Wake, Pulse),
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
        gate: gate.clone(),
    });
    // What cannot be read is written once more than needed.
    let stored = reader.fact(&standing::FACT).await.ok().flatten();
    let poller = Poller {
        asker,
        reader,
        writer,
        recheck: Recheck::at_start(&settings.schedule),
        again: Again::at_start(settings.per_second),
        schedule: settings.schedule,
        login,
        asked: HashSet::new(),
        turn: Turn::default(),
        book: Book::new(stored),
        unanswered: LogRate::new(UNANSWERED_LINES, UNANSWERED_PER),
    };
    let beat = Beat {
        cadence: settings.cadence,
        at_once: settings.at_once,
    };
    round::run(poller, gate, beat, bell, (wake, pulse), shutdown).await;
}

impl Work for Poller {
    type Question = (DueRow, Token);
    type Ended = Ended;

    async fn look(&mut self) -> Seen {
        let now_ms = clock::wall_ms();
        // Looked for whether anything is due or not, so that a login that is needed is said at once.
        self.login.hear(self.asker.client.fetches().last_said());
        let may_ask = self.login.token().is_some();
        let seen = match self.tidy_and_file(now_ms).await {
            Ok((tidied, is_due)) => Seen {
                wants: is_due && may_ask,
                next_in: if is_due {
                    self.login.again_in()
                } else if self.recheck.stage().is_some() {
                    Some(RECHECK_EVERY)
                } else {
                    let next = tidied.next_ms.map(|at_ms| until(at_ms, now_ms));
                    next.into_iter().chain(self.more_in()).min()
                },
            },
            Err(error) => {
                tracing::warn!(reason = %chain(&error), "could not look at what is due: {}", chain(&error));
                Seen::default()
            }
        };
        self.tell().await;
        seen
    }

    async fn choose(&mut self, old_too: bool) -> Option<Chosen<(DueRow, Token)>> {
        let token = self.login.token()?;
        let now_ms = clock::wall_ms();
        let mut due = self
            .due(now_ms)
            .await
            .inspect_err(|error| tracing::warn!(reason = %chain(error), "could not look at what is due: {}", chain(error)))
            .ok()?;
        let class = |row: &DueRow| silence::class(&row.heard, now_ms);
        due.retain(|row| old_too || !class(row).is_patient());
        let more = due.len() > 1;
        if self.asker.gate.view().outage.is_some() {
            due = pass::to_try_with(due);
        }
        let chosen = pass::choose(&due, 1, now_ms, &mut self.turn);
        let row = match chosen.into_iter().next() {
            Some(row) => row.clone(),
            None => self.to_probe_with().await?,
        };
        let class = class(&row);
        let question = (row, token);
        Some(Chosen {
            question,
            class,
            more,
        })
    }

    async fn next_in(&mut self) -> Option<Duration> {
        if self.recheck.stage().is_some() {
            return Some(RECHECK_EVERY);
        }
        let now_ms = clock::wall_ms();
        // A look that fails here is made by the next ring.
        let next_ms = self.reader.next_due_after(now_ms).await.ok().flatten();
        let next = next_ms.map(|at_ms| until(at_ms, now_ms));
        next.into_iter().chain(self.more_in()).min()
    }

    fn ask(
        &mut self,
        (row, token): (DueRow, Token),
        permit: Permit,
    ) -> impl Future<Output = Ended> + Send + 'static {
        self.asked.insert(row.key);
        self.login.leaves(token.mark);
        let asker = Arc::clone(&self.asker);
        async move {
            let asked = asker.ask(&row, &token.secret, permit).await;
            Ended::of(row, token.mark, asked)
        }
    }

    async fn ended(&mut self, ended: Ended) {
        self.asked.remove(&ended.key);
        let is_out = self.asker.gate.view().outage.is_some();
        ended.tell(&self.unanswered, is_out);
        self.login.ended(ended.mark, ended.word);
        self.tell().await;
    }
}

impl Poller {
    /// Does what needs no question.
    async fn tidy(&mut self, now_ms: i64) -> Result<Tidied, Trouble> {
        let ledger = (&self.reader, &self.writer);
        tidy(
            ledger,
            &self.schedule,
            &mut self.recheck,
            &self.asked,
            now_ms,
        )
        .await
    }

    /// The same, and files what a restore wants polled; with whether anything is due then.
    async fn tidy_and_file(&mut self, now_ms: i64) -> Result<(Tidied, bool), Trouble> {
        let tidied = self.tidy(now_ms).await?;
        let waits = tidied.ask.iter().any(|row| row.class == Class::Restored);
        let ledger = (&self.reader, &self.writer);
        let now = (Instant::now().into_std(), now_ms);
        let filed = poll_again(&mut self.again, ledger, waits, now).await?;
        let is_due = filed || !tidied.ask.is_empty() || self.must_probe();
        Ok((tidied, is_due))
    }

    /// How long until more may be filed of what a restore wants polled.
    fn more_in(&self) -> Option<Duration> {
        self.again.wait(Instant::now().into_std())
    }

    /// The service is out, or rejects the login, as far as is known: the next answer ends that, so there must be one.
    fn must_probe(&self) -> bool {
        self.asker.gate.view().outage.is_some() || self.login.state() == LoginState::Refused
    }

    /// The newest invoice, whatever its outcome, when nothing is due.
    async fn to_probe_with(&self) -> Option<DueRow> {
        if !self.must_probe() || !self.asked.is_empty() {
            return None;
        }
        let newest = self
            .reader
            .list_invoices(Filter::All, InvoiceKey(i64::MAX), PROBED_AMONG)
            .await
            .ok()?;
        for row in newest.rows {
            if let Some(row) = self.reader.pollable(row.key).await.ok().flatten() {
                return Some(row);
            }
        }
        None
    }

    /// The first of each class that may be asked about now.
    async fn due(&mut self, now_ms: i64) -> Result<Vec<DueRow>, Trouble> {
        let sorted = self.first(now_ms).await?;
        if sorted.redate.is_empty() && sorted.unresolved.is_empty() {
            return Ok(sorted.ask);
        }
        // They stand before others that are to be asked about.
        self.tidy(now_ms).await?;
        Ok(self.first(now_ms).await?.ask)
    }

    async fn first(&self, now_ms: i64) -> Result<Sorted, Trouble> {
        let limit = u32::try_from(self.asked.len() + CHOSEN_FROM).unwrap_or(u32::MAX);
        let rows = self.reader.due(now_ms, limit).await?;
        Ok(pass::sort(&self.schedule, rows, &self.asked, now_ms))
    }

    /// Writes down how it stands, when that has changed. What cannot be written is tried again by the next look.
    async fn tell(&mut self) {
        let view = self.asker.gate.view();
        let found = Found {
            answered: view.answered,
            login: self.login.state(),
            outage: view
                .outage
                .map(|(since, reason)| (since.into_std(), reason)),
            no_polls: view.no_polls.map(Instant::into_std),
            no_creates: view.no_creates.map(Instant::into_std),
            polls_per_second: view.polls_per_second,
            now: Instant::now().into_std(),
            now_ms: clock::wall_ms(),
        };
        let Some(standing) = self.book.see(&found) else {
            return;
        };
        match self.writer.note(&standing::FACT, &standing).await {
            Ok(()) => self.book.stored(standing),
            Err(error) => {
                tracing::debug!(reason = %chain(&error), "how the poller stands could not be stored");
            }
        }
    }
}

/// How long until a time; nothing when it is over.
fn until(at_ms: i64, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(at_ms.saturating_sub(now_ms)).unwrap_or(0))
}

/// Why a look was cut short. The next one starts anew.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("could not read what is due")]
    Read(#[from] crate::ledger::ReadError),
    #[error("could not store a due time")]
    Write(#[from] crate::ledger::WriteError),
}
