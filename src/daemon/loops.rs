//! The parts that run beside each other, each in a thread of its own, and how they are watched.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::watchdog::{self, Watched};
use super::{Error, STOP_MARGIN, apart, systemd};
use crate::config::Settings;
use crate::ledger::Writer;
use crate::outbox;
use crate::pulse::Pulse;
use crate::shutdown::Shutdown;

/// The turns of a part, and how often it turns at least.
pub(super) type Turns = (Pulse, Duration);

/// Those that were begun.
pub(super) struct Loops {
    /// Each gives its name when it ends.
    pub(super) running: JoinSet<&'static str>,
    watched: Vec<Watched>,
    /// How often systemd wants to hear that all goes on, if it does.
    every: Option<Duration>,
    /// How long the ledger's writer waits for others.
    busy_budget: Duration,
    /// How long a stop takes all but the outbox.
    others_stop_within: Duration,
    /// What the outbox runs.
    hooks: watch::Receiver<outbox::Settings>,
}

impl Loops {
    /// None yet. `others_stop_within` is how long a stop takes all but the outbox, which runs these hooks.
    pub(super) fn new(
        settings: &Settings,
        others_stop_within: Duration,
        hooks: watch::Receiver<outbox::Settings>,
    ) -> Self {
        Self {
            running: JoinSet::new(),
            watched: Vec::new(),
            every: systemd::watchdog(),
            busy_budget: Duration::from_millis(settings.ledger.busy_budget_ms),
            others_stop_within,
            hooks,
        }
    }

    /// How long a stop may take, whichever settings the hooks that run began by.
    pub(super) fn stop_within(&self) -> Duration {
        let hooks = self.hooks.borrow().stop_within();
        self.others_stop_within.max(hooks) + STOP_MARGIN
    }

    /// Starts a part in a thread of its own. Its end is heard by its name. It says itself that it turns, so often at least;
    /// for one that only waits for others (`None`) its thread does, as long as nothing holds it up. Gives its turns, and how
    /// often it turns at least, for whoever else wants to know.
    pub(super) fn begin<Part: Future<Output = ()>>(
        &mut self,
        thread: &'static str,
        name: &'static str,
        turns_within: Option<Duration>,
        part: impl FnOnce(Pulse) -> Part + Send + 'static,
    ) -> Result<Turns, Error> {
        let pulse = Pulse::default();
        let within =
            watchdog::loop_within(turns_within.unwrap_or(apart::TICK_EVERY), self.busy_budget);
        // Without anybody who wants to know it would be a wake-up for nothing.
        let ticks = (self.every.is_some() && turns_within.is_none()).then(|| pulse.clone());
        self.watched.push(Watched {
            name,
            pulse: pulse.clone(),
            within,
        });
        let turns = pulse.clone();
        let ended = apart::start(thread, ticks, move || part(pulse))
            .map_err(|source| Error::Thread { part: name, source })?;
        self.running.spawn(async move {
            ended.await;
            name
        });
        Ok((turns, within))
    }

    /// Tells systemd that all goes on, as long as it does; during a stop, which has bounds of its own, in any case. Goes on until
    /// it is aborted, and holds the writer until then.
    pub(super) fn watch(&mut self, writer: Writer, stop: Shutdown) -> JoinHandle<()> {
        let watched = std::mem::take(&mut self.watched);
        tokio::spawn(watchdog::run(
            self.every,
            (writer, self.busy_budget),
            watched,
            stop,
        ))
    }
}
